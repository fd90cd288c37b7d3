"""function against the command, bit for bit."""

import json
import subprocess

import numpy as np
import pytest

import guardbit

ml_dtypes = pytest.importorskip("ml_dtypes")


def by_command(command, tmp_path, name, *operands, options=()):
    words = []
    for i, x in enumerate(operands):
        if isinstance(x, np.ndarray):
            np.save(tmp_path / f"{i}.npy", x)
            x = tmp_path / f"{i}.npy"
        words.append(str(x))
    subprocess.run([command, "function", name, *words, *options, "-o", tmp_path / "d.npz"], check=True, capture_output=True)
    return list(np.load(tmp_path / "d.npz").values())


def words_of_command(command, *arguments):
    done = subprocess.run([command, "function", *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    return done.stderr.strip().removeprefix("guardbit: ").removeprefix("error: ")


@pytest.fixture
def codes(rng):
    """Codes of FP32 of every kind: NaNs, infinities, subnormal numbers, and many of exponents near 0."""
    any_of = rng.integers(0, 1 << 32, 6000, np.uint32)
    near = (rng.standard_normal(6000) * 8).astype(np.float32).view(np.uint32)
    special = np.uint32([0, 1 << 31, 1, 0x80000001, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0x007FFFFF, 0x3F800000])
    return np.concatenate([any_of, near, special])


@pytest.mark.parametrize("name", ["ex2.approx.ftz.f32", "rsqrt.approx.f32", "tanh.approx.f32", "expf", "sinf", "tgammaf", "rcp.rz.f32"])
def test_equals_the_command(command, tmp_path, codes, name):
    x = codes.view(np.float32)
    d = guardbit.function(name, x)
    assert d.dtype == np.float32 and d.tobytes() == by_command(command, tmp_path, name, x)[0].tobytes()
    assert guardbit.function(name, codes, threads=1).tobytes() == d.tobytes()  # the same as codes


@pytest.mark.parametrize("compile", ["default", "ftz", "fast"])
def test_two_operands_and_compile_modes(command, tmp_path, codes, rng, compile):
    x, y = codes.view(np.float32), rng.permutation(codes).view(np.float32)
    d = guardbit.function("powf", x, y, compile=compile)
    assert d.tobytes() == by_command(command, tmp_path, "powf", x, y, options=("--compile", compile))[0].tobytes()
    if compile == "fast":
        assert d.tobytes() != guardbit.function("powf", x, y).tobytes()


def test_two_results_are_a_tuple(command, tmp_path, codes):
    x = codes.view(np.float32)
    results = guardbit.function("sincosf", x)
    assert isinstance(results, tuple) and len(results) == 2
    for ours, theirs in zip(results, by_command(command, tmp_path, "sincosf", x)):
        assert ours.tobytes() == theirs.tobytes()
    assert results[0].tobytes() == guardbit.function("sinf", x).tobytes()


def test_scalars_count_for_all_elements(command, tmp_path, rng):
    x = rng.standard_normal((3, 5)).astype(np.float32)
    d = guardbit.function("powf", x, 3)
    assert d.shape == (3, 5) and d.tobytes() == by_command(command, tmp_path, "powf", x, 3)[0].tobytes()
    for three in (3.0, np.float32(3), np.array(3, np.float32), "3", "0x1.8p1", "0x40400000:fp32", np.int64(3), np.float64(3)):
        assert guardbit.function("powf", x, three).tobytes() == d.tobytes()
    # A number is rounded once, to the function's format.
    tenth = guardbit.function("fma.rn.f32", x, 0.1, "1e-9")
    assert tenth.tobytes() == guardbit.function("fma.rn.f32", x, np.float32(0.1), np.float32(1e-9)).tobytes()
    assert tenth.tobytes() == by_command(command, tmp_path, "fma.rn.f32", x, "0.1", "1e-9")[0].tobytes()
    alone = guardbit.function("expf", 1.5)
    assert alone.shape == () and alone.view(np.uint32) == 0x408F69FF
    assert guardbit.function("expf", x[:0]).shape == (0, 5)


def test_strided_arrays(rng):
    x = rng.standard_normal((40, 30)).astype(np.float32)
    d = guardbit.function("expf", x)
    assert np.array_equal(guardbit.function("expf", x.T), d.T)
    assert np.array_equal(guardbit.function("expf", x[::-1, ::2]), d[::-1, ::2])


def test_halves_and_wide_formats(command, tmp_path, rng):
    x = rng.integers(0, 1 << 16, 5000, np.uint16)
    half = guardbit.function("hexp", x.view(np.float16))
    assert half.dtype == np.float16 and half.tobytes() == by_command(command, tmp_path, "hexp(half)", x.view(np.float16))[0].tobytes()
    other = guardbit.function("hexp", x.view(ml_dtypes.bfloat16))
    assert other.dtype == ml_dtypes.bfloat16 and other.tobytes() == guardbit.function("hexp(bfloat16)", x).tobytes()
    assert other.tobytes() != half.tobytes()
    wide = rng.standard_normal(100)
    d = guardbit.function("rcp.approx.ftz.f64", wide)
    assert d.dtype == np.float64 and d.tobytes() == by_command(command, tmp_path, "rcp.approx.ftz.f64", wide)[0].tobytes()


def test_torch_tensors(rng):
    torch = pytest.importorskip("torch")
    x = rng.standard_normal((4, 6)).astype(np.float32)
    d = guardbit.function("tanhf", torch.from_numpy(x))
    assert isinstance(d, torch.Tensor) and d.numpy().tobytes() == guardbit.function("tanhf", x).tobytes()
    halves = guardbit.function("hexp", torch.from_numpy(x).bfloat16())
    assert halves.dtype == torch.bfloat16


def test_errors_have_the_words_of_the_command(command, rng):
    x = np.zeros(3, np.float32)
    for ours, theirs in [
        (lambda: guardbit.function("expff", x), ("expff", "1")),
        (lambda: guardbit.function("expf", x, arch="sm_70"), ("expf", "1", "--arch", "sm_70")),
        (lambda: guardbit.function("expf", x, arch="sm_9"), ("expf", "1", "--arch", "sm_9")),
        (lambda: guardbit.function("expf", x, compile="quick"), ("expf", "1", "--compile", "quick")),
        (lambda: guardbit.function("ex2.approx.f32", x, compile="fast"), ("ex2.approx.f32", "1", "--compile", "fast")),
        (lambda: guardbit.function("erff", x, toolkit="12.0"), ("erff", "1", "--toolkit", "12.0")),
        (lambda: guardbit.function("powf", x), ("powf", "1", "-o", "d.npy")),
    ]:
        with pytest.raises(guardbit.Error) as error:
            ours()
        assert str(error.value) == words_of_command(command, *theirs).replace("--", "")
    for call, words in [
        (lambda: guardbit.function("expf", x.astype(float)), "x: expf takes fp32, not fp64"),
        (lambda: guardbit.function("powf", x, x[:2]), "x and y have different shapes"),
        (lambda: guardbit.function("expf", "one"), "x: 'one' is no number"),
        (lambda: guardbit.function("expf"), "expf takes 1 operand, 0 were given"),
    ]:
        with pytest.raises(guardbit.Error) as error:
            call()
        assert words in str(error.value)
    for wrong in (True, None, object(), [None]):
        with pytest.raises(TypeError, match="^x: "):
            guardbit.function("expf", wrong)


def test_functions_are_those_of_the_command(command):
    listed = json.loads(subprocess.run([command, "function", "--list", "--json"], capture_output=True, text=True, check=True).stdout)
    assert guardbit.functions() == listed["functions"]
    assert guardbit.functions("fast").where(function="expf")
    assert not guardbit.functions("fast").where(function="ex2.approx.f32")
    assert "ex2.approx.ftz.f32" in repr(guardbit.functions().where(operands=1, format="fp32"))


@pytest.mark.long
def test_no_copy_of_a_large_array(tmp_path):
    """Beside operand and result, 256 MiB each, a call takes little."""
    import sys

    program = """
import resource, numpy as np, guardbit
x = np.ones(1 << 26, np.float32)
guardbit.function("ex2.approx.ftz.f32", x[:1 << 16])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
d = guardbit.function("ex2.approx.ftz.f32", x)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    grown = float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
    assert grown < 256 + 32


def test_gelu_in_cublas_is_what_an_h200_gave(golden):
    torch = pytest.importorskip("torch")
    load_file = pytest.importorskip("safetensors.torch").load_file
    from guardbit.torch.encoder_layers import gelu_in_cublas

    recorded = load_file(golden / "operators/cublas_gelu.safetensors")
    x, y = recorded["x"], recorded["y"]
    assert torch.equal(gelu_in_cublas(x).view(torch.int32), y.view(torch.int32))
    # Others give other bits.
    for approximate in ("none", "tanh"):
        assert (torch.nn.functional.gelu(x, approximate=approximate) != y).float().mean() > 0.2
