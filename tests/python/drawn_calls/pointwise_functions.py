"""Functions of single numbers, and how each is called."""

from typing import Callable, NamedTuple

import torch
import torch.nn.functional as F

S = torch.special


class Unary(NamedTuple):
    function: Callable
    kind: str | None = None  # of its numbers
    types: str = "any"
    gradients: bool = True


class Binary(NamedTuple):
    function: Callable
    kind: str | None = None
    second_kind: str | None = None
    types: str = "any"
    numbers: bool = True  # its second operand may be one
    gradients: bool = True
    mixed: bool = True  # operands may be of two types
    of_first: bool = True  # it has a gradient for the first operand


def all_of(names, module=torch, of=Unary, prefix="", **how):
    return {prefix + name: of(getattr(module, name), **how) for name in names.split()}


UNARY = {
    **all_of("abs neg square exp exp2 expm1 sin cos tan atan sinh cosh tanh asinh erf erfc sigmoid sinc frac"),
    **all_of("sign sgn signbit floor ceil round trunc isnan isinf isfinite isposinf isneginf logical_not", gradients=False),
    **all_of("sqrt rsqrt reciprocal log log2 log10 log1p digamma lgamma", kind="positive"),
    **all_of("asin acos atanh erfinv", kind="unit"),
    "acosh": Unary(torch.acosh, "positive"), "nan_to_num": Unary(torch.nan_to_num), "deg2rad": Unary(torch.deg2rad), "rad2deg": Unary(torch.rad2deg),
    "angle": Unary(torch.angle), "logit": Unary(torch.logit, "fraction"), "logit_eps": Unary(lambda x: torch.logit(x, 0.05), "fraction"),
    "i0": Unary(torch.i0), "round_decimals": Unary(lambda x: torch.round(x, decimals=2), None, "wide", False),
    "polygamma1": Unary(lambda x: torch.polygamma(1, x), "positive"), "polygamma2": Unary(lambda x: torch.polygamma(2, x), "positive", "wide"),
    "mvlgamma": Unary(lambda x: torch.mvlgamma(x + 1.0, 2), "positive", "wide"), "frexp": Unary(torch.frexp, gradients=False), "clone": Unary(torch.clone),
    "positive": Unary(torch.positive),
    **all_of("i0e ndtr entr expit", S, prefix="special."), **all_of("i1 i1e erfcx log_ndtr", S, prefix="special.", types="wide"),
    "special.ndtri": Unary(S.ndtri, "fraction", "wide"),
    **all_of("bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 "
             "scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 airy_ai", S,
             prefix="special.", kind="positive", types="wide", gradients=False),
}
RARE_UNARY = [name for name in UNARY if name.startswith("special.") or name in ("i0", "polygamma2", "mvlgamma")]
USUAL_UNARY = [name for name in UNARY if name not in RARE_UNARY]

BINARY = {
    **all_of("add sub mul div rsub", of=Binary),
    "add_alpha": Binary(lambda x, y: torch.add(x, y, alpha=2)), "sub_alpha": Binary(lambda x, y: torch.sub(x, y, alpha=2)),
    "div_floor": Binary(lambda x, y: torch.div(x, y, rounding_mode="floor"), gradients=False),
    "div_trunc": Binary(lambda x, y: torch.div(x, y, rounding_mode="trunc"), gradients=False), "floor_divide": Binary(torch.floor_divide, gradients=False),
    "fmod": Binary(torch.fmod), "remainder": Binary(torch.remainder), "pow": Binary(torch.pow, "positive"), "pow_any": Binary(torch.pow, None, "small"),
    "float_power": Binary(torch.float_power, "positive"), "xlogy": Binary(torch.xlogy, None, "positive"), "xlog1py": Binary(S.xlog1py, None, "positive"),
    "copysign": Binary(torch.copysign),
    **all_of("eq ne lt le gt ge", of=Binary, gradients=False),
    **all_of("logical_and logical_or logical_xor", of=Binary, numbers=False, gradients=False),
    **all_of("atan2 maximum minimum fmax fmin logaddexp logaddexp2 hypot", of=Binary, numbers=False),
    "nextafter": Binary(torch.nextafter, types="not f16", numbers=False, gradients=False, mixed=False),
    "heaviside": Binary(torch.heaviside, "small", numbers=False, gradients=False, mixed=False),
    "zeta": Binary(S.zeta, "positive_wide", "positive", "wide", gradients=False),
    "igamma": Binary(torch.igamma, "positive", "positive", "wide", numbers=False, mixed=False, of_first=False),
    "igammac": Binary(torch.igammac, "positive", "positive", "wide", numbers=False, mixed=False, of_first=False),
    "chebyshev_t": Binary(S.chebyshev_polynomial_t, "unit", "positive", "wide", numbers=False, gradients=False, mixed=False),
}
RARE_BINARY = ["zeta", "igamma", "igammac", "chebyshev_t", "float_power"]
USUAL_BINARY = [name for name in BINARY if name not in RARE_BINARY]

# Operators of Python with a number.
WITH_A_NUMBER = {
    "op_pow_rev": lambda x, s: abs(s) ** x, "op_div_rev": lambda x, s: s / x, "op_sub_rev": lambda x, s: s - x, "op_sq": lambda x, s: x ** 2,
    "op_cube": lambda x, s: x ** 3, "op_root": lambda x, s: x ** 0.5, "op_inv": lambda x, s: x ** -1, "op_pow": lambda x, s: x ** s,
    "op_add": lambda x, s: x + s, "op_mul": lambda x, s: x * s, "op_div": lambda x, s: x / s, "op_rem": lambda x, s: x % abs(s),
    "op_floordiv": lambda x, s: x // abs(s),
}


# Activations: the function, and the parameters of which one is drawn.
ACTIVATIONS = {
    **{name: (getattr(F, name), None) for name in "relu relu6 selu silu mish softsign tanhshrink hardswish hardsigmoid logsigmoid gelu".split()},
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), None),
    "leaky_relu": (F.leaky_relu, [0.01, 0.2, 0.0, 1.5]), "elu": (F.elu, [1.0, 0.3, 1.7]), "celu": (F.celu, [1.0, 0.3, 1.7]),
    "softplus": (F.softplus, [(1, 20), (2.0, 5), (0.3, 20)]), "softshrink": (F.softshrink, [0.5, 0.1]), "hardshrink": (F.hardshrink, [0.5, 0.1]),
    "hardtanh": (F.hardtanh, [(-1.0, 1.0), (-0.3, 0.7)]), "threshold": (F.threshold, [(0.1, 20.0), (0.0, 0.0), (-0.5, -1.0)]),
    "rrelu_eval": (lambda x: F.rrelu(x, 0.1, 0.3, False), None),
}
