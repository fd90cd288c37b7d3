"""Which backend scaled_dot_product_attention takes: attention_choice.py FILE.jsonl, one line a case."""

import json
import sys

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

CHOICES = {-1: "error", 0: "math", 1: "flash", 2: "efficient", 3: "cudnn", 4: "overrideable"}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Called(TorchDispatchMode):
    """The operators called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not func.is_view:
            self.names.append(func._schema.name.split("::")[-1])
        return func(*args, **(kwargs or {}))


def case(file, dtype, head, sq, sk, heads=4, kv_heads=4, mask=None, gradient=False, deterministic=False,
         layout="bhsd", value_head=None, call=False, **options):
    facts = dict(dtype=str(dtype), head=head, value_head=value_head or head, sq=sq, sk=sk, heads=heads,
                 kv_heads=kv_heads, mask=mask, gradient=gradient, deterministic=deterministic, layout=layout, **options)

    def operand(n, s, d):
        if layout == "bhsd":
            return torch.randn((2, n, s, d), device=DEVICE, dtype=dtype, requires_grad=gradient)
        if layout == "misaligned":
            x = torch.randn(2 * n * s * d + 1, device=DEVICE, dtype=dtype)[1:].view(2, n, s, d)
        elif layout == "row stride odd":
            x = torch.randn((2, n, s, d + 1), device=DEVICE, dtype=dtype)[..., :d]
        elif layout == "last stride":
            x = torch.randn((2, n, d, s), device=DEVICE, dtype=dtype).transpose(2, 3)
        elif layout == "three":
            x = torch.randn((n, s, d), device=DEVICE, dtype=dtype)
        else:
            x = torch.randn((2, s, n, d), device=DEVICE, dtype=dtype).transpose(1, 2)
        return x.detach().requires_grad_(gradient)

    q, k, v = operand(heads, sq, head), operand(kv_heads, sk, head), operand(kv_heads, sk, value_head or head)
    masks = {None: lambda: None, "bool": lambda: torch.ones((sq, sk), device=DEVICE, dtype=torch.bool),
             "float": lambda: torch.zeros((2, heads, sq, sk), device=DEVICE, dtype=dtype),
             "float gradient": lambda: torch.zeros((sq, sk), device=DEVICE, dtype=dtype, requires_grad=True),
             "row": lambda: torch.zeros((2, 1, 1, sk), device=DEVICE, dtype=torch.bool).logical_not()}
    attn_mask = masks[mask]()
    torch.use_deterministic_algorithms(deterministic)
    if kv_heads != heads:
        options["enable_gqa"] = True
    try:
        facts["choice"] = CHOICES[int(torch._fused_sdp_choice(q, k, v, attn_mask, **options))]
        if call:
            with Called() as called:
                F.scaled_dot_product_attention(q, k, v, attn_mask, **options)
            facts["operators"] = called.names
    except RuntimeError as error:
        facts["error"] = str(error).splitlines()[0]
    torch.use_deterministic_algorithms(False)
    file.write(json.dumps(facts) + "\n")


def main():
    half, brain, single, double = torch.float16, torch.bfloat16, torch.float32, torch.float64
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(json.dumps({"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
                               "order": [int(x) for x in torch._C._get_sdp_priority_order()],
                               "device": torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu"}) + "\n")
        for dtype in (half, brain, single, double):
            for gradient in (False, True):
                for causal in (False, True):
                    for head in (2, 4, 6, 8, 12, 16, 20, 24, 32, 36, 40, 48, 64, 72, 80, 88, 96, 100, 104, 112, 120, 124,
                                 128, 136, 144, 160, 192, 200, 224, 248, 256, 264, 512):
                        case(file, dtype, head, 96, 96, gradient=gradient, is_causal=causal, call=head in (64, 80))
        for dtype in (half, brain, single):
            for gradient in (False, True):
                for head in (64, 128, 256):
                    for sq, sk in ((1, 1), (1, 2), (2, 1), (1, 64), (1, 700), (2, 700), (700, 1), (2, 2), (63, 63), (64, 64),
                                   (65, 65), (100, 50), (50, 100), (128, 127), (1024, 1024), (5000, 5000)):
                        for causal in (False, True):
                            case(file, dtype, head, sq, sk, heads=2, kv_heads=2, gradient=gradient, is_causal=causal)
                    for mask in ("bool", "float", "float gradient", "row"):
                        for sk in (96, 97, 100, 1, 0):
                            case(file, dtype, head, 96, sk, mask=mask, gradient=gradient)
                        case(file, dtype, head, 1, 96, mask=mask, gradient=gradient)
                        case(file, dtype, head, 96, 96, mask=mask, gradient=gradient, dropout_p=0.1)
                        case(file, dtype, head, 96, 96, heads=4, kv_heads=2, mask=mask, gradient=gradient)
                    for kv_heads in (1, 2):
                        for sq in (1, 96):
                            for causal in (False, True):
                                case(file, dtype, head, sq, 96, kv_heads=kv_heads, gradient=gradient, is_causal=causal)
                    for dropout in (0.1, 1.0):
                        for causal in (False, True):
                            case(file, dtype, head, 96, 96, gradient=gradient, dropout_p=dropout, is_causal=causal)
                    for layout in ("bshd", "misaligned", "row stride odd", "last stride", "three"):
                        case(file, dtype, head, 96, 96, gradient=gradient, layout=layout)
                    for causal in (False, True):
                        case(file, dtype, head, 96, 96, gradient=gradient, deterministic=True, is_causal=causal)
                    for value_head in (8, 32, 256):
                        case(file, dtype, head, 96, 96, gradient=gradient, value_head=value_head)
                    case(file, dtype, head, 0, 96, gradient=gradient)
                    case(file, dtype, head, 96, 0, gradient=gradient)
                    case(file, dtype, head, 96, 96, gradient=gradient, scale=0.3)
                    case(file, dtype, head, 96, 96, gradient=gradient, scale=-1.0)


main()
