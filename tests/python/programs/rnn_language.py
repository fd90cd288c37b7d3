"""A language model of an LSTM or a GRU on characters: rnn_language.py KIND TYPE [STEPS]."""

import sys

import torch
from torch import nn
import torch.nn.functional as F

from printed import put

kind, dtype = sys.argv[1], {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}[sys.argv[2]]
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 5
torch.manual_seed(21)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(64, 48)
        self.cells = nn.ModuleList([getattr(nn, kind + "Cell")(48 if i == 0 else 96, 96) for i in range(2)])
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(96, 64)

    def forward(self, text):
        states = [None] * len(self.cells)
        outputs = []
        for x in self.letters(text).unbind(1):
            for i, cell in enumerate(self.cells):
                states[i] = cell(x, states[i])
                x = states[i][0] if kind == "LSTM" else states[i]
            outputs.append(self.drop(x))
        return self.head(torch.stack(outputs, 1))


model = Model().cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3, momentum=0.9)
scaler = torch.amp.GradScaler("cuda", enabled=dtype is torch.float16, init_scale=2.0**14)
text = torch.randint(0, 64, (16, 25)).cuda()
for step in range(steps):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=dtype or torch.float16, enabled=dtype is not None):
        scores = model(text[:, :-1])
        loss = F.cross_entropy(scores.reshape(-1, 64), text[:, 1:].reshape(-1))
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    put(f"loss {step}", loss, norm)
put("parameter", *model.parameters())
