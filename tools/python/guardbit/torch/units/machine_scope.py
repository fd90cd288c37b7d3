"""Products, convolutions and attention of a model as the units of a machine would compute them."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ... import _core
from ...products import matmul
from ..recording.facts import taken_apart
from .autocast import CudaRules
from .convolutions import Convolution

FORMATS = {torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
_announced: set[str] = set()


def attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, *,
              scale: float | None = None, enable_gqa: bool = False) -> Any:
    """Written out: two products with a softmax between them, each result in the operands' type."""
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    scores = (query @ key.transpose(-2, -1)) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(attn_mask.logical_not(), -math.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    chances = torch.softmax(scores, -1)
    if dropout_p:
        chances = torch.dropout(chances, dropout_p, True)
    return chances @ value


class Machine(TorchDispatchMode):
    """`with machine(...)`: in the scope, below autograd and autocast."""

    def __init__(self, arch: str, plans: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.arch, self.given = arch, dict(plans or {})
        valid = (*FORMATS.values(), "tf32")
        for name in self.given:
            if name not in valid:
                raise ValueError(f"plans: {name!r} is no format of products here (valid: {', '.join(valid)})")
        _core.usual_plan(arch, "fp16", "fp16", "", False)  # refuses what is no machine
        self.plans: dict[tuple[str, bool], str] = {}
        self.calls = 0
        self.depth = 0

    def __enter__(self) -> Machine:
        self.depth += 1
        if self.depth == 1:
            if self.arch not in _announced and not self.given:
                _announced.add(self.arch)
                print(f"guardbit.torch: {self.arch}: each product is one ascending chain of the machine's usual instruction and attention is "
                      "written out; its libraries may take other orders", file=sys.stderr)
            self.begin()
        return super().__enter__()  # type: ignore[no-any-return]

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.depth -= 1
        if self.depth == 0:
            self.end()

    def begin(self) -> None:
        # Recurrent layers and encoders come as their products, not as operators of their own.
        self.mkldnn, self.fast_encoder = torch.backends.mkldnn.enabled, torch.backends.mha.get_fastpath_enabled()
        torch.backends.mkldnn.set_flags(False)
        torch.backends.mha.set_fastpath_enabled(False)
        self.library = torch.library.Library("aten", "IMPL")
        for key in ("AutogradCPU", "AutogradCUDA"):
            self.library.impl("scaled_dot_product_attention", attention, key, allow_override=True)
        self.rules = CudaRules()
        self.rules.begin()

    def end(self) -> None:
        self.rules.end()
        self.library._destroy()
        torch.backends.mkldnn.set_flags(self.mkldnn)
        torch.backends.mha.set_fastpath_enabled(self.fast_encoder)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.split("::")[-1]
        if name == "scaled_dot_product_attention":
            with self:
                return attention(*args, **kwargs)
        result = taken_apart(self, func, args, kwargs)
        if result is not NotImplemented:
            return result
        computed = self.COMPUTED.get(name) if func._overloadname in ("default", "out") else None
        if computed is None:
            return func(*args, **kwargs)
        tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)]
        types_here = {x.dtype for x in tensors}
        if len(types_here) != 1 or not types_here <= FORMATS.keys() or any(x.numel() == 0 for x in tensors):
            return func(*args, **kwargs)
        self.calls += 1
        out = kwargs.pop("out", None)
        result = computed(self, *args, **kwargs)
        return result if out is None else out.copy_(result)

    def plan(self, dtype: Any, tf32: bool) -> str:
        name = FORMATS[dtype]
        tf32 = tf32 and name == "fp32"
        if (name, tf32) not in self.plans:
            given = self.given.get("tf32" if tf32 else name)
            if given is None:
                try:
                    given = _core.usual_plan(self.arch, name, name, name, tf32)
                except _core.Error:
                    if not tf32:
                        raise
                    # A machine without TF32 takes its instruction for FP32.
                    given = _core.usual_plan(self.arch, name, name, name, False)
            self.plans[name, tf32] = given
        return self.plans[name, tf32]

    def product(self, a: Any, b: Any, c: Any = None, alpha: Any = 1, beta: Any = 1, tf32: bool | None = None) -> Any:
        """alpha a b + beta c, the sum in the unit, rounded once to the operands' type."""
        plan = self.plan(a.dtype, torch._C._get_cublas_allow_tf32() if tf32 is None else tf32)
        more: dict[str, Any] = {}
        if c is not None and beta != 0:
            more.update(c=c.detach().expand(*a.shape[:-1], b.shape[-1]).contiguous(), beta=float(beta))
        if alpha != 1:
            more["alpha"] = float(alpha)
        return matmul(a.detach(), b.detach(), plan=plan, out_dtype=FORMATS[a.dtype], **more)

    def addmm(self, c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        return self.product(a, b, c, alpha, beta)

    def addbmm(self, c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        rows = a.transpose(0, 1).reshape(a.shape[1], -1)
        return self.product(rows, b.reshape(-1, b.shape[-1]), c, alpha, beta)

    def addmv(self, c: Any, a: Any, x: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        return self.product(a, x[:, None], c.expand(a.shape[0])[:, None], alpha, beta)[:, 0]

    def mv(self, a: Any, x: Any) -> Any:
        return self.product(a, x[:, None])[:, 0]

    def dot(self, x: Any, y: Any) -> Any:
        return self.product(x[None, :], y[:, None])[0, 0]

    def steps(self, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Convolution:
        count = weight.dim() - 2
        stride, padding, dilation = ([int(x) for x in (steps if len(steps) == count else list(steps) * count)] for steps in (stride, padding, dilation))
        tf32 = torch._C._get_cudnn_allow_tf32()
        return Convolution(lambda a, b: self.product(a, b, tf32=tf32), list(weight.shape[2:]), stride, padding, dilation, groups)

    def convolution(self, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                    groups: int) -> Any:
        steps = self.steps(weight, stride, padding, dilation, groups)
        if transposed:
            more = list(output_padding) if len(output_padding) == len(steps.kernel) else list(output_padding) * len(steps.kernel)
            sizes = [(n - 1) * s - 2 * p + d * (k - 1) + m + 1
                     for n, s, p, d, k, m in zip(x.shape[2:], steps.stride, steps.padding, steps.dilation, steps.kernel, more)]
            result = steps.data_gradient(x.detach(), weight.detach(), sizes)
        else:
            result = steps.forward(x.detach(), weight.detach())
        return result if bias is None else result + bias.detach().reshape(-1, *[1] * (weight.dim() - 2))

    def convolution_backward(self, gradient: Any, x: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
                             transposed: bool, output_padding: Any, groups: int, output_mask: Any) -> Any:
        steps = self.steps(weight, stride, padding, dilation, groups)
        of_x = of_weight = of_bias = None
        if output_mask[0]:
            of_x = steps.forward(gradient, weight) if transposed else steps.data_gradient(gradient, weight, list(x.shape[2:]))
        if output_mask[1]:
            of_weight = steps.weight_gradient(x, gradient) if transposed else steps.weight_gradient(gradient, x)
        if output_mask[2]:
            of_bias = gradient.sum([0, *range(2, gradient.dim())])
        return of_x, of_weight, of_bias

    COMPUTED: dict[str, Any] = {
        "mm": product, "bmm": product, "addmm": addmm, "baddbmm": addmm, "addbmm": addbmm, "mv": mv, "addmv": addmv, "dot": dot,
        "convolution": convolution, "convolution_backward": convolution_backward}
