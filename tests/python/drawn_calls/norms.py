"""Group norms; layer, RMS, instance and local response norms."""

import torch.nn.functional as F

from .choices import divisors
from .number_types import bf16, f16, f32, f64


def group_norm(call):
    call.operator = "group_norm"
    dtype = call.float_type()
    rank = call.choice([2, 3, 3, 4, 4, 4, 5])
    budget = call.budget()
    pixels = 1
    if rank > 2:
        usual = [1, 2, 7, 9, 49, 64, 100, 196, 255, 256, 257, 512, 1000, 1024, 1025, 4096, 4097]
        pixels = call.choice(usual) if call.chance(0.8) else call.spread(1, 9000)
    while pixels > budget // 2 and pixels > 1:
        pixels = pixels // 3 + 1
    usual = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 33, 48, 64, 96, 128, 192, 256, 320, 512, 1024]
    channels = call.choice(usual) if call.chance(0.8) else call.spread(1, 600)
    while channels * pixels > budget and channels > 1:
        channels = (channels + 1) // 2
    batch = min(call.choice([1, 1, 2, 2, 3, 4, 5, 8, 17, 64]), max(1, budget // (channels * pixels)))
    groups = call.choice(divisors(channels)) if call.chance(0.7) else call.choice([1, channels])
    if batch * channels // groups * pixels == 1:
        batch = 2
    x = call.tensor((batch, channels, *(call.factors(pixels, rank - 2) if rank > 2 else ())), dtype)
    weight, bias = call.weight_and_bias((channels,), f32 if call.chance(0.02) else dtype)
    if weight is None and not call.chance(0.05):
        bias = None  # its gradient is an error without a weight
    eps = call.choice([1e-5, 1e-5, 1e-6, 1e-3, 0.1])
    call.note(groups=groups, eps=eps)
    call.compute(call.under_autocast(lambda: F.group_norm(x, groups, weight, bias, eps), 0.04), [x, weight, bias], 0.75)


def rows_and_width(call, greatest=20000):
    budget = call.budget()
    if call.chance(0.04):
        return call.choice([65535, 65536, 65537, 66000, 70000]), call.between(1, 16)
    width = call.size(min(greatest, budget))
    if call.chance(0.2):
        width = min(budget, call.choice([1024, 2048, 4096, 4096, 4092, 4100, 8192, 768, 12288, 16384]))
    return call.size(max(1, min(70000, budget // width))), max(1, width)


def norm_of_rows(call, dtype):
    rows, width = rows_and_width(call)
    normed_rank = call.choice([1, 1, 1, 2, 3])
    normed = call.factors(width, normed_rank)
    shape = (*call.factors(rows, call.choice([1, 1, 2])), *normed) if rows > 1 or call.chance(0.7) else normed
    layout = None
    if len(shape) > 1:
        layout = call.weighted(contiguous=25, offset=20, padded=15, gaps=12, permuted=10, transposed=10, permuted_gaps=4, expanded=3,
                               channels_last=5 if 3 <= len(shape) <= 5 else 0)
    x = call.tensor(shape, dtype, layout=layout, kind=call.weighted(normal=60, wide=10, small=12, unit=8, big=10))
    if call.operator == "rms_norm":
        weight_type = call.choice([f32, f32, bf16, f16]) if call.chance(0.12) else dtype
        weight = call.weight_and_bias(normed, weight_type, None if normed_rank == 1 else call.layout(normed_rank, plain=True))[0]
        eps = call.choice([None, 1e-5, 1e-6, 1e-3])
        call.note(norm=list(normed), eps=eps)
        call.compute(call.under_autocast(lambda: F.rms_norm(x, normed, weight, eps), 0.05), [x, weight], 0.7)
        return
    weight_type = f32 if call.chance(0.02) else dtype
    autocast = 0.06
    if call.chance(0.06) and dtype != f64:
        weight_type, autocast = f32, 1.0
    weight, bias = call.weight_and_bias(normed, weight_type, None if normed_rank == 1 else call.layout(normed_rank, plain=True))
    eps = call.choice([1e-5, 1e-5, 1e-6, 1e-12, 1e-3])
    call.note(norm=list(normed), eps=eps)
    call.compute(call.under_autocast(lambda: F.layer_norm(x, normed, weight, bias, eps), autocast), [x, weight, bias], 0.7)


def instance_norm(call, dtype):
    rank = call.choice([3, 4, 4, 5])
    pixels = call.size(min(5000, call.budget()), 2)
    channels = call.size(min(128, max(1, call.budget() // pixels)))
    batch = call.size(min(8, max(1, call.budget() // pixels // channels)))
    x = call.tensor((batch, channels, *call.factors(pixels, rank - 2)), dtype)
    weight, bias = call.weight_and_bias((channels,), dtype, "contiguous" if call.chance(0.8) else None)
    mean = variance = None
    of_input = True
    if call.chance(0.2):
        mean = call.tensor((channels,), dtype, "normal", "contiguous", "rm")
        variance = call.tensor((channels,), dtype, "positive", "contiguous", "rv")
        of_input = call.chance(0.6)
    call.note(stats=of_input)
    call.compute(lambda: (F.instance_norm(x, mean, variance, weight, bias, of_input, 0.1, 1e-5), mean, variance), [x, weight, bias])


def local_response_norm(call, dtype):
    shape = call.shape(call.choice([3, 4, 5]), call.budget(2e5))
    x = call.tensor(shape, dtype, layout=None if len(shape) < 5 or call.chance(0.1) else call.choice(["contiguous", "offset"]))
    size = call.between(1, 9)
    alpha, beta, k = call.choice([1e-4, 1e-2, 1.0]), call.choice([0.75, 0.5, 1.0]), call.choice([1.0, 2.0])
    call.note(size=size, alpha=alpha, beta=beta, k=k)
    call.compute(lambda: F.local_response_norm(x, size, alpha, beta, k), [x])


def norms(call):
    call.operator = call.weighted(layer_norm=50, rms_norm=27, instance_norm=15, local_response_norm=8)
    dtype = call.float_type()
    {"instance_norm": instance_norm, "local_response_norm": local_response_norm}.get(call.operator, norm_of_rows)(call, dtype)
