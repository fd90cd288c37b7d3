"""Attention and encoder layers of torch.nn in inference, which PyTorch computes by one operator, as the operators that this calls."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from .fused_attention import EFFICIENT, FLASH, chosen_backend
from .session import Session, argument_of

aten = torch.ops.aten


def attended(session: Session, x: Any, arguments: dict[str, Any], wants_weights: bool) -> tuple[Any, Any]:
    """Of queries that are the keys and values, without a mask."""
    batch, length, width = x.shape
    heads, own = arguments["num_head"], width // arguments["num_head"]

    def by_heads(t: Any) -> Any:
        return t.view(batch, -1, heads, own).transpose(1, 2)

    split = by_heads(x)
    if own % 8 == 0 and not wants_weights and chosen_backend(split, split, split, None, 0.0, False, False) in (FLASH, EFFICIENT):
        parts = F.linear(x, arguments["qkv_weight"], arguments["qkv_bias"]).chunk(3, -1)
        y = F.scaled_dot_product_attention(*[by_heads(part) for part in parts])
        return F.linear(y.transpose(1, 2).reshape(batch, -1, width), arguments["proj_weight"], arguments["proj_bias"]), None
    # A kernel adds the biases and divides the queries by the root of their length, and stores once.
    parts = torch.matmul(x, arguments["qkv_weight"].t()).chunk(3, -1)
    sums = [a.float() + b.float() for a, b in zip(parts, arguments["qkv_bias"].chunk(3, -1))]
    root = 1.0 / float(torch.tensor(math.sqrt(own), dtype=torch.float32).to(x.dtype))
    q, k, v = (by_heads(t.to(x.dtype)).contiguous().view(batch * heads, length, own) for t in (sums[0] * root, sums[1], sums[2]))
    weights = torch.bmm(q, k.transpose(1, 2)).view(batch, heads, length, length).softmax(-1)
    y = torch.bmm(weights.view(batch * heads, length, length), v).view(batch, heads, length, own)
    y = F.linear(y.transpose(1, 2).reshape(batch, length, width), arguments["proj_weight"], arguments["proj_bias"])
    return y, weights if wants_weights else None


def named(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {x.name: argument_of(func, args, kwargs, x.name) for x in func._schema.arguments}


def attention(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """_native_multi_head_attention."""
    given = named(func, args, kwargs)
    if given["mask"] is not None or given["query"] is not given["key"] or given["key"] is not given["value"]:
        return session.without_model(func, args, kwargs, "a mask, or keys and values that are not the queries")
    wants_weights = given["need_weights"] is not False
    with session.calling():
        y, weights = attended(session, given["query"], given, wants_weights)
        if weights is not None and given["average_attn_weights"] is not False:
            weights = weights.sum(1) / given["num_head"]
    return y, weights


def encoder_layer(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """_transformer_encoder_layer_fwd."""
    given = named(func, args, kwargs)
    if given["mask"] is not None or given["src"].is_nested:
        return session.without_model(func, args, kwargs, "a mask, or sequences of different lengths")
    if given["use_gelu"]:
        return session.without_model(func, args, kwargs, "the library's own gelu in a product")
    x, width = given["src"], [given["embed_dim"]]

    def norm(x: Any, number: int) -> Any:
        return F.layer_norm(x, width, given[f"norm_weight_{number}"], given[f"norm_bias_{number}"], given["eps"])

    def linear(x: Any, number: int) -> Any:
        flat = torch.addmm(given[f"ffn_bias_{number}"], x.reshape(-1, x.shape[-1]), given[f"ffn_weight_{number}"].t())
        return flat.view(*x.shape[:-1], -1)

    with session.calling():
        first = given["norm_first"]
        y, _ = attended(session, norm(x, 1) if first else x, given | {"num_head": given["num_heads"]}, False)
        y = y + x
        y = y if first else norm(y, 1)
        z = linear(linear(norm(y, 2) if first else y, 1).relu(), 2) + y
        return z if first else norm(z, 2)


Session.specials.update({"_native_multi_head_attention": attention, "_transformer_encoder_layer_fwd": encoder_layer})
