"""Recorded convolutions and their gradients, without a look at what was recorded: recorded_convolutions.py SCRIPTS FILE. Prints how many results are as
recorded, how many are not, and how many have no plan. A file with `direction` has one pass of each call, and FP32 operands where TF32 multiplies."""

import sys

import numpy as np
import torch

from guardbit.torch.unmodelled import Unmodelled

sys.path.insert(0, sys.argv[1])
import record_convolutions as recorder  # noqa: E402

recorded = np.load(sys.argv[2])
counts = {"equal": 0, "different": 0, "no plan": 0}
directions = recorded["direction"].tolist() if "direction" in recorded else None
for number, (row, values) in enumerate(zip(recorded["rows"].tolist(), recorded["values"])):
    x = dict(zip(("n", "c", "h", "k", "f", "s", "p"), row[:7]), dt=row[8], w=row[13])
    dtype = {0: torch.float16, 1: torch.bfloat16}.get(x["dt"], torch.float32)
    torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = x["dt"] == 2, bool(row[9])
    image, weight, gradient, bias = [torch.from_numpy(t).to(dtype) for t in recorder.operands_of(x, row[11], "tf32" if directions is None else "f32")]
    form = torch.channels_last if row[7] else torch.contiguous_format
    image, weight, gradient = [t.contiguous(memory_format=form).cuda() for t in (image, weight, gradient)]
    words = [x["s"]] * 2, [x["p"]] * 2, [1, 1], False, [0, 0], 1
    calls = [lambda: torch.ops.aten.convolution(image, weight, bias.cuda() if row[10] else None, *words)]
    for i in range(2):
        calls.append(lambda i=i: torch.ops.aten.convolution_backward(gradient, image, weight, None, *words, [i == 0, i == 1, False])[i])
    passes = range(3) if directions is None else [directions[number]]
    places_of_passes = recorder.places_of(x, row[11], values.shape[-1])
    for direction, expected in zip(passes, values.reshape(len(passes), -1)):
        places = places_of_passes[direction]
        try:
            result = calls[direction]().cpu()
        except Unmodelled:
            counts["no plan"] += 1
            continue
        bits = result[tuple(torch.from_numpy(places.T))].contiguous().view(torch.int16 if x["dt"] < 2 else torch.int32).numpy()
        counts["equal" if (bits == expected).all() else "different"] += 1
print(counts)
