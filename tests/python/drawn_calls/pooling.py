"""Pooling of lines, images and volumes."""

import torch.nn.functional as F

from .choices import divisors


def pooling(call):
    dimensions = call.choice([1, 2, 2, 2, 3])
    name = call.choice(["max_pool", "max_pool", "avg_pool", "avg_pool", "avg_pool", "adaptive_avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "lp_pool"])
    call.operator = f"{name}{dimensions}d"
    dtype = call.float_type()
    shape = call.images(dimensions)
    (adaptive if name.startswith("adaptive") else with_windows)(call, name, dtype, shape, dimensions)


def of_each_dimension(call, sizes):
    """The sizes, sometimes as one number; chosen when the operator is called."""
    return tuple(sizes) if len(sizes) > 1 or call.chance(0.5) else sizes[0]


def adaptive(call, name, dtype, shape, dimensions):
    space = shape[-dimensions:]
    even = call.chance(0.5)
    sizes = tuple(call.choice(divisors(n)) if even else call.between(1, max(1, min(n, 12))) for n in space)
    if call.chance(0.06):
        sizes = tuple(call.between(1, n + 3) for n in space)
    if dimensions > 1 and not even and call.chance(0.1):
        sizes = (None, *sizes[1:])
    windows = [(n, size or n) for n, size in zip(space, sizes)]
    uneven = sum(n % size != 0 for n, size in windows)
    # Gradients of overlapping windows are added in any order.
    backward = 0.6 if uneven == 0 else 0.5 if uneven == 1 and all(size <= n for n, size in windows) else 0
    call.note(out=list(sizes))
    x = call.tensor(shape, dtype)
    function = getattr(F, call.operator)
    if name == "adaptive_avg_pool":
        call.compute(lambda: function(x, of_each_dimension(call, sizes)), [x], backward)
    else:
        indices = call.chance(0.4)
        call.compute(lambda: function(x, of_each_dimension(call, sizes), return_indices=indices), [x], backward)


def with_windows(call, name, dtype, shape, dimensions):
    space = shape[-dimensions:]
    kernel = [call.choice([1, 2, 2, 3, 3, 3, 4, 5, 7]) for _ in range(dimensions)]
    if call.chance(0.5):
        kernel = [kernel[0]] * dimensions
    if call.chance(0.05):
        kernel = list(space)
    kernel = [min(size, n) for size, n in zip(kernel, space)]
    dilation = [1] * dimensions
    if name == "max_pool":
        dilation = [call.choice([1, 1, 1, 2]) if (size - 1) * 2 < n else 1 for size, n in zip(kernel, space)]
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilation)]
    apart = call.chance(0.5)
    stride = [size + call.choice([0, 0, 0, 1]) if apart else call.between(1, max(1, size)) for size in reach]
    padding = [call.between(0, size // 2) if call.chance(0.6) else 0 for size in kernel]
    ceil = call.chance(0.3)
    disjoint = all(step >= size for step, size in zip(stride, reach))
    x = call.tensor(shape, dtype)
    function = getattr(F, call.operator)

    def each(sizes):
        return of_each_dimension(call, sizes)

    if name == "max_pool":
        indices = call.chance(0.3)
        call.note(k=kernel, st=stride, pad=padding, dil=dilation, ceil=ceil)
        call.compute(lambda: function(x, each(kernel), each(stride), each(padding), each(dilation), ceil, indices), [x], 0.7 if disjoint else 0)
    elif name == "avg_pool":
        count_padding = call.chance(0.5)
        options = {"divisor_override": call.between(1, 9)} if dimensions > 1 and call.chance(0.2) else {}
        call.note(k=kernel, st=stride, pad=padding, ceil=ceil, cip=count_padding, **options)
        call.compute(lambda: function(x, each(kernel), each(stride), each(padding), ceil, count_padding, **options), [x],
                     0.7 if dimensions < 3 or disjoint else 0)
    else:
        p = call.choice([1, 2, 2, 3, 1.5])
        call.note(p=p, k=kernel, st=stride, ceil=ceil)
        sizes, steps = (kernel, stride) if dimensions > 1 else (kernel[0], stride[0])
        call.compute(lambda: function(x, p, sizes, steps, ceil), [x], 0.4 if dimensions < 3 or disjoint else 0)
