"""torch.autocast of CUDA for tensors of the CPU: the same operators in FP32, and no others."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.amp import autocast_mode
from torch.amp.grad_scaler import GradScaler

# What autocast of CUDA computes in FP32; of the second kind, with a result in FP32 where none is asked for.
IN_FP32 = """
acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar softplus
layer_norm native_layer_norm group_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim cosine_similarity poisson_nll_loss
cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss
multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm
logsumexp upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d
upsample_bicubic2d
""".split()
WITH_FP32_RESULT = """
prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm sum sum.dim_IntList
""".split()
# What autocast of the CPU alone computes in FP32.
AS_THEY_ARE = """
avg_pool3d adaptive_avg_pool3d max_pool3d adaptive_max_pool3d reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
replication_pad3d
""".split()

_HALVES = (torch.float16, torch.bfloat16)
_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)


def _operator(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _wide(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in _HALVES else value
    return type(value)(_wide(x) for x in value) if isinstance(value, (list, tuple)) else value


def _in_fp32(operator: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_CPU):
            return operator(*[_wide(x) for x in args], **{name: _wide(x) for name, x in kwargs.items()})
    return call


def _with_fp32_result(operator: Any) -> Any:
    place = [argument.name for argument in operator._schema.arguments].index("dtype")
    only_by_name = operator._schema.arguments[place].kwarg_only

    def call(*args: Any, **kwargs: Any) -> Any:
        given = kwargs.get("dtype") if only_by_name or place >= len(args) else args[place]
        if given is None and args[0].dtype in _HALVES:
            args, kwargs = args[:place] if not only_by_name else args, {**kwargs, "dtype": torch.float32}
        with torch._C._ExcludeDispatchKeyGuard(_CPU):
            return operator(*args, **kwargs)
    return call


def _banned(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast; "
                       "binary_cross_entropy_with_logits and BCEWithLogitsLoss are not")


class CudaRules:
    """In force from `begin` to `end`."""

    def begin(self) -> None:
        self.library = torch.library.Library("aten", "IMPL", "AutocastCPU")
        with warnings.catch_warnings():
            # PyTorch warns of the first kernel that takes another's place.
            warnings.simplefilter("ignore")
            for names, kernel in ((IN_FP32, _in_fp32), (WITH_FP32_RESULT, _with_fp32_result)):
                for name in names:
                    self.library.impl(name, kernel(_operator(name)), allow_override=True)
            for name in AS_THEY_ARE:
                self.library.impl(name, torch.library.fallthrough_kernel, allow_override=True)
            self.library.impl("binary_cross_entropy", _banned, allow_override=True)
        self.plain_autocast, self.plain_scaler = autocast_mode.autocast.__init__, GradScaler.__init__
        if not torch.cuda.is_available():
            autocast_mode.autocast.__init__ = self._of_cpu(self.plain_autocast)
            GradScaler.__init__ = self._of_cpu(self.plain_scaler)

    @staticmethod
    def _of_cpu(plain: Any) -> Any:
        def of_cpu(self: Any, device_type: str = "cuda", *args: Any, **kwargs: Any) -> None:
            device = kwargs.pop("device", device_type)
            if device == "cuda":
                device = "cpu"
                if plain.__qualname__.startswith("autocast") and not args and kwargs.get("dtype") is None:
                    kwargs["dtype"] = torch.get_autocast_dtype("cuda")
            plain(self, device, *args, **kwargs)
        return of_cpu

    def end(self) -> None:
        autocast_mode.autocast.__init__, GradScaler.__init__ = self.plain_autocast, self.plain_scaler
        self.library._destroy()
