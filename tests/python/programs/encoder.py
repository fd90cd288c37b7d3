"""A transformer encoder of PyTorch's own layers that classifies texts with padding, labels smoothed, a schedule with a warm-up: encoder.py TYPE [STEPS]."""

import math
import sys

import torch
from torch import nn
import torch.nn.functional as F

from printed import put

dtype = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}[sys.argv[1]]
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 4
torch.manual_seed(24)


class Model(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.words = nn.Embedding(200, width, padding_idx=0)
        position = torch.arange(32)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        self.register_buffer("places", torch.stack([position.sin(), position.cos()], -1).flatten(1))
        layer = nn.TransformerEncoderLayer(width, 4, 128, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 7)

    def forward(self, text):
        hidden = text == 0
        x = self.layers(self.words(text) * 8.0 + self.places[: text.shape[1]], src_key_padding_mask=hidden)
        weights = (~hidden).unsqueeze(-1).to(x.dtype)
        return self.head((x * weights).sum(1) / weights.sum(1))


model = Model().cuda()
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3) / math.sqrt(step + 1))
scaler = torch.amp.GradScaler("cuda", enabled=dtype is torch.float16, init_scale=2.0**12)
text = torch.randint(1, 200, (8, 24))
for row, length in enumerate((24, 20, 17, 9, 24, 3, 12, 15)):
    text[row, length:] = 0
text, kind = text.cuda(), torch.randint(0, 7, (8,)).cuda()
for step in range(steps):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=dtype or torch.float16, enabled=dtype is not None):
        loss = F.cross_entropy(model(text), kind, label_smoothing=0.1)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    put(f"loss {step}", loss)
model.eval()
torch.backends.mha.set_fastpath_enabled(False)
with torch.no_grad():
    put("scores", model(text))
put("parameter", *model.parameters())
