"""One model by every optimizer: optimizers.py FORM [STEPS], FORM foreach, single or fused."""

import sys

import torch
from torch import nn

from printed import put

form, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
options = {"foreach": {"foreach": True}, "single": {"foreach": False}, "fused": {"fused": True}}[form]
ALL = {"SGD": {"momentum": 0.9}, "Adam": {}, "AdamW": {"amsgrad": True}}
if form != "fused":
    ALL.update(Adagrad={}, Adamax={}, NAdam={}, RAdam={}, RMSprop={"centered": True, "momentum": 0.5}, Adadelta={}, ASGD={}, Rprop={})
for name, more in ALL.items():
    torch.manual_seed(6)
    model = nn.Sequential(nn.Linear(24, 40), nn.Tanh(), nn.LayerNorm(40), nn.Linear(40, 5)).cuda()
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01, **options, **more)
    x, target = torch.randn(32, 24, device="cpu").cuda(), torch.rand(32, 5).cuda()
    for step in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(model(x), target)
        loss.backward()
        optimizer.step()
    put(name, loss, *model.parameters())
