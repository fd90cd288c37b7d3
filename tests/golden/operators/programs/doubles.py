"""Operators over FP64 tensors: doubles.py [CALLS [SEED [ELEMENTS]]]. For a GPU.

Pointwise operators over drawn numbers with subnormals, infinities and zeros among them, scalars, types that are promoted;
reductions over drawn shapes, dimensions, strides and offsets; losses, lists and random numbers.
"""

import random
import sys

import torch

calls, seed, most = (int(x) for x in (sys.argv[1:] + ["60", "1", "300"][len(sys.argv) - 1:]))
draw = random.Random(seed)
numbers = torch.Generator().manual_seed(seed)
torch.cuda.manual_seed(seed)
SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 5e-324, -1e-310, 2.3e-308, 1e308, -1e308, 709.7, 709.9, -708.5, -745.2, 745.0,
                        float("inf"), -float("inf")], dtype=torch.float64)


def shape(most=most):
    """Of up to four dimensions and `most` elements, some of them long."""
    sizes, room = [], draw.randint(1, most)
    for _ in range(draw.randint(1, 4)):
        size = draw.randint(1, max(1, room))
        sizes.append(size)
        room //= size
    draw.shuffle(sizes)
    return sizes


def tensor(sizes, scale=4.0, special=False, dtype=torch.float64):
    count = 1
    for size in sizes:
        count *= size
    x = torch.randn(count, generator=numbers, dtype=torch.float64) * scale
    if special:
        at = torch.randint(len(SPECIAL), (count,), generator=numbers)
        x = torch.where(torch.rand(count, generator=numbers) < 0.25, SPECIAL[at], x)
    x = x.to(dtype).cuda()
    if len(sizes) < 2 or draw.random() < 0.7:
        return x.reshape(sizes)
    a, b = draw.sample(range(len(sizes)), 2)
    stored = list(sizes)
    stored[a], stored[b] = stored[b], stored[a]
    return x.reshape(stored).transpose(a, b)


def offset(x):
    """The same elements some places after the beginning of an allocation."""
    if draw.random() < 0.7:
        return x
    shift = draw.randint(1, 3)
    room = torch.empty(x.numel() + shift, dtype=x.dtype, device="cuda")
    moved = room[shift:].view(x.shape)
    return moved.copy_(x)


def unary():
    x = tensor(shape(), draw.choice([0.1, 1, 4, 300]), special=True)
    name = draw.choice("""abs neg sign floor ceil round trunc frac sqrt reciprocal exp log sigmoid relu deg2rad rad2deg square isnan isinf
                          isfinite signbit logical_not""".split())
    return getattr(torch, name)(x)


def binary():
    sizes = shape()
    name = draw.choice("""add sub mul div fmod remainder copysign maximum minimum fmax fmin heaviside eq ne lt le gt ge logical_and
                          logical_or logical_xor floor_divide""".split())
    special = name not in ("fmod", "remainder", "floor_divide", "heaviside")
    x, y = tensor(sizes, special=special), tensor(sizes, special=special)
    how = draw.random()
    if name == "heaviside":
        pass
    elif how < 0.2:
        y = y.float()
    elif how < 0.3:
        y = y.bfloat16()
    if how > 0.7 and name not in ("heaviside", "fmax", "fmin", "maximum", "minimum", "copysign", "logical_and", "logical_or", "logical_xor"):
        y = draw.uniform(-3, 3)
    if name in ("add", "sub") and draw.random() < 0.5:
        return getattr(torch, name)(x, y, alpha=draw.uniform(-3, 3))
    return getattr(torch, name)(x, y)


def several():
    sizes = shape()
    x, y, z = (tensor(sizes) for _ in range(3))
    return draw.choice([
        lambda: torch.addcmul(x, y, z, value=draw.choice([1, 0.1])), lambda: torch.addcdiv(x, y, z, value=draw.choice([1, -0.3])),
        lambda: torch.lerp(x, y, draw.random()), lambda: torch.lerp(x, y, z), lambda: x.clamp(-1.3, 2.7), lambda: torch.where(x > 0, y, z),
        lambda: x.masked_fill(y > 0, 0.1), lambda: x ** draw.choice([2, 3, -2, -1, 0.5]), lambda: torch.div(x, 0.7, rounding_mode="floor"),
        lambda: torch.div(x, y, rounding_mode="floor"), lambda: torch.div(x, y, rounding_mode="trunc"), lambda: torch.nn.functional.silu(x),
        lambda: torch.nn.functional.leaky_relu(x, 0.1), lambda: torch.nn.functional.hardtanh(x, -0.7, 1.1),
        lambda: torch.nn.functional.threshold(x, 0.1, 0.3), lambda: torch.ops.aten.sigmoid_backward(x, y),
        lambda: torch.ops.aten.threshold_backward(x, y, 0), lambda: torch.ops.aten.leaky_relu_backward(x, y, 0.1, False),
        lambda: torch.ops.aten.hardtanh_backward(x, y, -1.0, 1.0)])()


def reduction():
    x = offset(tensor(shape(), 1.0))
    name = draw.choice("sum mean prod var std norm norm1 amax argmax max any all".split())
    dims = draw.sample(range(x.dim()), draw.randint(1, x.dim()))
    if name in ("sum", "mean", "amax"):
        return getattr(torch, name)(x, dim=dims, keepdim=draw.random() < 0.3)
    if name in ("var", "std"):
        return getattr(torch, name)(x, dim=dims, correction=draw.choice([0, 1, 2]))
    if name in ("prod", "max", "argmax", "any", "all"):
        return getattr(torch, name)(x, dim=dims[0])
    return torch.linalg.vector_norm(x, ord=1 if name == "norm1" else 2, dim=dims)


def loss():
    sizes = shape()
    x, y = tensor(sizes, 1.0), tensor(sizes, 1.0)
    reduction = draw.choice(["mean", "sum", "none"])
    name, rest = draw.choice([("mse_loss", {}), ("smooth_l1_loss", {"beta": 0.7}), ("huber_loss", {"delta": 0.7})])
    x.requires_grad_()
    result = getattr(torch.nn.functional, name)(x, y, reduction=reduction, **rest)
    result.backward(torch.full_like(result, 0.37))
    return result


def lists():
    all = [tensor(shape(most // 4), 1.0) for _ in range(3)]
    others = [x * 0.37 for x in all]
    return draw.choice([
        lambda: torch._foreach_add(all, others, alpha=0.3), lambda: torch._foreach_mul(all, 0.9), lambda: torch._foreach_div(all, [3.0, 0.7, 11.0]),
        lambda: torch._foreach_addcmul(all, others, others, value=0.001), lambda: torch._foreach_sqrt(torch._foreach_abs(all)),
        lambda: torch._foreach_lerp(all, others, 0.1), lambda: torch._foreach_addcdiv(all, others, others, [0.1, 0.2, 0.3])])()


def draws():
    return torch.rand(shape(), dtype=torch.float64, device="cuda")


kinds = [unary, unary, binary, binary, several, several, reduction, reduction, reduction, loss, lists, draws]
for i in range(calls):
    kinds[i % len(kinds)]()
