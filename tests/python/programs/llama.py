"""A llama written by hand, in BF16 or FP16, that continues a text: llama.py TYPE [TOKENS]. Grouped heads, rotations, a cache of keys."""

import sys

import torch
from torch import nn
import torch.nn.functional as F

from printed import put

kind, tokens = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 24
dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[kind]
torch.manual_seed(7)
WIDTH, HEADS, GROUPS, HEAD, HIDDEN, VOCABULARY = 128, 4, 2, 32, 352, 200


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


def rotated(x, angles):
    cosine, sine = angles.cos()[:, None, :], angles.sin()[:, None, :]
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1).type_as(x)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(), RmsNorm()
        self.q = nn.Linear(WIDTH, HEADS * HEAD, bias=False)
        self.k = nn.Linear(WIDTH, GROUPS * HEAD, bias=False)
        self.v = nn.Linear(WIDTH, GROUPS * HEAD, bias=False)
        self.o = nn.Linear(HEADS * HEAD, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)
        self.keys = self.values = None

    def forward(self, x, angles):
        y = self.norm1(x)
        length = y.shape[1]
        q = rotated(self.q(y).view(-1, length, HEADS, HEAD), angles)
        k = rotated(self.k(y).view(-1, length, GROUPS, HEAD), angles)
        v = self.v(y).view(-1, length, GROUPS, HEAD)
        if self.keys is not None:
            k, v = torch.cat((self.keys, k), dim=1), torch.cat((self.values, v), dim=1)
        self.keys, self.values = k, v
        k, v = (t.repeat_interleave(HEADS // GROUPS, dim=2) for t in (k, v))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        scores = torch.matmul(q, k.transpose(2, 3)) / HEAD**0.5
        if length > 1:
            scores = scores + torch.full((length, length), float("-inf"), device=x.device).triu(1).type_as(scores)
        weights = F.softmax(scores.float(), dim=-1).type_as(q)
        x = x + self.o(torch.matmul(weights, v).transpose(1, 2).reshape(-1, length, HEADS * HEAD))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.norm = RmsNorm()
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.frequencies = 1.0 / 10000.0 ** (torch.arange(0, HEAD, 2).float() / HEAD)

    def forward(self, text, place):
        places = torch.arange(place, place + text.shape[1], device=text.device)
        angles = torch.outer(places.float(), self.frequencies.to(text.device))
        x = self.embedding(text)
        for layer in self.layers:
            x = layer(x, angles)
        return self.head(self.norm(x)).float()


model = Llama().to(dtype).cuda().eval()
text = torch.randint(0, VOCABULARY, (2, 17)).cuda()
with torch.no_grad():
    logits = model(text, 0)
    put("prompt", logits)
    for step in range(tokens):
        chosen = logits[:, -1].argmax(-1, keepdim=True)
        text = torch.cat((text, chosen), dim=1)
        logits = model(chosen, text.shape[1] - 1)
        put(f"token {step}", logits)
print(text.tolist())
