"""cuDNN's attention of one query in inference: attention_one_query.py. Draws are made by the CPU."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

H, B = torch.float16, torch.bfloat16
generator = torch.Generator().manual_seed(5)


def tensor(*shape, dtype, scale=1.0):
    return (torch.randn(*shape, generator=generator) * scale).to(dtype).cuda()


def call(batch, heads, keys, size, dtype, queries=1, scale=1.0, kv_heads=None, equal_scores=False):
    q = tensor(batch, heads, queries, size, dtype=dtype, scale=scale)
    k = tensor(batch, kv_heads or heads, keys, size, dtype=dtype, scale=scale)
    v = tensor(batch, kv_heads or heads, keys, size, dtype=dtype)
    if equal_scores:
        k.zero_()
    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]), torch.no_grad():
        F.scaled_dot_product_attention(q, k, v, enable_gqa=kv_heads is not None)


for length in (129, 136, 160, 192, 200, 256, 257, 300, 384, 512, 513, 640, 1000, 1024):
    call(1, 1, length, 64, H)
for length in (130, 256, 300, 640):
    call(1, 1, length, 128, B)
for length in (129, 160, 256, 300, 384, 512, 640, 1024):
    call(1, 1, length, 64, H, equal_scores=True)
for length in (200, 640):
    call(1, 2, length, 64, B, scale=3.0)
call(2, 3, 300, 64, H)
call(1, 8, 300, 64, H, kv_heads=2)
call(1, 1, 300, 64, H, queries=2)
call(1, 1, 300, 96, H)
call(1, 1, 300, 32, H)
call(1, 1, 128, 64, H)
call(4, 40, 300, 16, H)
