"""cast, quantize and dequantize against ml_dtypes and the command."""

import json
import subprocess

import numpy as np
import pytest

import guardbit

ml_dtypes = pytest.importorskip("ml_dtypes")


@pytest.mark.parametrize("name, dtype", [("e4m3", ml_dtypes.float8_e4m3fn), ("e5m2", ml_dtypes.float8_e5m2),
                                         ("bf16", ml_dtypes.bfloat16), ("e2m1", ml_dtypes.float4_e2m1fn),
                                         ("fp16", np.float16)])
def test_cast_of_all_fp16_codes_equals_ml_dtypes(name, dtype):
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    ours = guardbit.cast(x, name, converter="ml_dtypes") if name != "fp16" else guardbit.cast(x.astype(np.float32), name)
    assert ours.dtype == dtype
    numbers = ~np.isnan(x)
    with np.errstate(all="ignore"):
        assert np.array_equal(ours[numbers].view(np.uint8), x.astype(dtype)[numbers].view(np.uint8))


def test_options_and_the_summary(rng):
    x = rng.standard_normal(1000).astype(np.float32)
    down = guardbit.cast(x, "bf16", rounding="downward").astype(np.float64)
    up = guardbit.cast(x, "bf16", rounding="upward").astype(np.float64)
    assert (down <= x).all() and (up >= x).all() and (down < up).any()
    again = [guardbit.cast(x, "e4m3", rounding="stochastic", seed=5, threads=t).tobytes() for t in (1, 2)]
    assert again[0] == again[1] != guardbit.cast(x, "e4m3", rounding="stochastic", seed=6).tobytes()
    d, counts = guardbit.cast(x, "e4m3", scale=1024, overflow="saturate", summary=True)
    assert counts["elements"] == 1000 and counts["saturated"] == int((np.abs(x) * 1024 > 464).sum())
    assert np.isnan(guardbit.cast(np.float32([1e9]), "e4m3", converter="torch").astype(np.float32)).all()
    assert guardbit.cast(np.float32([1e9]), "e4m3", converter="cvt").astype(np.float32) == 448


def test_transposed_arrays_are_read_where_they_lie(rng):
    x = rng.standard_normal((6, 5, 4)).astype(np.float32)
    for axes in ((0, 2, 1), (2, 0, 1), (2, 1, 0)):
        y = x.transpose(axes)
        for options in ({}, {"rounding": "stochastic", "seed": 3}, {"converter": "cvt.rs.satfinite", "seed": 3}, {"summary": True}):
            found, expected = guardbit.cast(y, "e5m2", **options), guardbit.cast(np.ascontiguousarray(y), "e5m2", **options)
            if "summary" in options:
                assert found[1] == expected[1]
                found, expected = found[0], expected[0]
            assert found.shape == y.shape and found.tobytes() == expected.tobytes(), (axes, options)
        assert guardbit.cast(y, "e4m3").strides == tuple(stride // 4 for stride in y.strides)
        assert guardbit.function("expf", y).tobytes() == guardbit.function("expf", np.ascontiguousarray(y)).tobytes()
        both = guardbit.function("powf", y, np.ascontiguousarray(y))
        assert both.tobytes() == guardbit.function("powf", y, y).tobytes() == guardbit.function("powf", np.ascontiguousarray(y), y).tobytes()
    codes = guardbit.cast(x.T, "e5m6")
    assert codes.shape == x.T.shape and np.array_equal(codes.numpy(), guardbit.cast(x, "e5m6").numpy().T)


def test_formats_without_a_type_come_as_codes(rng):
    x = rng.standard_normal((4, 5)).astype(np.float32)
    codes = guardbit.cast(x, "e5m6")
    assert isinstance(codes, guardbit.Codes) and codes.format == "e5m6" and codes.shape == (4, 5)
    back = guardbit.cast(codes, "fp32")
    assert np.array_equal(back, codes.numpy()) and np.array_equal(np.asarray(codes), back)
    assert np.abs(back - x).max() < 0.02 * np.abs(x).max()
    assert np.array_equal(guardbit.cast(codes.T[1:], np.float32), back.T[1:])
    assert "format='e5m6'" in repr(codes)
    with pytest.raises(TypeError, match="no unsigned word of 2 bytes"):
        guardbit.Codes(np.zeros(3, np.uint8), "e5m6")


def test_integers_as_codes(rng):
    x = rng.standard_normal(100).astype(np.float32)
    e4m3 = guardbit.cast(x, "e4m3")
    assert np.array_equal(guardbit.cast(e4m3.view(np.uint8), "fp32", dtype="e4m3"), e4m3.astype(np.float32))


@pytest.mark.parametrize("name", ["mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "mxint8", "nvfp4"])
@pytest.mark.parametrize("axis", [-1, 0])
def test_quantize_equals_the_command(command, tmp_path, rng, name, axis):
    x = (rng.standard_normal((64, 96)) * 10).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    subprocess.run([command, "cast", tmp_path / "x.npy", "--to", name, "--axis", str(axis), "-o", tmp_path / "q.npz"], check=True,
                   capture_output=True)
    expected = np.load(tmp_path / "q.npz")
    blocks = guardbit.quantize(x, name, axis=axis)
    codes, scales, tensor_scale = blocks
    names = sorted(expected.files, key=len)
    assert np.array_equal(np.asarray(codes.view(np.uint8)), expected[names[0]].view(np.uint8))
    assert np.array_equal(np.asarray(scales.view(np.uint8)), expected[names[1]].view(np.uint8))
    if name == "nvfp4":
        assert np.float32(tensor_scale) == expected[names[2]].reshape(())
    else:
        assert tensor_scale is None
    subprocess.run([command, "cast", tmp_path / "q.npz", "--from", name, "--to", "fp32", "--axis", str(axis), "-o", tmp_path / "y.npy"],
                   check=True, capture_output=True)
    numbers = np.load(tmp_path / "y.npy")
    assert np.array_equal(guardbit.dequantize(blocks), numbers)
    assert np.array_equal(guardbit.dequantize(codes, scales, tensor_scale, format=name, axis=axis), numbers)
    assert np.array_equal(guardbit.dequantize(codes, scales, tensor_scale, axis=axis), numbers)  # the types say the format


def test_load_reads_what_was_written(tmp_path, rng, golden):
    arrays = {"x": rng.standard_normal((3, 4)).astype(np.float32), "y": np.arange(5, dtype=np.int8)}
    np.savez(tmp_path / "a.npz", **arrays)
    found = guardbit.load(tmp_path / "a.npz")
    assert list(found) == ["x", "y"] and all(np.array_equal(found[name], x) for name, x in arrays.items())
    e4m3 = guardbit.cast(arrays["x"], "e4m3")
    np.save(tmp_path / "b.npy", e4m3.view(np.uint8))
    (again,) = guardbit.load(tmp_path / "b.npy", dtype="e4m3").values()
    assert again.dtype == ml_dtypes.float8_e4m3fn and again.tobytes() == e4m3.tobytes()
    capture = guardbit.load(golden / "gemm" / "mm_fp32_33x17x100.safetensors")
    assert capture["a"].shape == (33, 100) and capture.metadata["arch"] == "sm_90"
    with pytest.raises(guardbit.Error, match="nothing.npy: cannot be read"):
        guardbit.load("nothing.npy")
    with pytest.raises(TypeError, match="path: int is no path"):
        guardbit.load(3)


def test_the_catalogue(command):
    listed = json.loads(subprocess.run([command, "list", "--arch", "sm_90", "--json"], capture_output=True, check=True).stdout)
    assert guardbit.instructions("sm_90") == listed["instructions"] == guardbit.instructions("sm_90a")
    for table in (guardbit.formats(), guardbit.instructions(), guardbit.machines(), guardbit.plans()):
        assert set(table.columns) <= set(table[0]), table.columns
    assert {"e4m3", "nvfp4"} <= {f.name for f in guardbit.formats()}
    assert "<table>" in guardbit.formats()._repr_html_()
    assert [m.arch for m in guardbit.machines()][0] == "sm_70"
    assert guardbit.plans().where(library="cublas-13")
    with pytest.raises(ValueError, match="no column"):
        guardbit.formats().where(nonsense=1)


@pytest.mark.parametrize("call, error, text", [
    (lambda x: guardbit.cast(x, "e9x"), guardbit.Error, "to: unknown format 'e9x'"),
    (lambda x: guardbit.cast(x, "nvfp4"), guardbit.Error, "is a block format"),
    (lambda x: guardbit.cast(x, "e4m3", rounding="odd"), guardbit.Error, "rounding: unknown rounding 'odd'"),
    (lambda x: guardbit.cast(x, "e4m3", converter="nobody"), guardbit.Error, "converter: unknown converter 'nobody' of e4m3 (valid: cvt.rn.satfinite,"),
    (lambda x: guardbit.cast(x, "e2m1", converter="torch"), guardbit.Error, "converter: unknown converter 'torch' of e2m1 (valid: "),
    (lambda x: guardbit.cast(x, "e4m3", overflow="nobody"), guardbit.Error, "overflow: unknown overflow rule 'nobody' (valid: ieee, saturate,"),
    (lambda x: guardbit.cast(x, "e4m3", saturate=True), TypeError, "cast: got an unexpected keyword argument 'saturate'; it takes x, to, *, rounding,"),
    (lambda x: guardbit.cast(x, "e4m3", converter="torch", overflow="ieee"), ValueError, "name one of overflow and converter"),
    (lambda x: guardbit.cast(x, "e4m3", scale=float("inf")), guardbit.Error, "scale: "),
    (lambda x: guardbit.cast(x, "e4m3", seed=-1), ValueError, "seed: -1 is out of range"),
    (lambda x: guardbit.cast(x, 7), TypeError, "to: int is no dtype"),
    (lambda x: guardbit.cast(x, "e4m3", out=[1]), TypeError, "out: list is no NumPy array and no tensor of PyTorch"),
    (lambda x: guardbit.cast(None, "e4m3"), TypeError, "x: arrays of object"),
    (lambda x: guardbit.cast(x.astype(np.longdouble), "e4m3"), TypeError, "x: arrays of float128 are not taken"),
    (lambda x: guardbit.cast(np.zeros(2, "V3"), "e4m3"), TypeError, "x: arrays of |V3 are not taken"),
    (lambda x: guardbit.quantize(x, "e4m3"), guardbit.Error, "'e4m3' is no block format (valid: mxfp8_e4m3"),
    (lambda x: guardbit.quantize(x, "nvfp4", axis=5), guardbit.Error, "no axis 5"),
    (lambda x: guardbit.quantize(x.astype(np.float64), "nvfp4"), guardbit.Error, "x: is fp64, which FP32 does not hold"),
    (lambda x: guardbit.dequantize(x), ValueError, "dequantize: needs codes and scales, or what quantize returned"),
    (lambda x: guardbit.dequantize(x, x), ValueError, "format: no block format has elements in fp32 and scales in fp32; name it (valid: mxfp8_e4m3,"),
    (lambda x: guardbit.cast(guardbit.quantize(x, "mxfp4"), "fp16"), TypeError, "x: <mxfp4: elements (64, 96), scales (64, 3)> has scales, which are taken by"),
    (lambda x: guardbit.instructions("H200"), guardbit.Error, "arch: unknown architecture 'H200'; did you mean sm_90? ("),
])
def test_wrong_input_has_one_clear_line(call, error, text):
    with pytest.raises(error) as raised:
        call(np.ones((64, 96), np.float32))
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)
