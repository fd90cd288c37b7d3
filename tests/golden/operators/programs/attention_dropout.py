"""cuDNN's attention with dropout, forward and backward: attention_dropout.py. Draws are made by the CPU."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

H, B = torch.float16, torch.bfloat16
# batch, heads, queries, keys, head size, type, probability, and what is not as usual
CASES = (
    (1, 1, 64, 64, 64, H, 0.5, {}), (1, 2, 128, 128, 64, B, 0.25, {}), (1, 1, 96, 200, 64, H, 0.1, {}), (2, 2, 64, 300, 64, B, 0.5, {}),
    (1, 1, 128, 640, 64, H, 0.3, {}), (1, 1, 64, 512, 128, B, 0.1, {}), (1, 1, 130, 257, 128, H, 0.7, {}), (1, 1, 256, 256, 128, B, 0.5, {}),
    (1, 1, 200, 64, 32, H, 0.2, {}), (1, 2, 64, 128, 96, B, 0.4, {}), (1, 1, 7, 9, 64, H, 0.5, {}), (1, 1, 33, 129, 40, B, 0.15, {}),
    (1, 2, 128, 128, 64, H, 0.5, {"causal": True}), (1, 1, 200, 200, 64, B, 0.1, {"causal": True}), (1, 1, 256, 384, 128, H, 0.3, {"causal": True}),
    (1, 1, 64, 64, 64, H, 0.5, {"trains": False}), (1, 2, 128, 300, 64, B, 0.1, {"trains": False}), (1, 1, 128, 256, 128, H, 0.9, {"trains": False}),
    (1, 1, 64, 256, 64, H, 0.1, {"scale": 4.0}), (1, 1, 64, 256, 64, B, 0.5, {"scale": 3.0}), (1, 4, 64, 128, 64, H, 0.2, {"kv_heads": 2}),
    (1, 1, 64, 96, 64, H, 0.0, {}), (1, 1, 64, 96, 64, B, 0.999, {}),
)
generator = torch.Generator().manual_seed(5)


def tensor(*shape, dtype, scale=1.0):
    return (torch.randn(*shape, generator=generator) * scale).to(dtype).cuda()


def call(batch, heads, queries, keys, size, dtype, probability, causal=False, trains=True, scale=1.0, kv_heads=None):
    q = tensor(batch, heads, queries, size, dtype=dtype, scale=scale)
    k = tensor(batch, kv_heads or heads, keys, size, dtype=dtype, scale=scale)
    v = tensor(batch, kv_heads or heads, keys, size, dtype=dtype)
    for x in (q, k, v):
        x.requires_grad_(trains)
    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=probability, is_causal=causal, enable_gqa=kv_heads is not None)
        if trains:
            out.backward(tensor(*out.shape, dtype=dtype))


torch.manual_seed(1234)
for *case, others in CASES:
    call(*case, **others)
