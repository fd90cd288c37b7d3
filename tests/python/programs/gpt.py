"""A small GPT: gpt.py ATTENTION TYPE OPTIMIZER [STEPS].

ATTENTION is written, default, flash, efficient, cudnn or math; OPTIMIZER is one of torch.optim, or with fused- or single- before it."""

import contextlib
import math
import sys

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
import torch.nn.functional as F

from printed import put

attention, kind, optimizer_name = sys.argv[1:4]
steps = int(sys.argv[4]) if len(sys.argv) > 4 else 10
torch.manual_seed(3)
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "math": SDPBackend.MATH}
VOCABULARY, LENGTH, WIDTH, HEADS = 96, 64, 128, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def attend(self, q, k, v):
        if attention == "written":
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
            visible = torch.ones(LENGTH, LENGTH, dtype=torch.bool, device=q.device).tril()
            return scores.masked_fill(~visible, float("-inf")).softmax(-1) @ v
        with sdpa_kernel(BACKENDS[attention]) if attention in BACKENDS else contextlib.nullcontext():
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (t.view(*t.shape[:2], HEADS, -1).transpose(1, 2) for t in (q, k, v))
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, text):
        x = self.tokens(text) + self.places(torch.arange(text.shape[1], device=text.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


model = Gpt().to("cuda")
forms = {"fused": {"fused": True}, "single": {"foreach": False}}
form, _, name = optimizer_name.rpartition("-")
optimizer = getattr(torch.optim, name)(model.parameters(), lr=1e-3, **forms.get(form, {}))
scaler = torch.amp.GradScaler("cuda", enabled=kind == "fp16")
types = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
data = torch.randint(0, VOCABULARY, (4, LENGTH + 1)).cuda()
for step in range(steps):
    with torch.autocast("cuda", dtype=types[kind], enabled=kind != "fp32"):
        logits = model(data[:, :-1])
        loss = F.cross_entropy(logits.view(-1, VOCABULARY), data[:, 1:].reshape(-1))
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    put(f"loss {step}", loss, norm)
put("parameter", *model.parameters())
print("last loss", loss.item())
