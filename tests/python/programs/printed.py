"""What the programs print: a line with the SHA-256 of the bytes of each tensor."""

import hashlib

import torch


def put(name, *tensors):
    for i, tensor in enumerate(tensors):
        codes = tensor.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()
        print(f"{name}.{i} {hashlib.sha256(codes).hexdigest()[:16]}")
