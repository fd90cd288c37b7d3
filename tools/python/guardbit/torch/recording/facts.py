"""What a recording says of the machine, PyTorch's settings and generators, and how it sees composite operators."""

from __future__ import annotations

import importlib.metadata
import os
import struct
import subprocess
from typing import Any

import torch


def tensors_in(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(tensors_in(value))
    return found


def is_without_autograd(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Inference mode, or tensors that were made in it: composite operators then arrive whole."""
    return torch.is_inference_mode_enabled() or any(x.is_inference() for x in tensors_in((*args, *kwargs.values())))


def taken_apart(scope: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a composite operator gives, its parts called in the scope; NotImplemented for any other call. Without autograd such operators
    reach a dispatch mode whole."""
    if not (is_without_autograd(args, kwargs) and func._can_decompose()):
        return NotImplemented
    with scope:
        return func.decompose(*args, **kwargs)


def flags() -> dict[str, Any]:
    matmul = torch.backends.cuda.matmul
    return {
        "matmul_allow_tf32": matmul.allow_tf32, "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "fp16_reduced_precision_reduction": matmul.allow_fp16_reduced_precision_reduction,
        "bf16_reduced_precision_reduction": matmul.allow_bf16_reduced_precision_reduction,
        "fp16_accumulation": getattr(matmul, "allow_fp16_accumulation", False),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "deterministic_warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "cudnn_enabled": torch.backends.cudnn.enabled, "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "flash_attention": torch.backends.cuda.flash_sdp_enabled(),
        "efficient_attention": torch.backends.cuda.mem_efficient_sdp_enabled(),
        "math_attention": torch.backends.cuda.math_sdp_enabled(),
        "cudnn_attention": torch.backends.cuda.cudnn_sdp_enabled(),
    }


def versions() -> dict[str, str]:
    found: dict[str, str] = {"torch": str(torch.__version__)}
    for package, name in (("nvidia-cublas", "cublas"), ("nvidia-cudnn-cu13", "cudnn"), ("triton", "triton")):
        try:
            found[name] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def machine() -> dict[str, str]:
    """What does not change while a program runs."""
    facts = {"capture": "1", "kind": "recording", "device": "cpu", "threads": str(torch.get_num_threads()), **versions()}
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"],
                                capture_output=True, text=True, check=False).stdout.strip()
        facts.update(device=torch.cuda.get_device_name(0), cuda=torch.version.cuda or "", driver=driver,
                     arch="sm_%d%d" % torch.cuda.get_device_capability(0),
                     multiprocessors=str(properties.multi_processor_count),
                     cudnn_runtime=str(torch.backends.cudnn.version()),
                     workspace=os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""),
                     lt_workspace=os.environ.get("CUBLASLT_WORKSPACE_SIZE", ""),
                     blas=str(torch.backends.cuda.preferred_blas_library()))
    return facts


def generator_state(generator: Any = None) -> tuple[int, int] | None:
    """Seed and offset of the CUDA generator that a call would draw from."""
    if generator is None or generator.device.type != "cuda":
        if not torch.cuda.is_available() or not torch.cuda.is_initialized():
            return None
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
    seed, offset = struct.unpack("<QQ", bytes(generator.get_state().numpy())[:16])
    return seed, offset
