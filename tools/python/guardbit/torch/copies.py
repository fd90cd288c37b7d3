"""Operators that move elements between the CPU and the GPU or from one type to another, and others with rules of their own."""

from __future__ import annotations

from typing import Any

import torch

from .gpu_tensor import GpuTensor
from .recording.facts import tensors_in
from .session import Session, argument_of, doubt_of, elements_of, is_cuda, tensor_of
from .unmodelled import Unmodelled

aten = torch.ops.aten


def _converted(session: Session, source: Any, dtype: Any, func: Any) -> Any:
    """The elements of a tensor of the GPU in another type, as a tensor of the CPU with the same strides."""
    kept: list[Any] = []
    status, plan, results, *_ = session.operators.answer(
        "aten._to_copy.default", [session.argument(source, kept)], {"dtype": str(dtype)}, None, None, None)
    if status == "data":
        return source.elements
    if status != "exact":
        raise Unmodelled(str(func), plan)
    return tensor_of(results[0])


def to_copy(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    source = args[0]
    device = kwargs.get("device")
    goes_to_gpu = is_cuda(device) if device is not None else isinstance(source, GpuTensor)
    dtype = kwargs.get("dtype") or source.dtype
    plain = {name: value for name, value in kwargs.items() if name not in ("device", "pin_memory", "non_blocking")}
    if not goes_to_gpu:
        session.leaves(func, source)
        return aten._to_copy(elements_of(source), **plain)
    if not isinstance(source, GpuTensor):
        return GpuTensor(aten._to_copy(source, **plain))
    if dtype == source.dtype:
        return GpuTensor(aten._to_copy(source.elements, **plain), source.doubt)
    computed = _converted(session, source, dtype, func)
    laid = aten.empty_like(source.elements, dtype=dtype, memory_format=kwargs.get("memory_format"))
    return GpuTensor(laid.copy_(computed), source.doubt)


def copy_into(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target, source = args[:2]
    if not isinstance(target, GpuTensor):
        session.leaves(func, source)
        target.copy_(elements_of(source))
        return target
    if isinstance(source, GpuTensor) and source.dtype != target.dtype:
        target.elements.copy_(_converted(session, source, target.dtype, func))
    else:
        target.elements.copy_(elements_of(source))
    target.doubt = source.doubt if isinstance(source, GpuTensor) else None
    return target


def copy_lists(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for target, source in zip(args[0], args[1]):
        copy_into(session, func, (target, source), {})


def to_number(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    session.leaves(func, args[0])
    return func(args[0].elements)


def is_equal(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for tensor in tensors_in(args):
        session.leaves(func, tensor)
    return func(*[elements_of(x) for x in args])


def arange(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    numbers = [x for x in args if isinstance(x, (int, float))]
    if any(isinstance(x, float) and not x.is_integer() or abs(x) > 2**24 for x in numbers) and not all(isinstance(x, int) for x in numbers):
        return session.without_model(func, args, kwargs, "steps that are no integers")
    return session.moved(func, args, kwargs)


def put_at(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """index_put. Values that are added are sorted by their places and added in the order of the indices."""
    if argument_of(func, args, kwargs, "accumulate"):
        return session.modelled(func, args, kwargs)
    return session.moved(func, args, kwargs)


def added_at(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """scatter_add: atomics; where no place is written to twice there is one sum."""
    target, dim, index = args[:3]
    places = elements_of(index)
    counts = torch.zeros(target.shape, dtype=torch.int32).scatter_add_(dim, places, torch.ones(places.shape, dtype=torch.int32))
    most = int(counts.max()) if counts.numel() else 0
    of_zeros = not bool(target.elements.any())
    if most > (2 if of_zeros and not torch.are_deterministic_algorithms_enabled() else 1):
        return session.without_model(func, args, kwargs, "atomics add in no fixed order")
    return session.moved(func, args, kwargs)


def counted(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if argument_of(func, args, kwargs, "weights") is not None:
        return session.without_model(func, args, kwargs, "atomics add the weights in no fixed order")
    return session.moved(func, args, kwargs)


Session.specials.update({
    "_to_copy": to_copy, "copy_": copy_into, "_foreach_copy_": copy_lists, "_local_scalar_dense": to_number, "equal": is_equal,
    "arange": arange, "index_put": put_at, "index_put_": put_at, "_index_put_impl_": put_at, "_unsafe_index_put": put_at, "bincount": counted,
    "scatter_add": added_at, "scatter_add_": added_at,
})
