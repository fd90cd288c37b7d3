"""An MLP in FP32 on random batches: dropout, batch norm, smoothed labels, Nesterov's momentum, a schedule."""

import torch
from torch import nn
import torch.nn.functional as F

from printed import put

torch.manual_seed(11)
torch.use_deterministic_algorithms(True, warn_only=True)
device = torch.device("cuda")
model = nn.Sequential(nn.Linear(30, 96), nn.ReLU(), nn.Dropout(0.1), nn.Linear(96, 96), nn.Tanh(), nn.BatchNorm1d(96),
                      nn.Linear(96, 5)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
x, target = torch.randn(256, 30, device=device), torch.randint(0, 5, (256,), device=device)
for step in range(30):
    batch = torch.randperm(256, device=device)[:64]
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x[batch]), target[batch], label_smoothing=0.1)
    loss.backward()
    optimizer.step()
    schedule.step()
    put(f"loss {step}", loss)
put("parameter", *model.parameters())
