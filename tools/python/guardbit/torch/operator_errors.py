"""How far each operator of a model is from the exact result."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from ..tables import Record, Table
from .recording.facts import taken_apart, tensors_in
from .recording.recorder import is_left_out

aten = torch.ops.aten
FRACTION_BITS = {torch.float32: 23, torch.float16: 10, torch.bfloat16: 7, torch.float8_e4m3fn: 3, torch.float8_e5m2: 2}
LEAST_EXPONENT = {torch.float32: -126, torch.float16: -14, torch.bfloat16: -126, torch.float8_e4m3fn: -6, torch.float8_e5m2: -14}
FUSED_ATTENTION = frozenset("""
_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention
_scaled_dot_product_cudnn_attention _scaled_dot_product_fused_attention_overrideable
""".split())
CALL_COLUMNS = ("layer", "operator", "type", "shape", "relative", "ulps", "roundings", "rounded")
OPERATOR_COLUMNS = ("operator", "calls", "relative", "ulps", "roundings", "rounded", "worst_layer")


def is_narrow(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in FRACTION_BITS


def wide(value: Any) -> Any:
    """The same in FP64; types that are asked for as well."""
    if isinstance(value, torch.Tensor):
        return value.detach().double() if is_narrow(value) else value.detach().clone()
    if isinstance(value, (list, tuple)):
        return type(value)(wide(x) for x in value)
    if isinstance(value, torch.dtype):
        return torch.float64 if value in FRACTION_BITS else value
    return value


def exact_result(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the operator gives of these operands in FP64; None where PyTorch has no such operator, and of draws."""
    name = func._schema.name.split("::")[-1]
    more = {key: wide(x) for key, x in kwargs.items()}
    try:
        if name in FUSED_ATTENTION:
            return exact_attention(func, wide(args), more)
        if torch.Tag.nondeterministic_seeded in func.tags:
            return None
        return func(*wide(args), **more)
    except (NotImplementedError, RuntimeError, TypeError):
        return None


def exact_attention(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    named = {argument.name: value for argument, value in zip(func._schema.arguments, args)} | kwargs
    if named.get("dropout_p"):
        return None
    mask = named.get("attn_bias", named.get("attn_mask"))
    return (aten._scaled_dot_product_attention_math(named["query"], named["key"], named["value"], mask, 0.0, named.get("is_causal", False),
                                                    scale=named.get("scale"))[0],)


def ulps_of(exact: Any, dtype: Any) -> Any:
    """The distance of neighbours of that type at each number, as FP64."""
    exponent = torch.frexp(exact.abs())[1] - 1
    exponent = exponent.clamp(min=LEAST_EXPONENT[dtype]) - FRACTION_BITS[dtype]
    return torch.ldexp(torch.ones_like(exact), exponent)


def pairs(result: Any, exact: Any) -> Iterator[tuple[Any, Any]]:
    """Results of a narrow type beside the exact ones."""
    if is_narrow(result):
        if isinstance(exact, torch.Tensor) and exact.shape == result.shape and exact.is_floating_point():
            yield result, exact
    elif isinstance(result, (list, tuple)) and isinstance(exact, (list, tuple)):
        for x, y in zip(result, exact):
            yield from pairs(x, y)


class OperatorErrors:
    """What `explain` found. `calls` and `operators` are tables, `worst` is the call that loses most."""

    def __init__(self, calls: list[Record], without_exact: dict[str, int]) -> None:
        self.calls = Table(calls, CALL_COLUMNS)
        self.operators = Table(sorted(summaries(calls), key=lambda x: -x.relative), OPERATOR_COLUMNS)
        self.worst: Record | None = max(calls, key=lambda x: float(x.relative), default=None)
        self.without_exact = without_exact

    def to_dict(self) -> dict[str, Any]:
        return {"calls": [dict(x) for x in self.calls], "operators": [dict(x) for x in self.operators],
                "worst": None if self.worst is None else dict(self.worst), "without_exact": self.without_exact}

    def __str__(self) -> str:
        lines = [repr(shown(self.calls)), "", repr(shown(self.operators))]
        if self.worst is not None:
            lines += ["", f"{self.worst.operator} in {self.worst.layer or 'the model itself'} loses most: "
                          f"{self.worst.relative:.2e} of the exact result, {self.worst.ulps:.3g} ulp at most"]
        if self.without_exact:
            lines.append("no exact result of " + ", ".join(f"{name} ({count})" for name, count in sorted(self.without_exact.items())))
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return shown(self.calls)._repr_html_() + shown(self.operators)._repr_html_()


def shown(table: Table) -> Table:
    """With numbers as one reads them."""
    def text(key: str, value: Any) -> Any:
        if key == "relative":
            return f"{value:.2e}"
        if key in ("ulps", "roundings"):
            return f"{value:.3g}"
        if key == "rounded":
            return f"{value:.1%}"
        return "x".join(map(str, value)) if key == "shape" else value

    return Table([Record((key, text(key, row[key])) for key in table.columns) for row in table], table.columns)


def summaries(calls: list[Record]) -> Iterator[Record]:
    by_name: dict[str, list[Record]] = {}
    for call in calls:
        by_name.setdefault(call.operator, []).append(call)
    for name, group in by_name.items():
        elements = sum(math.prod(x.shape) for x in group) or 1
        yield Record(operator=name, calls=len(group), relative=math.sqrt(sum(x.relative**2 for x in group) / len(group)), ulps=max(x.ulps for x in group),
                     roundings=max(x.roundings for x in group), rounded=sum(x.rounded * math.prod(x.shape) for x in group) / elements,
                     worst_layer=max(group, key=lambda x: float(x.relative)).layer)


class Watch(TorchDispatchMode):
    """Every operator beside the exact one of the same operands."""

    def __init__(self) -> None:
        super().__init__()
        self.layers: list[str] = []
        self.phase = ""
        self.calls: list[Record] = []
        self.without_exact: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = taken_apart(self, func, args, kwargs)
        if result is not NotImplemented:
            return result
        if is_left_out(func) or not any(map(is_narrow, tensors_in((args, tuple(kwargs.values()))))):
            return func(*args, **kwargs)
        with _disable_current_modes():
            exact = exact_result(func, args, kwargs)
        result = func(*args, **kwargs)
        if any(map(is_narrow, tensors_in((result,)))):
            with _disable_current_modes():
                self.add(func, result, exact)
        return result

    def leave(self, *_: Any) -> None:
        self.layers.pop()

    def add(self, func: Any, result: Any, exact: Any) -> None:
        name = str(func).removeprefix("aten.").removesuffix(".default")
        found = list(pairs(result, exact))
        if not found:
            self.without_exact[name] = self.without_exact.get(name, 0) + 1
            return
        got, wanted = found[0]
        self.calls.append(Record(layer=self.layers[-1] if self.layers else self.phase, operator=name, type=str(got.dtype).removeprefix("torch."),
                                 shape=list(got.shape), **distances(got.detach(), wanted)))


def distances(got: Any, exact: Any) -> dict[str, float]:
    """Of the elements that are finite in both."""
    told = got.double().isfinite() & exact.isfinite()
    rounded = float((got == exact.to(got.dtype)).logical_or(got.isnan() & exact.isnan()).double().mean()) if got.numel() else 1.0
    here, there = got.double()[told], exact[told]
    error = (here - there).abs()
    size = float(there.square().sum().sqrt())
    lost = float(error.square().sum().sqrt())
    least = float((there.to(got.dtype).double() - there).square().sum().sqrt())
    return {"relative": lost / size if size else 0.0 if lost == 0 else math.inf, "roundings": lost / least if least else 1.0 if lost == 0 else math.inf,
            "ulps": float((error / ulps_of(there, got.dtype)).max()) if error.numel() else 0.0, "rounded": rounded}


@contextlib.contextmanager
def layers_of(model: Any, watch: Watch) -> Iterator[None]:
    """The name of the innermost module whose forward is being computed."""
    handles = []
    if isinstance(model, torch.nn.Module):
        for name, module in model.named_modules():
            handles.append(module.register_forward_pre_hook(lambda _m, _i, name=name: watch.layers.append(name)))
            handles.append(module.register_forward_hook(watch.leave, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def explain(model: Any, inputs: Any, loss: Callable[[Any], Any] | None = None) -> OperatorErrors:
    if not callable(model):
        raise TypeError(f"model: {type(model).__name__} cannot be called")
    parameters_of: Any = getattr(model, "parameters", None)
    if loss is not None and parameters_of is None:
        raise TypeError("loss: is for a model with parameters, a torch.nn.Module")
    watch = Watch()
    with layers_of(model, watch), watch:
        output = model(**inputs) if isinstance(inputs, Mapping) else model(*inputs) if isinstance(inputs, (list, tuple)) else model(inputs)
        if loss is not None:
            watch.phase = "loss"
            value = loss(output)
            watch.phase = "backward"
            parameters = [x for x in parameters_of() if x.requires_grad]
            torch.autograd.grad(value, parameters, allow_unused=True)
    return OperatorErrors(watch.calls, watch.without_exact)
