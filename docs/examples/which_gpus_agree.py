"""Which GPUs give the same bits.

pytorch#105726: an FP16 product on an A100 and on an RTX 3090 differs. Is it the hardware?

Between these two it is not: both add 8 products at a time and keep one bit below FP32's, so the same kernel gives the same
bits, and what differs is the kernel that the library chose. Other generations do differ, whatever the kernel: Volta adds 4
products, Hopper and Blackwell 16 with two more bits, AMD's CDNA3 rounds to nearest where NVIDIA truncates. The table counts
elements that differ between one chain over K on each machine: nearly all of an FP32 result, and one of 250 to 600 when the same
sums are rounded to FP16.
"""

import numpy as np

import guardbit

machines = {"V100": "sm_70", "T4": "sm_75", "A100": "sm_80", "RTX 3090": "sm_86", "RTX 4090": "sm_89", "H100": "sm_90",
            "B200": "sm_100", "MI300": "cdna3"}
rng = np.random.default_rng(0)
a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((128, 512), (512, 128)))
for to in ("fp32", "fp16"):
    results = {name: guardbit.matmul(a, b, arch=arch, out_dtype=to) for name, arch in machines.items()}
    print(f"elements of {to} that differ, in %" + "".join(f"{name:>9}" for name in machines))
    for name, d in results.items():
        print(f"{name:>32}" + "".join(f"{100 * np.mean(d != other):9.2f}" for other in results.values()))
    print()

exact = a.astype(float) @ b.astype(float)
print("mean error of FP32 results in units of 1e-6 (NVIDIA's lean to zero):")
for name, arch in machines.items():
    d = guardbit.matmul(a, b, arch=arch, out_dtype="fp32")
    print(f"{name:>10}  magnitude {1e6 * np.abs(d - exact).mean():6.2f}   toward zero {-1e6 * ((d - exact) * np.sign(exact)).mean():6.2f}")
