"""Distances and grids that PyTorch makes of other operators."""

from __future__ import annotations

from typing import Any

import torch

from .ranges import on_gpu
from .session import Session, argument_of, doubt_of

aten = torch.ops.aten


def ends_of_a_grid(session: Session, theta: Any, count: int, aligns_corners: bool) -> Any:
    """From -1 to 1, at the centres of as many pixels or at their ends."""
    if count <= 1:
        return on_gpu(session, torch.zeros(1, dtype=theta.dtype))
    places = session.computed(aten.linspace.default, (-1, 1, count), {"dtype": theta.dtype, "device": theta.device})
    if aligns_corners:
        return places
    return session.computed(aten.div.Tensor, (session.computed(aten.mul.Tensor, (places, count - 1), {}), count), {})


def base_grid(session: Session, theta: Any, size: Any, aligns_corners: bool) -> Any:
    """[images, pixels, 3 or 4]: each pixel's place, the last dimension first, and 1."""
    images, _, *space = size
    grid = torch.ones([images, *space, len(space) + 1], dtype=theta.dtype)
    for axis, count in enumerate(space):
        places = ends_of_a_grid(session, theta, count, aligns_corners).elements
        grid.select(-1, len(space) - 1 - axis).copy_(places.reshape([-1] + [1] * (len(space) - 1 - axis)))
    return on_gpu(session, grid.reshape(images, -1, len(space) + 1))


def products_of_few(session: Session, rows: Any, columns: Any) -> Any:
    """bmm of 3 or 4 terms, which no kernel of FP32 or FP64 adds in another order than theirs."""
    is_double = rows.dtype == torch.float64
    if not is_double and (rows.dtype != torch.float32 or torch._C._get_cublas_allow_tf32()):
        return session.computed(aten.bmm.default, (rows, columns), {})
    product = on_gpu(session, torch.zeros(rows.shape[0], rows.shape[1], columns.shape[2], dtype=rows.dtype))
    for k in range(rows.shape[2]):
        one, other = (session.computed(aten.slice.Tensor, (x, dim, k, k + 1), {}) for x, dim in ((rows, 2), (columns, 1)))
        product = session.computed(aten.addcmul.default, (product, one, other), {})
    return product


def affine_grid(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    theta, size, aligns_corners = args
    grid = base_grid(session, theta, size, aligns_corners)
    product = products_of_few(session, grid, session.computed(aten.transpose.int, (theta, 1, 2), {}))
    return session.computed(aten.view.default, (product, [size[0], *size[2:], len(size) - 2]), {})


def affine_grid_backward(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    gradient, size, aligns_corners = args
    grid = session.computed(aten.transpose.int, (base_grid(session, gradient, size, aligns_corners), 1, 2), {})
    rows = session.computed(aten.reshape.default, (gradient, [size[0], -1, len(size) - 2]), {})
    return session.computed(aten.transpose.int, (session.computed(aten.bmm.default, (grid, rows), {}), 1, 2), {})


def dist(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The norm of the difference."""
    x, y = args[:2]
    p = argument_of(func, args, kwargs, "p")
    difference = session.computed(aten.sub.Tensor, (x, y), {})
    return session.compute(aten.norm.Scalar, (difference, 2 if p is None else p), {})


def renorm(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Slices whose norm is too large are multiplied by a factor, which has the tensor's type."""
    x, p, dim, most = args
    is_wide = x.dtype in (torch.float32, torch.float64)
    others = [k for k in range(x.dim()) if k != dim % x.dim()]
    norm = session.computed(aten.linalg_vector_norm.default, (x, p, others, True), {} if is_wide else {"dtype": torch.float32})
    greatest = on_gpu(session, torch.full(norm.shape, most, dtype=norm.dtype))
    factor = session.computed(aten.div.Tensor, (greatest, session.computed(aten.add.Tensor, (norm, 1e-7), {})), {})
    ones = on_gpu(session, torch.ones(norm.shape, dtype=norm.dtype))
    factor = session.computed(aten.where.self, (session.computed(aten.gt.Tensor, (norm, greatest), {}), factor, ones), {})
    if not is_wide:
        factor = session.computed(aten._to_copy.default, (factor,), {"dtype": x.dtype})
    return session.wrapped(session.computed(aten.mul.Tensor, (x, factor), {}).elements.contiguous(), doubt_of(args, kwargs))


Session.specials.update({"affine_grid_generator": affine_grid, "affine_grid_generator_backward": affine_grid_backward, "dist": dist, "renorm": renorm})
