"""Gradients of `prod` and `cumprod` as PyTorch has them for its own tensors.

PyTorch chooses another formula for tensors of a subclass, as those here are, and under a dispatch mode: products of all other
elements, in place of quotients by each. Their bits differ. The formulas and conditions are those of PyTorch 2.11's own gradients;
what they do not cover keeps PyTorch's formula. tests/python/programs/formulas.py asks for each.
"""

from __future__ import annotations

from typing import Any

import torch

from .session import elements_of
from .unmodelled import Unmodelled

aten = torch.ops.aten


def zeros_in(x: Any) -> int:
    return int((elements_of(x.detach()) == 0).sum())


class Product(torch.autograd.Function):
    """Of elements without a zero, or of all elements with several."""

    @staticmethod
    def forward(context: Any, x: Any, dim: Any, keeps: bool, dtype: Any, has_zeros: bool) -> Any:
        result = aten.prod.default(x, dtype=dtype) if dim is None else aten.prod.dim_int(x, dim, keeps, dtype=dtype)
        context.save_for_backward(x, result)
        context.dim, context.keeps, context.has_zeros = dim, keeps, has_zeros
        return result

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        (gradient,) = gradients
        x, result = context.saved_tensors
        dim, keeps = context.dim, context.keeps
        if context.has_zeros:
            return torch.zeros_like(x, memory_format=torch.contiguous_format), None, None, None, None
        x = x.to(gradient.dtype)
        if dim is not None and not keeps:
            gradient, result = gradient.unsqueeze(dim), result.unsqueeze(dim)
        return gradient * (result / x), None, None, None, None


def reversed_sums(x: Any, dim: int) -> Any:
    return x.flip(dim).cumsum(dim).flip(dim)


class RunningProduct(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Any, dim: int, dtype: Any) -> Any:
        result = aten.cumprod.default(x, dim, dtype=dtype)
        context.save_for_backward(x, result)
        context.dim = dim
        return result

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        (gradient,), (x, result), dim = gradients, context.saved_tensors, context.dim
        if x.numel() < 2 or x.shape[dim] == 1:
            return gradient, None, None
        gradient = gradient.to(x.dtype)
        weighted = result * gradient
        if not zeros_in(x):
            return reversed_sums(weighted, dim) / x, None, None
        if result.dtype != x.dtype:
            raise Unmodelled("aten.cumprod.default", "a gradient of another type than the numbers, of which one is zero")
        if torch.is_grad_enabled():
            raise Unmodelled("aten.cumprod.default", "a gradient that is differentiated again, of numbers with a zero")
        # Before the first zero, at it, and after it, where the gradient is 0.
        zeros_so_far = (x == 0).cumsum(dim)
        before = zeros_so_far == 0
        of_all = torch.zeros_like(x)
        of_all.masked_scatter_(before, (reversed_sums(weighted.masked_fill(~before, 0.0), dim) / x).masked_select(before))
        after = zeros_so_far == 1
        first = after.max(dim, keepdim=True).indices
        is_first = torch.zeros_like(after).scatter_(dim, first, 1) & after
        after = after & ~is_first
        sums = (x.masked_fill(~after, 1.0).cumprod(dim) * gradient.masked_fill(zeros_so_far != 1, 0.0)).sum(dim, keepdim=True)
        products = result.gather(dim, (first - 1).clamp(min=0)).masked_fill(first == 0, 1.0)
        return of_all.masked_scatter(is_first, (sums * products).masked_select(is_first)), None, None


def has_own_formula(x: Any, dtype: Any) -> bool:
    """Does PyTorch ask whether tensors are of a subclass?"""
    is_floating = x.is_floating_point() and (dtype is None or dtype.is_floating_point)
    return bool(is_floating and torch.is_grad_enabled() and x.requires_grad and x.dim())


def install() -> Any:
    """What comes back must be kept."""
    library = torch.library.Library("aten", "IMPL")

    # All other cases go to PyTorch's own formula, which the CPU's tensors have, too.
    own = torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradCPU) | torch._C.DispatchKeySet(torch._C.DispatchKey.Python)

    def product(x: Any, *, dtype: Any = None) -> Any:
        if has_own_formula(x, dtype) and (zeros := zeros_in(x)) != 1:
            return Product.apply(x, None, False, dtype, zeros > 0)
        return aten.prod.default.redispatch(own, x, dtype=dtype)

    def product_of_dimension(x: Any, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Any:
        if has_own_formula(x, dtype) and not zeros_in(x):
            return Product.apply(x, dim, keepdim, dtype, False)
        return aten.prod.dim_int.redispatch(own, x, dim, keepdim, dtype=dtype)

    def running_product(x: Any, dim: int, *, dtype: Any = None) -> Any:
        if has_own_formula(x, dtype):
            return RunningProduct.apply(x, dim, dtype)
        return aten.cumprod.default.redispatch(own, x, dim, dtype=dtype)

    for name, function in (("prod", product), ("prod.dim_int", product_of_dimension), ("cumprod", running_product)):
        library.impl(name, function, "AutogradCUDA", allow_override=True)
    return library
