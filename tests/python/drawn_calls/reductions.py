"""Sums, means, variances, norms, extremes and other reductions; running sums, products and extremes."""

import torch

from .number_types import INTEGERS, NAMES, bf16, boolean, f16, f32, f64

OPERATORS = ["sum"] * 4 + ["mean"] * 4 + ["var"] * 3 + [
    "std", "var_mean", "std_mean", "prod", "prod", "norm", "norm", "vector_norm", "vector_norm", "logsumexp", "logsumexp", "amax", "amin", "aminmax",
    "max", "argmax", "argmin", "cumsum", "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "median", "nanmedian", "any", "all", "nansum", "nanmean",
    "count_nonzero", "int_sum", "sum_to_size"]
OF_ONE_DIMENSION = ("prod", "median", "nanmedian", "argmax", "argmin", "max", "cummax", "cummin", "cumsum", "cumprod", "logcumsumexp")
MAY_BE_EMPTY = ("sum", "mean", "prod", "any", "all", "nansum", "cumsum")
TAKE_A_TYPE = ("sum", "mean", "prod", "nansum", "nanmean", "cumsum", "cumprod", "vector_norm", "norm")


def of_integers(call, shape, dims, dim, keep):
    dtype = call.dtype = call.choice([*INTEGERS, boolean])
    name = call.choice(["sum", "prod", "cumsum", "amax", "argmax", "any", "all", "mean", "max"])
    call.operator = "int_" + name
    function = getattr(torch, name)
    x = call.integers(shape, 0, 2 if dtype == boolean else 5, dtype, name="x", plain=False)
    call.note(dims=dims, keep=keep)
    if name in ("sum", "amax"):
        call.compute(lambda: function(x, dims, keepdim=keep))
    elif name == "mean":
        result = call.choice([f32, f16, bf16, f64])
        call.compute(lambda: torch.mean(x, dims, keepdim=keep, dtype=result))
    elif name == "cumsum":
        call.compute(lambda: torch.cumsum(x, dim))
    elif name == "argmax" and dtype == boolean:
        call.compute(lambda: x.any())
    else:
        call.compute(lambda: function(x, dim, keepdim=keep) if dims else function(x))


def sum_or_mean(call, x, dims, keep, result):
    function = getattr(torch, call.operator)
    whole = call.chance(0.25)
    if whole:
        call.arguments[-3] = "dims=all"
    call.compute(lambda: function(x, dtype=result) if whole else function(x, dims, keepdim=keep, dtype=result), [x], 0.3)


def variance(call, x, dims, keep):
    function = getattr(torch, call.operator)
    correction = call.choice([0, 1, 1, 2])
    call.note(corr=correction)
    call.compute(lambda: function(x, dims or None, correction=correction, keepdim=keep), [x], 0.4)


def norm(call, x, dims, keep, result):
    p = call.choice([0, 1, 2, 2, 2, 3, float("inf"), float("-inf"), 0.5, 2.5])
    call.note(p=p)
    if call.operator == "vector_norm":
        call.compute(lambda: torch.linalg.vector_norm(x, p, dims or None, keepdim=keep, dtype=result), [x], 0.4)
    elif keep and not dims:
        call.compute(lambda: torch.norm(x, p), [x], 0.4)
    else:
        call.compute(lambda: torch.norm(x, p, dims or None, keep, dtype=result), [x], 0.4)


def of_one_dimension(call, x, dims, dim, keep, result):
    """Of `dim`, or of all elements where there are no dims."""
    name, function = call.operator, getattr(torch, call.operator)
    if name != "prod":
        call.note(one=dim)
    if name == "prod":
        call.compute(lambda: torch.prod(x, dim, keepdim=keep, dtype=result) if dims else torch.prod(x, dtype=result), [x], 0.3)
    elif name in ("argmax", "argmin", "max"):
        call.compute(lambda: function(x, dim, keep) if dims else function(x), [x], 0.3 if dims else 0)
    elif name in ("cumsum", "cumprod"):
        call.compute(lambda: function(x, dim, dtype=result), [x], 0.4)
    elif name in ("median", "nanmedian"):
        call.compute(lambda: function(x, dim, keep).values if dims else function(x))
    else:
        call.compute(lambda: function(x, dim), [x], 0.3 if name == "logcumsumexp" else 0)


def of_floats(call, x, dims, dim, keep, result):
    name, rank, shape = call.operator, x.dim(), tuple(x.shape)
    call.note(dims=dims, keep=keep, to=result and NAMES[result])
    if name in ("sum", "mean", "nansum", "nanmean"):
        sum_or_mean(call, x, dims, keep, result)
    elif name in ("var", "std", "var_mean", "std_mean"):
        variance(call, x, dims, keep)
    elif name in ("norm", "vector_norm"):
        norm(call, x, dims, keep, result)
    elif name in OF_ONE_DIMENSION:
        of_one_dimension(call, x, dims, dim, keep, result)
    elif name == "logsumexp":
        call.compute(lambda: torch.logsumexp(x, dims or dim, keep), [x], 0.4)
    elif name in ("amax", "amin"):
        call.compute(lambda: getattr(torch, name)(x, dims, keep), [x], 0.4)
    elif name == "aminmax":
        call.compute(lambda: torch.aminmax(x, dim=dim, keepdim=keep) if dims else torch.aminmax(x))
    elif name in ("any", "all"):
        if call.chance(0.5):
            x = call.placed(call.values(shape, f32, "normal") > (2 if name == "any" else -2), name="x", plain=False)
        call.compute(lambda: getattr(torch, name)(x, dims, keep) if dims else getattr(torch, name)(x))
    elif name == "count_nonzero":
        call.compute(lambda: torch.count_nonzero(x, dims or None))
    else:
        left = tuple(1 if k in dims or k - rank in dims else n for k, n in enumerate(shape))
        call.compute(lambda: x.sum_to_size(left), [x], 0.3)


def result_type(call, dtype):
    norm_of = call.operator in ("norm", "vector_norm")
    result = None
    if call.operator in TAKE_A_TYPE and call.chance(0.2):
        if dtype in (f16, bf16) and call.chance(0.8):
            result = f32
        else:
            result = call.choice([f32, f64] if dtype == f32 and not norm_of else [f64])
    return None if norm_of and dtype == f64 else result


def reductions(call):
    name = call.operator = call.choice(OPERATORS)
    rank = call.choice([1, 1, 2, 2, 2, 3, 3, 4, 4, 5])
    budget = call.budget() if call.chance(0.985) else 3000000
    if name.startswith("cum") or name in ("logcumsumexp", "median", "nanmedian"):
        budget = min(budget, 200000)
    shape = call.shape(rank, budget, 0.008 if name in MAY_BE_EMPTY else 0)
    dtype = call.float_type()
    dims = sorted(call.some(range(rank), call.between(0, rank) if call.chance(0.7) else 1))
    if call.chance(0.3):
        dims = [dim - rank for dim in dims]
    if name in OF_ONE_DIMENSION:
        dims = dims[:1]
    dim = call.between(0, rank - 1)
    keep = call.chance(0.3)
    of_products = call.choice(["normal", "sign", "small"])
    kind = {"prod": "normal", "cumprod": of_products}.get(name) or call.weighted(normal=62, wide=10, small=14, unit=8, big=6)
    if name == "int_sum":
        of_integers(call, shape, dims, dim, keep)
    else:
        x = call.tensor(shape, dtype, kind=kind)
        of_floats(call, x, dims, dim, keep, result_type(call, dtype))
