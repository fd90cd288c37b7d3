"""In which order does this function add?

A reduction on a GPU, a dot product of a library, a kernel of your own: `probe` finds the tree of additions, what is fused and how each step rounds, from
answers alone. The function gets arrays and returns arrays; where it runs does not matter (`library="torch", device="cuda"`).

Here a kernel that is said to add in FP32. It does, in four chains that are added as a tree, and each product is rounded first: no fused multiply-add.
The second one stores its sum in FP16 after every 16 elements, a bug that costs half of the digits and that no test with a tolerance of
1e-3 sees; its tree cannot be one of FP32 additions, and the probe says so.
"""

import numpy as np

import guardbit


def kernel(a, b):
    """a [T, 1, 32], b [T, 32, 1] in FP32: lanes take k, k + 4, ..."""
    lanes = np.zeros((len(a), 4), np.float32)
    for k in range(0, 32, 4):
        lanes += a[:, 0, k:k + 4] * b[:, k:k + 4, 0]
    return ((lanes[:, 0] + lanes[:, 1]) + (lanes[:, 2] + lanes[:, 3]))[:, None, None]


found = guardbit.probe(kernel, a="fp32", d="fp32", k=32)
print(found)


def careless(a, b):
    """The same, whose sum goes through FP16 halfway."""
    first = kernel(np.concatenate([a[..., :16], 0 * a[..., 16:]], axis=2), b).astype(np.float16)
    return first.astype(np.float32) + kernel(np.concatenate([0 * a[..., :16], a[..., 16:]], axis=2), b)


print()
print(guardbit.probe(careless, a="fp32", d="fp32", k=32))
