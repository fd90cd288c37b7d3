"""Operators that put elements in order or look for some of them."""

import math

import torch

from .number_types import f32, f64, i16, i32, i64, u8

OPERATORS = ["sort", "sort", "argsort", "topk", "topk_idx", "msort", "kthvalue", "unique", "sort_int", "isin", "histc", "quantile"]


def of_integers(call, shape, dim, descending):
    x = call.integers(shape, 0, 40, call.choice([i64, i32, i16, u8]), name="x", plain=False)
    call.compute(lambda: torch.sort(x, stable=True, dim=dim, descending=descending))


def greatest_of_different(call, shape, dim, descending):
    """topk with its indices: no number twice."""
    call.dtype = f32
    x = call.placed(call.permutation(math.prod(shape)).to(f32).reshape(shape), name="x", kind="distinct")
    count = call.between(1, min(shape[dim], 600))
    call.chance(0.8)  # not used
    call.compute(lambda: torch.topk(x, count, dim, descending, True), [x], 0.3)


def orders(call, dtype):
    name = call.operator = call.choice(OPERATORS)
    shape, dim = call.line(20000)
    if math.prod(shape) > 150000:
        shape, dim = (shape[dim] % 3000 + 1,), 0
    n = shape[dim]
    descending = call.chance(0.5)
    call.note(dim=dim, desc=descending)
    if name == "sort_int":
        of_integers(call, shape, dim, descending)
        return
    if name == "topk_idx":
        greatest_of_different(call, shape, dim, descending)
        return
    x = call.tensor(shape, dtype)  # drawn also where it is not used
    if name in ("sort", "argsort"):
        call.compute(lambda: getattr(torch, name)(x, dim=dim, descending=descending, stable=True), [x] if name == "sort" else [], 0.3)
    elif name == "topk":
        count = call.between(1, min(n, 600)) if call.chance(0.8) else call.between(1, n)
        call.note(k=count)
        call.compute(lambda: torch.topk(x, count, dim, descending, True).values)
    elif name == "msort":
        call.compute(lambda: torch.msort(x))
    elif name == "kthvalue":
        k = call.between(1, n)
        call.note(k=k)
        call.compute(lambda: torch.kthvalue(x, k, dim).values)
    elif name == "unique":
        numbers = call.integers(shape, 0, 300, call.choice([i64, i32]), name="x")
        call.compute(lambda: torch.unique(numbers, return_inverse=True, return_counts=True))
    elif name == "isin":
        numbers, some = call.integers(shape, 0, 100, name="x"), call.integers((call.between(1, 60),), 0, 100, name="y")
        call.compute(lambda: torch.isin(numbers, some))
    else:
        usual = dtype if dtype in (f32, f64) else f32
        values = call.tensor(shape, usual, kind="unit" if name == "histc" else "normal")
        call.compute(lambda: torch.histc(values, 20, -1, 1) if name == "histc" else torch.quantile(values, 0.3, dim))
