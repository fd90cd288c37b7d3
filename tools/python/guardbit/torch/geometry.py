"""Distances and grids that PyTorch makes of other operators."""

from __future__ import annotations

from typing import Any

import torch

from .ranges import on_gpu
from .session import Session, argument_of, doubt_of, elements_of

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


def euclidean_distances(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """_euclidean_dist: |x|^2 + |y|^2 - 2 x y as one matrix product, of [-2 x, |x|^2, 1] and [y, 1, |y|^2]."""
    def call(operator: Any, *operands: Any) -> Any:
        return session.computed(operator, operands, {})

    x, y = args
    norms = [call(aten.sum.dim_IntList, call(aten.pow.Tensor_Scalar, t, 2), [-1], True) for t in (x, y)]
    ones = [on_gpu(session, torch.ones(norm.shape, dtype=norm.dtype)) for norm in norms]
    rows = call(aten.cat.default, [call(aten.mul.Tensor, x, -2), norms[0], ones[0]], -1)
    columns = call(aten.transpose.int, call(aten.cat.default, [y, ones[1], norms[1]], -1), -2, -1)
    product = call(aten.mm.default if x.dim() == 2 else aten.bmm.default, rows, columns)
    return call(aten.sqrt.default, call(aten.clamp_min.default, product, 0))


def with_repeated_tables(x: Any, y: Any) -> tuple[Any, Any]:
    """Both with all batches that they have together."""
    batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return x.expand(*batch, *x.shape[-2:]), y.expand(*batch, *y.shape[-2:])


def distances(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """_cdist_forward and _cdist_backward, whose kernels take tables of one batch."""
    first = 0 if func is aten._cdist_forward.default else 1
    x, y = args[first:first + 2]
    if x.shape[:-2] == y.shape[:-2]:
        return session.modelled(func, args, kwargs)
    tables = [session.computed(aten.clone.default, (session.computed(aten.expand.default, (t, list(whole.shape)), {}),),
                               {"memory_format": torch.contiguous_format})
              for t, whole in zip((x, y), with_repeated_tables(elements_of(x), elements_of(y)))]
    return session.modelled(func, (*args[:first], *tables, *args[first + 2:]), kwargs)


def pairs_of_rows(session: Session, x: Any) -> tuple[Any, Any, Any, Any]:
    """All pairs i < j of a table's rows, each as a table of one row: the first rows, the second ones, i and j."""
    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1)
    rows = [session.computed(aten.unsqueeze.default, (session.computed(aten.index_select.default, (x, 0, on_gpu(session, places)), {}), 1), {})
            for places in (first, second)]
    return rows[0], rows[1], first, second


def distances_of_pairs(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """_pdist_forward: a block for each pair, as cdist has."""
    x, p = args[0], argument_of(func, args, kwargs, "p")
    if x.shape[0] < 2 or x.shape[1] == 0:
        return session.without_model(func, args, kwargs, "no pairs, or rows of no numbers")
    one, other, _, _ = pairs_of_rows(session, x)
    found = session.modelled(aten._cdist_forward.default, (one, other, 2.0 if p is None else p, None), {})
    return session.computed(aten.view.default, (found, [-1]), {})


def distances_of_pairs_backward(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """_pdist_backward: what a pair adds to both rows, in a buffer whose slices are added."""
    gradient, x, p, distances = args
    count = x.shape[0]
    one, other, first, second = pairs_of_rows(session, x)
    of_pairs = [session.computed(aten.clone.default, (session.computed(aten.unsqueeze.default, (session.computed(aten.unsqueeze.default, (t, 1), {}), 1), {}),),
                                 {"memory_format": torch.contiguous_format}) for t in (gradient, distances)]
    terms = elements_of(session.modelled(aten._cdist_backward.default, (of_pairs[0], one, other, p, of_pairs[1]), {})).squeeze(1)
    buffer = torch.zeros(count - 1, count, x.shape[1], dtype=terms.dtype)
    buffer[second - first - 1, first] = terms
    buffer[count - 2 - first, second] = -terms
    return session.computed(aten.sum.dim_IntList, (on_gpu(session, buffer), [0]), {})


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


Session.specials.update({"affine_grid_generator": affine_grid, "affine_grid_generator_backward": affine_grid_backward, "dist": dist, "renorm": renorm,
                         "_euclidean_dist": euclidean_distances, "_cdist_forward": distances, "_cdist_backward": distances,
                         "_pdist_forward": distances_of_pairs, "_pdist_backward": distances_of_pairs_backward})
