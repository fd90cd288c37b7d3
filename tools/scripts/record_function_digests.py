#!/usr/bin/env python3
"""Prints digests of PyTorch's functions on a GPU over all 2^32 FP32 inputs: python3 record_function_digests.py [NAME ...]
(needs PyTorch with CUDA; about a second each). docs/FUNCTIONS.md says what a digest is."""

import sys

import torch
import torch.nn.functional as F

FUNCTIONS = {
    "exp": torch.exp,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
}
FIRST, SECOND = 0x9E3779B97F4A7C15 - (1 << 64), 0xBF58476D1CE4E5B9 - (1 << 64)  # as signed numbers
AT_ONCE = 1 << 26


def shifted(words, by):
    """A shift to the right that brings zeros in, whatever the sign."""
    return (words >> by) & ((1 << (64 - by)) - 1)


def digest(function):
    total = 0
    for first in range(0, 1 << 32, AT_ONCE):
        codes = torch.arange(first, first + AT_ONCE, device="cuda", dtype=torch.int64)
        signed = codes if first < 1 << 31 else codes - (1 << 32)
        results = function(signed.to(torch.int32).view(torch.float32)).view(torch.int32)
        results = results.to(torch.int64) & 0xFFFFFFFF
        results = torch.where((results & 0x7FFFFFFF) > 0x7F800000, 0x7FFFFFFF, results)
        words = (codes << 32 | results) * FIRST
        words = (words ^ shifted(words, 29)) * SECOND
        words = words ^ shifted(words, 32)
        total = (total + int(words.sum().item())) % (1 << 64)
    return total


def main():
    names = sys.argv[1:] or list(FUNCTIONS)
    unknown = [name for name in names if name not in FUNCTIONS]
    if unknown:
        sys.exit(f"unknown function {unknown[0]!r} (valid: {', '.join(FUNCTIONS)})")
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    for name in names:
        print(f"{name:10} {digest(FUNCTIONS[name]):016x}", flush=True)


if __name__ == "__main__":
    main()
