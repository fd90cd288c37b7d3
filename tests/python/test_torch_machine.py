"""Models on the units of a machine (guardbit.torch.machine), against the package's products and PyTorch in FP64."""

import itertools

import pytest

import guardbit

torch = pytest.importorskip("torch")
import guardbit.torch  # noqa: E402

F = torch.nn.functional


def test_products_are_those_of_the_machine():
    torch.manual_seed(0)
    for arch, dtype in itertools.product(("sm_80", "sm_90", "sm_100", "cdna3"), (torch.bfloat16, torch.float16, torch.float32)):
        a, b, c = torch.randn(9, 70).to(dtype), torch.randn(70, 12).to(dtype), torch.randn(12).to(dtype)
        with guardbit.torch.machine(arch) as machine:
            mm, addmm, bmm, mv = a @ b, torch.addmm(c, a, b, beta=0.5, alpha=3), torch.bmm(torch.stack([a, a]), torch.stack([b, b])), a @ b[:, 0]
        assert machine.calls == 4
        expected = guardbit.matmul(a, b, arch=arch)
        assert torch.equal(mm, expected) and torch.equal(bmm, torch.stack([expected, expected])) and torch.equal(mv, expected[:, 0])
        assert torch.equal(addmm, guardbit.matmul(a, b, c.expand(9, 12).contiguous(), arch=arch, alpha=3.0, beta=0.5))
        assert addmm.dtype == dtype


def test_machines_differ_where_their_units_do():
    torch.manual_seed(0)
    a, b = torch.randn(64, 512).half(), torch.randn(512, 64).half()
    results = []
    for arch in ("sm_70", "sm_80", "sm_100"):
        with guardbit.torch.machine(arch):
            results.append(a.float().to(torch.float16) @ b)
    assert not torch.equal(results[0], results[1]) and not torch.equal(results[1], results[2])


def test_plans_may_be_given():
    a, b = torch.randn(8, 64), torch.randn(64, 8)
    plan = "simt/fma.fp32 split=2x2:ceil d=fp32"
    with guardbit.torch.machine("sm_90", plans={"fp32": plan}):
        d = a @ b
    assert torch.equal(d, guardbit.matmul(a, b, plan=plan)) and not torch.equal(d, guardbit.matmul(a, b, arch="sm_90"))


def test_tf32_follows_the_settings():
    a, b = torch.randn(8, 64), torch.randn(64, 8)
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        with guardbit.torch.machine("sm_90"):
            d = a @ b
        with guardbit.torch.machine("sm_70"):
            without = a @ b
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    assert torch.equal(d, guardbit.matmul(a, b, arch="sm_90", tf32=True))
    assert torch.equal(without, guardbit.matmul(a, b, arch="sm_70"))


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_convolutions_are_products_with_channels_innermost(half):
    x, weight = torch.randn(2, 6, 9, 8).to(half), torch.randn(4, 3, 3, 2).to(half)
    steps = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2}
    with guardbit.torch.machine("sm_100"):
        y = F.conv2d(x, weight, **steps)
    assert torch.equal(y, guardbit.conv(x, weight, arch="sm_100", **steps))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolutions_and_their_gradients_are_right(dims, transposed):
    for groups in (1, 2):
        x = torch.randn(2, 4, *[7, 6, 5][:dims], dtype=torch.float64, requires_grad=True)
        sizes = (4, 6 // groups) if transposed else (6, 4 // groups)
        weight = torch.randn(*sizes, *[3, 2, 2][:dims], dtype=torch.float64, requires_grad=True)
        bias = torch.randn(6, dtype=torch.float64, requires_grad=True)
        function = getattr(F, f"conv_transpose{dims}d" if transposed else f"conv{dims}d")
        steps = {"stride": 2, "padding": 1, "dilation": 2, "groups": groups, **({"output_padding": 1} if transposed else {})}
        y = function(x, weight, bias, **steps)
        g = torch.randn_like(y)
        expected = (y, *torch.autograd.grad(y, (x, weight, bias), g))
        with guardbit.torch.machine("sm_90") as machine:
            y = function(x, weight, bias, **steps)
            found = (y, *torch.autograd.grad(y, (x, weight, bias), g))
        assert machine.calls == 2
        for a, b in zip(found, expected):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": torch.ones(5, 5, dtype=torch.bool).triu()},
                                     {"attn_mask": torch.arange(25.0, dtype=torch.float64).reshape(5, 5), "scale": 0.1}])
def test_attention_is_written_out(mode, options):
    with mode():
        q, k, v = torch.randn(3, 2, 4, 5, 8, dtype=torch.float64).unbind()
        with guardbit.torch.machine("sm_90") as machine:
            found = F.scaled_dot_product_attention(q, k, v, **options)
        assert machine.calls == 2
        torch.testing.assert_close(found, F.scaled_dot_product_attention(q, k, v, **options))
        with guardbit.torch.machine("sm_90"):
            grouped = F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)
        torch.testing.assert_close(grouped, F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True))


def test_layers_come_as_their_products():
    for layer, x in ((torch.nn.LSTM(8, 16), torch.randn(5, 2, 8)), (torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval(), torch.randn(2, 5, 16))):
        for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
            with mode(), guardbit.torch.machine("sm_90") as machine:
                layer(x)
            assert machine.calls == 6


def test_autocast_casts_what_it_casts_on_cuda():
    def types():
        y = torch.randn(4, 4) @ torch.randn(4, 4)
        return [x.dtype for x in (y, y.softmax(-1), y.exp(), y.sum(), F.layer_norm(y, (4,)), y.relu(), y**2, y.cumsum(0), F.mse_loss(y, y))]

    with guardbit.torch.machine("sm_90"):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            on_cuda = types()
            with pytest.raises(RuntimeError, match="unsafe to autocast"):
                F.binary_cross_entropy(torch.rand(3), torch.rand(3))
        with torch.autocast("cuda"):
            assert (torch.randn(4, 4) @ torch.randn(4, 4)).dtype == torch.float16
    with torch.autocast("cpu", dtype=torch.bfloat16):
        on_cpu = types()
    wide, half = torch.float32, torch.bfloat16
    assert on_cuda == [half, wide, wide, wide, wide, half, wide, wide, wide]
    assert on_cpu == [half, half, half, half, half, half, half, half, wide]


def test_it_is_said_once_that_no_library_is_meant(capfd):
    for _ in range(2):
        with guardbit.torch.machine("sm_86"):
            torch.ones(2, 2) @ torch.ones(2, 2)
    assert capfd.readouterr().err.count("guardbit.torch: sm_86: ") == 1


@pytest.mark.parametrize("arguments, told", [(("sm_99",), "sm_99"), (("sm_90", {"fp12": "x"}), "plans: 'fp12'")])
def test_bad_arguments_are_refused(arguments, told):
    with pytest.raises(ValueError, match=told):
        guardbit.torch.machine(*arguments)
    with pytest.raises(TypeError, match="arch: is a word, not int"):
        guardbit.torch.machine(90)
    with pytest.raises(TypeError, match="plans: is a dict of plans by format, not str"):
        guardbit.torch.machine("sm_90", "x")
