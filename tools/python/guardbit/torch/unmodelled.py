"""What ends a run: operators without a model, and other things that are not there."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import torch

MOST_TOLD = 6


def told_of_tensor(tensor: Any) -> str:
    """Its type and shape, and strides where it is not contiguous."""
    text = f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
    return text if tensor.is_contiguous() else f"{text} of strides {list(tensor.stride())}"


def told_of_tensors(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The tensors of a call by the names of its arguments."""
    named = {**dict(zip((argument.name for argument in func._schema.arguments), args)), **kwargs}
    told = []
    for name, value in named.items():
        for x in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(x, torch.Tensor):
                told.append(f"{name} {told_of_tensor(x)}")
    left = len(told) - MOST_TOLD
    return ", ".join(told[:MOST_TOLD]) + (f" and {left} more" if left > 0 else "")


class Unmodelled(BaseException):
    """No `except Exception` of a script catches it: what followed would not be the GPU's."""

    def __init__(self, what: str, reason: str, tensors: str = "") -> None:
        super().__init__(f"{what}: {reason}")
        self.what, self.reason, self.tensors = what, reason, tensors
        self.place = place_in_script()


_script = ""


def set_script(path: str) -> None:
    global _script
    _script = path


def place_in_script() -> str:
    """The line of the script that is being executed, as PATH:LINE; else the innermost line that is not PyTorch's or ours."""
    frames = traceback.extract_stack(sys._getframe())
    for frame in reversed(frames):
        if frame.filename == _script:
            return f"{frame.filename}:{frame.lineno}"
    return _script
