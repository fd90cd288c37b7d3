"""Random numbers of the device's generator, after it has got a seed."""

import torch
import torch.nn.functional as F

from .number_types import i32, i64, u8

OPERATORS = ["rand", "randn", "bernoulli", "bernoulli_p", "dropout", "dropout", "dropout2d", "alpha_dropout", "multinomial", "randperm", "rand_like",
             "randn_like", "uniform_", "normal_", "exponential_", "randint", "random_", "bernoulli_", "randint_like", "rrelu_train", "two"]
IN_PLACE = {"uniform_": (-0.5, 2.0), "normal_": (0.3, 1.7), "exponential_": (1.3,), "bernoulli_": (0.7,), "random_": (0, 100)}


def new_tensor(call, name, shape, dtype):
    function = getattr(torch, name)
    like = getattr(torch, name + "_like")
    if len(shape) != 4 or call.chance(0.6):
        call.note(shape=list(shape))
        call.compute(call.seeded(lambda: function(shape, dtype=dtype, device=call.device)))
    else:
        call.compute(call.seeded(lambda: like(torch.empty(shape, dtype=dtype, device=call.device), memory_format=torch.channels_last)))


def multinomial(call, dtype):
    rows, classes = call.shape(2, call.budget(2e4))
    classes = min(classes, 2000)
    x = call.tensor((rows, classes) if call.chance(0.8) else (classes,), dtype, kind="positive")
    again = call.chance(0.4)
    count = call.between(1, 5) if again else 1 if call.chance(0.7) else call.between(1, classes)
    call.note(k=count, rep=again)
    call.compute(call.seeded(lambda: torch.multinomial(x, count, again)))


def several_draws(call, x):
    return (torch.rand(x.shape, device=call.device), F.dropout(x, 0.3, True), torch.randn(7, device=call.device), torch.rand_like(x))


def random_numbers(call):
    name = call.choice(OPERATORS)
    call.operator = "rng_" + name
    dtype = call.float_type(0.06)
    shape = call.shape(call.choice([1, 2, 3, 4, 4, 5]), call.budget(1e5))
    if name in ("rand", "randn"):
        new_tensor(call, name, shape, dtype)
    elif name == "bernoulli":
        x = call.tensor(shape, dtype, kind="fraction")
        call.compute(call.seeded(lambda: torch.bernoulli(x)))
    elif name == "bernoulli_p":
        x = call.tensor(shape, dtype)
        call.compute(call.seeded(lambda: torch.bernoulli(x, 0.3)))
    elif name == "dropout":
        x, p = call.tensor(shape, dtype), call.choice([0.1, 0.5, 0.9, 0.0, 1.0, 0.3])
        call.note(p=p)
        call.compute(call.seeded(lambda: F.dropout(x, p, True)), [x])
    elif name == "dropout2d":
        x = call.tensor(call.shape(4, call.budget(1e5)), dtype)
        call.compute(call.seeded(lambda: F.dropout2d(x, 0.4, True)), [x])
    elif name == "alpha_dropout":
        x = call.tensor(shape, dtype)
        call.compute(call.seeded(lambda: F.alpha_dropout(x, 0.4, True)), [x], 0.3)
    elif name == "multinomial":
        multinomial(call, dtype)
    elif name == "randperm":
        n = call.size(30000)
        call.note(n=n)
        call.compute(call.seeded(lambda: torch.randperm(n, device=call.device, dtype=call.choice([i64, i32]) if n < 1000 else i64)))
    elif name in ("rand_like", "randn_like"):
        x = call.tensor(shape, dtype)
        call.compute(call.seeded(lambda: getattr(torch, name)(x)))
    elif name == "randint_like":
        x = call.tensor(shape, dtype)
        call.compute(call.seeded(lambda: torch.randint_like(x, 0, 100)))
    elif name in IN_PLACE:
        x = call.tensor(shape, dtype, plain=True)
        call.compute(call.seeded(lambda: getattr(x, name)(*IN_PLACE[name])))
    elif name == "randint":
        call.note(shape=list(shape))
        of = call.choice([i64, i32, u8])
        end = call.choice([2, 10, 100, 200])
        call.compute(call.seeded(lambda: torch.randint(0, end, shape, device=call.device, dtype=of)))
    elif name == "rrelu_train":
        x = call.tensor(shape, dtype)
        call.compute(call.seeded(lambda: F.rrelu(x, 0.1, 0.3, True)), [x], 0.4)
    else:
        x = call.tensor(shape, dtype)
        call.compute(call.seeded(lambda: several_draws(call, x)))
