"""fuzz_calls.py COUNT [SEED]: calls with mutated arguments. Whatever is wrong with them is a ValueError or a TypeError of one line."""

import random
import sys

import numpy as np

import guardbit
from guardbit.testing import assert_equal_bits

try:
    import ml_dtypes

    TYPES = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn]
except ImportError:
    TYPES = []
TYPES += [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.uint16, np.bool_, np.complex64, np.longdouble, object, "S3", "V3"]
WORDS = ["", "e4m3", "fp16", "bf16", "nvfp4", "mxfp4", "sm_90", "sm_100", "cdna3", "x86", "tpu", "nearest_even", "stochastic", "torch", "cvt",
         "ml_dtypes", "saturate", "ieee", "relu", "avx512", "reference", "auto", "e5m6", "e9m99", "e1m0", "\n", "\0", "é", "--", "a" * 300,
         "simt/fma.fp32 d=fp32", "simt/fma.fp32 split=3x4:ceil d=fp16", "cublas-13:sm_90", "0:8:4", "clean*3,overflow"]


def number(draw):
    return draw.choice([0, 1, -1, 2, 3, 7, 16, 2**31, 2**63, 2**64, -(2**63), 0.5, 1e300, float("nan"), float("inf"), True, None, 1j])


def array(draw):
    shape = tuple(draw.choice([0, 1, 2, 3, 4, 8, 16, 33]) for _ in range(draw.choice([0, 1, 2, 2, 2, 2, 3, 4])))
    kind = draw.choice(TYPES)
    x = np.ones(shape, np.float32)
    try:
        x = (np.random.default_rng(draw.randrange(1 << 30)).standard_normal(shape) * 4).astype(kind)
    except (TypeError, ValueError):
        x = np.full(shape, None, object)
    x = np.asarray(x)
    if draw.random() < 0.2 and x.ndim >= 2:
        x = x.T
    if draw.random() < 0.1 and x.ndim >= 1:
        x = x[::-1]
    if draw.random() < 0.1 and x.ndim >= 1:
        x = x[..., ::2]
    return x


def anything(draw):
    return draw.choice([array, array, array, number, lambda d: d.choice(WORDS), lambda d: [1, 2], lambda d: {"x": array(d)},
                        lambda d: object(), lambda d: np.float16, lambda d: guardbit.Codes(np.zeros((4, 4), np.uint8), "e4m3")])(draw)


def mostly(draw, usual):
    return usual(draw) if draw.random() < 0.85 else anything(draw)


def word(draw):
    return draw.choice(WORDS)


def product_of_blocks(a, b, first="nvfp4", second="nvfp4", axis=None, **options):
    of_a = guardbit.quantize(a, first)
    return guardbit.matmul(of_a, guardbit.quantize(b, second).mT if axis is None else guardbit.quantize(b, second, axis=axis), **options)


def block_format(draw):
    return draw.choice(["nvfp4", "mxfp4", "mxfp8_e4m3", "mxfp6_e2m3", "mxint8"])


def function_of(name, x, y, count, **options):
    return guardbit.function(name, *[x, y, x, y, x][: count if isinstance(count, int) else 1], **options)


FUNCTIONS = [f.function for f in guardbit.functions()]


def function_name(draw):
    return draw.choice(FUNCTIONS if draw.random() < 0.9 else WORDS)


def operand_count(draw):
    return draw.choice([0, 1, 2, 2, 3, 4, 5])


def compile_mode(draw):
    return draw.choice(["default", "ftz", "fast", "quick", ""])


def size(draw):
    return draw.choice([1, 2, 3, 7, 16, 100, 4096, 0, -1, 2**31])


def layout(draw):
    return draw.choice(["NN", "NT", "TN", "TT", "nn", "N", "NNN", ""])


def strides(draw):
    return draw.choice([[1, 16], [16, 1], [0, 0], [256, 16, 1], [], [-1, 1], [2**62, 1], "NN", [0.5, 1]])


def plan_of_a_call(op, m, n, k, kind, both=None, **options):
    if both is not None:
        options.update(a_stride=both, b_stride=both)
    return guardbit.plan(op, m=m, n=n, k=k, dtype=kind, **options)


def operator(draw):
    return draw.choice(["mm", "addmm", "bmm", "MM", "conv", ""])


def answering(draw):
    """A function for probe: right, or wrong in one of the ways that a user's may be."""
    def nothing(a, b):
        return None

    def too_small(a, b):
        return np.zeros((1,), np.float32)

    def right(a, b, c=None):
        d = a.astype(np.float32) @ b.astype(np.float32)
        return d if c is None else d + c

    def wrong(a, b):
        raise KeyError("the function's own")

    return draw.choice([right, right, right, nothing, too_small, wrong])


def probe_of(function, a, d, k, **options):
    """What the function itself raises comes out as it is."""
    try:
        return guardbit.probe(function, a=a, d=d, k=k, **options)
    except KeyError:
        return None


def probed_size(draw):
    return draw.choice([1, 2, 3, 4, 0, -1, 2**40, 0.5])


def format_of_probe(draw):
    return draw.choice(["fp16", "fp32", "bf16", "e4m3", "fp64", "int8", "nvfp4", np.float16, "\0"])


def table_of(name, column, value):
    tables = {"formats": guardbit.formats, "instructions": guardbit.instructions, "plans": guardbit.plans, "machines": guardbit.machines}
    table = tables.get(name if isinstance(name, str) else "", guardbit.formats)()
    if not isinstance(column, str):
        column = ""
    try:
        return repr(table.where(**{column: value})) + table._repr_html_()
    except AttributeError as error:
        raise TypeError(str(error)) from None


def table_name(draw):
    return draw.choice(["formats", "instructions", "plans", "machines"])


def column_name(draw):
    return draw.choice(["name", "format", "arch", "a", "d", "library", "nonsense", "__class__"])


def product_of_made_blocks(a, b, codes, scales, of_tensor, name, axis):
    made = guardbit.Blocks(codes, scales, of_tensor, name, axis)
    return guardbit.matmul(made, guardbit.quantize(b, "nvfp4", axis=0)), guardbit.matmul(guardbit.quantize(a, "nvfp4"), made), guardbit.dequantize(made)


def product_of_torch(x, y):
    try:
        return x @ y
    except (RuntimeError, OverflowError) as error:
        raise ValueError("PyTorch's own") from error


def in_machine(x, y, arch, plans):
    product_of_torch(x, y)
    with guardbit.torch.machine(arch, plans=plans):
        return x @ y


def tensor(draw):
    kind = draw.choice([torch.float16, torch.float32, torch.bfloat16, torch.float64, torch.int8, torch.float8_e4m3fn, torch.complex64, torch.bool])
    return torch.ones([draw.choice([0, 1, 2, 3, 8]) for _ in range(draw.choice([1, 2, 2, 2, 3]))]).to(kind)


def plans_of_machine(draw):
    return draw.choice([None, None, {}, {"fp16": "simt/fma.fp32 d=fp16"}, {"fp16": "nonsense"}, {"e9": ""}, {"tf32": "\n"}])


def explained_by_torch(x, y, **options):
    try:
        return str(guardbit.torch.explain(lambda a: a @ y, x, **options))
    except (RuntimeError, OverflowError) as error:
        raise ValueError("PyTorch's own") from error


CALLS = {
    guardbit.cast: ([array, word], dict(rounding=word, converter=word, overflow=word, scale=number, seed=number, dtype=word, threads=number, out=array)),
    guardbit.quantize: ([array, word], dict(axis=number, rounding=word, scale_rule=word, tensor_scale=number, seed=number, threads=number)),
    guardbit.dequantize: ([array, array, number], dict(format=word, to=word, axis=number)),
    guardbit.matmul: ([array, array], dict(c=array, arch=word, plan=word, like=word, out_dtype=word, alpha=number, beta=number, bias=array,
                                           scale_a=array, scale_b=number, tf32=number, sparse=number, dtype=word, out=array, engine=word, threads=number)),
    guardbit.conv: ([array, array], dict(bias=array, stride=number, padding=lambda d: d.choice(["same", "valid", number(d)]), dilation=number, groups=number,
                                         arch=word, engine=word)),
    guardbit.run: ([lambda d: d.choice(["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"]), array, array],
                   dict(c=array, arch=word, e=array, a_scale=array, negate_a=number, toolkit=word, engine=word)),
    guardbit.explain: ([array, array, array], dict(c=array, alpha=number, beta=number, activation=word, arch=word, tf32=number, max_plans=number,
                                                   time_limit=lambda d: 0.2)),
    guardbit.compare: ([array], dict(reference=array, a=array, b=array, alpha=number, plan=word, threads=number)),
    guardbit.verify: ([word], dict(plan=word, engine=word)),
    guardbit.trace: ([lambda d: {"x": array(d), "step1/y.grad_out": array(d)}], dict(formats=word, scales=word, policy=word, layout=word, tolerance=number)),
    guardbit.recipes.compare: ([lambda d: {"x": array(d)}], dict(recipes=word, scales=word, role=word, amax_history=number, margin=number)),
    guardbit.scaler.replay: ([lambda d: {"step1/x.wgrad": array(d)}], dict(preset=word, init_scale=number, growth_interval=number, hysteresis=number, format=word)),
    guardbit.scaler.schedule: ([word], dict(preset=word, init_scale=number, growth_factor=number, min_scale=number)),
    guardbit.plan_of: ([word, word], dict(arch=word, plan=word, out_dtype=word)),
    assert_equal_bits: ([array, array], dict(any_nan=number, most=number)),
    guardbit.Codes: ([array, word], {}),
    guardbit.load: ([word], dict(dtype=word)),
    function_of: ([function_name, array, array, operand_count], dict(arch=word, compile=compile_mode, toolkit=word, threads=number)),
    guardbit.functions: ([compile_mode], {}),
    product_of_blocks: ([array, array], dict(first=block_format, second=block_format, axis=number, arch=word, c=array, alpha=number, beta=number,
                                             bias=array, out=array, dtype=word, out_dtype=word, scale_a=array, engine=word, threads=number)),
    plan_of_a_call: ([operator, size, size, size, lambda d: d.choice(["fp16", "bf16", "fp32", "fp64", "e4m3", np.float32])],
                     dict(batch=size, tf32=number, layout=layout, both=strides, book=word, like=word)),
    probe_of: ([answering, format_of_probe, format_of_probe, probed_size], dict(b=format_of_probe, c=format_of_probe, m=probed_size, row=number, seed=number,
                                                                                library=word, batched=number)),
    table_of: ([table_name, column_name, word], {}),
    guardbit.instructions: ([word], {}),
    product_of_made_blocks: ([array, array, array, array, number, word, number], {}),
}
try:
    import torch

    import guardbit.torch

    CALLS[in_machine] = ([tensor, tensor, word, plans_of_machine], {})
    CALLS[explained_by_torch] = ([tensor, tensor], dict(loss=lambda d: d.choice([None, torch.sum])))
except ImportError:
    pass
try:
    import guardbit.jax

    CALLS[guardbit.jax.matmul] = ([array, array], dict(arch=word, plan=word, like=word, out_dtype=word, tf32=number, threads=number))
except ImportError:
    pass


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    done, wrong = 0, 0
    for i in range(count):
        draw = random.Random(f"{seed}:{i}")
        function = draw.choice(list(CALLS))
        positional, named = CALLS[function]
        arguments = [mostly(draw, usual) for usual in positional]
        options = {name: mostly(draw, named[name]) for name in draw.sample(sorted(named), min(len(named), draw.choice([0, 0, 1, 1, 2, 3])))} if named else {}
        if function is guardbit.run and "arch" not in options:
            options["arch"] = "sm_90"
        try:
            repr(function(*arguments, **options))
            done += 1
        except (ValueError, TypeError) as error:
            if "\n" in str(error) and "incompatible function arguments" not in str(error):
                wrong += 1
                print(f"{i}: {function.__qualname__}: several lines: {error!r}")
            if "incompatible function arguments" in str(error):
                wrong += 1
                print(f"{i}: {function.__qualname__}: the binding's own words: {str(error).splitlines()[0]} {str(options)[:300]!r}")
        except AssertionError:
            done += 1
        except Exception as error:  # noqa: BLE001
            wrong += 1
            print(f"{i}: {function.__qualname__}: {error!r} {str(options)[:300]!r}")
    print(f"{count} calls, {done} did something, {wrong} ended otherwise than they may")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
