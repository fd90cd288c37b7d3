"""What becomes of a number that E4M3 does not hold.

ml_dtypes#400: 465 becomes NaN in ml_dtypes and 448 elsewhere. Which convention is the reference? There is none: OCP's
specification allows both. The two conventions are asked here for every FP16 number and its FP32 neighbours: they differ from
the first FP32 number past 464 on, and nowhere else. So a tensor whose largest magnitude is scaled to 448 is the same
everywhere. PyTorch changed sides: up to 2.11 a cast gave NaN, which `converter="torch"` does, 2.15 saturates.
"""

import numpy as np

import guardbit

x = np.array([448, 464, np.nextafter(np.float32(464), np.float32(465)), 465, 1e30, np.inf, -np.inf, np.nan], np.float32)
print("converter       " + "  ".join(f"{value:>9.8g}" for value in x))
for converter in ("ml_dtypes", "torch", "cvt"):
    y = guardbit.cast(x, "e4m3", converter=converter)
    print(f"{converter:14}  " + "  ".join(f"{value!s:>9}" for value in y))

# All FP32 numbers that two conversions tell apart lie past 464: every FP16 number and both its FP32 neighbours, asked.
half = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
half = half[~np.isnan(half)]
all_of_them = np.concatenate([half, np.nextafter(half, np.float32(np.inf)), np.nextafter(half, np.float32(-np.inf))])
answers = [guardbit.cast(all_of_them, "e4m3", converter=c).view(np.uint8) for c in ("ml_dtypes", "cvt")]
apart = all_of_them[(answers[0] != answers[1]) & ~np.isnan(all_of_them)]
print(f"\nof {len(all_of_them)} numbers the two differ on {len(apart)}, the smallest magnitude is {np.abs(apart).min()!s}")
