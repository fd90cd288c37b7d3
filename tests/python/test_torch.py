"""PyTorch's tensors in and out, against PyTorch's own conversions."""

import numpy as np
import pytest

import guardbit

torch = pytest.importorskip("torch")


def test_tensors_come_back_as_tensors(rng):
    a = torch.from_numpy(rng.standard_normal((8, 32)).astype(np.float32)).bfloat16()
    b = torch.from_numpy(rng.standard_normal((32, 4)).astype(np.float32)).bfloat16()
    d = guardbit.matmul(a, b, arch="sm_90")
    assert d.dtype == torch.bfloat16 and d.shape == (8, 4)
    assert torch.equal(d, guardbit.matmul(a.T.contiguous().T, b, arch="sm_90"))
    assert torch.equal(d, guardbit.matmul(a.requires_grad_(), b, arch="sm_90"))
    wide = guardbit.matmul(a, b, out_dtype=torch.float32)
    assert torch.allclose(wide, a.detach().float() @ b.float(), rtol=1e-5, atol=1e-5)


def test_results_are_written_to_tensors(rng):
    a = torch.from_numpy(rng.standard_normal((8, 32)).astype(np.float32)).bfloat16()
    out = torch.zeros(8, 8, dtype=torch.bfloat16)
    assert guardbit.matmul(a, a.T, out=out) is out
    assert torch.equal(out, guardbit.matmul(a, a.T))
    eights = torch.zeros(8, 32, dtype=torch.float8_e4m3fn)
    assert guardbit.cast(a, "e4m3", out=eights) is eights
    assert torch.equal(eights.view(torch.uint8), a.to(torch.float8_e4m3fn).view(torch.uint8))
    for wrong, text in ((torch.zeros(8, 8), "out: is fp32 where the result is bf16"), (out[:4], r"out: has shape \(4, 8\) where the result has \(8, 8\)"),
                        (torch.zeros(8, 16, dtype=torch.bfloat16)[:, ::2], "out: does not lie row by row")):
        with pytest.raises(ValueError, match=text):
            guardbit.matmul(a, a.T, out=wrong)
    with pytest.raises(TypeError, match="out: the tensor is on meta"):
        guardbit.matmul(a, a.T, out=torch.zeros(8, 8, dtype=torch.bfloat16, device="meta"))


def test_quantized_weights_are_transposed(rng):
    x, w = (torch.from_numpy(rng.standard_normal(shape).astype(np.float32)) for shape in ((4, 64), (6, 64)))
    qx, qw = guardbit.quantize(x, "nvfp4"), guardbit.quantize(w, "nvfp4")
    d = guardbit.matmul(qx, qw.T, out_dtype=torch.bfloat16)
    assert d.dtype == torch.bfloat16 and torch.equal(d, guardbit.matmul(qx, guardbit.quantize(w.T.contiguous(), "nvfp4", axis=0), out_dtype="bf16"))
    # As torch._scaled_mm has it: pairs of codes, the factors of the tensors in alpha.
    as_scaled = guardbit.matmul(qx.codes, qw.codes.T, scale_a=qx.scales, scale_b=qw.scales.T, alpha=qx.tensor_scale * qw.tensor_scale, out_dtype="bf16")
    assert torch.equal(d, as_scaled)
    assert torch.equal(guardbit.dequantize(*qw), guardbit.dequantize(qw))
    with pytest.raises(ValueError, match="bytes of two elements are of the type torch.float4_e2m1fn_x2"):
        guardbit.matmul(qx.codes.view(torch.uint8), qw.codes.view(torch.uint8).T, scale_a=qx.scales, scale_b=qw.scales.T, dtype="e2m1")


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16, torch.float16])
def test_cast_equals_torch(rng, dtype):
    # Within the range of all: past it PyTorch 2.15 clamps to E4M3's largest number, where releases up to 2.11 give NaN.
    x = torch.from_numpy((rng.uniform(-1, 1, 4000) * 10.0 ** rng.integers(-6, 3, 4000)).astype(np.float32).clip(-448, 448))
    ours = guardbit.cast(x, dtype, converter="torch")
    assert ours.dtype == dtype
    assert torch.equal(ours.view(torch.uint8), x.to(dtype).view(torch.uint8))


def test_nvfp4_is_packed_as_torch_has_it(rng):
    x = torch.from_numpy(rng.standard_normal((16, 64)).astype(np.float32))
    codes, scales, tensor_scale = blocks = guardbit.quantize(x, "nvfp4")
    assert codes.dtype == torch.float4_e2m1fn_x2 and codes.shape == (16, 32)
    assert scales.dtype == torch.float8_e4m3fn and scales.shape == (16, 4)
    numbers = guardbit.dequantize(blocks)
    assert isinstance(numbers, torch.Tensor) and (numbers - x).abs().max() < 0.6
    assert torch.equal(guardbit.dequantize(codes, scales, tensor_scale, format="nvfp4"), numbers)


def test_flushed_subnormals_change_nothing(rng):
    a = torch.from_numpy((rng.standard_normal((16, 40)) * 1e-39).astype(np.float32))
    b = torch.from_numpy(rng.standard_normal((40, 8)).astype(np.float32))
    expected = guardbit.matmul(a, b, arch="sm_90")
    small = guardbit.cast(a, "bf16")
    assert (expected.numpy().view(np.uint32) & 0x7F800000 == 0).any()
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU does not flush subnormal numbers")
    try:
        assert guardbit.matmul(a, b, arch="sm_90").numpy().tobytes() == expected.numpy().tobytes()
        assert torch.equal(guardbit.cast(a, "bf16").view(torch.int16), small.view(torch.int16))
        assert float(torch.tensor(1e-39) * 1) == 0  # still in force
    finally:
        torch.set_flush_denormal(False)


def test_probe_of_a_torch_function():
    found = guardbit.probe(lambda a, b: a.float().bmm(b.float()), a="bf16", d="fp32", k=1, library="torch")
    assert found.a == "bf16"


def test_subclasses_of_tensors_are_tensors():
    class Own(torch.Tensor):
        pass

    for x in (torch.ones(4, 4).as_subclass(Own), torch.nn.Parameter(torch.ones(4, 4))):
        assert isinstance(guardbit.cast(x, "bf16"), torch.Tensor) and isinstance(guardbit.matmul(x, x), torch.Tensor)


def test_wrong_tensors():
    with pytest.raises(TypeError, match="only dense tensors"):
        guardbit.cast(torch.eye(3).to_sparse(), "e4m3")
    with pytest.raises(TypeError, match="complex"):
        guardbit.cast(torch.ones(3, dtype=torch.complex64), "e4m3")
    with pytest.raises(TypeError, match="^x: PyTorch gives no numbers of this tensor: .*meta"):
        guardbit.cast(torch.ones(3, device="meta"), "e4m3")
    with pytest.raises(TypeError, match="^x: PyTorch gives no numbers of this tensor: "):
        torch.func.vmap(lambda x: guardbit.cast(x, "e4m3"))(torch.ones(3, 3))


def test_transposed_pairs_of_nvfp4(rng):
    pytest.importorskip("ml_dtypes")  # NumPy's bf16
    x = torch.from_numpy(rng.standard_normal((16, 64)).astype(np.float32))
    codes, scales, tensor_scale = guardbit.quantize(x, "nvfp4")
    whole = guardbit.dequantize(codes, scales, tensor_scale, format="nvfp4")
    turned = guardbit.dequantize(codes.t(), scales.t(), tensor_scale, format="nvfp4", axis=0)
    assert torch.equal(turned, whole.t())
    # As torch._scaled_mm has it: both operands with K along their rows, the second transposed.
    d = guardbit.matmul(codes, codes.t(), scale_a=scales, scale_b=scales.t(), arch="sm_100", out_dtype=torch.bfloat16)
    assert d.dtype == torch.bfloat16 and d.shape == (16, 16)
    blocks, columns = guardbit.quantize(x.numpy(), "nvfp4"), guardbit.quantize(x.numpy().T, "nvfp4", axis=0)
    expected = guardbit.matmul(blocks.codes, columns.codes, scale_a=blocks.scales, scale_b=columns.scales, out_dtype="bf16")
    assert d.view(torch.int16).numpy().tobytes() == expected.tobytes()
