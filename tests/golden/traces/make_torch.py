#!/usr/bin/env python3
"""Writes tests/golden/traces/torch_*.pt: python3 make_torch.py FOLDER (needs PyTorch)."""

import collections
import os
import sys

import torch

folder = sys.argv[1]
torch.manual_seed(0)
base = (torch.arange(24, dtype=torch.float32) - 12).reshape(4, 6) * 2.0**-26
model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
values = {
    "step": 12, "rank": 1, "loss_scale": 2.0**20,
    "grads": {"fc1.weight": base, "fc1.t": base.t(), "fc1.row": base[1], "fc1.every": base.flatten()[3::5],
              "fc1.bias": base[0, :1].expand(5), "nothing": None},
    "half": [base.half(), base.bfloat16(), base.double()],
    "eight": {"e4m3": (base * 2.0**26).to(torch.float8_e4m3fn), "e5m2": (base * 2.0**26).to(torch.float8_e5m2)},
    "tuple": (torch.tensor(0.5), torch.zeros(0, 3)),
    "parameter": torch.nn.Parameter(base[:2].clone()),
    "model": model.state_dict(),
    "ordered": collections.OrderedDict(a=base[3]),
    "integers": torch.arange(3), "flags": torch.tensor([True, False]),
    "words": ["a", "b"], "size": base.size(), "dtype": torch.float16, "device": torch.device("cpu"), "big": 1 << 70,
}
torch.save(values, os.path.join(folder, "torch_mixed.pt"))
torch.save(base, os.path.join(folder, "torch_protocol4.pt"), pickle_protocol=4)
torch.save({"a": base}, os.path.join(folder, "torch_legacy.pt"), _use_new_zipfile_serialization=False)
torch.save(model, os.path.join(folder, "torch_module.pt"))


class Hostile:
    def __reduce__(self):
        return (os.system, ("touch owned",))


torch.save({"grad": base, "x": Hostile()}, os.path.join(folder, "torch_hostile.pt"))
