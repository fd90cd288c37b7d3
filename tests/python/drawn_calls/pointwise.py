"""Pointwise operators: of one, two and three operands, of integers, with numbers of Python, activations, casts and copies."""

import torch
import torch.nn.functional as F

from .number_types import FLOATS, INTEGERS, NAMES, bf16, boolean, f32, f64, i16, i32, i64, u8
from .pointwise_functions import ACTIVATIONS, BINARY, RARE_BINARY, RARE_UNARY, UNARY, USUAL_BINARY, USUAL_UNARY, WITH_A_NUMBER

NOT_OF_THE_SECOND = ("fmod", "remainder", "float_power")  # no gradient for it
WITH_OUT = ("add", "sub", "mul", "div", "pow", "atan2", "fmod", "xlogy", "copysign", "hypot")
OF_ONE_INTEGER = ("abs", "neg", "sign", "sqrt", "exp", "sin", "sigmoid", "bitwise_not", "tanh", "log1p")


def type_of(call, types):
    if types == "wide":
        return call.float_type(0.3, halves=False)
    if types == "not f16":
        dtype = call.choice([f32, f32, bf16, f64])
        call.dtype = call.dtype or dtype
        return dtype
    return call.float_type()


def unary(call, shape, names=USUAL_UNARY):
    call.operator = call.choice(names)
    function, usual_kind, types, gradients = UNARY[call.operator]
    dtype = type_of(call, types)
    kind = usual_kind if usual_kind and call.chance(0.75) else None
    if kind == "positive" and call.chance(0.3):
        kind = "positive_wide"
    x = call.tensor(shape, dtype, kind)
    if call.operator == "clone":
        order = call.choice([torch.preserve_format, torch.contiguous_format])
        call.note(mf=order)
        call.compute(lambda: torch.clone(x, memory_format=order), [x])
    elif hasattr(torch.Tensor, call.operator + "_") and call.chance(0.12) and gradients and call.operator not in ("angle", "mvlgamma"):
        call.note(inplace=1)
        changed = call.tensor(shape, dtype, kind, plain=True, name="z")
        call.compute(lambda: getattr(changed, call.operator + "_")())
    elif call.chance(0.05) and gradients and hasattr(torch, call.operator) and call.operator not in ("angle", "positive"):
        out = call.tensor(shape, dtype, "small", plain=True, name="out")
        call.note(out=1)
        call.compute(lambda: function(x, out=out))
    else:
        call.compute(lambda: function(x), [x] if gradients else [], 0.55)


def rare_unary(call, shape):
    unary(call, shape, RARE_UNARY)


def activation(call, shape):
    call.operator = call.choice([*ACTIVATIONS, "gelu", "gelu_tanh", "silu", "prelu", "glu"])
    dtype = call.float_type()
    if call.operator == "prelu":
        shape = shape if len(shape) > 1 else (*shape, 5) if shape else (3, 5)
        x = call.tensor(shape, dtype)
        weight = call.tensor((shape[1] if call.chance(0.7) else 1,), dtype, kind="fraction", name="w", layout=call.weighted(contiguous=80, offset=20))
        call.compute(lambda: F.prelu(x, weight), [x, weight])
    elif call.operator == "glu":
        shape = list(shape) or [4]
        dim = call.between(0, len(shape) - 1)
        shape[dim] += shape[dim] % 2
        x = call.tensor(shape, dtype)
        call.note(dim=dim)
        call.compute(lambda: F.glu(x, dim), [x])
    else:
        function, parameters = ACTIVATIONS[call.operator]
        chosen = ()
        if parameters:
            chosen = call.choice(parameters)
            call.note(s=chosen)
            chosen = chosen if isinstance(chosen, tuple) else (chosen,)
        x = call.tensor(shape, dtype)
        call.compute(lambda: function(x, *chosen), [x], 0.6)


def scalar_tensor(call, dtype, kind, mixed, place):
    dtype = call.choice(FLOATS) if mixed and call.chance(0.5) else dtype
    value = call.values((), dtype, kind or "normal")
    if mixed and call.chance(0.15):
        value = torch.tensor(call.between(1, 5))
    call.descriptions.append(f"y {place} {NAMES[value.dtype]} {value.item()!r}")
    call.digest.update(value.reshape(1).view(u8).numpy())
    return value if place == "host" else value.to(call.device)


def second_operand(call, shape, dtype, kind, numbers, mixed):
    """What kind of operand it is, and the operand: a tensor or a number."""
    how = call.weighted(same=48, broadcast=16, float=8 if mixed else 0, int=6 if mixed else 0, bool=2 if mixed and "sub" not in call.operator else 0,
                        device=7, host=7, number=10 if numbers else 0)
    if how == "same":
        return how, call.tensor(shape, dtype, kind, name="y")
    if how == "broadcast":
        return how, call.tensor(call.broadcast(shape), dtype, kind, name="y")
    if how == "float":
        return how, call.tensor(call.same_or_broadcast(shape, 0.7), call.choice(FLOATS), kind, name="y")
    if how in ("int", "bool"):
        of = boolean if how == "bool" else call.choice(INTEGERS)
        return how, call.integers(call.same_or_broadcast(shape, 0.7), 1, 2 if how == "bool" else 7, of, name="y", plain=False)
    if how in ("device", "host"):
        return how, scalar_tensor(call, dtype, kind, mixed, how)
    number = call.scalar() if call.chance(0.6) else call.choice([1, 2, 3, 0, -1, 5])
    if kind == "positive":
        number = abs(number) + 1
    call.note(y=number)
    return how, number


def ldexp(call, shape):
    x = call.tensor(shape, call.float_type())
    exponents = call.integers(call.same_or_broadcast(shape, 0.7), -12, 12, call.choice([i64, i32]), name="y")
    call.compute(lambda: torch.ldexp(x, exponents), [x], 0.3)


def binary(call, shape):
    call.operator = call.choice(RARE_BINARY) if call.chance(0.06) else call.choice([*USUAL_BINARY, "add", "mul", "div", "sub", "ldexp"])
    if call.operator == "ldexp":
        ldexp(call, shape)
        return
    how = BINARY[call.operator]
    dtype = type_of(call, how.types)
    x = call.tensor(shape if call.chance(0.85) else call.broadcast(shape), dtype, how.kind if how.kind and call.chance(0.8) else None)
    second_kind = how.second_kind if how.second_kind and call.chance(0.85) else None
    of_second, y = second_operand(call, shape, dtype, second_kind, how.numbers, how.mixed)
    is_tensor = isinstance(y, torch.Tensor)
    of = [x] if how.of_first else []
    if is_tensor and of_second != "host" and (y.dim() or call.chance(0.5)):
        of.append(y)
    if call.operator in NOT_OF_THE_SECOND:
        of = of[:1]
    if call.chance(0.08) and is_tensor and y.dtype == dtype and how.gradients and tuple(x.shape) == tuple(shape) and call.operator in WITH_OUT:
        written = call.tensor(shape, dtype, how.kind, plain=True, name="z")
        if call.chance(0.6):
            call.note(inplace=1)
            call.compute(lambda: getattr(written, call.operator + "_")(y))
        else:
            call.note(out=1)
            call.compute(lambda: how.function(x, y, out=written))
        return
    if is_tensor and y.dim() and call.chance(0.15) and how.of_first and call.operator != "rsub":
        call.note(swapped=1)
        x, y = y, x
        if call.operator in NOT_OF_THE_SECOND:
            of = []
    call.compute(lambda: how.function(x, y), of if how.gradients else [], 0.5)


def ternary(call, shape):
    def tensor(name, kind=None):
        return call.tensor(call.same_or_broadcast(shape), dtype, kind, name=name)

    name = call.operator = call.choice(["addcmul", "addcmul", "addcdiv", "lerp", "lerp_scalar", "where", "clamp", "clamp_t", "clamp_min", "where_scalar"])
    dtype = call.float_type()
    x = call.tensor(shape, dtype)
    if name in ("addcmul", "addcdiv"):
        y, z = tensor("y"), tensor("z")
        value = call.choice([1, 1, 0.5, -2, 0.1])
        call.note(v=value)
        call.compute(lambda: getattr(torch, name)(x, y, z, value=value), [x, y, z], 0.4)
    elif name == "lerp":
        y = call.tensor(shape, dtype, name="y")
        weight = call.tensor(call.same_or_broadcast(shape), dtype, "fraction" if call.chance(0.7) else None, name="w")
        call.compute(lambda: torch.lerp(x, y, weight), [x, y, weight], 0.4)
    elif name == "lerp_scalar":
        y, number = tensor("y"), call.choice([0.1, 0.5, 0.9, 0.3, -1.0, 2.0])
        call.note(w=number)
        call.compute(lambda: torch.lerp(x, y, number), [x, y], 0.4)
    elif name == "where":
        condition = call.integers(call.same_or_broadcast(shape), 0, 2, boolean, name="c", plain=False)
        y = call.tensor(call.same_or_broadcast(shape), dtype if call.chance(0.85) else call.choice(FLOATS), name="y")
        call.compute(lambda: torch.where(condition, x, y), [x, y], 0.4)
    elif name == "where_scalar":
        condition, number = call.integers(shape, 0, 2, boolean, name="c", plain=False), call.scalar()
        call.compute(lambda: torch.where(condition, x, number), [x], 0.4)
    elif name == "clamp":
        limits = call.choice([(-0.5, 0.5), (0, 1), (None, 0.3), (-1, None), (1.0, -1.0)])
        call.note(s=limits)
        call.compute(lambda: torch.clamp(x, *limits), [x], 0.4)
    elif name == "clamp_t":
        least, greatest = tensor("y"), tensor("z")
        least = least if call.chance(0.8) else None
        call.compute(lambda: torch.clamp(x, least, greatest), [x, least, greatest], 0.4)
    else:
        call.compute(lambda: torch.clamp_min(x, 0.25), [x], 0.4)


def with_a_number(call, shape):
    call.operator = call.choice(list(WITH_A_NUMBER))
    dtype = call.float_type()
    number = call.scalar() if call.chance(0.7) else call.choice([2, 3, -1, 5])
    x = call.tensor(shape, dtype, "positive" if "pow" in call.operator or "root" in call.operator else None)
    call.note(s=number)
    call.compute(lambda: WITH_A_NUMBER[call.operator](x, number), [x], 0 if call.operator == "op_floordiv" else 0.5)


def of_integers(call, shape):
    dtype, second = call.choice(INTEGERS), call.choice([i64, i32, i32, i16])
    call.dtype = dtype
    name = call.choice(["add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift",
                        "bitwise_right_shift", "maximum", "eq", "lt", "abs", "neg", "sign", "gcd", "lcm", "sqrt", "exp", "sin", "sigmoid", "bitwise_not",
                        "tanh", "log1p"])
    call.operator = "int_" + name
    function = getattr(torch, name)
    x = call.integers(shape, 0 if dtype == u8 or name in ("sqrt", "log1p") else -50, 60, dtype, name="x", plain=False)
    if name in OF_ONE_INTEGER:
        call.compute(lambda: function(x))
        return
    shift = "shift" in name
    y = call.integers(call.same_or_broadcast(shape), 0 if shift else 1, 6 if shift else 30, dtype if shift else second, name="y", plain=False)
    call.compute(lambda: function(x, y))


def cast_or_copy(call, shape):
    name = call.operator = call.choice(["to", "to", "contiguous", "copy_", "to_int", "cl", "fill_", "reshape", "mul_mixed3"])
    dtype = call.float_type()
    x = call.tensor(shape, dtype)
    if name == "to":
        to = call.choice(FLOATS)
        call.note(to=NAMES[to])
        call.compute(lambda: x.to(to), [x], 0.4)
    elif name == "to_int":
        to = call.choice([*INTEGERS, boolean])
        x = call.tensor(shape, dtype, kind="small" if to != u8 else "positive")
        call.note(to=NAMES[to])
        call.compute(lambda: x.to(boolean if call.special else to))
    elif name == "contiguous":
        call.compute(lambda: x.contiguous(), [x], 0.4)
    elif name == "cl" and len(shape) in (4, 5):
        order = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
        call.compute(lambda: x.contiguous(memory_format=order) * 2, [x], 0.4)
    elif name == "copy_":
        written = call.tensor(shape, call.choice(FLOATS), plain=True, name="z")
        y = call.tensor(call.broadcast(shape), dtype, name="y")
        call.compute(lambda: written.copy_(y))
    elif name == "fill_":
        written, number = call.tensor(shape, dtype, plain=True, name="z"), call.scalar()
        call.compute(lambda: (written.fill_(number) + 1, torch.full_like(x, number), torch.zeros_like(x), torch.ones_like(x)))
    elif name == "reshape":
        call.compute(lambda: x.reshape(-1) + 1, [x], 0.4)
    else:
        call.operator = "mul_mixed3"
        y, z = call.tensor(call.broadcast(shape), dtype, name="y"), call.tensor(shape, call.choice(FLOATS), name="z")
        call.compute(lambda: torch.tanh(x * y) + z, [x, y, z], 0.5)


def pointwise(call):
    family = call.weighted(unary=24, rare=4, activation=20, binary=30, ternary=9, number=5, integers=6, cast=6)
    shape = call.shape(call.choice([0, 1, 1, 2, 2, 3, 3, 4, 4, 5]), empty=0.006)
    {"unary": unary, "rare": rare_unary, "activation": activation, "binary": binary, "ternary": ternary, "number": with_a_number, "integers": of_integers,
     "cast": cast_or_copy}[family](call, shape)
