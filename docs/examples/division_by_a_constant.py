"""When x / 50 on a GPU is not x / 50 on a CPU.

pytorch#186618: `tensor / 50.0` on CUDA multiplies by the reciprocal, 1/50 rounded to FP32, where the CPU divides. 49.5 / 50
then differs, and 55 / 55 is not 1.

How often and by how much? Both quotients are decided by the 2^23 significands of x alone, so they are counted, not sampled. The
reciprocal gives a neighbour of the right quotient, never more, for a fifth to three quarters of all x; a power of two is never
wrong. A correction by two fused multiply-adds, rest = x - q * b and q + rest * (1/b), gave the right quotient wherever it was
tried: the exact division by a constant costs three multiplications.
"""

import numpy as np

import guardbit

FMA = "simt/fma.fp32 add=initial d=fp32"
one = np.float32(1)
print("49.5 / 50:", np.float32(49.5) / np.float32(50), "and by the reciprocal", np.float32(49.5) * (one / np.float32(50)))
print("55 / 55:  ", np.float32(55) / np.float32(55), "and by the reciprocal", np.float32(55) * (one / np.float32(55)))

n = np.arange(1, 10001, dtype=np.float32)
wrong = n[n * (one / n) != 1]
print(f"\nn * (1/n) is not 1 for {len(wrong)} of the n up to 10000: {', '.join(f'{x:.0f}' for x in wrong[:8])}, ...")

# Every x in [1, 2): other binades are the same.
x = (np.arange(1 << 23, dtype=np.uint32) | 0x3F800000).view(np.float32)
print("\ndivisor   x / b differs   by at most   after one correction")
for b in np.array([3, 7, 10, 50, 55, 255, 256], np.float32):
    r = one / b
    right, quick = x / b, x * r
    differ = quick != right
    apart = np.abs(quick.view(np.int32) - right.view(np.int32)).max()
    # Multiply-adds of three arrays as products with K = 1: x - q * b, which is exact, and q + rest * r.
    q, some = quick[::64, None, None], x[::64, None, None]
    rest = guardbit.matmul(-q, b.reshape(1, 1), some, plan=FMA)
    mended = guardbit.matmul(rest, r.reshape(1, 1), q, plan=FMA)
    still = np.count_nonzero(mended[:, 0, 0] != right[::64])
    print(f"{b:7.0f}  {np.count_nonzero(differ) / len(x):13.3%}  {apart:6} ulp    {still} of {len(q)} differ")
