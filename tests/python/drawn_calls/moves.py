"""Operators that move elements: joined, cut, turned, repeated, masked."""

import math

import torch

from .number_types import FLOATS, boolean

OPERATORS = ["cat", "cat", "cat", "stack", "stack", "tril", "triu", "roll", "flip", "repeat_interleave", "repeat", "diff", "rot90", "tile", "masked_fill",
             "masked_select", "masked_scatter", "chunk", "unfold_t", "diag", "diag_embed", "meshgrid", "block_diag", "nonzero", "where1", "unbind",
             "as_strided", "movedim_sum"]
WITH_GRADIENTS = ("roll", "flip", "repeat", "tile", "chunk", "unbind", "movedim_sum")


def cat(call, dtype, shape, dim):
    tensors, gradients = [], call.chance(0.4)
    layout = call.layout(len(shape)) if call.chance(0.5) else None
    for _ in range(call.choice([1, 2, 2, 3, 4, 7])):
        n = shape[dim]
        if n < 5000:
            n = call.between(0 if call.chance(0.1) else 1, 2 * n)
        tensors.append(call.tensor((*shape[:dim], n, *shape[dim + 1:]), dtype if call.chance(0.95) else call.choice(FLOATS), layout=layout))
    call.note(dim=dim)
    call.compute(lambda: torch.cat(tensors, dim), tensors, 1.0 if gradients else 0)


def stack(call, dtype, shape):
    layout = call.layout(len(shape)) if call.chance(0.5) else None
    tensors = [call.tensor(shape, dtype, layout=layout) for _ in range(call.between(1, 5))]
    dim = call.between(0, len(shape))
    call.note(dim=dim)
    call.compute(lambda: torch.stack(tensors, dim), tensors, 0.4)


def masked(call, dtype, shape):
    x = call.tensor(shape, dtype)
    mask_shape = shape
    if not call.chance(0.6) and call.operator != "masked_scatter":
        mask_shape = call.broadcast(shape)
    mask = call.integers(mask_shape, 0, 2, boolean, name="m", plain=False)
    if call.operator == "masked_fill":
        value = call.choice([0.0, -1e4, float("-inf"), 1.5])
        call.compute(lambda: torch.masked_fill(x, mask, value), [x], 0.4)
    elif call.operator == "masked_select":
        call.compute(lambda: torch.masked_select(x, mask))
    else:
        y = call.tensor(shape, dtype, name="y")
        call.compute(lambda: x.masked_scatter(mask, y), [x], 0.3)


def repeat_interleave(call, dtype, shape, dim):
    x = call.tensor(shape if math.prod(shape) < 50000 else call.shape(len(shape), 5000), dtype)
    if call.chance(0.5):
        repeats = call.integers((x.shape[dim],), 0, 4, name="r")
        call.compute(lambda: torch.repeat_interleave(x, repeats, dim))
    else:
        call.compute(lambda: torch.repeat_interleave(x, 3, dim), [x], 0.3)


def suited(name, x):
    """x, or a part of it that the operator takes and that does not give too much."""
    if name == "diag_embed":
        return x[..., :50] if x.shape[-1] > 300 else x
    if name == "block_diag":
        return x.reshape(-1)[:2000].reshape(-1, 1)
    if name == "diag":
        x = x.flatten(1) if x.dim() > 2 else x
        return x[:500] if x.dim() == 1 else x
    return x.unsqueeze(0) if name == "rot90" and x.dim() < 2 else x


def windows(x, dim):
    if x.numel() >= 30000:
        return x.sum(dim)
    return x.unfold(dim, max(1, x.shape[dim] // 3), max(1, x.shape[dim] // 5)) * 1.5


def two_columns(x):
    half = x.numel() // 2
    return torch.as_strided(x.contiguous(), (max(1, half), 2), (1, max(1, half - 1))) if x.numel() > 3 else x


def of_one_tensor(call, dtype, shape, dim):
    name, rank = call.operator, len(shape)
    grows = name in ("repeat", "tile", "diag_embed", "block_diag")
    x = suited(name, call.tensor(call.shape(rank, 3000) if grows and math.prod(shape) >= 20000 else shape, dtype))
    amounts = [call.between(-3, 3) for _ in range(rank)]
    dims = call.some(range(rank), call.between(1, rank))
    times = [abs(amount) % 2 + 1 for amount in amounts]
    call.note(dim=dim, q=amounts, some=dims)
    function = {
        "roll": lambda: torch.roll(x, amounts[:len(dims)], dims), "flip": lambda: torch.flip(x, dims), "repeat": lambda: x.repeat(*times),
        "tile": lambda: torch.tile(x, times), "rot90": lambda: torch.rot90(x, amounts[0], [0, 1]),
        "chunk": lambda: [part * 2 for part in torch.chunk(x, 3, dim)], "unfold_t": lambda: windows(x, dim), "diag": lambda: torch.diag(x),
        "diag_embed": lambda: torch.diag_embed(x), "meshgrid": lambda: torch.meshgrid(x.reshape(-1)[:50], x.reshape(-1)[:70], indexing="ij"),
        "block_diag": lambda: torch.block_diag(x[:40], x[:7].t()), "nonzero": lambda: torch.nonzero(x > 0.3), "where1": lambda: torch.where(x > 0.1),
        "unbind": lambda: [part + 1 for part in torch.unbind(x, dim)[:8]], "as_strided": lambda: two_columns(x),
        "movedim_sum": lambda: torch.movedim(x, dim, 0).sum(0) + x.select(dim, 0),
    }[name]
    call.compute(function, [x] if x._base is None and name in WITH_GRADIENTS else [], 0.35)


def moves(call, dtype):
    name = call.operator = call.choice(OPERATORS)
    rank = call.choice([1, 2, 3, 4])
    shape = call.shape(rank, call.budget(4e5))
    dim = call.between(0, rank - 1)
    if name == "cat":
        cat(call, dtype, shape, dim)
    elif name == "stack":
        stack(call, dtype, shape)
    elif name in ("tril", "triu"):
        x = call.tensor(call.shape(call.choice([2, 2, 3, 4]), call.budget(2e5)), dtype)
        diagonal = call.between(-3, 3)
        call.note(k=diagonal)
        call.compute(lambda: getattr(torch, name)(x, diagonal), [x], 0.4)
    elif name == "diff":
        x = call.tensor(shape, dtype)
        times = call.choice([1, 1, 2])
        call.note(n=times, dim=dim)
        call.compute(lambda: torch.diff(x, times, dim), [x], 0.4)
    elif name.startswith("masked_"):
        masked(call, dtype, shape)
    elif name == "repeat_interleave":
        repeat_interleave(call, dtype, shape, dim)
    else:
        of_one_tensor(call, dtype, shape, dim)
