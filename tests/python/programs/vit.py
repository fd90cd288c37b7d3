"""A vision transformer of torchvision: vit.py TYPE [STEPS]. Dropout, drops of the learning rate, labels smoothed."""

import sys

import torch
import torchvision
import torch.nn.functional as F

from printed import put

kind, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
torch.manual_seed(9)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torchvision.models.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=64, mlp_dim=128, dropout=0.1,
                                             num_classes=10).to(device)
torch.nn.init.normal_(model.heads.head.weight, std=0.02)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
scaler = torch.amp.GradScaler(enabled=kind == "fp16")
types = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
x, target = torch.randn(8, 3, 32, 32).to(device), torch.randint(0, 10, (8,)).to(device)
for step in range(steps):
    with torch.autocast(device, dtype=types[kind], enabled=kind != "fp32"):
        loss = F.cross_entropy(model(x), target, label_smoothing=0.1)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    schedule.step()
    put(f"loss {step}", loss)
put("parameter", *model.parameters())
