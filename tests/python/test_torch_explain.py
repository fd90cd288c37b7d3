"""guardbit.torch.explain: errors of a model's operators that are known by other means."""

import json

import pytest

import guardbit

torch = pytest.importorskip("torch")
import guardbit.torch  # noqa: E402


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(64, 32)
        self.rest = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(32, 4))

    def forward(self, x, factor=1.0):
        return self.rest(self.first(x)) * factor


def test_errors_are_those_of_the_operators_alone():
    torch.manual_seed(0)
    model, x = Model(), torch.randn(50, 64)
    found = guardbit.torch.explain(model, x)
    assert [(call.layer, call.operator) for call in found.calls] == [("first", "addmm"), ("rest.0", "relu"), ("rest.1", "addmm"), ("", "mul.Tensor")]
    with torch.no_grad():
        y = model.first(x)
        exact = torch.nn.functional.linear(x.double(), model.first.weight.double(), model.first.bias.double())
    call = found.calls[0]
    assert call.shape == [50, 32] and call.type == "float32"
    assert call.relative == pytest.approx(float((y - exact).norm() / exact.norm()), rel=1e-12)
    assert call.rounded == pytest.approx(float((y == exact.float()).double().mean()), rel=1e-12)
    assert found.calls[1].relative == 0 and found.calls[1].ulps == 0 and found.calls[1].rounded == 1
    assert found.worst.operator == "addmm" and found.operators[0].operator == "addmm" and found.operators[0].calls == 2
    assert json.loads(json.dumps(found.to_dict()))["worst"]["layer"] == found.worst.layer
    assert "addmm in " in str(found) and "loses most" in str(found)


def test_one_rounding_is_half_an_ulp():
    x = torch.linspace(-3, 3, 1001)
    found = guardbit.torch.explain(lambda x: x.bfloat16() * 1, x)
    cast = found.calls[0]
    assert cast.operator == "_to_copy" and cast.rounded == 1 and 0.49 < cast.ulps <= 0.5 and cast.roundings == 1 and 1e-3 < cast.relative < 2**-8
    assert found.calls[1].relative == 0


def test_subnormal_numbers_count_in_their_own_ulps():
    found = guardbit.torch.explain(lambda x: x.half(), torch.tensor([3.25 * 2**-24, 2**-25 * 1.5]))
    assert found.calls[0].ulps == 0.25


def test_inputs_by_name_and_backward():
    found = guardbit.torch.explain(Model(), {"x": torch.randn(5, 64), "factor": 2.0}, loss=lambda y: y.square().sum())
    layers = [call.layer for call in found.calls]
    assert "loss" in layers and sum(call.layer == "backward" and call.operator == "mm" for call in found.calls) == 3


def test_what_draws_has_no_exact_result():
    found = guardbit.torch.explain(torch.nn.Dropout(0.5), torch.ones(100))
    assert sum(found.without_exact.values()) == 1 and found.without_exact.keys() <= {"bernoulli_.float", "native_dropout"}


def test_a_unit_that_keeps_fewer_bits_loses_more():
    torch.manual_seed(0)
    model, x = torch.nn.Linear(4096, 16, bias=False), torch.randn(16, 4096)
    plain = guardbit.torch.explain(model.half(), x.half()).worst.relative
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        with guardbit.torch.machine("sm_90"):
            found = guardbit.torch.explain(model.float(), x).worst
            cut = found.relative
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    with guardbit.torch.machine("sm_90"):
        whole = guardbit.torch.explain(model, x).worst.relative
    assert found.roundings > 1000
    assert whole < 2e-6 < 1e-4 < cut < plain * 4


def test_attention_is_compared_with_the_written_out_one():
    q = torch.randn(1, 2, 6, 8)
    found = guardbit.torch.explain(lambda q: torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True), q)
    assert found.worst is not None and found.worst.relative < 1e-6 and found.worst.rounded > 0.2
