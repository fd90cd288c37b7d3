"""How many FP64 numbers are rounded to the wrong FP8 number.

ml_dtypes#401: a cast from float64 goes through float32, so it rounds twice. -431.99999999999994 lies nearer to -416 than to
-448; rounded to FP32 first it is -432, a tie, which the second rounding resolves to -448.

How often? Exactly the FP64 numbers within half an FP32 step of a midpoint of two neighbours, on the side of the odd one, are
wrong. `guardbit.cast` rounds once; the same cast in two steps is what the library does. That is one number of 131,072 in BF16
and one of two million in E4M3: too few for random tests to meet, but numbers that were computed from FP8 or BF16 ones lie near
midpoints more often than random ones.
"""

import ml_dtypes
import numpy as np

import guardbit

x = np.array([-431.99999999999994, 1 + 2**-8 + 2**-40])
print("float64              once    twice")
for value, to in zip(x, ("e4m3", "bf16")):
    once = guardbit.cast(np.array([value]), to)
    twice = guardbit.cast(guardbit.cast(np.array([value]), "fp32"), to)
    print(f"{value:.17g}  {once[0]!s:>7}  {twice[0]!s:>7}  {to}")

# All midpoints of a format, and the FP64 numbers around each that are rounded wrongly in two steps.
print("\nformat  midpoints  wrong FP64 numbers beside each   of 2^52 in a binade")
for to, dtype in (("e5m2", ml_dtypes.float8_e5m2), ("e4m3", ml_dtypes.float8_e4m3fn), ("bf16", ml_dtypes.bfloat16)):
    numbers = np.arange(1.0, 2 + 2**-8, 2**-8).astype(dtype).astype(float)
    numbers = np.unique(numbers[numbers <= 2])
    middle = (numbers[:-1] + numbers[1:]) / 2
    # A tie goes to the even neighbour; numbers are wrong on the side of the other one, up to some distance in steps of FP64.
    toward = np.where(guardbit.cast(middle, to).astype(float) < middle, 1, -1) * np.spacing(middle)
    low, high = np.zeros(len(middle), np.int64), np.full(len(middle), 1 << 30)
    while (high - low).max() > 1:
        between = (low + high) // 2
        there = middle + between * toward
        wrong = guardbit.cast(there, to) != guardbit.cast(guardbit.cast(there, "fp32"), to)
        low, high = np.where(wrong, between, low), np.where(wrong, high, between)
    assert len(set(low)) == 1
    print(f"{to:6}  {len(middle):9}  {low[0]:30}   {len(middle) * low[0] / 2**52:.2e}")

version = ml_dtypes.__version__
agrees = x[:1].astype(ml_dtypes.float8_e4m3fn)[0] == guardbit.cast(x[:1], "e4m3")[0]
print(f"\nthe ml_dtypes that is installed here rounds {'once' if agrees else 'twice'}")
