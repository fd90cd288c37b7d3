"""A convolutional network with batch norm: cnn.py TYPE [STEPS]."""

import sys

import torch
from torch import nn
import torch.nn.functional as F

from printed import put

kind, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
torch.manual_seed(2)
torch.backends.cudnn.deterministic = True
device = torch.device("cuda")


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)) + self.short(x))


model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), Block(16, 32, 2), nn.MaxPool2d(2), Block(32, 32, 1), nn.AdaptiveAvgPool2d(1),
                      nn.Flatten(), nn.Linear(32, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
types = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
scaler = torch.amp.GradScaler("cuda", enabled=kind == "fp16")
x, target = torch.randn(8, 3, 16, 16).to(device), torch.randint(0, 10, (8,)).to(device)
for step in range(steps):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=types[kind], enabled=kind != "fp32"):
        loss = F.cross_entropy(model(x), target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    put(f"loss {step}", loss)
put("parameter", *model.parameters())
put("buffer", *model.buffers())
model.eval()
with torch.inference_mode():
    put("evaluated", model(x))
