"""Operators whose rules the first recordings leave open: open_points.py PART."""

import sys

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import _disable_current_modes

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
H, B, S = torch.float16, torch.bfloat16, torch.float32
seeds = iter(range(1, 1 << 30))


def tensor(*shape, dtype=S, gradient=False):
    with _disable_current_modes():
        x = torch.randn(shape, generator=torch.Generator().manual_seed(next(seeds))).to(dtype).to(DEVICE)
        return x.requires_grad_(gradient)


def indices(count, limit):
    with _disable_current_modes():
        return torch.randint(limit, (count,), generator=torch.Generator().manual_seed(next(seeds))).to(DEVICE)


def attempt(call, *args, **kwargs):
    try:
        return call(*args, **kwargs)
    except RuntimeError as error:
        print(f"{call}: {str(error).splitlines()[0]}")


def random():
    torch.manual_seed(9)
    for dtype in (H, B, S):
        for n in (1, 5, 1000, 33000):
            torch.rand(n, device=DEVICE, dtype=dtype)
            torch.randn(n, device=DEVICE, dtype=dtype)
    torch.rand(600, device=DEVICE, dtype=torch.float64)
    torch.randn(600, device=DEVICE, dtype=torch.float64)
    # Past 132 * 8 blocks of 256 a thread draws again.
    torch.rand(300000, device=DEVICE, dtype=S)
    torch.randn(1100000, device=DEVICE, dtype=H)
    torch.randint(0, 7, (1100000,), device=DEVICE, dtype=torch.int8)
    torch.randint(0, 100, (5000,), device=DEVICE)
    torch.randint(-5, 1 << 40, (3000,), device=DEVICE)
    torch.empty(300000, device=DEVICE, dtype=H).uniform_(-0.1, 0.3)
    torch.empty(3000, device=DEVICE).uniform_(-0.1, 0.3)
    torch.empty(3000, device=DEVICE).normal_(0.5, 0.02)
    torch.empty(3000, device=DEVICE, dtype=B).normal_(0.0, 0.02)
    torch.empty(3000, device=DEVICE).exponential_()
    torch.empty(3000, device=DEVICE).bernoulli_(0.3)
    torch.empty(300000, device=DEVICE, dtype=torch.int8).bernoulli_(0.3)
    for p in (0.1, 0.5):
        for dtype, n in ((H, 30000), (B, 1600), (S, 30000), (S, 1601), (H, 1603)):
            torch.native_dropout(tensor(n, dtype=dtype), p, True)
        torch.native_dropout(tensor(40, 33, dtype=H).t(), p, True)
    x = torch.ones(1200000, device=DEVICE, dtype=H)
    torch.native_dropout(x, 0.3, True)
    torch.rand_like(tensor(77))
    torch.randperm(1000, device=DEVICE)
    torch.randperm(40000, device=DEVICE)
    torch.bernoulli(torch.sigmoid(tensor(5000)))
    torch.multinomial(torch.softmax(tensor(3, 50), 1), 4)
    torch.multinomial(torch.softmax(tensor(3, 50), 1), 60, replacement=True)


def softmax():
    for shape in ((2, 9300), (2, 12000), (3, 12289), (2, 50257), (2, 50304)):
        for dtype in (S, B) if shape[1] < 13000 else (S,):
            x, g = tensor(*shape, dtype=dtype), tensor(*shape, dtype=dtype)
            for call, back in ((torch._softmax, torch._softmax_backward_data), (torch._log_softmax, torch._log_softmax_backward_data)):
                y = call(x, 1, False)
                back(g, y, 1, dtype)
    for shape in ((700, 12), (3000, 3), (64, 200), (3, 50, 8), (2, 1000, 7)):
        for dtype in (S, H):
            x, g = tensor(*shape, dtype=dtype), tensor(*shape, dtype=dtype)
            dim = len(shape) - 2
            for call, back in ((torch._softmax, torch._softmax_backward_data), (torch._log_softmax, torch._log_softmax_backward_data)):
                y = call(x, dim, False)
                back(g, y, dim, dtype)
    for n in (1000, 1025, 2049, 4096, 9000):
        torch._softmax(tensor(3, n, dtype=H), 1, True)
        torch._log_softmax(tensor(3, n, dtype=H), 1, True)


def norms():
    for dtype in (S, B):
        for n in (96, 1000, 17):
            x, g = tensor(70, n, dtype=dtype, gradient=True), tensor(70, n, dtype=dtype)
            w, b = tensor(n, dtype=dtype, gradient=True), tensor(n, dtype=dtype, gradient=True)
            torch.layer_norm(x, (n,), w, None).backward(g)
            torch.layer_norm(x, (n,), None, b).backward(g)
    x = tensor(70000, 5, dtype=H, gradient=True)
    torch.layer_norm(x, (5,), tensor(5, dtype=H, gradient=True), tensor(5, dtype=H, gradient=True)).backward(tensor(70000, 5, dtype=H))
    for dtype in (H, S):
        for shape in ((2, 12, 24, 24), (130, 6, 3, 3), (2, 8, 40), (3, 12, 9, 9)):
            x, c = tensor(*shape, dtype=dtype, gradient=True), shape[1]
            F.group_norm(x, 2, tensor(c, dtype=dtype, gradient=True), tensor(c, dtype=dtype, gradient=True)).backward(
                tensor(*shape, dtype=dtype))
        x = tensor(2, 12, 10, 10, dtype=dtype).contiguous(memory_format=torch.channels_last).requires_grad_()
        F.group_norm(x, 3, tensor(12, dtype=dtype, gradient=True), None).backward(tensor(2, 12, 10, 10, dtype=dtype))
    for dtype in (S, H):
        for shape in ((4, 8, 7, 7), (4, 8, 16, 16), (2, 5, 40, 40), (32, 12), (300, 6), (8, 4, 33)):
            for layout in (torch.contiguous_format, torch.channels_last):
                if layout == torch.channels_last and len(shape) != 4:
                    continue
                for training in (True, False):
                    x = tensor(*shape, dtype=dtype).contiguous(memory_format=layout).requires_grad_()
                    c = shape[1]
                    F.batch_norm(x, tensor(c), tensor(c).abs(), tensor(c, gradient=True), tensor(c, gradient=True), training).backward(
                        tensor(*shape, dtype=dtype).contiguous(memory_format=layout))


def reductions():
    for dtype in (S, H):
        for shape, dim in (((40, 1003), 1), ((7, 3001), 1), ((300, 257), 0), ((6000, 3), 0), ((3, 70000), 1)):
            x = tensor(*shape, dtype=dtype)
            for call in (torch.sum, torch.mean, torch.var, torch.std, torch.amax, torch.logsumexp, torch.prod):
                call(x, dim)
            torch.linalg.vector_norm(x, 2, dim)
            torch.linalg.vector_norm(x, 1, dim)
            torch.cumsum(x, dim)
        x = tensor(200001, dtype=dtype)[1:]
        x.sum(), x.mean(), x.norm(), x.var()
    for n in (60, 100, 256, 1000, 1024, 4096, 5000):
        for dtype in (S, B):
            a, v = tensor(24, n, dtype=dtype), tensor(n, dtype=dtype)
            torch.mv(a, v)
            torch.mv(a[:, :16].t(), a[:, 0])
            torch.dot(v, a[0])
            torch.mm(a, v[:, None])
    torch._foreach_norm([tensor(5000), tensor(70000), tensor(33, 33), tensor(7)[1:]])
    torch._foreach_norm([tensor(5000, dtype=B), tensor(3, dtype=B)])
    x = tensor(2, 4, 13, 13, gradient=True)
    F.max_pool2d(x, 3, 2, 1).backward(tensor(2, 4, 7, 7))
    F.avg_pool2d(x, 3, 2, 1).backward(tensor(2, 4, 7, 7))
    F.adaptive_avg_pool2d(x, 5).backward(tensor(2, 4, 5, 5))
    F.interpolate(x, scale_factor=2.0, mode="bilinear").backward(tensor(2, 4, 26, 26))
    F.interpolate(x, size=(20, 9), mode="bicubic", align_corners=True)
    for n in (500, 736, 4000):
        x = tensor(n, 40, gradient=True)
        F.cross_entropy(x, indices(n, 40)).backward()
        F.cross_entropy(x, indices(n, 40), label_smoothing=0.1, reduction="sum").backward()
    torch.use_deterministic_algorithms(True)
    for dtype in (S, B):
        for n in (1000, 5000):
            w = tensor(60, 16, dtype=dtype, gradient=True)
            F.embedding(indices(n, 60), w).backward(tensor(n, 16, dtype=dtype))
        attempt(torch.index_add, tensor(30, 16, dtype=dtype), 0, indices(400, 30), tensor(400, 16, dtype=dtype))
        attempt(torch.scatter_add, tensor(3000, dtype=dtype), 0, indices(4000, 3000), tensor(4000, dtype=dtype))
        attempt(torch.index_put, tensor(50, 8, dtype=dtype), (indices(400, 50),), tensor(400, 8, dtype=dtype), True)
        attempt(torch.cumsum, tensor(30000, dtype=dtype), 0)
    torch.use_deterministic_algorithms(False)


def convolution():
    for dtype in (H, B, S):
        for layout in (torch.contiguous_format, torch.channels_last):
            for c, o, k, stride, size in ((3, 16, 3, 1, 16), (16, 32, 3, 2, 12), (32, 32, 1, 1, 8), (8, 16, 5, 1, 12), (16, 16, 3, 1, 16)):
                x = tensor(2, c, size, size, dtype=dtype).contiguous(memory_format=layout).requires_grad_()
                w = tensor(o, c, k, k, dtype=dtype).contiguous(memory_format=layout).requires_grad_()
                y = F.conv2d(x, w, tensor(o, dtype=dtype, gradient=True), stride, k // 2)
                y.backward(torch.empty_like(y).copy_(tensor(*y.shape, dtype=dtype)))


globals()[sys.argv[1]]()
