"""The module torch.cuda of a computer that has the modelled GPU."""

from __future__ import annotations

import importlib
import types
from typing import Any

import torch

from . import generators
from .gpu_tensor import GpuTensor, as_of_gpu, internals, is_of_gpu
from .unmodelled import Unmodelled

NAME, CAPABILITY, MULTIPROCESSORS, MEMORY = "NVIDIA H200", (9, 0), 132, 150_109_880_320


class Stream:
    """A stream that has done everything at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.device = torch.device("cuda", 0)
        self.cuda_stream = self.stream_id = self.device_index = 0
        self.device_type = 1

    def _nothing(self, *args: Any, **kwargs: Any) -> None:
        return None

    synchronize = wait_stream = wait_event = record = wait = _nothing

    def record_event(self, event: Any = None) -> Any:
        return event or Event()

    def query(self) -> bool:
        return True

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: Any) -> None:
        return None


class Event(Stream):
    def elapsed_time(self, other: Any) -> float:
        return 0.0


class _Context:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> _Context:
        return self

    def __exit__(self, *error: Any) -> None:
        return None


def _refused(what: str, reason: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise Unmodelled(what, reason)
    return refuse


def _refused_class(what: str, reason: str) -> Any:
    """A name for annotations and isinstance; there is none to be had."""
    def refuse(cls: Any, *args: Any, **kwargs: Any) -> Any:
        raise Unmodelled(what, reason)
    return type(what.rpartition(".")[-1], (), {"__new__": refuse})


def _named(name: str, function: Any) -> Any:
    """A function of its own: PyTorch's compiler keeps rules by function, and refuses one under two names."""
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)
    call.__name__ = call.__qualname__ = name
    return call


def _properties() -> Any:
    return types.SimpleNamespace(
        name=NAME, major=CAPABILITY[0], minor=CAPABILITY[1], multi_processor_count=MULTIPROCESSORS, total_memory=MEMORY, warp_size=32,
        is_integrated=False, is_multi_gpu_board=False, max_threads_per_multi_processor=2048, max_threads_per_block=1024,
        regs_per_multiprocessor=65536, shared_memory_per_block=49152, shared_memory_per_block_optin=232448,
        shared_memory_per_multiprocessor=233472, L2_cache_size=62914560, gcnArchName="", uuid="", pci_bus_id=0, pci_device_id=0, pci_domain_id=0)


def _seed_all(seed: int) -> None:
    generators.default.manual_seed(seed)


def _fresh_seed() -> None:
    generators.default.seed()


def _rng_state(device: Any = "cuda") -> Any:
    return generators.default.get_state()


def _set_rng_state(state: Any, device: Any = "cuda") -> None:
    generators.default.set_state(state)


def install() -> None:
    """Puts all of it in place."""
    nothing: Any = lambda *args, **kwargs: None  # noqa: E731
    zero: Any = lambda *args, **kwargs: 0  # noqa: E731
    cuda: Any = torch.cuda
    stream = Stream()
    replaced: dict[str, Any] = {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0, "is_initialized": lambda: True,
        "_lazy_init": nothing, "init": nothing, "set_device": nothing, "synchronize": nothing, "empty_cache": nothing, "ipc_collect": nothing,
        "get_device_name": lambda device=None: NAME, "get_device_capability": lambda device=None: CAPABILITY,
        "get_device_properties": lambda device=None: _properties(), "get_arch_list": lambda: ["sm_90"], "is_bf16_supported": lambda *a, **k: True,
        "is_tf32_supported": lambda: True, "is_current_stream_capturing": lambda: False, "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream, "stream": _Context, "set_stream": nothing, "Stream": Stream, "Event": Event,
        "ExternalStream": Stream, "StreamContext": _Context, "device": _Context, "device_of": _Context,
        "can_device_access_peer": lambda *a: False, "mem_get_info": lambda device=None: (MEMORY, MEMORY),
        "memory_stats": lambda device=None: {}, "memory_summary": lambda *a, **k: "", "memory_snapshot": lambda *a, **k: [],
        "utilization": zero, "manual_seed": _seed_all, "manual_seed_all": _seed_all, "seed": _fresh_seed, "seed_all": _fresh_seed,
        "initial_seed": lambda: generators.default.seed_, "get_rng_state": _rng_state, "set_rng_state": _set_rng_state,
        "get_rng_state_all": lambda: [_rng_state()], "set_rng_state_all": lambda states: _set_rng_state(states[0]),
        "default_generators": (generators.default,), "_is_in_bad_fork": lambda: False, "current_blas_handle": zero,
        "CUDAGraph": _refused_class("torch.cuda.CUDAGraph", "graphs of calls"), "graph": _refused("torch.cuda.graph", "graphs of calls"),
        "make_graphed_callables": _refused("torch.cuda.make_graphed_callables", "graphs of calls"),
    }
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached", "max_memory_cached",
                 "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_accumulated_memory_stats", "set_per_process_memory_fraction"):
        replaced[name] = zero
    for name, value in replaced.items():
        if isinstance(value, types.FunctionType):
            value = _named(name, value)
        setattr(cuda, name, value)
        if hasattr(cuda.memory, name):
            setattr(cuda.memory, name, value)
        if hasattr(cuda.random, name):
            setattr(cuda.random, name, value)
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.Generator = generators.Generator
    torch.Tensor.pin_memory = lambda self, *args, **kwargs: self
    torch.Tensor.is_pinned = lambda self, *args, **kwargs: False
    torch.Tensor.record_stream = nothing
    accelerator: Any = torch.accelerator
    for name, value in {"is_available": lambda: True, "device_count": lambda: 1, "synchronize": nothing, "current_device_index": lambda: 0,
                        "current_accelerator": lambda *a, **k: torch.device("cuda"), "set_device_index": nothing}.items():
        setattr(accelerator, name, value)
    install_recurrent_layers()
    install_one_hot()
    torch.compile = _refused("torch.compile", "compiled programs are not modelled")
    torch.nn.DataParallel = _refused_class("torch.nn.DataParallel", "one device is modelled")
    if hasattr(torch.distributed, "init_process_group"):
        torch.distributed.init_process_group = _refused("torch.distributed.init_process_group", "one device is modelled")
    install_lists()
    install_files()


def install_recurrent_layers() -> None:
    """nn.LSTM and its like, which cuDNN computes as one operator, are refused by name before PyTorch asks for its driver."""

    def of_layers(name: str, plain: Any) -> Any:
        def layers(*args: Any, **kwargs: Any) -> Any:
            if isinstance(args[0], GpuTensor) and torch.backends.cudnn.enabled:
                raise Unmodelled(f"aten.{name}", "cuDNN's recurrent layers are not modelled (torch.backends.cudnn.enabled = False takes PyTorch's own)")
            return plain(*args, **kwargs)

        return layers

    functions: Any = torch._VF
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        setattr(functions, name, of_layers(name, getattr(functions, name)))


def install_one_hot() -> None:
    """PyTorch takes another way for tensors of other classes, whose result lies as the indices do; on a GPU it lies in rows."""
    functional: Any = torch.nn.functional
    plain = functional.one_hot
    functional.one_hot = lambda tensor, num_classes=-1: plain(tensor.contiguous(), num_classes)


def install_lists() -> None:
    """Optimizers and clipping take lists of tensors of these classes to the operators of lists."""
    for name in ("torch.optim.optimizer", "torch.utils._foreach_utils"):
        module = importlib.import_module(name)
        module._foreach_supported_types.append(GpuTensor)


def install_files() -> None:
    """torch.save writes and torch.load makes tensors of cuda:0."""
    torch.serialization.register_package(
        0, lambda storage: "cuda:0" if is_of_gpu(storage) else None,
        lambda storage, location: as_of_gpu(storage) if location.startswith("cuda") else None)
    plain = internals._utils._rebuild_tensor

    def rebuilt(storage: Any, offset: Any, size: Any, stride: Any) -> Any:
        tensor = plain(storage, offset, size, stride)
        untyped = storage._untyped_storage if hasattr(storage, "_untyped_storage") else storage
        return GpuTensor(tensor) if is_of_gpu(untyped) else tensor

    internals._utils._rebuild_tensor = rebuilt
