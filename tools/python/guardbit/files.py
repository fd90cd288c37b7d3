"""Files of tensors as arrays."""

from __future__ import annotations

import os
from typing import Any

from . import _core
from .arrays import NUMPY, empty_codes, format_name, from_codes, output


class Tensors(dict[str, Any]):
    """Arrays by name, in the file's order; `metadata` is the text that a .safetensors file keeps beside them."""

    metadata: dict[str, str]


def load(path: str | os.PathLike[str], *, dtype: Any = None) -> Tensors:
    """The tensors of a .safetensors, .npy, .npz, .pt (torch.save) or HDF5 file, as the command reads it.

    A dict of NumPy arrays by name, of `Codes` where NumPy has no such type; the tensor of a .npy file has the file's name. A
    pickle in a .pt file is read as data: nothing in it is imported or called. `dtype`: re-reads what stores as many bits
    (`load("x.npy", dtype="e4m3")`). The attribute `metadata` is what a .safetensors file says besides.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path: {type(path).__name__} is no path")
    file = _core.read(os.fsdecode(path), None if dtype is None else format_name(dtype, "dtype"))
    tensors = Tensors()
    for tensor in file.tensors:
        codes = empty_codes(tensor.shape, tensor.format)
        tensor.copy(output(codes, tensor.format, tensor.name))
        tensors[tensor.name] = from_codes(codes, tensor.format, NUMPY)
    tensors.metadata = dict(file.metadata)
    return tensors
