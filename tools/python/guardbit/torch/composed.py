"""Operators that PyTorch computes by others, or by a single rounding, and sums by atomics in which no place is written twice."""

from __future__ import annotations

from typing import Any

import torch

from .gpu_tensor import GpuTensor
from .ranges import on_gpu
from .session import Session, argument_of, doubt_of, elements_of, tensor_of
from .tensor_iterator import like

aten = torch.ops.aten
LEAST_NORMAL = 2.0**-126
LEAST_DENOMINATOR = 1e-12
MOST_COUNTED = 2**24


def celu(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    alpha = argument_of(func, args, kwargs, "alpha")
    alpha = 1.0 if alpha is None else float(alpha)
    return session.computed(aten.elu.default, (args[0], alpha, 1.0, 1.0 / alpha), {})


def trace(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    diagonal = session.computed(aten.diagonal.default, (args[0],), {})
    return session.computed(aten.sum.default, (diagonal,), {})


def vdot(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return session.computed(aten.dot.default, args, kwargs)


def prelu(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, weight = args
    is_above = session.computed(aten.gt.Scalar, (x, 0), {})
    return session.computed(aten.where.self, (is_above, x, session.computed(aten.mul.Tensor, (weight, x), {})), {})


def prelu_backward(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    gradient, x, weight = args
    is_above = session.computed(aten.gt.Scalar, (x, 0), {})
    of_x = session.computed(aten.where.self, (is_above, gradient, session.computed(aten.mul.Tensor, (weight, gradient), {})), {})
    product = session.computed(aten.mul.Tensor, (x, gradient), {})
    nothing = session.computed(aten.zeros_like.default, (product,), {})
    return of_x, session.computed(aten.where.self, (is_above, nothing, product), {})


def cross_entropy_backward(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """binary_cross_entropy_backward."""
    gradient, x, target = args[:3]
    least = float(torch.tensor(LEAST_DENOMINATOR).to(x.dtype))
    weight, reduction = (argument_of(func, args, kwargs, name) for name in ("weight", "reduction"))
    above = session.computed(aten.mul.Tensor, (gradient, session.computed(aten.sub.Tensor, (x, target), {})), {})
    below = session.computed(aten.mul.Tensor, (session.computed(aten.rsub.Scalar, (x, 1), {}), x), {})
    result = session.computed(aten.div.Tensor, (above, session.computed(aten.clamp_min.default, (below, least), {})), {})
    if weight is not None:
        result = session.computed(aten.mul.Tensor, (result, weight), {})
    is_mean = reduction in (None, 1)
    if is_mean:
        result = session.computed(aten.div.Scalar, (result, x.numel()), {})
    # It is stored in a tensor like the input.
    laid = torch.empty_strided(x.shape, like(x), dtype=result.dtype)
    return result if laid.stride() == result.stride() else GpuTensor(laid.copy_(elements_of(result)), result.doubt)


def cross(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """linalg_cross: the first product is fused in FP32 and FP64; in 16 bits each step is stored."""
    first, second = args[:2]
    dim = argument_of(func, args, kwargs, "dim")
    dim = -1 if dim is None else dim

    def rolled(x: Any, by: int) -> Any:
        return session.computed(aten.roll.default, (x, [-by], [dim]), {})

    product = session.computed(aten.mul.Tensor, (rolled(first, 2), rolled(second, 1)), {})
    if first.dtype in (torch.float32, torch.float64):
        return session.computed(aten.addcmul.default, (session.computed(aten.neg.default, (product,), {}), rolled(first, 1), rolled(second, 2)), {})
    return session.computed(aten.sub.Tensor, (session.computed(aten.mul.Tensor, (rolled(first, 1), rolled(second, 2)), {}), product), {})


def outer_added(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """addr: alpha's product is stored; the sum is fused with beta's, but in 16 bits, which store each step and round alpha and beta."""
    x, first, second = args
    is_wide = x.dtype in (torch.float32, torch.float64)
    beta, alpha = (kwargs.get(name, 1) if is_wide else torch.tensor(kwargs.get(name, 1), dtype=x.dtype).item() for name in ("beta", "alpha"))
    factor = session.computed(aten.mul.Tensor, (session.computed(aten.unsqueeze.default, (first, 1), {}), alpha), {})
    product = session.computed(aten.mul.Tensor, (factor, second), {})
    if beta == 0:
        return product
    if is_wide:
        return session.computed(aten.add.Tensor, (product, x), {"alpha": beta})
    return session.computed(aten.add.Tensor, (session.computed(aten.mul.Tensor, (x, beta), {}), product), {})


def added_products(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """addbmm: each product is added to the sum of those before it."""
    x, first, second = args
    beta, alpha = (kwargs.get(name, 1) for name in ("beta", "alpha"))
    if first.shape[0] == 0:
        return session.without_model(func, args, kwargs, "no products to add")
    result = session.computed(aten.expand.default, (x, [first.shape[1], second.shape[2]]), {})
    for i in range(first.shape[0]):
        one, other = (session.computed(aten.select.int, (x, 0, i), {}) for x in (first, second))
        result = session.computed(aten.addmm.default, (result, one, other), {"beta": beta if i == 0 else 1, "alpha": alpha})
    return result


def next_number(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """nextafter: NaNs are the units' own."""
    result = func(*[elements_of(x) for x in args])
    if result.dtype == torch.float64:
        return session.given(func, args, kwargs, result, doubt_of(args, kwargs))
    whole = torch.tensor(0x7FFFFFFF, dtype=torch.int32).view(torch.float32) if result.dtype == torch.float32 else torch.tensor(
        0x7FFF, dtype=torch.int16).view(result.dtype)
    return session.given(func, args, kwargs, torch.where(result.isnan(), whole, result), doubt_of(args, kwargs))


def noisy_relu_backward(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    gradient, x, noise, lower, upper, training = args[:6]
    if training and upper - lower > 1e-6:
        return session.computed(aten.mul.Tensor, (noise, gradient), {})
    return session.computed(aten.leaky_relu_backward.default, (gradient, x, (lower + upper) / 2, False), {})


def by_power(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ldexp, of the type that both have in common."""
    x, exponent = args
    if exponent.is_floating_point():
        return session.without_model(func, args, kwargs, "exponents that are not whole")
    of_result = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    result = session.computed(aten.mul.Tensor, (x, session.computed(aten.pow.Scalar, (2.0, exponent), {})), {})
    return result if result.dtype == of_result else session.computed(aten._to_copy.default, (result,), {"dtype": of_result})


def index_add(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Where no place is written to twice each sum is one addition; a factor's product is stored first."""
    target, dim, index, source = args[:4]
    places = elements_of(index).reshape(-1)
    alpha = argument_of(func, args, kwargs, "alpha")
    reason = None
    if places.numel() and int(torch.bincount(places.long()).max()) > 1:
        reason = "atomics add in no fixed order"
    elif any(has_subnormals(elements_of(x)) for x in (target, source)):
        reason = "atomics with subnormal numbers"
    if reason:
        return session.without_model(func, args, kwargs, reason)
    if alpha in (None, 1):
        return session.moved(func, args, kwargs)
    if not source.is_floating_point():
        return session.without_model(func, args, kwargs, "a factor of integers")
    factor = on_gpu(session, torch.tensor(alpha, dtype=source.dtype).expand(source.shape).contiguous())
    product = session.computed(aten.mul.Tensor, (source, factor), {})
    if has_subnormals(elements_of(product)):
        return session.without_model(func, args, kwargs, "atomics with subnormal numbers")
    return session.moved(func, (target, dim, index, product), {})


def has_subnormals(x: Any) -> bool:
    return bool(x.dtype == torch.float32 and ((x != 0) & (x.abs() < LEAST_NORMAL)).any())


def scatter_reduce(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The greatest and the least do not depend on the order; with every place once no result does."""
    target, dim, index, source = args[:4]
    reduction = argument_of(func, args, kwargs, "reduce")
    is_extreme = reduction in ("amax", "amin")
    reason = None
    if is_extreme and any(elements_of(x).isnan().any() for x in (target, source)):
        reason = "the greatest of NaNs"
    elif not is_extreme and has_twice(elements_of(index), dim):
        reason = "atomics add in no fixed order"
    elif reduction in ("sum", "mean") and any(has_subnormals(elements_of(x)) for x in (target, source)):
        reason = "atomics with subnormal numbers"
    return session.without_model(func, args, kwargs, reason) if reason else session.moved(func, args, kwargs)


def has_twice(index: Any, dim: int) -> bool:
    """Is there an index twice in a line along the dimension?"""
    if index.dim() == 0 or index.shape[dim] < 2:
        return False
    ordered = index.sort(dim).values
    return bool((ordered.diff(dim=dim) == 0).any())


def log_sigmoid(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The second result is a buffer that only the CPU fills."""
    x = args[0]
    kept: list[Any] = []
    status, plan, results, *_ = session.operators.answer(str(func), [session.argument(x, kept)], {}, None, None, None)
    if status != "exact":
        return session.without_model(func, args, kwargs, plan)
    form = torch.empty_strided(x.shape, like(x), dtype=x.dtype, device="meta")
    session.report.add(str(func), plan, 0.0, False)
    return session.results_of(func, results[:1], form, doubt_of(args, kwargs)), GpuTensor(torch.empty(0, dtype=x.dtype))


def histogram(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """histc: each number's bin is computed in its type; numbers are counted exactly."""
    bins, low, high = (argument_of(func, args, kwargs, name) for name in ("bins", "min", "max"))
    bins, low, high = 100 if bins is None else bins, low or 0, high or 0
    x = elements_of(args[0]).reshape(-1)
    if x.dtype not in (torch.float32, torch.float64):
        is_whole = low != high and bins == high - low + 1 and not (x.is_floating_point() and bool((x != x.round()).any()))
        if not is_whole:
            return session.without_model(func, args, kwargs, "bins with more than one whole number")
        return session.given(func, args, kwargs, torch.histc(x.float(), bins, low, high).to(x.dtype), doubt_of(args, kwargs))
    least, greatest = (torch.tensor(bound, dtype=x.dtype) for bound in (low, high))
    if low == high and x.numel():
        least, greatest = x.min(), x.max()
    if least == greatest:
        least, greatest = least - 1, greatest + 1
    if not bool((greatest - least).isfinite()) or x.numel() > MOST_COUNTED:
        return session.without_model(func, args, kwargs, "bounds that are not finite, or so many numbers")
    x = x[(x >= least) & (x <= greatest)]
    places = ((x - least) * torch.tensor(bins, dtype=x.dtype) / (greatest - least)).to(torch.int64).clamp(max=bins - 1)
    return session.given(func, args, kwargs, torch.bincount(places, minlength=bins).to(x.dtype), doubt_of(args, kwargs))


def running_sum(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """cumsum: whole numbers have no order."""
    dtype = kwargs.get("dtype") or args[0].dtype
    if args[0].is_floating_point() or args[0].is_complex() or dtype.is_floating_point:
        return session.modelled(func, args, kwargs)
    return session.moved(func, args, kwargs)


def middle(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """median along a dimension: of equal numbers the place may be whichever thread was last."""
    x = args[0]
    if func not in (aten.median.dim, aten.nanmedian.dim):
        return session.modelled(func, args, kwargs)
    kept: list[Any] = []
    status, plan, results, *_ = session.operators.answer(str(func), [session.argument(t, kept) for t in args],
                                                         {name: session.argument(t, kept) for name, t in kwargs.items()}, None, None, None)
    if status != "exact":
        return session.without_model(func, args, kwargs, plan)
    session.report.add(str(func), plan, 0.0, False)
    doubt = doubt_of(args, kwargs)
    numbers = GpuTensor(tensor_of(results[0]), doubt)
    if results[1] is not None:
        return numbers, GpuTensor(tensor_of(results[1]), doubt)
    return numbers, GpuTensor(func(elements_of(x), *args[1:], **kwargs)[1], doubt or f"{func} (the place of equal numbers)")


def flattened_weights(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """_cudnn_rnn_flatten_weight: cuDNN's buffer of all weights, whose order nothing but cuDNN sees. The weights keep their own memory here."""
    flat = torch.cat([elements_of(x).reshape(-1) for x in args[0]])
    return session.wrapped(flat, doubt_of(args, kwargs))


def fraction_and_exponent(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """frexp: exact; the CPU has none of BF16."""
    x = args[0]
    if x.dtype != torch.bfloat16:
        return session.moved(func, args, kwargs)
    fraction, exponent = torch.frexp(elements_of(x).float())
    return session.given(func, args, kwargs, (fraction.to(x.dtype), exponent), doubt_of(args, kwargs))


def noisy_relu(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """rrelu_with_noise: in inference leaky_relu between both slopes."""
    x, lower, upper, training = (argument_of(func, args, kwargs, name) for name in ("self", "lower", "upper", "training"))
    if training:
        return session.modelled(func, args, kwargs)
    slope = ((1 / 8 if lower is None else lower) + (1 / 3 if upper is None else upper)) / 2
    if func._schema.name.endswith("_"):
        return session.computed(aten.leaky_relu_.default, (x, slope), {})
    return session.wrapped(session.computed(aten.leaky_relu.default, (x, slope), {}).elements.contiguous(), doubt_of(args, kwargs))


Session.specials.update({
    "frexp": fraction_and_exponent, "rrelu_with_noise": noisy_relu, "rrelu_with_noise_": noisy_relu,
    "_cudnn_rnn_flatten_weight": flattened_weights,
    "median": middle, "nanmedian": middle, "celu": celu, "trace": trace, "vdot": vdot, "_prelu_kernel": prelu, "_prelu_kernel_backward": prelu_backward,
    "binary_cross_entropy_backward": cross_entropy_backward, "index_add": index_add, "index_add_": index_add, "scatter_reduce": scatter_reduce,
    "scatter_reduce_": scatter_reduce, "linalg_cross": cross, "addr": outer_added, "addbmm": added_products, "nextafter": next_number, "rrelu_with_noise_backward": noisy_relu_backward,
    "ldexp": by_power, "log_sigmoid_forward": log_sigmoid, "cumsum": running_sum, "histc": histogram,
})
