"""nn.MultiheadAttention and nn.TransformerEncoderLayer in inference, which PyTorch calls as one operator each, by the operators inside."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..special_functions import function
from .fused_attention import MATH, chosen_backend, scaled_dot_product_attention
from .session import Session, argument_of, elements_of

aten = torch.ops.aten


def _view(session: Session, x: Any, *sizes: int) -> Any:
    return session.computed(aten.view.default, (x, list(sizes)), {})


def _transposed(session: Session, x: Any, first: int, second: int) -> Any:
    return session.computed(aten.transpose.int, (x, first, second), {})


def _part(session: Session, x: Any, number: int, size: int) -> Any:
    return session.computed(aten.slice.Tensor, (x, -1, number * size, (number + 1) * size), {})


def _linear(session: Session, x: Any, weight: Any, bias: Any = None) -> Any:
    """Of [batch, length, features]."""
    rows = _view(session, x, -1, x.shape[-1])
    turned = session.computed(aten.t.default, (weight,), {})
    result = session.computed(aten.mm.default, (rows, turned), {}) if bias is None else session.computed(aten.addmm.default, (bias, rows, turned), {})
    return _view(session, result, *x.shape[:-1], weight.shape[0])


def _dense(session: Session, x: Any) -> Any:
    return session.computed(aten.clone.default, (x,), {"memory_format": torch.contiguous_format})


def _heads(session: Session, x: Any, heads: int) -> Any:
    """[batch, length, features] as [batch, heads, length, features of a head]."""
    return _transposed(session, _view(session, x, x.shape[0], x.shape[1], heads, x.shape[2] // heads), 1, 2)


def attention(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """_native_multi_head_attention."""
    names = ("query", "key", "value", "embed_dim", "num_head", "qkv_weight", "qkv_bias", "proj_weight", "proj_bias", "mask", "need_weights",
             "average_attn_weights", "mask_type")
    query, key, value, width, heads, weight, bias, out_weight, out_bias, mask, needs_weights, averages, kind = (
        argument_of(func, args, kwargs, name) for name in names)
    needs_weights, averages = needs_weights is not False, averages is not False
    is_self = query is key and key is value
    if query.is_nested or not is_self or query.dim() != 3 or query.numel() == 0:
        return session.without_model(func, args, kwargs, "nested tensors, or other than self-attention")
    return _attention(session, query, width, heads, weight, bias, out_weight, out_bias, mask, needs_weights, averages, kind)


def _attention(session: Session, x: Any, width: int, heads: int, weight: Any, bias: Any, out_weight: Any, out_bias: Any, mask: Any,
               needs_weights: bool, averages: bool, kind: Any) -> Any:
    size = width // heads
    batch, length = x.shape[:2]
    if size % 8 == 0 and not needs_weights and mask is None:
        q = _heads(session, x, heads)
        if chosen_backend(q, q, q, None, 0.0, False, False) not in (MATH, -1):
            qkv = _linear(session, x, weight, bias)
            with session.calling():
                found = scaled_dot_product_attention(*[_heads(session, _part(session, qkv, i, width), heads) for i in range(3)])
            found = _dense(session, _transposed(session, found, 1, 2))
            return _linear(session, _view(session, found, batch, length, width), out_weight, out_bias), None
    qkv = _linear(session, x, weight)
    # Queries are divided by the root of their size in FP32, and rounded once.
    scale = float((1.0 / torch.tensor(float(size), dtype=x.dtype).sqrt()).to(x.dtype))
    sums = session.computed(aten.add.Tensor, tuple(session.computed(aten._to_copy.default, (t,), {"dtype": torch.float32}) for t in (qkv, bias)), {})
    parts = [_part(session, sums, i, width) for i in range(3)]
    parts[0] = session.computed(aten.mul.Tensor, (parts[0], scale), {})
    q, k, v = (_view(session, _dense(session, _heads(session, session.computed(aten._to_copy.default, (t,), {"dtype": x.dtype}), heads)),
                     batch * heads, length, size) for t in parts)
    scores = _view(session, session.computed(aten.bmm.default, (q, _transposed(session, k, 1, 2)), {}), batch, heads, length, length)
    if mask is not None:
        hidden = elements_of(mask).bool()
        if kind == 1:
            hidden = hidden.reshape(batch, 1, 1, length)
        scores = session.wrapped(elements_of(scores).masked_fill(hidden, -math.inf), scores.doubt)
    shares = session.computed(aten._softmax.default, (scores, -1, False), {})
    found = session.computed(aten.bmm.default, (_view(session, shares, batch * heads, length, length), v), {})
    found = _dense(session, _transposed(session, _view(session, found, batch, heads, length, size), 1, 2))
    result = _linear(session, _view(session, found, batch, length, width), out_weight, out_bias)
    if not needs_weights:
        return result, None
    if averages:
        shares = session.computed(aten.sum.dim_IntList, (shares, [1]), {})
        shares = session.computed(aten.div.Scalar, (shares, heads), {})
    return result, shares


def gelu_in_cublas(x: torch.Tensor) -> torch.Tensor:
    """GELU of FP32 sums as the epilogue of cuBLAS 13 computes it, with the approximate tangent of the special function unit.

    As an H200 gave it for 524,288 numbers of all sizes, in every bit.
    """
    inner = torch.from_numpy(function("fma.rn.f32", (x * 0.044715).numpy(), x.numpy(), 1.0))
    tangent = torch.from_numpy(function("tanh.approx.f32", (x * 0.7978845608028654 * inner).numpy()))
    return x * 0.5 * (tangent + 1)


def _linear_with_gelu(session: Session, x: Any, weight: Any, bias: Any) -> Any:
    """The product's plan is that of the layer without GELU: 14 of 14 recorded ones in FP32 and TF32."""
    sums = _linear(session, x, weight, bias)
    return session.wrapped(gelu_in_cublas(elements_of(sums).contiguous()), sums.doubt)


def encoder_layer(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """_transformer_encoder_layer_fwd."""
    (x, width, heads, weight, bias, out_weight, out_bias, is_gelu, norm_first, eps, weight1, bias1, weight2, bias2, up_weight, up_bias, down_weight,
     down_bias, mask, kind) = (argument_of(func, args, kwargs, x.name) for x in func._schema.arguments)
    if x.is_nested or x.numel() == 0:
        return session.without_model(func, args, kwargs, "nested tensors")
    if is_gelu and x.dtype != torch.float32:
        return session.without_model(func, args, kwargs, "GELU inside cuBLAS in 16 bits")

    def norm(y: Any, gain: Any, shift: Any) -> Any:
        return session.computed(aten.native_layer_norm.default, (y, [width], gain, shift, eps), {})[0]

    def add(a: Any, b: Any) -> Any:
        return session.computed(aten.add.Tensor, (a, b), {})

    y = norm(x, weight1, bias1) if norm_first else x
    y = add(_attention(session, y, width, heads, weight, bias, out_weight, out_bias, mask, False, True, kind)[0], x)
    y = y if norm_first else norm(y, weight1, bias1)
    z = norm(y, weight2, bias2) if norm_first else y
    if is_gelu:
        z = _linear_with_gelu(session, z, up_weight, up_bias)
    else:
        z = session.computed(aten.relu.default, (_linear(session, z, up_weight, up_bias),), {})
    z = add(_linear(session, z, down_weight, down_bias), y)
    return z if norm_first else norm(z, weight2, bias2)


Session.specials.update({"_native_multi_head_attention": attention, "_transformer_encoder_layer_fwd": encoder_layer})
