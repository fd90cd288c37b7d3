"""scaled_dot_product_attention: which of its kernels PyTorch 2.11 takes on an H200, and what it does before and after."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
import torch.nn.functional as F

from . import generators
from .forms import form_of
from .gpu_tensor import GpuTensor
from .session import Session, argument_of, doubt_of, elements_of, is_gpus
from .unmodelled import Unmodelled

aten = torch.ops.aten
HALVES = (torch.float16, torch.bfloat16)
# As torch.nn.attention.SDPBackend numbers them.
MATH, FLASH, EFFICIENT, CUDNN = 0, 1, 2, 3
CUDNNS_HIDDEN = -65504.0


def _needs_gradient(*tensors: Any) -> bool:
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def _last_is_dense(tensors: tuple[Any, ...], ignores_single: bool) -> bool:
    return all(t.stride(-1) == 1 or (ignores_single and t.shape[-1] == 1) for t in tensors)


def _heads_fit(q: Any, k: Any, v: Any, grouped: bool, one_count: bool) -> bool:
    """`one_count`: keys and values must have as many heads as one another."""
    if not (q.shape[0] == k.shape[0] == v.shape[0]):
        return False
    if not grouped:
        return bool(q.shape[1] == k.shape[1] == v.shape[1])
    if one_count and k.shape[1] != v.shape[1]:
        return False
    return bool(q.shape[1] % k.shape[1] == 0 and q.shape[1] % v.shape[1] == 0)


def _mask_fits(mask: Any, q: Any, k: Any) -> bool:
    if mask is None:
        return True
    if mask.requires_grad or mask.shape[-2] not in (1, q.shape[2]) or mask.shape[-1] not in (1, k.shape[2]):
        return False
    return mask.dim() == 2 or (mask.dim() == 4 and mask.shape[0] in (1, q.shape[0]) and mask.shape[1] in (1, q.shape[1]))


def _takes_cudnn(q: Any, k: Any, v: Any, mask: Any, dropout: float, grouped: bool) -> bool:
    if not torch._C._get_cudnn_sdp_enabled() or q.dtype not in HALVES:
        return False
    if torch._C._get_deterministic_algorithms() and not torch._C._get_deterministic_algorithms_warn_only():
        return False
    if 0 in (q.shape[2], k.shape[2]) or not _last_is_dense((q, k, v), True) or not _heads_fit(q, k, v, grouped, False):
        return False
    width, of_values = q.shape[3], v.shape[3]
    if width % 8 or of_values % 8 or max(width, of_values) > (192 if (width, of_values) == (192, 128) else 128):
        return False
    if k.shape[2] == 1 or (dropout and q.shape[2] == 1):
        return False
    return _mask_fits(mask, q, k)


def _takes_flash(q: Any, k: Any, v: Any, mask: Any, causal: bool, grouped: bool) -> bool:
    if not torch._C._get_flash_sdp_enabled() or mask is not None or q.dtype not in HALVES:
        return False
    if not (q.shape[3] == k.shape[3] == v.shape[3] <= 256) or (causal and q.shape[2] != k.shape[2]):
        return False
    return 0 not in (q.shape[2], k.shape[2]) and _last_is_dense((q, k, v), True) and _heads_fit(q, k, v, grouped, True)


def _takes_efficient(q: Any, k: Any, v: Any, grouped: bool) -> bool:
    if not torch._C._get_mem_efficient_sdp_enabled() or q.dtype not in (*HALVES, torch.float32):
        return False
    aligned = 8 if q.dtype in HALVES else 4
    if q.shape[3] != k.shape[3] or q.shape[3] % aligned or v.shape[3] % aligned or 0 in (q.shape[2], k.shape[2]):
        return False
    return _last_is_dense((q, k, v), False) and _heads_fit(q, k, v, False, True) and not grouped


def chosen_backend(q: Any, k: Any, v: Any, mask: Any, dropout: float, causal: bool, grouped: bool) -> int:
    """The backend that PyTorch would take; -1 where none may be."""
    order = list(torch._C._get_sdp_priority_order())
    if order[:4] == [FLASH, EFFICIENT, MATH, CUDNN]:
        # What PyTorch makes of its default at the first call on a GPU of compute capability 9.0.
        order = [CUDNN, FLASH, EFFICIENT, MATH]
    dense = q.dim() == k.dim() == v.dim() == 4
    one_type = q.dtype == k.dtype == v.dtype
    for backend in order:
        if backend == MATH and torch._C._get_math_sdp_enabled():
            return MATH
        if not dense or not one_type:
            continue
        if backend == CUDNN and _takes_cudnn(q, k, v, mask, dropout, grouped):
            return CUDNN
        if backend == FLASH and _takes_flash(q, k, v, mask, causal, grouped):
            return FLASH
        if backend == EFFICIENT and _takes_efficient(q, k, v, grouped):
            return EFFICIENT
    return -1


def scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, *,
                                 scale: float | None = None, enable_gqa: bool = False) -> Any:
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    backend = chosen_backend(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    if backend == -1:
        raise RuntimeError("No available kernel. Aborting execution.")
    mask = attn_mask
    if mask is not None and mask.dtype == torch.bool:
        # PyTorch 2.11 hides keys from cuDNN by a finite number.
        hidden = CUDNNS_HIDDEN if backend == CUDNN else -math.inf
        mask = torch.where(mask.logical_not(), hidden, torch.scalar_tensor(0.0, dtype=query.dtype, device=mask.device))
    keeps_sums = _needs_gradient(query, key, value)
    if backend == CUDNN:
        return aten._scaled_dot_product_cudnn_attention(query, key, value, mask, keeps_sums, dropout_p, is_causal, False, scale=scale)[0]
    if backend == FLASH:
        width = query.shape[-1]
        own_scale = 1 / math.sqrt(width) if scale is None else scale
        padded = [F.pad(t, (0, -t.shape[-1] % 8)) if t.shape[-1] % 8 else t for t in (query, key, value)]
        result = aten._scaled_dot_product_flash_attention(*padded, dropout_p, is_causal, False, scale=own_scale)[0]
        return result if width % 8 == 0 else result[..., :width]
    if backend == EFFICIENT:
        if mask is not None:
            mask = _aligned_mask(mask, query, key)
        return aten._scaled_dot_product_efficient_attention(query, key, value, mask, keeps_sums, dropout_p, is_causal, scale=scale)[0]
    return aten._scaled_dot_product_attention_math(query, key, value, mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa)[0]


def _aligned_mask(mask: Any, query: Any, key: Any) -> Any:
    """Expanded; its rows in memory begin at multiples of 16 elements."""
    last = mask.shape[-1]
    if last % 16 or mask.storage_offset() % 16:
        mask = F.pad(mask, (0, 16 - last % 16))[..., :last]
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])


def _whole(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The composite operator, which arrives whole where there is no autograd."""
    with session:
        return scaled_dot_product_attention(*args, **kwargs)


def _with_state(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A fused forward kernel: two results are computed; the others say how to go backward."""
    began = time.perf_counter()
    query, key = (argument_of(func, args, kwargs, name) for name in ("query", "key"))
    seed, offset = generators.default.seed_, generators.default.offset
    session.refresh_flags()
    kept: list[Any] = []
    status, plan, results, *_, drawn = session.operators.answer(
        str(func), [session.argument(x, kept) for x in args], {name: session.argument(x, kept) for name, x in kwargs.items()}, None, seed, offset)
    if status != "exact":
        return session.without_model(func, args, kwargs, plan)
    generators.default.offset += drawn
    form = form_of(func, args, kwargs)
    doubt = doubt_of(args, kwargs)
    packet = func.overloadpacket.__name__
    out = session.results_of(func, results[:1], form[0], doubt)
    sums = session.results_of(func, results[1:2], form[1], doubt) if results[1] is not None and form[1].numel() == _count(results[1]) else GpuTensor(
        torch.empty_strided(form[1].shape, form[1].stride(), dtype=form[1].dtype), doubt)
    session.report.add(str(func), plan, time.perf_counter() - began, False)
    if packet == "_scaled_dot_product_flash_attention":
        state = torch.tensor([seed, offset], dtype=torch.int64).view(torch.uint64)
        empty = torch.tensor(0, dtype=torch.uint64)
        return (out, sums, None, None, query.shape[2], key.shape[2], GpuTensor(state), GpuTensor(empty), GpuTensor(torch.empty(0, dtype=query.dtype)))
    first, second = (torch.tensor(x, dtype=torch.int64) for x in (seed, offset))
    if packet == "_scaled_dot_product_efficient_attention":
        return out, sums, GpuTensor(first), GpuTensor(second)
    return out, sums, None, None, query.shape[2], key.shape[2], GpuTensor(first), GpuTensor(second), None


def _masked_queries(bias: Any) -> Any:
    """Queries, [batch, heads, queries, 1], that the mask gives minus infinity for every key; None where there are none."""
    masked = None if bias is None else (elements_of(bias) == -math.inf).all(-1, keepdim=True)
    return masked if masked is not None and bool(masked.any()) else None


def _cudnn(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Results of queries that are masked everywhere are zeros."""
    masked = _masked_queries(argument_of(func, args, kwargs, "attn_bias"))
    if masked is None:
        return _with_state(session, func, args, kwargs)
    out, sums, *state = _with_state(session, func, *_with(func, args, kwargs, masked, "attn_bias"))
    out.elements.masked_fill_(masked, 0)
    return out, sums, *state


def _cudnn_backward(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    masked = _masked_queries(argument_of(func, args, kwargs, "attn_bias"))
    if masked is not None:
        args, kwargs = _with(func, args, kwargs, masked, "attn_bias", "grad_out")
    return session.modelled(func, args, kwargs)


def _with(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], masked: Any, *names: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, with zeros for these queries in those of these names."""
    def cleared(name: str, value: Any) -> Any:
        return GpuTensor(value.elements.masked_fill(masked, 0), value.doubt) if name in names else value

    found = tuple(cleared(argument.name, value) for argument, value in zip(func._schema.arguments, args))
    return found, {name: cleared(name, value) for name, value in kwargs.items()}


def _count(value: Any) -> int:
    return math.prod(value[1])


Session.specials.update({
    "scaled_dot_product_attention": _whole,
    "_scaled_dot_product_flash_attention": _with_state,
    "_scaled_dot_product_efficient_attention": _with_state,
    "_scaled_dot_product_cudnn_attention": _cudnn,
    "_scaled_dot_product_cudnn_attention_backward": _cudnn_backward,
})


def install() -> Any:
    """PyTorch's own choice of a kernel asks a GPU for its properties."""
    library = torch.library.Library("aten", "IMPL")

    def on_gpu(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, *,
               scale: float | None = None, enable_gqa: bool = False) -> Any:
        if not is_gpus((query, key, value), {}):
            raise Unmodelled("aten.scaled_dot_product_attention.default", "operands of cuda that are not ours")
        return scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)

    library.impl("scaled_dot_product_attention", on_gpu, "AutogradCUDA")
    return library
