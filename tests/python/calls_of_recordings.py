"""calls_of_recordings.py FILE...: every recorded call again on tensors of the GPU; what differs or has no model, and counts as JSON.

Run by `python -m guardbit.torch --machine h200`. Draws without a recorded state, samples and calls that return nothing are left out.
"""

import collections
import json
import sys

import torch

from guardbit.torch.gpu_tensor import GpuTensor
from guardbit.torch.recording.contents import Recording

NAMES = {str(x): x for x in vars(torch).values() if isinstance(x, (torch.dtype, torch.layout, torch.memory_format))}
NUMBERS = {"inf": float("inf"), "-inf": -float("inf"), "nan": float("nan")}


def argument(recording, x):
    if isinstance(x, dict):
        elements = recording.tensor(x["tensor"])
        offset = x.get("offset", 0)
        last = sum((n - 1) * stride for n, stride in zip(x["shape"], x["stride"]))
        laid = torch.empty(offset + last + 1, dtype=elements.dtype).as_strided(x["shape"], x["stride"], offset)
        # Expanded dimensions have one place for all.
        own = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in x["stride"])
        laid[own].copy_(elements[own])
        return GpuTensor(laid) if x.get("device", "cuda").startswith("cuda") else laid
    if isinstance(x, list):
        return [argument(recording, y) for y in x]
    if isinstance(x, str):
        return torch.device(x) if x.startswith(("cuda", "cpu")) else NAMES.get(x, NUMBERS.get(x, x))
    return x


def difference(recording, here, there):
    if isinstance(there, list) and isinstance(here, (list, tuple)):
        return next((found for x, y in zip(here, there) if (found := difference(recording, x, y))), None)
    if not isinstance(there, dict):
        return None
    if isinstance(here, GpuTensor) and here.doubt:
        return None  # not told, and a program that looks at it ends
    elements = recording.tensor(there["tensor"])
    got = (here.elements if isinstance(here, GpuTensor) else here).detach().contiguous()
    if got.shape != elements.shape or got.dtype != elements.dtype:
        return f"{got.dtype} {tuple(got.shape)} for {elements.dtype} {tuple(elements.shape)}"
    count = int((got.reshape(-1).view(torch.uint8) != elements.reshape(-1).view(torch.uint8)).sum())
    return f"{count} bytes differ" if count else None


def same_tensors_once(recording, call):
    """Arguments; equal tensors are one object, as self-attention has them."""
    known = {}

    def of(x):
        if not isinstance(x, dict):
            return [of(y) for y in x] if isinstance(x, list) else argument(recording, x)
        key = json.dumps(x)
        if key not in known:
            known[key] = argument(recording, x)
        return known[key]

    return [of(x) for x in call["args"]]


def again(recording, call, counts):
    func = getattr(getattr(torch.ops.aten, call["op"].split(".")[1]), call["op"].split(".")[2])
    if call.get("out") is None or "sampled" in call or (torch.Tag.nondeterministic_seeded in func.tags and "seed" not in call):
        return
    if "seed" in call:
        torch.cuda.default_generators[0].manual_seed(call["seed"]).set_offset(call["philox_offset"])
    arguments = same_tensors_once(recording, call)
    named = {key: argument(recording, x) for key, x in call["kwargs"].items() if key != "generator"}
    try:
        here, there = func(*arguments, **named), call["out"]
        if "scaled_dot_product" in call["op"] and "backward" not in call["op"]:
            here, there = here[0], there[0]  # the others are states for backward
        found = difference(recording, here, there)
    except BaseException as error:
        counts[type(error).__name__] += 1
        print(call["op"], error)
        return
    counts["differ" if found else "equal"] += 1
    if found:
        print(call["op"], found)


counts = collections.Counter()
for path in sys.argv[1:]:
    recording = Recording(path)
    for call in recording.calls:
        if call["op"].startswith("aten."):
            again(recording, call, counts)
print(json.dumps(counts))
