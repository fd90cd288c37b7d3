"""In which order does this function add?

A reduction on a GPU, a dot product of a library, a kernel of your own: `probe` finds the tree of additions, what is fused and
how each step rounds, from answers alone. The function gets arrays and returns arrays; where it runs does not matter
(`library="torch", device="cuda"`).

Two versions of a kernel differ in their last bits. Both say that they multiply and add 16 products in FP32. The trees show what
changed: the first has four chains that are added as a tree, the second one chain for each half. Neither has a fused
multiply-add, so neither is what a CUDA compiler makes of `sum += a * b`.
"""

import numpy as np

import guardbit


def first(a, b):
    """a [T, 1, 16], b [T, 16, 1] in FP32: lanes take k, k + 4, ..."""
    lanes = np.zeros((len(a), 4), np.float32)
    for k in range(0, 16, 4):
        lanes += a[:, 0, k:k + 4] * b[:, k:k + 4, 0]
    return ((lanes[:, 0] + lanes[:, 1]) + (lanes[:, 2] + lanes[:, 3]))[:, None, None]


def second(a, b):
    halves = np.zeros((len(a), 2), np.float32)
    for k in range(8):
        halves += a[:, 0, [k, k + 8]] * b[:, [k, k + 8], 0]
    return (halves[:, 0] + halves[:, 1])[:, None, None]


for kernel in (first, second):
    found = guardbit.probe(kernel, a="fp32", d="fp32", k=16)
    print(f"{found.unit:6}  {found.tree.text}\n        {found.tree.arithmetic}, {found.tree.mismatches} of {found.answers} answers contradict it")
