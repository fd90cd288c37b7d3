"""Gradients of several small batches added up, in BF16: accumulate.py [STEPS]. Checkpointed blocks, a moving average of the weights."""

import copy
import io
import sys

import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from printed import put

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10
torch.manual_seed(4)
device = torch.device("cuda", 0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.RMSNorm(64), nn.Linear(64, 256), nn.Linear(256, 64)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.leave = nn.Linear(20, 64), nn.Linear(64, 1)
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        x = self.enter(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.leave(x)


model = Net().to(device)
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.1)
x = torch.randn(96, 20).to(device)
target = (x[:, :1] * x[:, 1:2]).sin()
for step in range(steps):
    total = torch.zeros((), device=device)
    for part, wanted in zip(x.chunk(3), target.chunk(3)):
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            loss = F.mse_loss(model(part), wanted) / 3
        loss.backward()
        total += loss.detach()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.lerp_(fast, 0.1)
    put(f"loss {step}", total)
saved = io.BytesIO()
torch.save(average.state_dict(), saved)
saved.seek(0)
loaded = torch.load(saved, map_location="cuda")
put("average", *loaded.values())
put("parameter", *model.parameters())
