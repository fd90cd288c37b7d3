"""Operators that PyTorch computes by others, or by a single rounding, and sums by atomics in which no place is written twice."""

from __future__ import annotations

from typing import Any

import torch

from .gpu_tensor import GpuTensor
from .ranges import on_gpu
from .session import Session, argument_of, doubt_of, elements_of, on_cpu, tensor_of
from .tensor_iterator import like

aten = torch.ops.aten
LEAST_NORMAL = 2.0**-126
LEAST_DENOMINATOR = 1e-12
MOST_COUNTED = 2**24
MODE_MAX = 2
NORM_THREADS, WARP, WARP_BITS, LEAST_NORM = 128, 32, 5, 1e-7
MOST_OF_A_BLOCK = 2048


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


def normal_of_tensors(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """normal of a tensor of means, of deviations or of both: normal numbers, multiplied and added."""
    named = {argument.name: argument_of(func, args, kwargs, argument.name) for argument in func._schema.arguments}
    mean, deviation = (0.0 if named["mean"] is None else named["mean"]), (1.0 if named["std"] is None else named["std"])
    tensors = [x for x in (mean, deviation) if isinstance(x, torch.Tensor)]
    if not tensors:
        return session.modelled(func, args, kwargs)
    shape = torch.broadcast_shapes(*(x.shape for x in tensors))
    drawn = session.computed(aten.empty.memory_format, (shape,), {"dtype": tensors[0].dtype, "device": torch.device("cuda", 0)})
    session.computed(aten.normal_.default, (drawn,), {"generator": named["generator"]})
    return session.computed(aten.add.Tensor, (session.computed(aten.mul.Tensor, (drawn, deviation), {}), mean), {})


def reversed_bits(x: Any, count: int) -> Any:
    return sum(((x >> bit) & 1) << (count - 1 - bit) for bit in range(count))


def most_frequent(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """mode: the end of a longest run of the sorted numbers. Of several the one that comes first where a block of threads, with two numbers
    each, halves what is left. Which place of the number is told is not known."""
    x = elements_of(args[0])
    dim, keepdim = (argument_of(func, args, kwargs, name) for name in ("dim", "keepdim"))
    if x.is_floating_point() or x.dim() == 0 or x.numel() == 0:
        return session.without_model(func, args, kwargs, "numbers that are no integers, or none")
    rows = x.movedim(-1 if dim is None else dim, -1).sort(-1).values
    count = rows.shape[-1]
    if count > MOST_OF_A_BLOCK:
        return session.without_model(func, args, kwargs, f"more than {MOST_OF_A_BLOCK} numbers")
    place = torch.arange(count).expand(rows.shape)
    begins = torch.cat([torch.ones_like(rows[..., :1], dtype=torch.bool), rows.diff(dim=-1) != 0], -1)
    length = place - torch.where(begins, place, torch.zeros_like(place)).cummax(-1).values
    warp, lane = place // (2 * WARP), place // 2 % WARP
    turn = (reversed_bits(warp, WARP_BITS) * WARP + reversed_bits(lane, WARP_BITS)) * 2 + place % 2
    first = torch.where(length == length.amax(-1, keepdim=True), turn, torch.full_like(turn, MOST_OF_A_BLOCK)).argmin(-1, keepdim=True)
    values = rows.gather(-1, first).movedim(-1, -1 if dim is None else dim)
    values = values if keepdim else values.squeeze(-1 if dim is None else dim)
    doubt = doubt_of(args, kwargs)
    places = func(x, *args[1:], **kwargs)[1]
    return GpuTensor(values.contiguous(), doubt), GpuTensor(places, doubt or f"{func} (the place of equal numbers)")


def put(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of places that are written once."""
    target, index, _ = args[:3]
    places = elements_of(index).reshape(-1) % max(target.numel(), 1)
    if places.numel() and int(torch.bincount(places).max()) > 1:
        return session.without_model(func, args, kwargs, "places that are written several times")
    if argument_of(func, args, kwargs, "accumulate") and any(has_subnormals(elements_of(x)) for x in (target, args[2])):
        return session.without_model(func, args, kwargs, "atomics with subnormal numbers")
    return session.moved(func, args, kwargs)


def bag_gradient(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """_embedding_bag_backward of the greatest of each bag: atomics, which have no order where no place is written twice."""
    named = {argument.name: argument_of(func, args, kwargs, argument.name) for argument in func._schema.arguments}
    if named["mode"] != MODE_MAX:
        return session.modelled(func, args, kwargs)
    gradient, rows = elements_of(named["grad"]), elements_of(named["maximum_indices"])
    if named["sparse"] or has_subnormals(gradient):
        return session.without_model(func, args, kwargs, "sparse gradients, or atomics with subnormal numbers")
    result = torch.zeros(named["num_weights"], gradient.shape[1], dtype=gradient.dtype)
    is_written = rows >= 0
    counts = torch.zeros(result.shape, dtype=torch.int64).scatter_add_(0, rows.long().clamp(min=0), is_written.long())
    if counts.numel() and int(counts.max()) > 1:
        return session.without_model(func, args, kwargs, "atomics add in no fixed order")
    result.scatter_add_(0, rows.long().clamp(min=0), torch.where(is_written, gradient, torch.zeros_like(gradient)))
    return session.given(func, args, kwargs, result, doubt_of(args, kwargs))


def rows_of_bounded_norm(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """embedding_renorm_: a row's norm by 128 threads, whose sums go down a tree of 32 and one of four."""
    weights, indices, most, p = args
    if weights.dtype != torch.float32 or p != 2:
        return session.without_model(func, args, kwargs, "other than the norm 2 of FP32")
    used = elements_of(indices).reshape(-1).unique()
    table = elements_of(weights)
    rows = table[used]
    padded = torch.zeros(rows.shape[0], -(-rows.shape[1] // NORM_THREADS) * NORM_THREADS, dtype=torch.float64)
    padded[:, :rows.shape[1]] = rows
    sums = torch.zeros(rows.shape[0], NORM_THREADS)
    for part in padded.split(NORM_THREADS, 1):
        sums = session.computed(aten.addcmul.default, tuple(on_gpu(session, x.float()) for x in (sums, part, part)), {}).elements
    sums = sums.reshape(rows.shape[0], NORM_THREADS // WARP, WARP)
    for width in (16, 8, 4, 2, 1):
        sums = sums[..., :width] + sums[..., width:2 * width]
    sums = sums.reshape(rows.shape[0], -1)
    for width in (2, 1):
        sums = sums[:, :width] + sums[:, width:2 * width]
    half = on_gpu(session, torch.full(sums.shape, 0.5))
    norms = session.computed(aten.pow.Tensor_Tensor, (on_gpu(session, sums), half), {}).elements
    factors = (most / (norms.double() + LEAST_NORM)).float()
    table[used] = torch.where(norms > torch.tensor(most).float(), rows * factors, rows)
    weights.doubt = weights.doubt or doubt_of(args, kwargs)
    return weights


def sum_without_nans(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """nansum: an empty list of dimensions means all."""
    dims = argument_of(func, args, kwargs, "dim")
    if dims is None or len(dims) or argument_of(func, args, kwargs, "keepdim"):
        return session.modelled(func, args, kwargs)
    return session.modelled(func, (args[0],), {"dtype": argument_of(func, args, kwargs, "dtype")})


def placed_nonzeros(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """nonzero_static: the places of a dimension lie together."""
    found = on_cpu(func, args, kwargs)
    return session.wrapped(torch.empty_strided(found.shape, (1, found.shape[0]), dtype=found.dtype).copy_(found), doubt_of(args, kwargs))


Session.specials.update({
    "normal": normal_of_tensors, "mode": most_frequent, "put": put, "put_": put, "_embedding_bag_backward": bag_gradient,
    "embedding_renorm_": rows_of_bounded_norm, "nansum": sum_without_nans, "nonzero_static": placed_nonzeros,
    "frexp": fraction_and_exponent, "rrelu_with_noise": noisy_relu, "rrelu_with_noise_": noisy_relu,
    "_cudnn_rnn_flatten_weight": flattened_weights,
    "median": middle, "nanmedian": middle, "celu": celu, "trace": trace, "vdot": vdot, "_prelu_kernel": prelu, "_prelu_kernel_backward": prelu_backward,
    "binary_cross_entropy_backward": cross_entropy_backward, "index_add": index_add, "index_add_": index_add, "scatter_reduce": scatter_reduce,
    "scatter_reduce_": scatter_reduce, "linalg_cross": cross, "addr": outer_added, "addbmm": added_products, "nextafter": next_number, "rrelu_with_noise_backward": noisy_relu_backward,
    "ldexp": by_power, "log_sigmoid_forward": log_sigmoid, "cumsum": running_sum, "histc": histogram,
})
