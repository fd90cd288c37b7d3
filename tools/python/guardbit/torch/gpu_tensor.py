"""Tensors that say they are on cuda:0. Their elements lie in a tensor of the CPU with the same strides and offset."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

# With all that its stubs do not say.
internals: Any = torch


class GpuTensor(torch.Tensor):
    """A tensor of the modelled GPU. Operators on it are computed by `GpuTensor.compute`, which the session sets."""

    elements: torch.Tensor
    # The operator that has no model and that these elements depend on.
    doubt: str | None

    compute: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]

    @staticmethod
    def __new__(cls, elements: torch.Tensor, doubt: str | None = None) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, elements.shape, strides=elements.stride(), storage_offset=elements.storage_offset(), dtype=elements.dtype,
            device=torch.device("cuda:0"))

    def __init__(self, elements: torch.Tensor, doubt: str | None = None) -> None:
        self.elements = elements
        self.doubt = doubt

    __torch_function__: Any = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return GpuTensor.compute(func, args, kwargs or {})

    # What reads the memory of a tensor of the class torch.Tensor.

    def data_ptr(self) -> int:
        return int(self.elements.data_ptr())

    def untyped_storage(self) -> Any:
        storage = self.elements.untyped_storage()
        return as_of_gpu(storage)

    def tolist(self) -> Any:
        return self.detach().cpu().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        if force:
            return self.detach().cpu().numpy()
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numpy()

    def is_shared(self) -> bool:
        return True

    def share_memory_(self) -> GpuTensor:
        return self

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return printed(self)

    def __format__(self, spec: str) -> str:
        if self.dim() == 0:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.")
        with torch.no_grad():
            storage = self.elements.untyped_storage()
            if storage._cdata not in memo:
                memo[storage._cdata] = storage.clone()
            elements = torch.empty(0, dtype=self.dtype).set_(memo[storage._cdata], self.elements.storage_offset(), self.shape, self.stride())
            result = GpuTensor(elements, self.doubt)
        if self.requires_grad:
            result.requires_grad_()
        if getattr(self, "_is_param", False):
            result._is_param = True
        if self.grad is not None:
            result.grad = copy.deepcopy(self.grad, memo)
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        storage = torch.storage.TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)
        whole: Any = (internals._utils._rebuild_tensor_v2, (storage, self.storage_offset(), tuple(self.shape), self.stride(), self.requires_grad, {}))
        if not getattr(self, "_is_param", False):
            return whole
        plain = self.detach()
        return (internals._utils._rebuild_parameter, (plain, self.requires_grad, {}))


_plain_data = internals.Tensor.data


def _get_data(self: GpuTensor) -> Any:
    return self.detach()


def _set_data(self: GpuTensor, other: Any) -> None:
    if not isinstance(other, GpuTensor):
        raise RuntimeError("a tensor of the GPU takes data of the GPU only")
    _plain_data.__set__(self, other)
    self.elements, self.doubt = other.elements, other.doubt


setattr(GpuTensor, "data", property(_get_data, _set_data))


# Storages that stand for the GPU's, by their address in PyTorch; each entry keeps its storage alive.
_storages: dict[int, Any] = {}


def as_of_gpu(storage: Any) -> Any:
    """The storage, which is from now on known as one of the GPU."""
    _storages[storage._cdata] = storage
    return storage


def is_of_gpu(storage: Any) -> bool:
    return getattr(storage, "_cdata", None) in _storages


def printed(tensor: GpuTensor) -> str:
    """As PyTorch prints a tensor of the GPU."""
    text = internals._tensor_str._str(tensor.elements.detach())
    body = text[: -1]
    for ending in (f", dtype={tensor.dtype}", f", size={tuple(tensor.shape)}"):
        body = body.removesuffix(ending)
    ending = text[len(body): -1]
    words = str(body) + ", device='cuda:0'" + ending
    if tensor.grad_fn is not None:
        words += f", grad_fn=<{type(tensor.grad_fn).__name__}>"
    elif tensor.requires_grad:
        words += ", requires_grad=True"
    words += ")"
    return str("Parameter containing:\n" + words if getattr(tensor, "_is_param", False) else words)
