"""Operators with indices: embeddings, gathered and scattered elements, counts."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from .number_types import boolean, i32, i64

OPERATORS = ["embedding", "embedding", "embedding_bag_sum", "embedding_bag_mean", "embedding_bag_max", "index_select", "gather", "take_along_dim", "take",
             "scatter", "scatter_value", "index_put", "index_put", "index_put_acc", "index_put_acc", "index_copy", "index_fill", "getitem", "getitem",
             "one_hot", "bincount", "scatter_reduce", "searchsorted", "bucketize", "select_scatter", "index_add"]


def table(call, dtype, often_contiguous):
    rows, width = call.shape(2, call.budget(2e5))
    rows = max(2, rows)
    return call.tensor((rows, width), dtype, "normal", "contiguous" if call.chance(often_contiguous) else None, "w", plain=True)


def embedding(call, dtype):
    weight = table(call, dtype, 0.5)
    rows, width = weight.shape
    shape = call.shape(call.choice([1, 2, 2, 3]), min(6000, max(4, 200000 // width)))
    indices = call.integers(shape, 0, rows if call.chance(0.6) else min(rows, 4))
    options = {}
    if call.chance(0.3):
        options["padding_idx"] = call.between(0, min(rows - 1, 3))
    if call.chance(0.2):
        options["scale_grad_by_freq"] = True
    call.note(**options)
    call.compute(lambda: F.embedding(indices, weight, **options), [weight], 0.65)


def embedding_bag(call, dtype):
    weight = table(call, dtype, 0.8)
    rows, width = weight.shape
    count = call.between(1, min(2000, max(2, 200000 // width)))
    options = {"mode": call.operator.removeprefix("embedding_bag_")}
    if call.chance(0.7):
        indices = call.integers((count,), 0, rows)
        starts = sorted({0, *[call.between(0, count) for _ in range(call.between(0, 20))]})
        offsets = call.placed(torch.tensor(starts, dtype=i64), "contiguous", "off")
    else:
        bag = call.between(1, 20)
        indices, offsets = call.integers((max(1, count // bag), bag), 0, rows, layout="contiguous"), None
    if options["mode"] == "sum" and call.chance(0.3):
        options["per_sample_weights"] = call.tensor(indices.shape, dtype, "normal", "contiguous", "psw")
    if call.chance(0.2):
        options["padding_idx"] = call.between(0, rows - 1)
    call.note(**{name: "t" if isinstance(value, torch.Tensor) else value for name, value in options.items()})
    call.compute(lambda: F.embedding_bag(indices, weight, offsets, **options))


def gathered(call, x, dim, dtype):
    name, n = call.operator, x.shape[dim]
    if name == "index_select":
        count = call.between(1, n + 3) if n < 1000 else call.between(1, 100)
        indices = call.integers((count,), 0, n, call.choice([i64, i32]))
        call.compute(lambda: torch.index_select(x, dim, indices))
        return
    if name == "take":
        indices = call.integers(call.shape(2, 500), 0, x.numel())
        call.compute(lambda: torch.take(x, indices))
        return
    shape = list(x.shape)
    shape[dim] = call.between(1, min(2 * n, 300))
    if name == "gather" and call.chance(0.4):
        shape = [call.between(1, size) for size in x.shape]
    indices = call.integers(shape, 0, n, plain=False)
    call.compute(lambda: torch.gather(x, dim, indices) if name == "gather" else torch.take_along_dim(x, indices, dim))


def at_different_indices(call, x, dim, dtype):
    """index_copy, index_fill and index_add: no index twice."""
    name, n = call.operator, x.shape[dim]
    count = call.between(1, n)
    indices = call.placed(call.permutation(n)[:count], name="i")
    if name == "index_fill":
        call.compute(lambda: torch.index_fill(x, dim, indices, 1.25), [x], 0.3)
        return
    y = call.tensor((*x.shape[:dim], count, *x.shape[dim + 1:]), dtype, name="y")
    if name == "index_add":
        alpha = call.choice([1, 0.5, -2])
        call.note(alpha=alpha)
        call.compute(lambda: torch.index_add(x, dim, indices, y, alpha=alpha), [x, y], 0.3)
    else:
        call.compute(lambda: torch.index_copy(x, dim, indices, y), [x, y], 0.3)


def scattered(call, x, dim, dtype):
    """scatter and scatter_reduce: in every line no index twice."""
    name, n = call.operator, x.shape[dim]
    count = call.between(1, n)
    shape = (*x.shape[:dim], count, *x.shape[dim + 1:])
    order = call.permutation(n)[:count].reshape([count if k == dim else 1 for k in range(x.dim())])
    turns = (call.words(math.prod(shape) // count) % np.uint64(n)).astype(np.int64)
    turned = torch.from_numpy(turns).reshape([1 if k == dim else size for k, size in enumerate(shape)])
    indices = call.placed((order + turned) % n, name="i")
    y = call.tensor(shape, dtype, name="y")
    if name == "scatter":
        call.compute(lambda: torch.scatter(x, dim, indices, y), [x, y], 0.3)
    elif name == "scatter_value":
        call.compute(lambda: torch.scatter(x, dim, indices, 0.75), [x], 0.3)
    else:
        reduction, with_x = call.choice(["sum", "prod", "amax", "amin", "mean"]), call.chance(0.7)
        call.note(red=reduction, inc=with_x)
        call.compute(lambda: torch.scatter_reduce(x, dim, indices, y, reduction, include_self=with_x))


def by_tensors(call, x, dim, dtype):
    """x[i, j] and what is put there."""
    name, shape = call.operator, tuple(x.shape)
    first = call.between(1, min(x.dim(), 2))
    add = name == "index_put_acc"
    count = call.between(1, 40) if call.chance(0.7) else call.between(1, 2000 if x.dim() < 3 else 200)
    if add or name == "getitem":
        indices = [call.integers((count,), -n if call.chance(0.2) else 0, n, name=f"i{k}") for k, n in enumerate(shape[:first])]
    else:
        places = math.prod(shape[:first])
        count = min(count, places)
        where = call.permutation(places)[:count] if places < 300000 else torch.arange(count) * 3 % places
        indices = [call.placed(of_one.contiguous(), name=f"i{k}") for k, of_one in enumerate(torch.unravel_index(where, shape[:first]))]
    taken = tuple(indices)
    if call.chance(0.25) and x.dim() > first and not add and name == "getitem" and shape[1] >= 1 and first == 1:
        taken = (slice(None), call.integers((count,), 0, shape[1], name="j"))
    if name == "getitem":
        if call.chance(0.1):
            mask = call.integers(shape[:1], 0, 2, boolean, name="mask")
            call.compute(lambda: x[mask])
        else:
            call.compute(lambda: x[taken], [x], 0.4)
        return
    put = (count, *shape[first:]) if call.chance(0.8) else (1, *shape[first:]) if call.chance(0.5) else ()
    y = call.tensor(put, dtype, name="y")
    call.compute(lambda: torch.index_put(x, indices, y, accumulate=add), [] if add else [x, y], 0.3)


def counted(call, x, dim, dtype):
    if call.operator == "one_hot":
        indices = call.integers(call.shape(2, 2000), 0, 20)
        call.compute(lambda: F.one_hot(indices, 20))
    else:
        numbers = call.integers((call.spread(1, 5000),), 0, 100)
        call.compute(lambda: torch.bincount(numbers))


def searched(call, x, dim, dtype):
    edges = call.placed(torch.sort(call.values((call.between(1, 300),), dtype, "normal").float()).values.to(dtype), "contiguous", "edges")
    right = call.chance(0.5)
    call.compute(lambda: torch.searchsorted(edges, x, right=right) if call.operator == "searchsorted" else torch.bucketize(x, edges, right=right))


def select_scatter(call, x, dim, dtype):
    y = call.tensor([n for k, n in enumerate(x.shape) if k != dim], dtype, name="y")
    middle = x.shape[dim] // 2
    call.compute(lambda: torch.select_scatter(x, y, dim, middle), [x, y], 0.4)


OF_A_TENSOR = {
    **dict.fromkeys(("index_select", "gather", "take_along_dim", "take"), gathered), **dict.fromkeys(("one_hot", "bincount"), counted),
    **dict.fromkeys(("index_copy", "index_fill", "index_add"), at_different_indices), "select_scatter": select_scatter,
    **dict.fromkeys(("scatter", "scatter_value", "scatter_reduce"), scattered), **dict.fromkeys(("searchsorted", "bucketize"), searched),
    **dict.fromkeys(("index_put", "index_put_acc", "getitem"), by_tensors),
}


def indices(call, dtype):
    call.operator = call.choice(OPERATORS)
    if call.operator.startswith("embedding"):
        (embedding if call.operator == "embedding" else embedding_bag)(call, dtype)
        return
    rank = call.choice([1, 2, 2, 3, 4])
    shape = call.shape(rank, call.budget(2e5))
    dim = call.between(0, rank - 1)
    x = call.tensor(shape, dtype)
    call.note(dim=dim)
    OF_A_TENSOR[call.operator](call, x, dim, dtype)
