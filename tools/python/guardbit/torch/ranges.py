"""Ranges of numbers and windows, which the GPU computes from the place of each element."""

from __future__ import annotations

import math
from typing import Any

import torch

from .session import Session, argument_of

aten = torch.ops.aten
MOST_EXACT = 2**24


def on_gpu(session: Session, numbers: Any) -> Any:
    return session.computed(aten._to_copy.default, (numbers,), {"device": torch.device("cuda", 0)})


def steps_from(session: Session, begin: float, step: float, places: Any) -> Any:
    """fma(step, place, begin) in FP32."""
    start, by = (torch.full(places.shape, x, dtype=torch.float32) for x in (begin, step))
    return session.computed(aten.addcmul.default, tuple(on_gpu(session, x) for x in (start, by, places)), {})


def single(number: float) -> float:
    return float(torch.tensor(number, dtype=torch.float64).float())


def arange(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    numbers = [x for x in args if isinstance(x, (int, float))]
    if all(isinstance(x, int) for x in numbers) or all(float(x).is_integer() and abs(x) <= MOST_EXACT for x in numbers):
        return session.moved(func, args, kwargs)
    begin, step = (argument_of(func, args, kwargs, name) for name in ("start", "step"))
    form = func(*args, **{**kwargs, "device": torch.device("meta")})
    if not form.is_floating_point() or form.dtype == torch.float64 or form.numel() > MOST_EXACT:
        return session.without_model(func, args, kwargs, "steps that are no integers, of this type or so many")
    found = steps_from(session, single(begin or 0), single(1 if step is None else step), torch.arange(form.numel()).float())
    return session.computed(aten._to_copy.default, (found,), {"dtype": form.dtype}) if form.dtype != torch.float32 else found


def linspace(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """From both ends to the middle; in 16 bits each step is stored."""
    begin, end, count = (argument_of(func, args, kwargs, name) for name in ("start", "end", "steps"))
    form = func(*args, **{**kwargs, "device": torch.device("meta")})
    if not form.is_floating_point() or count > MOST_EXACT or isinstance(begin, torch.Tensor) or isinstance(end, torch.Tensor):
        return session.without_model(func, args, kwargs, "other than floating-point numbers between two numbers")
    if count < 2:
        return session.moved(func, args, kwargs)
    first, last = (torch.tensor(x, dtype=form.dtype) for x in (begin, end))
    step = (last - first) / torch.tensor(count - 1, dtype=form.dtype)
    places, middle = torch.arange(count), count // 2
    halves = [(first, step, places[:middle]), (last, -step, count - 1 - places[middle:])]
    return session.computed(aten.cat.default, ([steps_between(session, *half) for half in halves],), {})


def steps_between(session: Session, start: Any, step: Any, places: Any) -> Any:
    """start + step place in the type of both."""
    numbers = [on_gpu(session, x.to(start.dtype)) for x in (start.expand(places.shape), step.expand(places.shape), places)]
    if start.dtype in (torch.float32, torch.float64):
        return session.computed(aten.addcmul.default, tuple(numbers), {})
    return session.computed(aten.add.Tensor, (numbers[0], session.computed(aten.mul.Tensor, (numbers[1], numbers[2]), {})), {})


def logspace(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Powers of the base, of what linspace gives."""
    begin, end, count, base = (argument_of(func, args, kwargs, name) for name in ("start", "end", "steps", "base"))
    dtype = kwargs.get("dtype") or torch.get_default_dtype()
    if dtype not in (torch.float32, torch.float64) or count < 2:
        return session.without_model(func, args, kwargs, "other than two or more numbers of FP32 or FP64")
    exponents = session.computed(aten.linspace.default, (begin, end, count), {"dtype": dtype, "device": torch.device("cuda", 0)})
    bases = on_gpu(session, torch.full((count,), 10.0 if base is None else float(base), dtype=dtype))
    return session.computed(aten.pow.Tensor_Tensor, (bases, exponents), {})


def places_of_a_window(session: Session, count: int, factor: float) -> Any:
    return session.computed(aten.mul.Tensor, (on_gpu(session, torch.arange(count).float()), factor), {})


def bartlett_window(session: Session, count: int) -> Any:
    x = places_of_a_window(session, count, 2.0 / (count - 1))
    half = ((count - 1) >> 1) + 1
    rising = session.computed(aten.slice.Tensor, (x, 0, 0, half), {})
    falling = session.computed(aten.mul.Tensor, (session.computed(aten.slice.Tensor, (x, 0, half, count), {}), -1), {})
    return session.computed(aten.cat.default, ([rising, session.computed(aten.add.Tensor, (falling, 2), {})],), {})


def blackman_window(session: Session, count: int) -> Any:
    x = places_of_a_window(session, count, math.pi / (count - 1))
    waves = [session.computed(aten.mul.Tensor, (session.computed(aten.cos.default, (session.computed(aten.mul.Tensor, (x, times), {}),), {}), factor), {})
             for times, factor in ((4, 0.08), (2, 0.5))]
    return session.computed(aten.add.Tensor, (session.computed(aten.sub.Tensor, tuple(waves), {}), 0.42), {})


def kaiser_window(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """i0(beta sqrt(1 - z z)) / i0(beta), z from -1 to 1; the divisor's inverse is the host's."""
    length, periodic, beta = (argument_of(func, args, kwargs, name) for name in ("window_length", "periodic", "beta"))
    if length < 2:
        return session.moved(func, args, kwargs)
    if (kwargs.get("dtype") or torch.get_default_dtype()) != torch.float32:
        return session.without_model(func, args, kwargs, "other than FP32")
    beta, count = 12.0 if beta is None else float(beta), length + (periodic is not False)
    minus_one = on_gpu(session, torch.full((count,), -1.0))
    places, step = on_gpu(session, torch.arange(count).float()), on_gpu(session, torch.full((count,), 2.0 / (count - 1)))
    z = session.computed(aten.addcmul.default, (minus_one, places, step), {})
    inner = session.computed(aten.addcmul.default, (session.computed(aten.neg.default, (minus_one,), {}), session.computed(aten.neg.default, (z,), {}), z), {})
    root = session.computed(aten.sqrt.default, (session.computed(aten.clamp_min.default, (inner, 0.0), {}),), {})
    of_beta = 1.0 / torch.i0(torch.tensor(beta))
    found = session.computed(aten.i0.default, (session.computed(aten.mul.Tensor, (root, beta), {}),), {})
    found = session.computed(aten.mul.Tensor, (found, float(of_beta)), {})
    return session.computed(aten.slice.Tensor, (found, 0, 0, length), {})


def other_window(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """bartlett_window, blackman_window: of one number more, which is left out, where they are periodic."""
    length, periodic = (argument_of(func, args, kwargs, name) for name in ("window_length", "periodic"))
    if length < 2:
        return session.moved(func, args, kwargs)
    if (kwargs.get("dtype") or torch.get_default_dtype()) != torch.float32:
        return session.without_model(func, args, kwargs, "other than FP32")
    make = bartlett_window if func.overloadpacket.__name__ == "bartlett_window" else blackman_window
    return session.computed(aten.slice.Tensor, (make(session, length + (periodic is not False)), 0, 0, length), {})


def window(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """hann_window, hamming_window."""
    given = {x.name: argument_of(func, args, kwargs, x.name) for x in func._schema.arguments}
    is_hann = func.overloadpacket.__name__ == "hann_window"
    alpha, beta = (0.5, 0.5) if is_hann else (given.get("alpha") or 0.54, given.get("beta") or 0.46)
    length, periodic = given["window_length"], given.get("periodic") is not False
    if length < 2 or (kwargs.get("dtype") or torch.get_default_dtype()) != torch.float32:
        return session.moved(func, args, kwargs) if length < 2 else session.without_model(func, args, kwargs, "other than FP32")
    count = length + periodic
    x = on_gpu(session, torch.arange(count).float())
    for operator, number in ((aten.mul.Tensor, math.pi * 2.0 / (count - 1)), (aten.cos.default, None), (aten.mul.Tensor, -beta), (aten.add.Tensor, alpha)):
        x = session.computed(operator, (x,) if number is None else (x, number), {})
    return session.computed(aten.slice.Tensor, (x, 0, 0, length), {})


Session.specials.update({"arange": arange, "linspace": linspace, "hann_window": window, "hamming_window": window,
                         "kaiser_window": kaiser_window, "logspace": logspace, "bartlett_window": other_window, "blackman_window": other_window})
