"""What ends a run: operators without a model, and other things that are not there."""

from __future__ import annotations

import sys
import traceback


class Unmodelled(BaseException):
    """No `except Exception` of a script catches it: what followed would not be the GPU's."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what, self.reason = what, reason
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
