"""cuDNN's attention with masks, and others' beside it: masks.py. Rows whose keys are all masked, masks of numbers, dropout."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from printed import put

torch.manual_seed(41)
for dtype in (torch.float16, torch.bfloat16):
    for length, width in ((20, 64), (150, 64), (150, 128)):
        q, k, v = torch.randn(3, 2, 4, length, width).to("cuda", dtype).unbind()
        causal = torch.ones(length, length, dtype=torch.bool, device="cuda").tril()
        padded = causal.expand(2, 1, length, length).clone()
        padded[0, :, :, :5] = False
        added = torch.randn(2, 1, length, length).to("cuda", dtype)
        hidden = torch.zeros(2, 1, length, length, dtype=dtype, device="cuda").masked_fill(~padded, float("-inf"))
        for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):
            with sdpa_kernel(backend):
                for name, mask in (("causal", causal), ("padded", padded), ("numbers", added), ("infinite", hidden)):
                    put(f"{backend.name} {dtype} {length} {width} {name}", F.scaled_dot_product_attention(q, k, v, attn_mask=mask))
                    if backend == SDPBackend.EFFICIENT_ATTENTION and length == 150:
                        continue  # Three splits of keys, which have no model.
                    x, y, z = (t.clone().requires_grad_() for t in (q, k, v))
                    F.scaled_dot_product_attention(x, y, z, attn_mask=mask).float().square().sum().backward()
                    put(f"{backend.name} {dtype} {length} {width} {name} gradient", x.grad, y.grad, z.grad)
