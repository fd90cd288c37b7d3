"""PyTorch programs and the arithmetic of GPUs.

`python -m guardbit.torch --machine h200 SCRIPT ARGS...` runs a program with the bits of a GPU that is not there; `record` writes
what a program computes to a file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .recording.contents import Recording
    from .recording.recorder import Recorder

__all__ = ["Recording", "record"]

# PyTorch is loaded by what needs it: the command first sees that it is the right one.


def __getattr__(name: str) -> Any:
    if name == "Recording":
        from .recording.contents import Recording
        return Recording
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def record(path: str | os.PathLike[str], *, every: int = 1, sample: int | None = None, kernels: bool = False,
           limit: int | None = None, only: list[str] | None = None) -> Recorder:
    """Records every operator that PyTorch computes in a scope, forward and backward, on CPU and GPU:

    with guardbit.torch.record("run.safetensors", every=100, sample=16) as run:
        train()

    The file, written at the end of the scope, holds the operands and results of each call; `guardbit replay` computes them
    again. `every`: only steps 0, every, 2 every, ...; a step ends where an optimizer's `step()` does, or, in a program that
    calls `run.step()`, there. `sample`: of products with more than `limit` bytes of operands (default 1 MiB) so many rows and
    columns, with what they need of A and B; other calls past the limit are left out and counted. Elements of a GPU are copied
    without waiting for it. `only`: names of operators, as `["mm", "addmm"]`. `kernels`: also names and grids of the kernels, by
    PyTorch's profiler. What `torch.compile` has compiled runs uncompiled in the scope.
    """
    from .recording.recorder import Recorder
    return Recorder(path, every=every, sample=sample, kernels=kernels, limit=limit, only=only)
