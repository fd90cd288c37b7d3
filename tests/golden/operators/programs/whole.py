"""Whole small programs: whole.py mlp|gpt|vit|conv|llama [DTYPE] [ATTENTION]."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
            "cudnn": SDPBackend.CUDNN_ATTENTION, "math": SDPBackend.MATH}


def train(model, optimizer, batches, loss_of, dtype):
    """Some steps under autocast, with a loss scale if it is FP16, with clipping."""
    scaler = torch.amp.GradScaler(DEVICE, enabled=dtype == torch.float16)
    for x, y in batches:
        with torch.autocast(DEVICE, dtype=dtype, enabled=dtype != torch.float32):
            loss = loss_of(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        print(loss.item())


class Block(nn.Module):
    def __init__(self, width, heads, attention, causal, dropout):
        super().__init__()
        self.heads, self.attention, self.causal, self.dropout = heads, attention, causal, dropout
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, q, k, v):
        if self.attention == "written":
            scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
            if self.causal:
                hidden = torch.ones(scores.shape[-2:], device=scores.device, dtype=torch.bool).triu(1)
                scores = scores.masked_fill(hidden, float("-inf"))
            return scores.softmax(-1) @ v
        if self.attention == "any":
            return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        with sdpa_kernel(BACKENDS[self.attention]):
            return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)

    def forward(self, x):
        b, s, c = x.shape
        q, k, v = (y.view(b, s, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.first(x)).chunk(3, -1))
        x = x + F.dropout(self.out(self.attend(q, k, v).transpose(1, 2).reshape(b, s, c)), self.dropout)
        return x + self.down(F.gelu(self.up(self.second(x))))


class GPT(nn.Module):
    def __init__(self, attention, words=96, width=64, heads=2, layers=1, length=80, dropout=0.1):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, attention, True, dropout) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.norm(self.blocks(self.words(x) + self.places(places))))


class ViT(nn.Module):
    def __init__(self, attention, width=48, heads=3, layers=1):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 65, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads, attention, False, 0.0) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class Llama(nn.Module):
    """Decoder with RMS norm, rotary embedding, grouped heads, SwiGLU and a cache of keys and values."""

    def __init__(self, words=96, width=64, heads=4, kv_heads=2, layers=2, inner=160):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.words, self.norm, self.head = nn.Embedding(words, width), nn.RMSNorm(width, 1e-6), nn.Linear(width, words, bias=False)
        linear = lambda a, b: nn.Linear(a, b, bias=False)
        kv = kv_heads * self.size
        self.layers = nn.ModuleList(nn.ModuleDict({
            "first": nn.RMSNorm(width, 1e-6), "second": nn.RMSNorm(width, 1e-6), "q": linear(width, width),
            "k": linear(width, kv), "v": linear(width, kv), "o": linear(width, width), "gate": linear(width, inner),
            "up": linear(width, inner), "down": linear(inner, width)}) for _ in range(layers))

    def rotate(self, x, begin):
        places = torch.arange(begin, begin + x.shape[2], device=x.device).float()
        turns = 10000.0 ** (-torch.arange(0, self.size, 2, device=x.device).float() / self.size)
        angles = torch.cat([places[:, None] * turns[None]] * 2, -1)
        half = torch.cat([-x[..., self.size // 2:], x[..., :self.size // 2]], -1)
        return x * angles.cos().to(x.dtype) + half * angles.sin().to(x.dtype)

    def forward(self, words, caches):
        x, begin = self.words(words), 0 if not caches[0] else caches[0][0].shape[2]
        for layer, cache in zip(self.layers, caches):
            y = layer["first"](x)
            q, k, v = (layer[n](y).view(*y.shape[:2], -1, self.size).transpose(1, 2) for n in "qkv")
            q, k = self.rotate(q, begin), self.rotate(k, begin)
            if cache:
                k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
            cache[:] = k, v
            y = F.scaled_dot_product_attention(q, k, v, is_causal=begin == 0, enable_gqa=True)
            x = x + layer["o"](y.transpose(1, 2).reshape(x.shape))
            y = layer["second"](x)
            x = x + layer["down"](F.silu(layer["gate"](y)) * layer["up"](y))
        return self.head(self.norm(x[:, -1:]))


def cross_entropy(x, y):
    return F.cross_entropy(x.flatten(0, -2), y.flatten())


def main(kind, dtype="bf16", attention="any"):
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    torch.manual_seed(1)
    if kind == "mlp":
        model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.1), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 10))
        data = [(torch.randn(48, 64), torch.randint(10, (48,))) for _ in range(3)]
    elif kind == "gpt":
        model = GPT(attention)
        words = torch.randint(96, (2, 2, 81))
        data = [(x[:, :-1], x[:, 1:]) for x in words]
    elif kind == "vit":
        model = ViT(attention)
        data = [(torch.randn(4, 3, 32, 32), torch.randint(10, (4,))) for _ in range(2)]
    elif kind == "conv":
        model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                              nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.GroupNorm(4, 32), nn.SiLU(),
                              nn.Conv2d(32, 32, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
        data = [(torch.randn(4, 3, 32, 32), torch.randint(10, (4,))) for _ in range(2)]
    elif kind == "llama":
        model = Llama().to(DEVICE).to(dtype).eval()
        words = torch.randint(96, (1, 33)).to(DEVICE)
        caches = [[] for _ in model.layers]
        with torch.inference_mode():
            for _ in range(6):
                words = model(words, caches).argmax(-1)
                print(words.item())
        return
    model = model.to(DEVICE)
    fused = attention in ("any", "flash")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1, fused=fused) if kind != "conv" else \
        torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    train(model, optimizer, [(x.to(DEVICE), y.to(DEVICE)) for x, y in data], cross_entropy, dtype)


if __name__ == "__main__":
    main(*sys.argv[1:])
