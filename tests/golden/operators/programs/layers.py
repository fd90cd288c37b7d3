"""Small calls of layers: layers.py [attention]. Recurrent cells, embedding bags, normalisations, dropout, convolutions; or
the three fused kinds of attention."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

DEVICE = "cuda"
TYPES = (torch.float32, torch.float16, torch.bfloat16)


def drawn(*shape, dtype=torch.float32, last=False):
    x = torch.randn(*shape, device=DEVICE).to(dtype)
    return (x.contiguous(memory_format=torch.channels_last) if last else x).requires_grad_()


def back(y):
    y.backward(torch.randn_like(y))


def recurrent_cells():
    with torch.backends.cudnn.flags(enabled=False):
        for dtype in TYPES:
            for kind in (nn.LSTM, nn.GRU):
                back(kind(24, 40).to(DEVICE).to(dtype)(drawn(3, 5, 24, dtype=dtype))[0])


def embedding_bags():
    table = drawn(50, 16)
    for mode in ("sum", "mean"):
        back(F.embedding_bag(torch.randint(50, (20, 7), device=DEVICE), table, mode=mode))
        begins = torch.tensor([0, 3, 3, 50, 100], device=DEVICE)
        back(F.embedding_bag(torch.randint(50, (140,), device=DEVICE), table, begins, mode=mode))
    weights = torch.randn(20, 7, device=DEVICE)
    back(F.embedding_bag(torch.randint(50, (20, 7), device=DEVICE), table, mode="sum", per_sample_weights=weights))


def norms():
    for shape in ((33, 10), (5, 64), (600, 7)):
        back(nn.BatchNorm1d(shape[1]).to(DEVICE)(drawn(*shape)))
    for dtype in TYPES[:2]:
        for shape in ((1, 2, 1, 513), (1, 2, 1, 1025), (2, 3, 8, 8), (128, 2, 1, 1), (600, 2, 1, 1)):
            back(F.batch_norm(drawn(*shape, dtype=dtype), None, None, drawn(shape[1]), drawn(shape[1]), True))
    torch._foreach_norm([drawn(16, 3, 3, 3, last=True).detach(), drawn(32, 16, 1, 1).detach()])


def dropout():
    for dtype in TYPES:
        back(F.dropout(drawn(2, 40, 64, dtype=dtype).transpose(0, 1), 0.3))
        back(F.dropout(drawn(3, 5, 7, dtype=dtype), 0.3))


def convolutions():
    for dtype in TYPES:
        for last in (False, True):
            back(F.conv2d(drawn(9, 8, 6, 6, dtype=dtype, last=last), drawn(8, 1, 3, 3, dtype=dtype, last=last), None, 1, 1, 1, 8))
        back(F.conv_transpose2d(drawn(2, 8, 8, 8, dtype=dtype), drawn(8, 3, 4, 4, dtype=dtype), None, 2, 1))


def attention():
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        for dtype in TYPES[1:] + (TYPES[:1] if backend == SDPBackend.EFFICIENT_ATTENTION else ()):
            for heads, queries, keys, width, causal in ((2, 40, 40, 32, True), (2, 17, 70, 64, False), (1, 33, 33, 40, True)):
                q, k, v = (drawn(1, heads, n, width, dtype=dtype) for n in (queries, keys, keys))
                with sdpa_kernel(backend):
                    back(F.scaled_dot_product_attention(q, k, v, is_causal=causal))


torch.manual_seed(5)
for part in (attention,) if sys.argv[1:] == ["attention"] else (recurrent_cells, embedding_bags, norms, dropout, convolutions):
    part()
