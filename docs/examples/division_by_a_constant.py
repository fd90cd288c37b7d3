"""When x / 50 on a GPU is not x / 50 on a CPU.

pytorch#186618: `tensor / 50.0` on CUDA multiplies by the reciprocal, 1/50 rounded to FP32, where the CPU divides. 49.5 / 50 then differs, and
55 / 55 is not 1.

How often and by how much? Both quotients are decided by the 2^23 significands of x alone, so they are counted, not sampled. The
reciprocal gives a neighbour of the right quotient, never more. Divisors are found whose reciprocal is never wrong: the powers of two. A
correction by one fused multiply-add, r = x - q * b and q + r * (1/b), is right for every x and every divisor tried: division costs three
multiplications, not a slow loop.
"""

import numpy as np

import guardbit

one = np.float32(1)
print("49.5 / 50:", np.float32(49.5) / np.float32(50), "and by the reciprocal", np.float32(49.5) * (one / np.float32(50)))
print("55 / 55:  ", np.float32(55) / np.float32(55), "and by the reciprocal", np.float32(55) * (one / np.float32(55)))

n = np.arange(1, 10001, dtype=np.float32)
wrong = n[n * (one / n) != 1]
print(f"\nn * (1/n) is not 1 for {len(wrong)} of the n up to 10000: {', '.join(f'{x:.0f}' for x in wrong[:8])}, ...")

# Every x in [1, 2): other binades are the same.
x = (np.arange(1 << 23, dtype=np.uint32) | 0x3F800000).view(np.float32)
print("\ndivisor   x / b differs   by at most   after one correction")
for b in np.float32([3, 7, 10, 50, 55, 255, 256]):
    r = one / b
    right, quick = x / b, x * r
    apart = guardbit.compare(quick, right).ulp.max
    # fma(-q, b, x) is exact here, and FP64 holds q * b: rounding the sum to FP32 is the fused multiply-add.
    rest = guardbit.cast(x.astype(float) - quick.astype(float) * float(b), "fp32")
    mended = guardbit.cast(quick.astype(float) + rest.astype(float) * float(r), "fp32")
    print(f"{b:7.0f}  {np.count_nonzero(quick != right) / len(x):13.3%}  {apart:6.0f} ulp    {np.count_nonzero(mended != right)} differ")
