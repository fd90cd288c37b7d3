"""An MLP in FP32, BF16 or FP16: mlp.py TYPE [STEPS]. Dropout, momentum, a learning rate that falls."""

import sys

import torch
from torch import nn
import torch.nn.functional as F

from printed import put

kind, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(32, 96), nn.ReLU(), nn.Dropout(0.1), nn.Linear(96, 96), nn.SiLU(), nn.Dropout(0.2), nn.Linear(96, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
scaler = torch.amp.GradScaler("cuda", enabled=kind == "fp16", init_scale=2.0**20, growth_interval=4)
x, target = torch.randn(64, 32).cuda(), torch.randint(0, 10, (64,)).cuda()
types = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
for step in range(steps):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=types[kind], enabled=kind != "fp32"):
        loss = F.cross_entropy(model(x), target, label_smoothing=0.1)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    put(f"loss {step}", loss)
put("parameter", *model.parameters())
print(f"last loss {loss.item():.6f}, scale {scaler.get_scale()}")
