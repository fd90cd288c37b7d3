"""What is said of results, units and calls: explain, compare, verify, probe, plan."""

from __future__ import annotations

import json
import os
from html import escape
from typing import Any, Callable, Sequence

import numpy as np

from . import _core
from .arguments import checked
from .arrays import Library, format_name, from_codes, number_or_array, to_numpy, view, word_of
from .tables import Record, record


class Picture:
    """A picture as SVG text, which notebooks show."""

    def __init__(self, svg: str):
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<picture, {len(self.svg)} characters of SVG>"


class Report:
    """What the command prints: as text (`print(report)`), and as attributes, which are the keys of its JSON."""

    def __init__(self, found: _core.Report):
        self._found = found
        self._values: Record = record(json.loads(found.json))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._values, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def to_dict(self) -> dict[str, Any]:
        """The JSON that the command prints."""
        found: dict[str, Any] = json.loads(self._found.json)
        return found

    @checked
    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        width: float = 0,
        height: float = 0,
        x: str = "",
        y: str = "",
        range: str | list[str] = (),  # type: ignore[assignment]
    ) -> Picture:
        """The picture that the command draws with --plot; in a notebook it shows itself, `path` writes it as .svg, .pdf or .png.

        `width`, `height` in pixels; `x`, `y`: lin or log; `range`: "0.1:10" of y, "x=1:100" of x."""
        options = _core.PlotOptions()
        options.path = "" if path is None else os.fsdecode(path)
        options.width, options.height, options.x, options.y = width, height, x, y
        options.ranges = [range] if isinstance(range, str) else list(range)
        return Picture(self._found.plot(options))

    def __repr__(self) -> str:
        return self._found.text.rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


class Explanation(Report):
    """What `explain` found. `verdict`: exact_plan, rounded_once, valid_rounding, wrong or not_judged; `findings`: records of
    what is wrong; `plans`: those that give every bit, or the nearest."""

    @property
    def plan(self) -> str | None:
        """The plan that gives every bit, as `matmul(plan=...)` takes it."""
        return self._values.plans[0].plan if self._values.explained else None

    def __bool__(self) -> bool:
        return bool(self._values.explained)


class Comparison(Report):
    """What `compare` measured: errors in ulp, relative to the sum of magnitudes, the plan's bounds, a map."""


def _asked(alpha: float | None, beta: float | None, activation: str | None, arch: str | None = None,
           tf32: bool = False) -> _core.AskedProduct:
    asked = _core.AskedProduct()
    asked.alpha, asked.beta, asked.activation = alpha, beta, activation or ""
    asked.arch, asked.tf32 = arch or "", tf32
    return asked


def _product(a: Any, b: Any, c: Any, bias: Any, scale_a: Any, scale_b: Any, sparse: bool, dtype: Any) -> _core.ProductArrays:
    def optional(x: Any, name: str) -> _core.Array | None:
        return None if x is None else view(number_or_array(x), name)

    return _core.ProductArrays(view(a, "a", dtype), view(b, "b", dtype), optional(c, "c"), optional(bias, "bias"),
                               optional(scale_a, "scale_a"), optional(scale_b, "scale_b"), sparse)


@checked
def explain(
    d: Any,
    a: Any = None,
    b: Any = None,
    c: Any = None,
    *,
    bias: Any = None,
    scale_a: Any = None,
    scale_b: Any = None,
    alpha: float | None = None,
    beta: float | None = None,
    activation: str | None = None,
    arch: str | None = None,
    tf32: bool = False,
    sparse: bool = False,
    dtype: Any = None,
    max_plans: int = 8,
    time_limit: float = 60,
    threads: int = 0,
) -> Explanation:
    """Finds the plan that gives every bit of d = alpha * a @ b + beta * c + bias, or says what is wrong with d.

    Shapes as those of the command: a [M, K] or [B, M, K], b [K, N] or [B, K, N], d [M, N] or [B, M, N]; `explain(path)` takes a
    capture. `arch`: the machine (default sm_90). `time_limit` in seconds, 0 for none; Ctrl-C ends the search.
    """
    asked = _asked(alpha, beta, activation, arch, tf32)
    if not time_limit >= 0:
        raise ValueError(f"time_limit: {time_limit} is no number of seconds (0: no limit)")
    if isinstance(d, (str, os.PathLike)):
        if a is not None or b is not None or c is not None:
            raise ValueError("explain: a capture holds its operands; a, b and c belong to an array d")
        return Explanation(_core.explain_file(os.fsdecode(d), asked, max_plans, time_limit, threads))
    if a is None or b is None:
        raise ValueError("explain: needs d, a and b, or the path of a capture")
    arrays = _product(a, b, c, bias, scale_a, scale_b, sparse, dtype)
    return Explanation(_core.explain_arrays(view(d, "d"), arrays, asked, max_plans, time_limit, threads))


@checked
def compare(
    d: Any,
    reference: Any = None,
    *,
    a: Any = None,
    b: Any = None,
    c: Any = None,
    bias: Any = None,
    scale_a: Any = None,
    scale_b: Any = None,
    alpha: float | None = None,
    beta: float | None = None,
    activation: str | None = None,
    plan: str | None = None,
    sparse: bool = False,
    dtype: Any = None,
    threads: int = 0,
) -> Comparison:
    """How far d is from a reference in any format, or from the exact a @ b: in ulp of d's format, and relative to the sum of
    the magnitudes. With a `plan`, the errors that it may make bound those of d."""
    if (reference is None) == (a is None and b is None):
        raise ValueError("compare: needs a reference, or a and b")
    if reference is not None:
        if any(x is not None for x in (c, bias, scale_a, scale_b, alpha, beta, activation, plan)):
            raise ValueError("compare: operands, factors and a plan belong to a and b, not to a reference")
        return Comparison(_core.compare_arrays(view(d, "d"), view(reference, "reference"), threads))
    if a is None or b is None:
        raise ValueError("compare: needs both a and b")
    arrays = _product(a, b, c, bias, scale_a, scale_b, sparse, dtype)
    return Comparison(_core.compare_product(view(d, "d"), arrays, _asked(alpha, beta, activation), plan or "", threads))


class Verification(Report):
    """What `verify` found: `files`, `outputs`, `mismatches`, `reports` of single elements, `errors`."""

    def __bool__(self) -> bool:
        return self._values.mismatches == 0 and not self._values.errors


@checked
def verify(
    paths: Any,
    *,
    plan: str | None = None,
    engine: str = "auto",
    max_report: int = 3,
    threads: int = 0,
) -> Verification:
    """Executes recordings again and compares every bit: captures of kind instruction or dot, or with a `plan` of kind gemm or
    conv2d. Files that cannot be verified are in `errors`."""
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not listed:
        raise ValueError("verify: needs the path of a capture")
    return Verification(_core.verify([os.fsdecode(p) for p in listed], plan or "", engine, max_report, threads))


class Probe(Report):
    """What `probe` found out about a unit. `instruction_text` is the instruction as a file of `--spec` holds it, or None."""

    def __init__(self, found: tuple[_core.Report, str]):
        super().__init__(found[0])
        self.instruction_text = found[1] or None

    def __bool__(self) -> bool:
        return bool(self._values.explained)


@checked
def probe(
    function: Callable[..., Any],
    *,
    a: Any,
    b: Any = None,
    c: Any = None,
    d: Any,
    k: int = 16,
    m: int = 1,
    n: int = 1,
    row: int = 0,
    column: int = 0,
    library: Any = "numpy",
    device: Any = "cpu",
    batched: bool = True,
    seed: int = 1,
) -> Probe:
    """Infers the arithmetic of a function that multiplies matrices, from its answers alone.

    `function(a, b)`, or with a format for c `function(a, b, c)`, takes arrays a [T, m, k], b [T, k, n] and c [T, m, n] and returns
    d [T, m, n]; with `batched=False` it is called once for each of the T products, without the first dimension. `a`, `b`
    (default a's), `c` and `d` are formats. `library`: "numpy" or "torch", whose arrays it gets, on `device`; formats that the
    library has no type for come as `Codes`. All rows of a and columns of b are equal; the element [row, column] answers.
    k above 256 finds the order of additions only.
    """
    formats = [format_name(x, name) for x, name in ((a, "a"), (a if b is None else b, "b"), (d, "d"))]
    of_c = None if c is None else format_name(c, "c")
    if not callable(function):
        raise TypeError(f"function: {type(function).__name__} cannot be called")
    for name, size in (("m", m), ("n", n)):
        if size > 4096:
            raise ValueError(f"{name}: {size} is out of range (valid: 1 to 4096)")
    if not (0 <= row < m and 0 <= column < n):
        raise ValueError("probe: row and column are not below m and n")
    if not isinstance(library, str):
        raise TypeError(f"library: is a word, not {type(library).__name__}")
    if library == "torch":
        import torch

        where = Library("torch", torch.device(device))
    elif library == "numpy":
        where = Library("numpy")
    else:
        raise ValueError(f"library: {library!r} (valid: numpy, torch)")

    def operand(codes: bytes, of: str, shape: tuple[int, ...], repeat: tuple[int, ...]) -> Any:
        words: Any = np.frombuffer(codes, word_of(of)).reshape(shape)
        return from_codes(np.tile(words, repeat), of, where)

    def answer(count: int, a_codes: bytes, b_codes: bytes, c_codes: bytes | None) -> _core.Array:
        operands = [operand(a_codes, formats[0], (count, 1, k), (1, m, 1)),
                    operand(b_codes, formats[1], (count, k, 1), (1, 1, n))]
        if c_codes is not None and of_c is not None:
            operands.append(operand(c_codes, of_c, (count, 1, 1), (1, m, n)))
        with np.errstate(all="ignore"):  # questions overflow on purpose
            if batched:
                codes, of = to_numpy(function(*operands), "d")
                codes = codes.reshape(count, m, n)
            else:
                parts = [to_numpy(function(*(x[i] for x in operands)), "d") for i in range(count)]
                codes, of = np.stack([part[0].reshape(m, n) for part in parts]), parts[0][1]
        return _core.Array.view(np.ascontiguousarray(codes[:, row, column]), of, "d")

    unit = getattr(function, "__qualname__", type(function).__name__)
    return Probe(_core.probe(answer, unit, formats[0], formats[1], of_c, formats[2], k, seed))


class CallPlan(Report):
    """What `plan` answered. `known`: recorded, rule, nearest or unknown; `agree`: at least this share of the recorded calls like
    it has the plan, 0 to 1; `why`; `plan`: a record of its keys, the line itself as `plan.text`, or None where it is unknown;
    `holds_for`: library, driver and machine."""

    @property
    def text(self) -> str | None:
        """The plan on one line, as `matmul` and `explain` take it; None where it is unknown."""
        found = self.to_dict()["plan"]
        return None if found is None else str(found["text"])


def _strides(given: Any, name: str) -> list[int]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in given):
        raise TypeError(f"{name}: is a list of whole numbers")
    if not all(abs(int(x)) < 2**63 for x in given):
        raise ValueError(f"{name}: is out of range")
    return [int(x) for x in given]


@checked
def plan(
    op: str,
    *,
    m: int,
    n: int,
    k: int,
    dtype: Any,
    batch: int = 1,
    tf32: bool = False,
    layout: str = "NN",
    a_stride: Sequence[int] | None = None,
    b_stride: Sequence[int] | None = None,
    book: str | os.PathLike[str] | None = None,
    like: str | None = None,
) -> CallPlan:
    """Which plan a library takes for a matrix product, from the call alone (docs/ATLAS.md).

    `op`: mm, addmm (a bias of [N]) or bmm; D is [M, N], A [M, K], B [K, N]. `dtype`: of A, B and D; `tf32`: FP32 that PyTorch
    may multiply in TF32. `layout`: A and B row-major (N) or column-major (T), without gaps; or their strides in elements, of
    bmm three. `book`: a plan book of `guardbit replay`, exact for the calls in it. `nearest` is a guess; the text says so.
    """
    if (a_stride is None) != (b_stride is None):
        raise ValueError("a_stride: goes together with b_stride")
    if a_stride is not None and layout != "NN":
        raise ValueError("layout: is not taken beside strides")
    numbers = format_name(dtype, "dtype")
    if tf32:
        if numbers != "fp32":
            raise ValueError(f"tf32: is a way to multiply fp32, not {numbers}")
        numbers = "tf32"
    asked = _core.AskedCall(op, numbers, m, n, k, batch)
    asked.layout = layout
    if a_stride is not None and b_stride is not None:
        asked.a_stride, asked.b_stride = _strides(a_stride, "a_stride"), _strides(b_stride, "b_stride")
    if book is not None:
        asked.book = os.fsdecode(book)
    if like is not None:
        asked.like = like
    return CallPlan(_core.plan_of_call(asked))
