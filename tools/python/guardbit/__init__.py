"""Bit-exact models of the arithmetic that AI is computed with.

Every number is the one that the named hardware gives, bit for bit, computed without that hardware:

>>> import numpy as np, guardbit
>>> a = np.ones((16, 32), np.float16)
>>> guardbit.matmul(a, a.T, arch="sm_90").dtype
dtype('float16')

Functions take arrays of NumPy, ml_dtypes, PyTorch, JAX and CuPy and answer with arrays of the same library. Formats that the
library has no type for come out, and go in, as `Codes`. Names of formats, plans, machines and instructions are those of the
command `guardbit`.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from . import recipes, scaler
from ._core import Error, version as _version
from .arrays import Codes
from .casting import Blocks, cast, dequantize, quantize
from .catalogue import engines, formats, instructions, machines, plans
from .files import Tensors, load
from .products import conv, matmul, plan_of, run
from .special_functions import function, functions
from .traces import Trace, trace
from .reports import CallPlan, Comparison, Explanation, Probe, Verification, compare, explain, plan, probe, verify

__version__ = _version()

# Parts that import other packages, and come when they are first named.
_PARTS = ("jax", "testing", "torch")


def __getattr__(name: str) -> ModuleType:
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})

__all__ = [
    "Blocks", "CallPlan", "Codes", "Comparison", "Error", "Explanation", "Probe", "Tensors", "Trace", "Verification", "__version__", "cast", "compare", "conv",
    "dequantize", "engines", "explain", "formats", "function", "functions", "instructions", "load", "machines", "matmul", "plan", "plan_of", "plans",
    "probe", "quantize", "recipes", "run", "scaler", "trace", "verify",
]
