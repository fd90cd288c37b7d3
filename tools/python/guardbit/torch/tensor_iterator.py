"""How the result of a pointwise operator lies: the strides that PyTorch's TensorIterator gives it (version 2.11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Strides = tuple[int, ...]


def contiguous_strides(shape: Sequence[int]) -> Strides:
    strides: list[int] = []
    following = 1
    for size in reversed(shape):
        strides.append(following)
        following *= max(size, 1)
    return tuple(reversed(strides))


def lies_without_gaps(tensor: torch.Tensor) -> bool:
    """Do its elements fill their memory, one each, in whatever order of the dimensions? Sizes of one may have any stride."""
    following = 1
    for stride, size in sorted((tensor.stride(d), size) for d, size in enumerate(tensor.shape) if size > 1):
        if stride != following:
            return False
        following *= size
    return True


def _strides_without_moving(shape: Sequence[int], operands: Sequence[torch.Tensor]) -> Strides | None:
    """Of operands of one shape that lie alike: in rows, with channels together, or otherwise without gaps."""
    if any(tuple(x.shape) != tuple(shape) for x in operands):
        return None
    if all(x.is_contiguous() for x in operands):
        return contiguous_strides(shape)
    if len(shape) == 4 and all(x.is_contiguous(memory_format=torch.channels_last) for x in operands):
        return tuple(torch.empty(tuple(shape), device="meta", memory_format=torch.channels_last).stride())
    strides = operands[-1].stride()
    if all(lies_without_gaps(x) and x.stride() == strides for x in operands):
        return tuple(strides)
    return None


def result_strides(shape: Sequence[int], operands: Sequence[torch.Tensor]) -> Strides:
    """Strides of a result of that shape, to which the operands are broadcast; earlier operands say first which dimension runs faster."""
    quick = _strides_without_moving(shape, operands)
    if quick is not None:
        return quick
    count = len(shape)
    strides = []
    for operand in operands:
        missing = count - operand.dim()
        size = operand.element_size()
        strides.append([0] * missing + [0 if operand.shape[d] == 1 and shape[missing + d] != 1 else operand.stride(d) * size for d in range(operand.dim())])

    def runs_slower(one: int, other: int) -> int:
        """Whether dimension `one` should come after `other`: 1 yes, -1 no, 0 where no operand says."""
        for of_operand in strides:
            first, second = of_operand[one], of_operand[other]
            if first == 0 or second == 0:
                continue
            if first != second:
                return -1 if first < second else 1
            if shape[one] > shape[other]:
                return 1
        return 0

    order = list(reversed(range(count)))  # from the fastest on
    for i in range(1, count):
        moving = i
        for j in range(i - 1, -1, -1):
            verdict = runs_slower(order[j], order[moving])
            if verdict > 0:
                order[j], order[moving] = order[moving], order[j]
                moving = j
            elif verdict < 0:
                break
    if order == list(reversed(range(count))):
        return contiguous_strides(shape)
    result, following = [0] * count, 1
    for d in order:
        result[d] = following
        following *= shape[d]
    return tuple(result)


def like(tensor: torch.Tensor) -> Strides:
    """Of `empty_like`: the tensor's strides, or where it has gaps such as keep its order."""
    if lies_without_gaps(tensor):
        return tuple(tensor.stride())
    return tuple(torch.empty_like(torch.empty_strided(tensor.shape, tensor.stride(), device="meta")).stride())


aten = torch.ops.aten
# Pointwise operators that PyTorch does not mark as such.
_POINTWISE = {aten.hardtanh_backward, aten.hardswish_backward, aten.elu_backward, aten.floor_divide, aten.softplus_backward, aten.hardsigmoid_backward,
              aten.mish_backward, aten.hardshrink_backward, aten.softshrink_backward}
# Whose arguments the iterator takes in another order than the operator.
_ORDERS: dict[Any, tuple[int, ...]] = {
    aten.threshold_backward: (1, 0),
    aten.leaky_relu_backward: (1, 0),
}


def pointwise_strides(func: Any, args: Sequence[Any], shape: Sequence[int]) -> Strides | None:
    """Strides of a pointwise operator's one result; None of another operator."""
    if torch.Tag.pointwise not in func.tags and func.overloadpacket not in _POINTWISE:
        return None
    tensors = [x for x in args if isinstance(x, torch.Tensor)]
    if not tensors:
        return None
    order = _ORDERS.get(func.overloadpacket)
    if order is not None and len(tensors) == len(order):
        tensors = [tensors[i] for i in order]
    if _takes_a_number_as_tensor(func, args):
        tensors.append(torch.empty((), device="meta"))
    return result_strides(shape, tensors)


def _takes_a_number_as_tensor(func: Any, args: Sequence[Any]) -> bool:
    if "Scalar" in func._overloadname and func is not aten.pow.Tensor_Scalar:
        return True
    return any(isinstance(value, (bool, int, float)) and str(argument.type) == "Tensor" for value, argument in zip(args, func._schema.arguments))
