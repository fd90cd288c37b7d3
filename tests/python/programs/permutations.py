"""Random permutations of many sizes: some keys by which they are sorted are equal in one of ten."""

import torch

from printed import put

for count in (1, 2, 3, 7, 16, 50, 128, 256, 1000, 4096, 20000):
    torch.manual_seed(count)
    put(f"permutations of {count}", *(torch.randperm(count, device="cuda") for _ in range(30)))
    put(f"numbers after {count}", torch.rand(8, device="cuda"))
