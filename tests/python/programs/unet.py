"""A small U-Net that learns to take noise away, with a time embedding and an average of the weights: unet.py TYPE [STEPS]."""

import math
import sys

import torch
from torch import nn
import torch.nn.functional as F

from printed import put

dtype = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}[sys.argv[1]]
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 3
torch.manual_seed(22)


class Block(nn.Module):
    def __init__(self, inputs, outputs, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.norm2, self.conv2 = nn.GroupNorm(8, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class UNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(width, 64), nn.SiLU(), nn.Linear(64, 64))
        self.width, self.first = width, nn.Conv2d(3, width, 3, padding=1)
        self.down1, self.down2 = Block(width, width, 64), Block(width, 2 * width, 64)
        self.shrink = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.middle = Block(2 * width, 2 * width, 64)
        self.up = Block(3 * width, width, 64)
        self.last = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, x, t):
        angles = t[:, None] * torch.exp(-math.log(10000) * torch.arange(self.width // 2, device=t.device) / (self.width // 2))
        t = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        a = self.down1(self.first(x), t)
        b = self.middle(self.down2(self.shrink(a), t), t)
        return self.last(self.up(torch.cat([F.interpolate(b, scale_factor=2, mode="nearest"), a], 1), t))


model = UNet().cuda()
average = [p.detach().clone() for p in model.parameters()]
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
scaler = torch.amp.GradScaler("cuda", enabled=dtype is torch.float16, init_scale=2.0**12)
images = torch.randn(4, 3, 16, 16).cuda()
kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), 0).cuda()
for step in range(steps):
    t = torch.randint(0, 100, (4,)).cuda()
    noise = torch.randn_like(images)
    signal = kept[t][:, None, None, None]
    noisy = signal.sqrt() * images + (1 - signal).sqrt() * noise
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=dtype or torch.float16, enabled=dtype is not None):
        loss = F.mse_loss(model(noisy, t.float()), noise)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    with torch.no_grad():
        for mean, p in zip(average, model.parameters()):
            mean.lerp_(p, 0.1)
    put(f"loss {step}", loss)
put("average", *average)
