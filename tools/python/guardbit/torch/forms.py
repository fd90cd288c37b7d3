"""Sizes, strides and types of an operator's results, as PyTorch's meta tensors give them."""

from __future__ import annotations

from typing import Any

import torch

from .tensor_iterator import contiguous_strides, like, pointwise_strides

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
    if tensor.dim() not in (4, 5):
        return False
    stride, least = tensor.stride(), 0
    for d in (1, *range(tensor.dim() - 1, 1, -1), 0):
        if tensor.shape[d] == 0 or stride[d] < least or (d == 0 and least == stride[1]):
            return False
        least = stride[d] * max(tensor.shape[d], 1)
    return bool(stride[1] != 0)


def _laid(form: Any, together: bool) -> Any:
    """In rows, or with the channels of a pixel together."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d} if together else {}
    return torch.empty(form.shape, dtype=form.dtype, device=_META, memory_format=formats.get(form.dim(), torch.contiguous_format))


def _with_channels_together(form: Any) -> Any:
    if isinstance(form, (list, tuple)):
        return tuple(_with_channels_together(x) for x in form)
    return _laid(form, True) if isinstance(form, torch.Tensor) and form.dim() == 4 else form


_BATCH_NORMS = {torch.ops.aten.cudnn_batch_norm, torch.ops.aten.cudnn_batch_norm_backward, torch.ops.aten.native_batch_norm_backward}


def _of_batch_norm(func: Any, form: Any, args: tuple[Any, ...]) -> Any:
    """Of an image or volume: cuDNN's results lie as the input says. PyTorch's own gradient lies in rows, but in training where the input's
    channels lie together."""
    if form[0] is None:
        return form
    if func.overloadpacket is not torch.ops.aten.native_batch_norm_backward:
        return (_laid(form[0], _lies_together(args[0])), *form[1:])
    if not (args[7] and _lies_together(args[1])):
        return (_laid(form[0], False), *form[1:])
    return form if _lies_together(args[0]) else (_laid(form[0], True), *form[1:])


aten = torch.ops.aten
# Whose results lie in rows whatever their operands say, where meta tensors or the CPU's operators follow an operand.
IN_ROWS = {aten.native_layer_norm_backward, aten._fused_rms_norm_backward, aten._log_softmax, aten._log_softmax_backward_data, aten.huber_loss_backward,
            aten.mse_loss_backward, aten.smooth_l1_loss_backward, aten.reflection_pad2d, aten.reflection_pad3d, aten.replication_pad2d, aten.replication_pad3d, aten.roll,
            aten.pixel_shuffle, aten.pixel_unshuffle, aten.channel_shuffle, aten.grid_sampler_2d, aten.grid_sampler_3d, aten.col2im,
            aten.masked_fill, aten.pow.Scalar}
# Whose result lies with channels together where the first operand does, else in rows.
_AS_CHANNELS_LIE = {aten.upsample_bicubic2d, aten.upsample_bilinear2d, aten.upsample_trilinear3d, aten.native_dropout_backward}
# Whose results lie as the first operand does, or without gaps in its order.
_LIKE_FIRST = {aten.binary_cross_entropy, aten.sort, aten.rand_like, aten.randn_like, aten.rad2deg, aten.deg2rad, aten.hardtanh}


def _with_strides(form: Any, strides: Any) -> Any:
    return torch.empty_strided(form.shape, strides, dtype=form.dtype, device=_META)


def _strides_of(func: Any, form: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A result's strides as the GPU's kernel has them; None where meta tensors know them."""
    named = {func, func.overloadpacket}
    if named & IN_ROWS:
        return contiguous_strides(form.shape)
    if named & _AS_CHANNELS_LIE:
        return _laid(form, _lies_together(args[0])).stride()
    if named & _LIKE_FIRST:
        return like(args[0]) if form.shape == args[0].shape and kwargs.get("memory_format") is None else None
    return pointwise_strides(func, args, form.shape)


def _corrected(func: Any, form: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same results with the strides of the GPU's kernels."""
    if isinstance(form, tuple):
        return tuple(_corrected(func, part, args, kwargs) for part in form)
    strides = _strides_of(func, form, args, kwargs) if isinstance(form, torch.Tensor) else None
    return form if strides is None or strides == form.stride() else _with_strides(form, strides)


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
    if form is not None:
        form = _corrected(func, form, args, kwargs)
    if func is torch.ops.aten._weight_norm_interface.default and form is not None:
        # The GPU keeps the norms in FP32.
        form = (form[0], form[1].float())
    if func is torch.ops.aten.linalg_vector_norm.default and form is not None:
        # Meta tensors keep reduced dimensions of one element; the GPU drops them, as sums do.
        like_sum = torch.ops.aten.sum.dim_IntList(_meta_of(args[0]), args[2] if len(args) > 2 else None, bool(args[3]) if len(args) > 3 else False)
        form = form if form.shape == like_sum.shape else torch.empty(like_sum.shape, dtype=form.dtype, device=_META)
    first = {torch.ops.aten.convolution.default: 0, torch.ops.aten.convolution_backward.default: 1}.get(func)
    if first is not None and any(_lies_together(x) for x in args[first:first + 2] if x.dim() == 4):
        # cuDNN's results lie as its operands do; meta tensors say so of the CPU's.
        form = _with_channels_together(form)
    if form is not None and func.overloadpacket in _BATCH_NORMS:
        form = _of_batch_norm(func, form, args)
    if key is not None and len(_known) < _most_known:
        _known[key] = form
    return form
