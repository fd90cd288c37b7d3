"""digests.py: a line for each of the package's ways to compute, with a digest of the bits that come out; the same on every CPU."""

import hashlib

import numpy as np

import guardbit


def draw(seed, shape, dtype):
    """Numbers of FP16 from a counter: another version of NumPy may draw others."""
    words = (np.arange(np.prod(shape), dtype=np.uint32) * np.uint32(2654435761) + np.uint32(seed) * np.uint32(40503)) >> np.uint32(17)
    return (words.astype(np.int32).reshape(shape) - 16384).astype(np.float32).astype(dtype) / dtype(4096)


def show(name, *arrays):
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in arrays)).hexdigest()[:16]
    print(f"{name:36} {digest}")


for arch in ("sm_70", "sm_90", "cdna3"):
    for dtype in (np.float16, np.float32):
        a, b = draw(1, (65, 200), dtype), draw(2, (200, 47), dtype)
        show(f"matmul {arch} {dtype.__name__}", guardbit.matmul(a, b, arch=arch))
a, b = draw(3, (33, 300), np.float32), draw(4, (300, 29), np.float32)
show("matmul of a plan", guardbit.matmul(a, b, plan="simt/fma.fp32 split=4x8:ceil d=fp32"))
whole = (draw(5, (40, 64), np.float32) * 20).astype(np.int8)
show("matmul sm_90 int8", guardbit.matmul(whole, whole.T))
x = draw(6, (64, 160), np.float32)
for name in ("e4m3", "e5m2", "bf16", "e2m1"):
    made = guardbit.cast(x, name)
    show(f"cast {name}", made.codes if isinstance(made, guardbit.Codes) else made)
for name in ("nvfp4", "mxfp8_e4m3"):
    blocks, columns = guardbit.quantize(x, name), guardbit.quantize(np.ascontiguousarray(x.T), name, axis=0)
    show(f"matmul {name}", guardbit.matmul(blocks, columns, arch="sm_100"))
for name in ("ex2.approx.ftz.f32", "sinf", "tanhf", "rsqrt.approx.f32"):
    show(f"function {name}", guardbit.function(name, x))
d = guardbit.matmul(a, b, plan="simt/fma.fp32 split=2x4:ceil d=fp32")
print("explain", guardbit.explain(d, a, b).plan)
