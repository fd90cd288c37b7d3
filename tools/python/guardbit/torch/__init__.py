"""PyTorch programs and the arithmetic of GPUs.

`python -m guardbit.torch --machine h200 SCRIPT ARGS...` runs a program with the bits of a GPU that is not there; `record` writes
what a program computes to a file; in `machine` a model's products are those of a machine's units; `explain` says how far each
operator of a model is from the exact result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .recording.contents import Recording
    from .operator_errors import OperatorErrors
    from .recording.recorder import Recorder
    from .units.machine_scope import Machine

__all__ = ["Recording", "explain", "machine", "record"]

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


def machine(arch: str, plans: Mapping[str, str] | None = None) -> Machine:
    """In a scope, products, convolutions and attention of a model as the units of a machine would compute them:

    with guardbit.torch.machine("sm_100"):
        loss = model(x).sum()
        loss.backward()

    The rest is PyTorch's. Nothing is known of the plans of that machine's libraries here: each product is one ascending chain of
    the instruction that they usually take, convolutions are products over filter places with channels innermost, and attention
    is written out as two products and a softmax. One line on standard error says so, once for each machine. `plans` names others: a plan, as
    `explain` prints it, for products in "fp64", "fp32", "tf32", "fp16" or "bf16". TF32 is taken where PyTorch's settings for CUDA allow it: by
    default in convolutions of FP32 alone. Tensors may be on the CPU: autocast then casts what it casts on CUDA, and `torch.autocast("cuda")` is
    the CPU's where there is no GPU.
    """
    if not isinstance(arch, str):
        raise TypeError(f"arch: is a word, not {type(arch).__name__}")
    if not isinstance(plans, (Mapping, type(None))):
        raise TypeError(f"plans: is a dict of plans by format, not {type(plans).__name__}")
    from .units.machine_scope import Machine
    return Machine(arch, plans)


def explain(model: Any, inputs: Any, loss: Callable[[Any], Any] | None = None) -> OperatorErrors:
    """How far the result of each operator of a model is from the exact one, layer by layer.

    `inputs` is the tensor that the model takes, a tuple of its arguments, or a dict of them by name; `loss` makes a number of what it
    gives, whose backward operators are then included. Each operator is computed a second time in FP64 from the same operands, so
    that an error is its own and not that of its operands; operators on FP64 are left out. `relative` is the length of the error beside that
    of the exact result, `ulps` the largest distance in units of the last place of the result's type, `roundings` the error beside the one that
    a single rounding of the exact result makes, `rounded` the share of elements that are the exact ones rounded once. The call with the largest relative error is `worst`. Inside `machine(...)` products are those of its
    units.
    """
    from .operator_errors import explain as explained
    return explained(model, inputs, loss)
