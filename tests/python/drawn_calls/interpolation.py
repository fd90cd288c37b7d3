"""Images of other sizes and at other places: interpolation, grids, padding, pixels to channels, windows to columns."""

import math

import torch.nn.functional as F


def with_a_batch(shape, dimensions):
    return shape if len(shape) == dimensions + 2 else (1, *shape)


def interpolate(call, dtype):
    mode = call.choice(["nearest", "nearest", "nearest-exact", "linear", "bilinear", "bilinear", "bicubic", "trilinear", "area", "antialias", "antialias"])
    antialias = mode == "antialias"
    if antialias:
        mode = call.choice(["bilinear", "bicubic"])
    dimensions = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}.get(mode) or call.choice([1, 2, 2, 3])
    call.operator = f"interpolate_{mode}{'_aa' if antialias else ''}{dimensions}d"
    budget = call.budget(2e5)
    shape = with_a_batch(call.images(dimensions, budget), dimensions)
    space = shape[2:]
    greatest = max(2.0, 4e5 / math.prod(shape)) ** (1 / dimensions)
    factors = [min(call.choice([0.5, 1.0, 2.0, 2.0, 3.0, 1.5, 0.3, 0.7, 4.0, 1.1, 2.7]), greatest) for _ in space]
    if call.chance(0.5):
        factors = [factors[0]] * dimensions
    factors = [factor if int(n * factor) >= 1 else 1.0 for factor, n in zip(factors, space)]
    options = {}
    if call.chance(0.5):
        if call.chance(0.8):
            options["size"] = tuple(max(1, int(n * factor) + call.choice([0, 0, 1])) for factor, n in zip(factors, space))
        else:
            options["size"] = tuple(space)
    else:
        options["scale_factor"] = factors[0] if call.chance(0.5) and all(int(n * factors[0]) >= 1 for n in space) else tuple(factors)
        if call.chance(0.3):
            options["recompute_scale_factor"] = call.chance(0.5)
    if mode in ("linear", "bilinear", "bicubic", "trilinear"):
        options["align_corners"] = call.chance(0.4)
    if antialias:
        options["antialias"] = True
    call.note(**options)
    x = call.tensor(shape, dtype)
    call.compute(lambda: F.interpolate(x, mode=mode, **options), [x], 0.6 if mode.startswith("nearest") else 0)


def grid_sample(call, dtype):
    dimensions = call.choice([2, 2, 2, 3])
    mode = call.choice(["bilinear", "bilinear", "nearest", "bicubic"] if dimensions == 2 else ["bilinear", "nearest"])
    call.operator = f"grid_sample_{mode}{dimensions}d"
    padding, corners = call.choice(["zeros", "border", "reflection"]), call.chance(0.4)
    shape = with_a_batch(call.images(dimensions, 2e4), dimensions)
    if call.chance(0.3):
        shape = (shape[0], call.between(1, 40), *shape[2:])
    places = call.shape(dimensions, max(1, min(2000, 100000 // shape[0] // shape[1])))
    x = call.tensor(shape, dtype)
    grid = call.tensor((shape[0], *places, dimensions), dtype, kind=call.weighted(unit=80, normal=20), name="grid")
    call.note(padding=padding, ac=corners)
    call.compute(lambda: F.grid_sample(x, grid, mode, padding, corners))


def affine_grid(call, dtype):
    call.operator = "affine_grid"
    dimensions = call.choice([2, 3])
    batch = call.between(1, 4)
    size = (batch, call.between(1, 3), *call.shape(dimensions, 2000))
    theta = call.tensor((batch, dimensions, dimensions + 1), dtype, name="theta")
    corners = call.chance(0.5)
    call.note(size=list(size), ac=corners)
    call.compute(lambda: F.affine_grid(theta, size, corners), [theta], 0.3)


def pixels_and_channels(call, dtype):
    call.operator = call.choice(["pixel_shuffle", "pixel_unshuffle", "channel_shuffle"])
    factor = call.choice([1, 2, 2, 3, 4])
    batch, channels, height, width = call.between(1, 4), call.between(1, 16), call.between(1, 20), call.between(1, 20)
    call.note(r=factor)
    shape = {"pixel_shuffle": (batch, channels * factor * factor, height, width),
             "pixel_unshuffle": (batch, channels, height * factor, width * factor),
             "channel_shuffle": (batch, channels * factor, height, width)}[call.operator]
    x = call.tensor(shape, dtype)
    function = getattr(F, call.operator)
    call.compute(lambda: function(x, factor), [x])


def columns(call, dtype):
    """fold and unfold."""
    size = call.between(1, 30), call.between(1, 30)
    kernel = [min(call.between(1, 5), n) for n in size]
    dilation = [call.choice([1, 1, 2]) if (window - 1) * 2 < n else 1 for window, n in zip(kernel, size)]
    padding = [call.between(0, 3), call.between(0, 3)]
    stride = [call.between(1, 4), call.between(1, 4)]
    batch, channels = call.between(1, 4), call.between(1, 8)
    call.note(k=kernel, dil=dilation, pad=padding, st=stride)
    if call.operator == "unfold":
        x = call.tensor((batch, channels, *size), dtype)
        call.compute(lambda: F.unfold(x, kernel, dilation, padding, stride), [x])
        return
    count = math.prod((n + 2 * pad - apart * (window - 1) - 1) // step + 1
                      for n, pad, apart, window, step in zip(size, padding, dilation, kernel, stride))
    x = call.tensor((batch, channels * math.prod(kernel), count), dtype)
    call.note(out=list(size))
    call.compute(lambda: F.fold(x, size, kernel, dilation, padding, stride), [x])


def pad(call, dtype):
    mode = call.choice(["constant", "constant", "reflect", "replicate", "circular"])
    dimensions = call.choice([1, 2, 2, 3])
    call.operator = f"pad_{mode}{dimensions}d"
    shape = call.images(dimensions, 1e5)
    widths = []
    for n in reversed(shape[-dimensions:]):
        greatest = min({"reflect": n - 1, "circular": n}.get(mode, 9), 7)
        widths += [call.between(0, greatest), call.between(0, greatest)]
    if mode == "constant" and call.chance(0.2):
        widths[0] = -call.between(0, shape[-1] // 2)
    value = call.scalar() if mode == "constant" and call.chance(0.6) else None
    call.note(pad=widths, v=value)
    x = call.tensor(shape, dtype)
    if mode == "circular" and len(shape) == dimensions + 1:
        x = x.unsqueeze(0)
    call.compute(lambda: F.pad(x, widths, mode, value), [x] if x.is_leaf and not x._is_view() else [], 0.5 if mode in ("constant", "circular") else 0)


def interpolation(call):
    what = call.weighted(interpolate=55, grid_sample=12, affine_grid=3, pixels=8, unfold=6, fold=5, pad=11)
    dtype = call.float_type()
    call.operator = what
    {"interpolate": interpolate, "grid_sample": grid_sample, "affine_grid": affine_grid, "pixels": pixels_and_channels, "unfold": columns, "fold": columns,
     "pad": pad}[what](call, dtype)
