"""A recommender: embeddings of users and items, factors and an MLP, binary cross-entropy, mean of a bag of tags: recommender.py TYPE [STEPS]."""

import sys

import torch
from torch import nn
import torch.nn.functional as F

from printed import put

dtype = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}[sys.argv[1]]
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 8
torch.manual_seed(23)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding(500, 32), nn.Embedding(300, 32)
        self.tags = nn.EmbeddingBag(60, 16, mode="mean")
        self.numbers = nn.BatchNorm1d(7)
        self.mlp = nn.Sequential(nn.Linear(87, 64), nn.LeakyReLU(0.1), nn.Dropout(0.2), nn.Linear(64, 32), nn.PReLU(), nn.Linear(32, 1))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, user, item, tags, numbers):
        u, i = self.users(user), self.items(item)
        deep = self.mlp(torch.cat([u, i, self.tags(tags), self.numbers(numbers)], -1)).squeeze(-1)
        return deep + (u * i).sum(-1) + self.bias


model = Model().cuda()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cuda", enabled=dtype is torch.float16, init_scale=2.0**10)
for step in range(steps):
    user, item, tags = (torch.randperm(500)[:128].cuda(), torch.randperm(300)[:128].cuda(), torch.randint(0, 60, (128, 5)).cuda())
    numbers, clicked = torch.randn(128, 7).cuda(), torch.randint(0, 2, (128,)).float().cuda()
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=dtype or torch.float16, enabled=dtype is not None):
        scores = model(user, item, tags, numbers)
    loss = F.binary_cross_entropy_with_logits(scores.float(), clicked, pos_weight=torch.tensor(1.5).cuda())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    put(f"loss {step}", loss)
    if step % 4 == 3:
        with torch.no_grad():
            chances = torch.sigmoid(scores.float())
            best = chances.topk(5)
            put(f"best {step}", best.values, ((chances > 0.5).float() == clicked).float().mean())
put("parameter", *model.parameters(), *model.buffers())
