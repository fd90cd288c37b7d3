"""Attention by one backend: attention.py flash|efficient|cudnn|math|any PART. Inputs are not recorded as they are made."""

import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import _disable_current_modes

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BACKENDS = {"flash": [SDPBackend.FLASH_ATTENTION], "efficient": [SDPBackend.EFFICIENT_ATTENTION],
            "cudnn": [SDPBackend.CUDNN_ATTENTION], "math": [SDPBackend.MATH]}
H, B, S = torch.float16, torch.bfloat16, torch.float32
count = 0


def tensor(shape, dtype, seed, factor=1.0):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * factor
    return x.to(dtype).to(DEVICE)


def case(backend, dtype, head, sq, sk=None, heads=1, kv_heads=None, batch=1, factor=1.0, special=None, mask=None,
         same=False, backward=True, deterministic=True, warn_only=False, mask_gradient=False, value_head=None,
         layout="bhsd", **options):
    """One call and its backward. `same`: all heads have equal contents; `special`: NaN and infinities in q."""
    global count
    count += 1
    sk, kv_heads = sk or sq, kv_heads or heads
    try:
        with _disable_current_modes():
            def operand(n, s, d, seed):
                if layout == "bshd":
                    return tensor((batch, s, n, d), dtype, seed, factor).transpose(1, 2)
                if same:
                    return tensor((1, 1, s, d), dtype, seed, factor).expand(batch, n, s, d).contiguous()
                return tensor((batch, n, s, d), dtype, seed, factor)

            q, k = operand(heads, sq, head, 100 * count), operand(kv_heads, sk, head, 100 * count + 1)
            v = operand(kv_heads, sk, value_head or head, 100 * count + 2)
            grad = operand(heads, sq, value_head or head, 100 * count + 3)
            if special:
                q[0, 0, 3, 1], q[0, 0, 5, 2], k[0, 0, 9, 0] = float("nan"), float("inf"), float("-inf")
                v[0, 0, 11, 4] = float("inf")
            attn_mask = None
            if mask == "bias":
                attn_mask = tensor((batch, heads, sq, sk), dtype, 100 * count + 4)
            elif mask == "row bias":
                attn_mask = tensor((1, 1, 1, sk), dtype, 100 * count + 4).expand(batch, heads, sq, sk)
            elif mask:
                attn_mask = torch.rand((sq, sk), generator=torch.Generator().manual_seed(count)).to(DEVICE) < 0.7
                if mask == "empty rows":
                    attn_mask[2:5] = False
            for x in (q, k, v):
                x.requires_grad_(backward)
            if mask_gradient:
                attn_mask.requires_grad_()
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        if kv_heads != heads:
            options["enable_gqa"] = True
        torch.manual_seed(count)
        if backend == "any":
            out = F.scaled_dot_product_attention(q, k, v, attn_mask, **options)
        else:
            with sdpa_kernel(BACKENDS[backend]):
                out = F.scaled_dot_product_attention(q, k, v, attn_mask, **options)
        if backward:
            out.backward(grad)
    except RuntimeError as error:
        print(f"{backend} case {count} {dtype} head {head} {sq}x{sk} {options}: {str(error).splitlines()[0]}", flush=True)
    torch.use_deterministic_algorithms(False)


def flash_large():
    case("flash", H, 32, 1056, heads=2)
    case("flash", B, 64, 1056, is_causal=True)
    case("flash", H, 64, 1056)
    case("flash", H, 96, 520, is_causal=True)
    case("flash", B, 96, 520)
    case("flash", B, 128, 1056)
    case("flash", H, 128, 520, is_causal=True)
    case("flash", H, 192, 330)
    case("flash", B, 192, 330, is_causal=True)
    case("flash", B, 256, 330)
    case("flash", H, 256, 330, is_causal=True)
    # Many heads: keys are not split.
    case("flash", H, 64, 448, 1056, heads=31, same=True, backward=False)
    case("flash", B, 128, 448, 520, heads=31, same=True, backward=False)
    case("flash", H, 256, 448, 330, heads=31, same=True, backward=False)


def flash_cases():
    case("flash", H, 64, 300, heads=4, kv_heads=2)
    case("flash", B, 128, 200, heads=8, kv_heads=1, is_causal=True)
    case("flash", H, 64, 1, 700, heads=8, kv_heads=2, backward=False)
    case("flash", B, 128, 1, 1300, heads=4, backward=False)
    case("flash", B, 64, 1, 300, heads=4, kv_heads=2)
    for head, dtype in ((64, H), (128, B), (32, B), (256, H)):
        case("flash", dtype, head, 200, factor=5.5)
        case("flash", dtype, head, 200, factor=30.0)
    case("flash", H, 64, 150, special=True)
    case("flash", B, 128, 150, special=True)
    case("flash", H, 64, 200, scale=0.3)
    for head in (40, 80, 72, 8, 160, 224):
        case("flash", H, head, 200, is_causal=True)
    for head, dtype in ((32, H), (64, B), (96, H), (128, H), (192, B), (256, B)):
        case("flash", dtype, head, 300 if head <= 128 else 200, heads=2, dropout_p=0.3)
    case("flash", H, 64, 300, batch=2, heads=2, dropout_p=0.1, is_causal=True)
    for head in (64, 128):
        case("flash", H, head, 700, deterministic=False)
    case("flash", H, 64, 700, warn_only=True, is_causal=True)
    case("flash", H, 64, 130, batch=2, heads=3, layout="bshd")
    case("flash", B, 32, 300, heads=132, kv_heads=132, same=True)


def efficient_large():
    for head, dtype, s in ((32, H, 330), (64, B, 520), (96, H, 330), (128, B, 520), (192, H, 330), (256, B, 330)):
        case("efficient", dtype, head, s)
        case("efficient", dtype, head, s // 2, is_causal=True)
        case("efficient", dtype, head, s // 2, deterministic=False)
    case("efficient", H, 64, 520, deterministic=False, is_causal=True)
    case("efficient", H, 64, 70, batch=16, heads=16, same=True, deterministic=False)


def efficient_cases():
    for head in (64, 32, 40, 72, 128, 160, 256):
        case("efficient", S, head, 200)
    case("efficient", S, 64, 520, deterministic=False, heads=2)
    case("efficient", S, 64, 300, is_causal=True)
    case("efficient", S, 64, 100, mask="bias")
    case("efficient", S, 64, 200, factor=30.0)
    case("efficient", S, 64, 200, heads=2, dropout_p=0.3)
    for dtype, head in ((H, 64), (B, 128), (H, 256)):
        case("efficient", dtype, head, 200, 300, is_causal=True)
        case("efficient", dtype, head, 300, 200, is_causal=True)
        case("efficient", dtype, head, 200, mask="bias", heads=2)
        case("efficient", dtype, head, 136, 200, mask="bias", mask_gradient=True)
        case("efficient", dtype, head, 200, mask="row bias")
        case("efficient", dtype, head, 200, mask="bool")
        case("efficient", dtype, head, 200, mask="empty rows")
        case("efficient", dtype, head, 200, factor=5.5)
        case("efficient", dtype, head, 200, factor=30.0)
        case("efficient", dtype, head, 200, heads=2, dropout_p=0.3)
        case("efficient", dtype, head, 150, special=True)
        case("efficient", dtype, head, 150, heads=4, kv_heads=2)
    case("efficient", H, 64, 200, scale=0.3)
    case("efficient", H, 64, 200, value_head=128)
    for head in (8, 40, 72, 80):
        case("efficient", H, head, 150)
    case("efficient", H, 64, 1, 700, heads=4, backward=False)
    case("efficient", B, 64, 150, deterministic=False, mask="bias", is_causal=False)


def cudnn_large():
    for head, dtype, s in ((32, H, 520), (64, B, 1056), (96, H, 520), (128, B, 1056)):
        case("cudnn", dtype, head, s, deterministic=False)
        case("cudnn", dtype, head, s // 2, is_causal=True, deterministic=False)
        case("cudnn", B if dtype == H else H, head, s // 2, deterministic=False)
        case("cudnn", dtype, head, s // 2, deterministic=True)
    for head, dtype in ((192, H), (256, B)):
        case("cudnn", dtype, head, 520, deterministic=False, backward=False)
        case("cudnn", dtype, head, 330, is_causal=True, deterministic=False)


def cudnn_cases():
    for head, dtype in ((64, H), (128, B)):
        case("cudnn", dtype, head, 300, 520, is_causal=True, deterministic=False)
        case("cudnn", dtype, head, 520, 300, is_causal=True, deterministic=False)
        case("cudnn", dtype, head, 300, heads=4, kv_heads=2, deterministic=False)
        case("cudnn", dtype, head, 200, mask="bias", heads=2, deterministic=False)
        case("cudnn", dtype, head, 200, mask="bool", deterministic=False)
        case("cudnn", dtype, head, 200, mask="empty rows", deterministic=False)
        case("cudnn", dtype, head, 200, factor=5.5, deterministic=False)
        case("cudnn", dtype, head, 200, factor=30.0, deterministic=False)
        case("cudnn", dtype, head, 200, heads=2, dropout_p=0.3, deterministic=False)
        case("cudnn", dtype, head, 150, special=True, deterministic=False)
        case("cudnn", dtype, head, 1, 700, heads=8, backward=False, deterministic=False)
        case("cudnn", dtype, head, 1, 700, heads=8, kv_heads=2, backward=False, deterministic=False)
        case("cudnn", dtype, head, 64, batch=4, heads=4, deterministic=False)
        case("cudnn", dtype, head, 256, batch=2, heads=2, layout="bshd", is_causal=True, deterministic=False)
    case("cudnn", H, 64, 200, scale=0.3, deterministic=False)
    for head in (8, 16, 40, 72, 80, 104):
        case("cudnn", H, head, 200, deterministic=False)
        case("cudnn", H, head, 200, is_causal=True, deterministic=False)
    case("cudnn", H, 64, 512, heads=40, same=True, is_causal=True, deterministic=False)


globals()[f"{sys.argv[1]}_{sys.argv[2]}"]()
