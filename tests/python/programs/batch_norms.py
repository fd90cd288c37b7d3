"""Batch norms of many sizes, types and orders of memory: a digest of what each call gives, and of the strides.

Sizes cross every condition that is known: what a block of cuDNN's kernels keeps, its threads to an image, its columns for channels that
lie together. Pass a number to draw every so many of them.
"""

import hashlib
import sys

import torch
import torch.nn.functional as F

EVERY = int(sys.argv[1]) if len(sys.argv) > 1 else 1
FP32, FP16, BF16 = torch.float32, torch.float16, torch.bfloat16
NAMES = {FP32: "fp32", FP16: "fp16", BF16: "bf16"}
CASES = []


def add(dtypes, sizes, how=""):
    CASES.extend((dtype, size, how) for dtype in dtypes for size in sizes)


def rows(channels, *sizes):
    return [(n, channels, h, w) for n, h, w in sizes]


# What a block keeps of a channel: 28,672 elements, gradients 14,336; FP16 in pairs 77,824 and 43,008.
add([FP32], rows(2, (292, 7, 7), (293, 7, 7), (1, 14336, 1), (1, 14337, 1), (585, 7, 7), (586, 7, 7), (1, 28672, 1), (1, 28673, 1)))
add([FP16], rows(2, (292, 7, 7), (293, 7, 7), (585, 7, 7), (586, 7, 7), (42, 32, 32), (43, 32, 32), (76, 32, 32), (77, 32, 32), (1, 77826, 1)))
# Threads to an image: 32, 128, 512.
add([FP32, FP16], rows(2, (34, 1023, 1), (30, 32, 32), (17, 2047, 1), (9, 4095, 1), (8, 4097, 1), (300, 10, 10), (3000, 3, 4), (40000, 1, 1)))
add([BF16], rows(2, (34, 1023, 1), (30, 32, 32), (300, 10, 10), (64, 1, 1), (7, 9, 9)))
# Channels that lie together: 4 columns of threads or 16, a channel or 4 to a thread; pixels in registers and in shared memory.
for channels in (1, 2, 3, 4, 6, 8, 17, 64, 65, 68):
    add([FP32, FP16, BF16], rows(channels, (16, 1, 1), (2, 4, 4), (3, 7, 7), (5, 5, 3), (1, 37, 1)), "last")
add([FP32, FP16], rows(3, (3, 150, 150), (3, 151, 151), (3, 200, 200)) + rows(17, (8, 32, 32), (8, 33, 33)), "last")
add([FP32, FP16], rows(4, (1, 16896, 1), (1, 16897, 1), (8, 64, 64), (1, 25345, 1), (5, 90, 90)) + rows(64, (9, 28, 28), (16, 28, 28)), "last")
add([FP16], rows(4, (16, 56, 56)) + rows(128, (32, 16, 16), (16, 28, 28)) + rows(256, (24, 14, 14)), "last")
# One channel; vectors, lines and volumes; other orders of memory.
add([FP32, FP16, BF16], rows(1, (70, 32, 32), (3, 9, 9), (5, 2, 2)))
add([FP32, FP16, BF16], [(64, 20), (300, 7), (6, 40, 10), (3, 5, 4, 4, 4), (16, 8, 1, 1)])
add([FP32, FP16], [(6, 10, 40), (4, 6, 5, 8), (3, 4, 5, 4, 6)], "transposed")
add([FP32, FP16], [(6, 11, 40), (5, 9, 4, 6)], "a part")
add([FP32, FP16], [(5, 8, 4, 6), (16, 8, 1, 1)], "gradient last")


def drawn(shape, dtype, how, numbers):
    x = torch.randn(shape, generator=numbers).to(dtype)
    if how == "last":
        return x.to(memory_format=torch.channels_last)
    return x.transpose(1, -1) if how == "transposed" else x[:, 1:] if how == "a part" else x


for number, (dtype, shape, how) in enumerate(CASES):
    if number % EVERY:
        continue
    numbers = torch.Generator().manual_seed(number)
    x = drawn(shape, dtype, how, numbers).cuda().requires_grad_()
    gradient = drawn(shape, dtype, "last" if how == "gradient last" else how, numbers).cuda()
    channels = x.shape[1]
    weight, variance = (torch.rand(channels, generator=numbers).add(0.5).cuda() for _ in range(2))
    bias, mean = (torch.randn(channels, generator=numbers).mul(0.2).cuda() for _ in range(2))
    for training in (False, True):
        wanted = [t.detach().clone().requires_grad_() for t in (weight, bias)]
        moved = [mean.clone(), variance.clone()]
        y = F.batch_norm(x, *moved, *wanted, training, 0.1, 1e-5)
        results = (y, *moved, *torch.autograd.grad(y, (x, *wanted), gradient))
        digest = hashlib.sha256()
        for t in results:
            digest.update(str(t.stride()).encode() + t.detach().float().cpu().contiguous().numpy().tobytes())
        print(NAMES[dtype], *shape, how, "training" if training else "inference", digest.hexdigest()[:16])
