"""Random calls of PyTorch's operators with odd memory orders, sizes and offsets, and what an H200 gave for them. README.md says more."""
