"""matmul, conv and run against the command and against arithmetic that NumPy does exactly."""

import json
import subprocess
import time

import numpy as np
import pytest

import guardbit

ml_dtypes = pytest.importorskip("ml_dtypes")


def by_command(command, tmp_path, a, b, *options):
    for name, x in (("a", a), ("b", b)):
        np.save(tmp_path / f"{name}.npy", x)
    done = subprocess.run([command, "gemm", tmp_path / "a.npy", tmp_path / "b.npy", *options, "-o", tmp_path / "d.npy", "--json"],
                          capture_output=True, text=True, check=True)
    return np.load(tmp_path / "d.npy"), json.loads(done.stdout)


@pytest.mark.parametrize("arch", ["sm_70", "sm_90", "sm_100", "cdna3"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_equals_the_command(command, tmp_path, rng, arch, dtype):
    if arch == "sm_70" and dtype == np.float16:
        k = 36
    else:
        k = 100
    a = rng.standard_normal((33, k)).astype(dtype)
    b = rng.standard_normal((k, 17)).astype(dtype)
    expected, said = by_command(command, tmp_path, a, b, "--arch", arch)
    d = guardbit.matmul(a, b, arch=arch)
    assert d.dtype == dtype
    assert d.tobytes() == expected.tobytes()
    assert guardbit.plan_of(a, b, arch=arch) == said["plan"]["text"]


def test_plans_and_factors_equal_the_command(command, tmp_path, rng):
    a = rng.standard_normal((20, 300)).astype(np.float32)
    b = rng.standard_normal((300, 24)).astype(np.float32)
    plan = "simt/fma.fp32 split=4x8:ceil d=fp32"
    expected, _ = by_command(command, tmp_path, a, b, "--plan", plan, "--alpha", "0.3")
    assert guardbit.matmul(a, b, plan=plan, alpha=0.3).tobytes() == expected.tobytes()
    assert guardbit.matmul(a, b, plan=plan).tobytes() != expected.tobytes()


def test_an_fma_chain_is_one(rng):
    a = rng.standard_normal((3, 40)).astype(np.float32)
    b = rng.standard_normal((40, 5)).astype(np.float32)
    sums = np.zeros((3, 5), np.float32)
    for k in range(40):  # exact in FP64: a product of 24-bit numbers has 48 bits, and the sum is rounded once
        exact = a[:, k, None].astype(np.longdouble) * b[k].astype(np.longdouble) + sums
        sums = exact.astype(np.float32)
    assert np.array_equal(guardbit.matmul(a, b, arch="sm_90"), sums)


def test_small_integers_are_exact_in_every_format(rng):
    a = rng.integers(-3, 4, (8, 32))
    b = rng.integers(-3, 4, (32, 8))
    exact = a @ b
    for dtype in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.int8):
        d = guardbit.matmul(a.astype(dtype), b.astype(dtype), arch="sm_90", out_dtype="fp32" if dtype != np.int8 else "int32")
        assert np.array_equal(np.asarray(d, np.float64), exact), dtype


def test_shapes_are_those_of_numpy(rng):
    a = rng.integers(-3, 4, (2, 3, 5, 16)).astype(np.float16)
    b = rng.integers(-3, 4, (3, 16, 7)).astype(np.float16)
    for x, y in ((a, b), (a[0, 0], b[0]), (a[0], b[0]), (a[0, 0, 0], b[0]), (a, b[0, :, 0]), (a[0, 0, 0], b[0, :, 0]),
                 (a[:, :, ::2, ::2], b[:, ::2]), (a[0, 0].T[:, :5].T, b[0]), (a[0, 0, ::-1], b[0]), (a[:1], b)):
        d = guardbit.matmul(x, y)
        expected = np.matmul(x.astype(np.float64), y.astype(np.float64))
        assert d.shape == expected.shape
        assert np.array_equal(d, expected)


def test_c_and_bias_and_scales(rng):
    a = rng.integers(-3, 4, (4, 16)).astype(np.float16)
    b = rng.integers(-3, 4, (16, 6)).astype(np.float16)
    c = rng.integers(-3, 4, (4, 6)).astype(np.float16)
    bias = rng.integers(-3, 4, 6).astype(np.float16)
    exact = a.astype(np.float64) @ b
    assert np.array_equal(guardbit.matmul(a, b, c), exact + c)
    assert np.array_equal(guardbit.matmul(a, b, c, beta=2.0), exact + 2 * c)
    assert np.array_equal(guardbit.matmul(a, b, bias=bias), exact + bias)
    assert np.array_equal(guardbit.matmul(a, b, scale_a=2, scale_b=np.full(6, 0.5, np.float32)), exact)
    rows = np.array([1, 2, 4, 8], np.float32)
    assert np.array_equal(guardbit.matmul(a, b, scale_a=rows), exact * rows[:, None])


def test_out_is_written_in_place(rng):
    a = rng.standard_normal((4, 16)).astype(np.float16)
    out = np.zeros((4, 4), np.float16)
    d = guardbit.matmul(a, a.T, out=out)
    assert d is out
    assert np.array_equal(out, guardbit.matmul(a, a.T))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out: the array is read only"):
        guardbit.matmul(a, a.T, out=out)
    with pytest.raises(ValueError, match="out: is fp32 where the result is fp16"):
        guardbit.matmul(a, a.T, out=np.zeros((4, 4), np.float32))
    with pytest.raises(ValueError, match="row by row"):
        guardbit.matmul(a, a.T, out=np.zeros((4, 8), np.float16)[:, ::2])


@pytest.mark.parametrize("name", ["mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "nvfp4"])
def test_block_scales_go_through_the_instruction(rng, name):
    a, b = rng.standard_normal((20, 100)).astype(np.float32), rng.standard_normal((100, 30)).astype(np.float32)
    qa, qb = guardbit.quantize(a, name), guardbit.quantize(b, name, axis=0)
    d = guardbit.matmul(qa, qb, arch="sm_100")
    assert d.dtype == np.float32
    assert d.tobytes() == guardbit.matmul(qa, qb, arch="sm_120").tobytes()  # in tiles of 16 by 8
    exact = guardbit.dequantize(qa).astype(float) @ guardbit.dequantize(qb).astype(float)
    assert np.abs(d - exact).max() < 1e-6 * np.abs(exact).max()
    alpha = float(np.float32(qa.tensor_scale) * np.float32(qb.tensor_scale)) if name == "nvfp4" else 1.0
    assert guardbit.matmul(qa.codes, qb.codes, scale_a=qa.scales, scale_b=qb.scales, alpha=alpha).tobytes() == d.tobytes()
    half = guardbit.matmul(qa, qb, out_dtype="bf16")
    assert half.tobytes() == guardbit.cast(d, "bf16").tobytes()


def test_what_is_added_beside_block_scales(rng):
    a, b = rng.standard_normal((20, 96)).astype(np.float32), rng.standard_normal((96, 24)).astype(np.float32)
    qa, qb = guardbit.quantize(a, "mxfp8_e4m3"), guardbit.quantize(b, "mxfp8_e4m3", axis=0)
    c, bias = rng.standard_normal((20, 24)).astype(np.float32), rng.standard_normal(24).astype(np.float16)
    sums = guardbit.matmul(qa, qb)

    wide = np.longdouble  # takes a product of FP32 numbers exactly
    assert np.array_equal(guardbit.matmul(qa, qb, c), sums + c)
    assert np.array_equal(guardbit.matmul(qa, qb, bias=bias), sums + bias.astype(np.float32))
    assert np.array_equal(guardbit.matmul(qa, qb, alpha=0.3), sums * np.float32(0.3))
    with_c = (sums.astype(wide) * wide(np.float32(0.3)) + c * np.float32(1.7)).astype(np.float32)  # fma(alpha, sum, beta * c)
    assert np.array_equal(guardbit.matmul(qa, qb, c, alpha=0.3, beta=1.7), with_c)
    out = np.empty((20, 24), np.float16)
    assert guardbit.matmul(qa, qb, c, bias=bias, alpha=0.3, beta=1.7, out_dtype="fp16", out=out) is out
    assert np.array_equal(out, (with_c + bias.astype(np.float32)).astype(np.float16))
    words = [x.codes.view(np.uint8) for x in (qa, qb)]
    assert guardbit.matmul(*words, scale_a=qa.scales, scale_b=qb.scales, dtype="e4m3").tobytes() == sums.tobytes()


def test_block_scales_are_those_of_single_executions(rng):
    a, b = rng.standard_normal((16, 64)).astype(np.float32), rng.standard_normal((64, 8)).astype(np.float32)
    qa, qb = guardbit.quantize(a, "mxfp8_e4m3"), guardbit.quantize(b, "mxfp8_e4m3", axis=0)
    name = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"
    c = None
    for k in (0, 1):
        c = guardbit.run(name, qa.codes[:, 32 * k:32 * k + 32], qb.codes[32 * k:32 * k + 32], c, arch="sm_120",
                         a_scale=qa.scales[:, k:k + 1], b_scale=qb.scales[k:k + 1])
    assert guardbit.matmul(qa, qb, arch="sm_120").tobytes() == c.tobytes()


@pytest.mark.parametrize("name", ["mxfp8_e5m2", "mxfp6_e3m2", "nvfp4"])
def test_batches_and_vectors_beside_block_scales(rng, name):
    x, w = rng.standard_normal((2, 3, 5, 70)).astype(np.float32), rng.standard_normal((3, 9, 70)).astype(np.float32)
    qx, qw = guardbit.quantize(x, name), guardbit.quantize(w, name)

    def entry(q, index):
        return guardbit.Blocks(q.codes[index], q.scales[index], q.tensor_scale, name)

    c, bias = rng.standard_normal((3, 5, 9)).astype(np.float32), rng.standard_normal(9).astype(np.float32)
    d = guardbit.matmul(qx, qw.mT, c, bias=bias)
    assert d.shape == (2, 3, 5, 9)
    for g, h in np.ndindex(2, 3):
        assert d[g, h].tobytes() == guardbit.matmul(entry(qx, (g, h)), entry(qw, h).T, c[h], bias=bias).tobytes()
    # A weight that all entries share, and vectors.
    d = guardbit.matmul(qx, entry(qw, 0).T)
    assert d[1, 2].tobytes() == guardbit.matmul(entry(qx, (1, 2)), entry(qw, 0).T).tobytes()
    row, column = entry(qx, (1, 2, 4)), entry(qw, (0, 3))
    assert guardbit.matmul(row, entry(qw, 0).T).tobytes() == d[1, 2, 4].tobytes()
    assert guardbit.matmul(entry(qx, (1, 2)), column).tobytes() == d[1, 2, :, 3].tobytes()
    assert guardbit.matmul(row, column).tobytes() == d[1, 2, 4, 3].tobytes()
    out = np.empty((2, 3, 5, 9), np.float32)
    assert guardbit.matmul(qx, entry(qw, 0).mT, out=out) is out and out.tobytes() == d.tobytes()


def test_a_transposed_matrix_of_blocks_is_that_of_its_columns(rng):
    w = rng.standard_normal((24, 96)).astype(np.float32)
    rows, columns = guardbit.quantize(w, "nvfp4"), guardbit.quantize(np.ascontiguousarray(w.T), "nvfp4", axis=0)
    assert rows.T.axis == 0 and rows.T.T.axis == 1
    for x, y in ((rows.T.codes, columns.codes), (rows.T.scales, columns.scales)):
        assert np.shares_memory(x, rows.codes) or np.shares_memory(x, rows.scales)
        assert np.array_equal(x.view(np.uint8), y.view(np.uint8))
    assert np.array_equal(guardbit.dequantize(rows.T), guardbit.dequantize(columns))
    with pytest.raises(ValueError, match="is no matrix; mT transposes each of a stack"):
        _ = guardbit.quantize(np.ones((2, 3, 16), np.float32), "nvfp4").T


def engines_that_give(d, product):
    """Names of the engines that compute the product here; each must give d's bits."""
    names = set()
    for engine in guardbit.engines():
        try:
            assert product(engine).tobytes() == d.tobytes(), engine
            names.add(engine)
        except guardbit.Error as error:
            assert "does not execute" in str(error) or engine == "host", error
    return names


def test_block_scales_of_every_engine_and_thread(rng):
    half = rng.standard_normal((40, 320)).astype(np.float16)
    of_this_cpu = engines_that_give(guardbit.matmul(half, half.T), lambda engine: guardbit.matmul(half, half.T, engine=engine, threads=1))
    for name in ("mxfp8_e4m3", "mxfp4", "nvfp4"):
        q = guardbit.quantize((rng.standard_normal((40, 320)) * np.exp2(rng.integers(-30, 30, (40, 320)))).astype(np.float32), name)
        ran = engines_that_give(guardbit.matmul(q, q.T), lambda engine, q=q: guardbit.matmul(q, q.T, engine=engine, threads=1))
        # Every vector engine of this CPU takes block scales.
        assert ran >= of_this_cpu & {"avx512", "avx2", "neon", "reference"} and "reference" in ran, (name, ran, of_this_cpu)


def test_block_scales_are_as_fast_as_other_products(rng):
    x = rng.standard_normal((384, 384)).astype(np.float32)
    half, q = x.astype(np.float16), guardbit.quantize(x, "mxfp8_e4m3")

    def seconds(work):
        work()
        times = []
        for _ in range(3):
            begin = time.process_time()
            work()
            times.append(time.process_time() - begin)
        return min(times)

    try:
        guardbit.matmul(q, q.T, engine="avx2")
    except guardbit.Error:
        pytest.skip("this CPU has no kernel of products beside block scales")
    # 1 to 3 times as long; execution by execution took 400 times as long.
    assert seconds(lambda: guardbit.matmul(q, q.T, threads=1)) < 30 * seconds(lambda: guardbit.matmul(half, half.T, threads=1))


@pytest.mark.parametrize("call, text", [
    (lambda a, b, x: guardbit.matmul(a, x), "scale_b: b has no scales"),
    (lambda a, b, x: guardbit.matmul(a, a), "b: its blocks lie along axis -1"),
    (lambda a, b, x: guardbit.matmul(a, b, arch="sm_90"), "arch: no instruction of sm_90 multiplies e2m1 by e2m1"),
    (lambda a, b, x: guardbit.matmul(a, b, arch="nonsense"), "arch: unknown architecture 'nonsense' (valid: sm_70"),
    (lambda a, b, x: guardbit.matmul(a, b, arch="B200"), "arch: unknown architecture 'B200'; did you mean sm_100? (valid: sm_70"),
    (lambda a, b, x: guardbit.matmul(a, b, plan="simt/fma.fp32 d=fp32"), "plan: is not taken beside block scales, whose products are chains of"),
    (lambda a, b, x: guardbit.matmul(a, b, tf32=True), "(valid: arch, out_dtype, alpha, beta, c, bias, dtype, out)"),
    (lambda a, b, x: guardbit.matmul(a, b, x), "c: shape (16, 64) is not that of the product, (16, 16)"),
    (lambda a, b, x: guardbit.matmul(a, b, bias=x[0]), "bias: shape (64,) is not (16,), a number for each column"),
    (lambda a, b, x: guardbit.matmul(a, b, beta=2.0), "matmul: there is a beta, so c is needed"),
    (lambda a, b, x: guardbit.matmul(a, b, out=x), "out: has shape (16, 64) where the result has (16, 16)"),
    (lambda a, b, x: guardbit.matmul(a, b, out=x[:, :16].copy(), out_dtype="bf16"), "out: is fp32 where the result is bf16"),
    (lambda a, b, x: guardbit.matmul(a, b, scale_a=a.scales), "scale_a: a is of Blocks"),
    (lambda a, b, x: guardbit.matmul(a.codes, b.codes, scale_a=a.scales[:3], scale_b=b.scales), "scale_a: shape (3, 4) does not fit"),
    (lambda a, b, x: guardbit.matmul(a.codes, b.codes, scale_a=a.scales.reshape(-1), scale_b=b.scales), "scale_a: shape (64,) has not the dimensions of a, (16, 64)"),
    (lambda a, b, x: guardbit.matmul(guardbit.quantize(np.ones((2, 16, 64), np.float32), "nvfp4"), guardbit.quantize(np.ones((3, 16, 64), np.float32), "nvfp4").mT),
     "b: batches of (3,) do not fit those of a, (2,)"),
    (lambda a, b, x: guardbit.matmul(a, b.T), "b: its blocks lie along axis 1, and K is axis 0: quantize(..., axis=0)"),
    (lambda a, b, x: guardbit.matmul(x, x.T, bias=a), "bias: <nvfp4: elements (16, 64), scales (16, 4), tensor scale 0.000372024> has scales, which"),
    (lambda a, b, x: guardbit.plan_of(a, b), "a: <nvfp4: elements (16, 64)"),
    (lambda a, b, x: guardbit.matmul(a.codes, b.codes, scale_a=a.scales, scale_b=b.scales[:1]), "scale_b: (1, 16) scales in ue4m3 fit no block format"),
    (lambda a, b, x: guardbit.matmul(guardbit.quantize(x[:, :48], "nvfp4"), b), "b: is [64, 16] where A is [16, 48]"),
])
def test_wrong_block_scales(call, text):
    x = np.ones((16, 64), np.float32)
    with pytest.raises((ValueError, TypeError)) as raised:
        call(guardbit.quantize(x, "nvfp4"), guardbit.quantize(x.T, "nvfp4", axis=0), x)
    assert text in str(raised.value)


def test_conv_is_a_convolution(rng):
    x = rng.integers(-2, 3, (2, 6, 9, 8)).astype(np.float16)
    w = rng.integers(-2, 3, (4, 3, 3, 2)).astype(np.float16)
    d = guardbit.conv(x, w, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2, arch="sm_90")
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (0, 0)))
    expected = np.zeros(d.shape)
    for n, o, p, q in np.ndindex(*d.shape):
        window = padded[n, o // 2 * 3:o // 2 * 3 + 3, 2 * p:2 * p + 3, q:q + 3:2]
        expected[n, o, p, q] = (window * w[o]).sum()
    assert np.array_equal(d, expected)
    bias = np.arange(4, dtype=np.float16)
    plain = guardbit.conv(x[:, :3], w, arch="sm_90")
    assert np.array_equal(guardbit.conv(x[:, :3], w, bias, arch="sm_90"), plain + bias[:, None, None])
    assert np.array_equal(guardbit.conv(x[:, :3], w, padding="valid"), plain)
    w3 = rng.integers(-2, 3, (4, 6, 3, 5)).astype(np.float16)
    same = guardbit.conv(x, w3, padding="same", dilation=(2, 1))
    assert same.shape == (2, 4, 9, 8) and np.array_equal(same, guardbit.conv(x, w3, padding=(2, 2), dilation=(2, 1)))
    for options, text in (({"padding": "same", "stride": 2}, "padding: same needs a stride of 1"), ({"padding": "full"}, "padding: unknown word 'full'"),
                          ({"padding": "same"}, "padding: same needs filters of an odd size")):
        with pytest.raises(ValueError, match=text):
            guardbit.conv(x[:, :3], w, **options)
    # Of all groups, also where each has so many outputs that they are added row by row.
    x = rng.integers(-2, 3, (2, 8, 24, 23)).astype(np.float16)
    for groups, w in ((2, rng.integers(-2, 3, (4, 4, 3, 3))), (8, rng.integers(-2, 3, (8, 1, 2, 2))), (4, rng.integers(-2, 3, (64, 2, 1, 1)))):
        w, bias = w.astype(np.float16), rng.integers(-9, 9, len(w)).astype(np.float16)
        plain = guardbit.conv(x, w, groups=groups)
        assert np.array_equal(guardbit.conv(x, w, bias, groups=groups), plain + bias[:, None, None])
        assert np.array_equal(guardbit.conv(x, w, np.repeat(bias, 2)[::2], groups=groups), plain + bias[:, None, None])
    with pytest.raises(guardbit.Error, match="bias: is not one number for each of the 64 output channels"):
        guardbit.conv(x, w, bias[:4], groups=4)


def test_run_equals_a_recording(golden):
    file = golden / "mma.sync"
    paths = sorted(file.glob("*.safetensors"))
    assert paths
    found = guardbit.verify(paths[:4])
    assert found and found.outputs > 0
    a = np.ones((16, 16), np.float16)
    d = guardbit.run("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", a, np.ones((16, 8), np.float16), arch="sm_90")
    assert d.dtype == np.float32 and (d == 16).all()
    codes = guardbit.run("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", a.view(np.uint16), np.ones((16, 8), np.float16).view(np.uint16), arch="sm_90")
    assert np.array_equal(codes, d)


def test_engines_and_threads_change_no_bit(rng):
    a = rng.standard_normal((50, 200)).astype(np.float16)
    b = rng.standard_normal((200, 60)).astype(np.float16)
    d = guardbit.matmul(a, b, arch="sm_90", out_dtype="fp32")
    for engine in guardbit.engines():
        if engine in ("cpu", "host", "gpu"):
            continue
        try:
            assert guardbit.matmul(a, b, arch="sm_90", out_dtype="fp32", engine=engine, threads=1).tobytes() == d.tobytes()
        except guardbit.Error as error:
            assert "does not execute" in str(error)


@pytest.mark.parametrize("call, error, text", [
    (lambda a: guardbit.matmul(a, a), guardbit.Error, "b: is [64, 96] where A is [64, 96]: B needs 96 rows, A's K; B transposed?"),
    (lambda a: guardbit.matmul(a, a.T, arch="sm_91"), guardbit.Error, "arch: unknown architecture 'sm_91' (valid: sm_70"),
    (lambda a: guardbit.matmul(a, a.T, arch="H100"), guardbit.Error, "arch: unknown architecture 'H100'; did you mean sm_90? (valid: sm_70"),
    (lambda a: guardbit.matmul(a, a.T, arch="mi300x"), guardbit.Error, "arch: unknown architecture 'mi300x'; did you mean cdna3? ("),
    (lambda a: guardbit.matmul(a, a.T, arch="gfx90a"), guardbit.Error, "arch: unknown architecture 'gfx90a'; did you mean cdna2? ("),
    (lambda a: guardbit.matmul(a, a.T, arch="sm100a"), guardbit.Error, "arch: unknown architecture 'sm100a'; did you mean sm_100? ("),
    (lambda a: guardbit.matmul(a, a.T, arch="RTX"), guardbit.Error, "arch: unknown architecture 'RTX' (valid"),
    (lambda a: guardbit.matmul(a, a.T, ach="sm_90"), TypeError, "matmul: got an unexpected keyword argument 'ach'; it takes a, b, c, *, arch, plan,"),
    (lambda a: guardbit.matmul(a, a.T, arch="sm_90", plan="x"), ValueError, "plan: name one of arch, plan and like"),
    (lambda a: guardbit.matmul(a, a.T, plan="nonsense"), guardbit.Error, "plan: "),
    (lambda a: guardbit.matmul("x", a), TypeError, "a: arrays of <U1 are not taken"),
    (lambda a: guardbit.matmul(object(), a), TypeError, "a: arrays of object are not taken"),
    (lambda a: guardbit.matmul(a.astype(complex), a), TypeError, "a: arrays of complex128 are not taken"),
    (lambda a: guardbit.matmul(a, np.float16(1)), ValueError, "b: a scalar is no matrix"),
    (lambda a: guardbit.matmul(a[:0], a.T), guardbit.Error, "a: the array is empty"),
    (lambda a: guardbit.matmul(a, a.T, a), ValueError, "c: shape (64, 96) is not that of the product, (64, 64)"),
    (lambda a: guardbit.matmul(a, a.T, scale_a=np.ones(99, np.float32)), guardbit.Error, "scale_a: "),
    (lambda a: guardbit.matmul(a, a.T, beta=1.0), guardbit.Error, "matmul: there is a beta, so c is needed"),
    (lambda a: guardbit.matmul(a, a.T, tf32=True), guardbit.Error, "TF32 is for operands in fp32"),
    (lambda a: guardbit.matmul(a, a.T, engine="fast"), guardbit.Error, "engine: unknown engine 'fast'"),
    (lambda a: guardbit.matmul(np.zeros((2, 3, 4), np.float16), np.zeros((5, 4, 3), np.float16)), ValueError, "b: batches of (5,) do not fit those of a, (2,)"),
    (lambda a: guardbit.matmul(a.astype(np.int16), a.T.astype(np.int16)), guardbit.Error, "no matrix instruction of sm_90 multiplies int16 by int16"),
    (lambda a: guardbit.conv(a, a), guardbit.Error, "x: has not 4 dimensions"),
    (lambda a: guardbit.run("mma.sync.nonsense", a, a, arch="sm_90"), guardbit.Error, "run: "),
])
def test_wrong_input_has_one_clear_line(call, error, text):
    with pytest.raises(error) as raised:
        call(np.ones((64, 96), np.float16))
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)
