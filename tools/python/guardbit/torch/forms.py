"""Sizes, strides and types of an operator's results, as PyTorch's meta tensors give them."""

from __future__ import annotations

from typing import Any

import torch

_META = torch.device("meta")
_known: dict[Any, Any] = {}
_most_known = 20_000


def _meta_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=_META)
    if isinstance(value, (list, tuple)):
        return [_meta_of(x) for x in value]
    if isinstance(value, torch.device):
        return _META
    return value


def _key_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (value.shape, value.stride(), value.dtype)
    if isinstance(value, (list, tuple)):
        return tuple(_key_of(x) for x in value)
    if isinstance(value, (int, float, bool)):
        return (type(value), value)
    return value


def _lies_together(tensor: Any) -> bool:
    """Would PyTorch take its channels to lie together? Not where sizes of one leave it open."""
    if tensor.dim() != 4:
        return False
    stride, least = tensor.stride(), 0
    for d in (1, 3, 2, 0):
        if tensor.shape[d] == 0 or stride[d] < least or (d == 0 and least == stride[1]):
            return False
        least = stride[d] * max(tensor.shape[d], 1)
    return bool(stride[1] != 0)


def _with_channels_together(form: Any) -> Any:
    if isinstance(form, (list, tuple)):
        return tuple(_with_channels_together(x) for x in form)
    if not isinstance(form, torch.Tensor) or form.dim() != 4:
        return form
    return torch.empty(form.shape, dtype=form.dtype, device=_META, memory_format=torch.channels_last)


def form_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Meta tensors in the places of the results; None where PyTorch has no rule."""
    try:
        key = (func, _key_of(args), tuple((name, _key_of(x)) for name, x in kwargs.items()))
        if key in _known:
            return _known[key]
    except TypeError:
        key = None
    try:
        form = func(*[_meta_of(x) for x in args], **{name: _meta_of(x) for name, x in kwargs.items()})
    except (NotImplementedError, RuntimeError):
        form = None
    if func is torch.ops.aten._weight_norm_interface.default and form is not None:
        # The GPU keeps the norms in FP32.
        form = (form[0], form[1].float())
    first = {torch.ops.aten.convolution.default: 0, torch.ops.aten.convolution_backward.default: 1}.get(func)
    if first is not None and any(_lies_together(x) for x in args[first:first + 2]):
        # cuDNN's results lie as its operands do; meta tensors say so of the CPU's.
        form = _with_channels_together(form)
    if key is not None and len(_known) < _most_known:
        _known[key] = form
    return form
