"""Weights in BF16 that do not move.

torchao#1124 adds stochastic rounding to optimizers: an update below half a step of a BF16 weight changes nothing under rounding
to nearest.

How much is lost? A weight of 1 has steps of 2^-7, so an update of 4e-4 is lost 500 times in a row, where the exact sum of the
updates is 0.2. Stochastic rounding keeps it on average, with a spread that grows with the square root of the number of steps;
FP16's steps are an eighth as wide, and lose it as well. On recorded weights and updates of a transformer `trace` counts the
same thing exactly, tensor by tensor.
"""

import numpy as np

import guardbit

steps, update = 500, np.float32(4e-4)
for to, rounding in (("bf16", "nearest_even"), ("fp16", "nearest_even"), ("bf16", "stochastic"), ("fp16", "stochastic")):
    w = np.ones(256, np.float32)
    for step in range(steps):
        w = guardbit.cast(w + update, to, rounding=rounding, seed=step, threads=1).astype(np.float32)
    print(f"{to}, {rounding:12}: 1 became {w.mean():.3f}, from {w.min():.3f} to {w.max():.3f}")
