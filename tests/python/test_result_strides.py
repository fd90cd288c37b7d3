"""How results of pointwise operators lie: strides that an H200 gave them."""

import pytest

torch = pytest.importorskip("torch")
forms = pytest.importorskip("guardbit.torch.forms")

aten = torch.ops.aten


def meta(shape, stride, dtype=torch.float32):
    return torch.empty_strided(shape, stride, dtype=dtype, device="meta")


CASES = [
    # One operand is repeated, so that the other one says the order.
    (aten.div.Tensor, [((16, 3, 32), (0, 0, 0)), ((16, 3, 32), (96, 1, 3))], (96, 1, 3)),
    (aten.logical_xor.default, [((2, 248, 17), (4216, 0, 1)), ((2, 248, 17), (4216, 1, 248))], (4216, 1, 248)),
    (aten.sigmoid_backward.default, [((16, 18), (0, 1)), ((16, 18), (1, 16))], (1, 16)),
    # The first operand says it before the second one.
    (aten.copysign.Tensor, [((3, 2, 5, 100), (1, 15, 3, 30)), ((1, 1, 1, 1), (1, 1, 1, 1))], (1, 15, 3, 30)),
    (aten.copysign.Tensor, [((1, 73, 9), (1168, 16, 1)), ((1, 73, 9), (657, 1, 73))], (657, 9, 1)),
    (aten.floor_divide.default, [((7, 4, 2, 2), (48, 12, 6, 1)), ((7, 4, 2, 2), (8, 1, 56, 4))], (16, 4, 2, 1)),
    (aten.special_xlog1py.default, [((35, 17, 21, 8), (2856, 1, 136, 17)), ((35, 17, 21, 8), (168, 5880, 1, 21))], (2856, 1, 136, 17)),
    (aten.heaviside.default, [((52,), (1,)), ((6, 4, 52), (416, 1, 4))], (208, 1, 4)),
    # Gradients come before what they are the gradients of.
    (aten.elu_backward.default, [((16, 48, 2), (192, 2, 1)), 1.0, 1.0, 1.0, False, ((16, 48, 2), (96, 1, 48))], (96, 2, 1)),
    (aten.hardtanh_backward.default, [((11, 9, 1, 25), (225, 25, 25, 1)), ((11, 9, 1, 25), (9, 1, 2475, 99)), -0.3, 0.7], (225, 25, 225, 1)),
    # Neither rows nor channels together, but all alike and without gaps.
    (aten.add.Tensor, [((4, 3, 2), (1, 4, 12)), ((4, 3, 2), (1, 4, 12))], (1, 4, 12)),
    # Kernels that do not ask their operands.
    (aten.pow.Scalar, [10.0, ((1, 17, 2, 2, 17), (578, 2, 1, 578, 34))], (1156, 68, 34, 17, 1)),
    (aten.masked_fill.Scalar, [((3, 2, 192, 13), (4992, 1, 26, 2)), ((3, 2, 192, 13), (4992, 2496, 13, 1)), 0.0], (4992, 2496, 13, 1)),
    (aten.mse_loss_backward.default, [((), ()), ((19, 11), (1, 19)), ((19, 11), (11, 1)), 1], (11, 1)),
    (aten.binary_cross_entropy.default, [((129, 768), (2, 261)), ((129, 768), (0, 1)), ((129, 768), (1, 129)), 0], (1, 129)),
    (aten.hardtanh.default, [((1, 670, 1, 6), (4062, 6, 6, 1)), -1.0, 1.0], (4062, 6, 6, 1)),
]


@pytest.mark.parametrize("func, operands, strides", CASES, ids=lambda x: str(x) if isinstance(x, torch._ops.OpOverload) else "")
def test_results_lie_as_on_the_gpu(func, operands, strides):
    arguments = [meta(*x) if isinstance(x, tuple) else x for x in operands]
    if func is aten.masked_fill.Scalar:
        arguments[1] = arguments[1].to(torch.bool)
    assert forms.form_of(func, tuple(arguments), {}).stride() == strides
