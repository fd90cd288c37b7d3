"""Every operator that a program calls, with its inputs and outputs, as a file.

Operators are seen below autograd and autocast, so casts and backward operators are calls of their own. Views and empty
allocations are left out. `guardbit replay FILE` computes the operators again.

The file: tensors `t0`, `t1`, ... in safetensors, each content once; in `__metadata__`, `ops` is a JSON list of calls
{"op", "args", "kwargs", "out"} in the order of execution. A tensor of a call is {"tensor", "shape", "stride",
"offset", "device"}: stored contiguous, with the stride and offset (in elements) that it had. Inputs are as before the
call, but for what is written over whole; outputs as after it. A call may also have
  step           the step that begins with it, where not every step is recorded
  written        {argument: tensors}: what the call left in arguments that are not among its outputs
  seed, philox_offset   the state of the device's generator before a call that draws from it
  flags          settings that have changed since the call before
  kernels, grids what it launched
  sampled        {"rows", "columns"}: of a product past the limit only these are stored
Numbers that JSON does not have are the strings "inf", "-inf" and "nan". Metadata also has the versions, the flags at
the beginning, the workspace, the device, and `every`, `only` and `limit` where those kept calls out.

This module needs PyTorch alone.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._python_dispatch import TorchDispatchMode

from .contents import DTYPES, Contents
from .facts import flags, generator_state, machine, taken_apart

# What neither computes nor moves anything, beside the views that the schema names.
LEFT_OUT = frozenset("""
_unsafe_view lift_fresh detach detach_ alias empty empty_like empty_strided new_empty new_empty_strided empty_permuted resize_ set_
record_stream is_same_size _has_compatible_shallow_copy_type is_pinned
""".split())
# Arguments that these change without saying so in their schema.
SILENTLY_WRITTEN = {"native_batch_norm": ("running_mean", "running_var"),
                    "cudnn_batch_norm": ("running_mean", "running_var")}
# These write over what their first argument held, which may be anything before: the file has what it holds after.
OVERWRITING = frozenset("""
fill_ zero_ copy_ normal_ uniform_ random_ bernoulli_ exponential_ log_normal_ geometric_ cauchy_ _foreach_copy_ _foreach_zero_
""".split())
PRODUCTS = {"mm": (0, 1), "addmm": (1, 2)}
UNLIMITED = 1 << 62


def is_left_out(func: Any) -> bool:
    return bool(func.is_view) or func._schema.name.split("::")[-1] in LEFT_OUT or func.namespace in ("prim", "profiler")


def size_of(value: Any) -> int:
    """Bytes of all tensors in it."""
    if isinstance(value, torch.Tensor):
        return int(value.numel()) * int(value.element_size())
    if isinstance(value, dict):
        return sum(size_of(x) for x in value.values())
    return sum(size_of(x) for x in value) if isinstance(value, (list, tuple)) else 0


def is_past(limit: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return limit < UNLIMITED and size_of((args, kwargs)) > limit


def written_arguments(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments that the call changes and does not return, by name."""
    schema = func._schema
    silent = SILENTLY_WRITTEN.get(schema.name.split("::")[-1], ())
    returned = {x for r in schema.returns if r.alias_info for x in r.alias_info.before_set}
    found = {}
    for i, argument in enumerate(schema.arguments):
        alias = argument.alias_info
        if argument.name not in silent and (alias is None or not alias.is_write or alias.before_set & returned):
            continue
        value = kwargs.get(argument.name, args[i] if i < len(args) else None)
        if value is not None and size_of(value):
            found[argument.name] = value
    return found


class Recorder(TorchDispatchMode):
    """Records the operators called in its scope; the file is written at the end of the scope, also where an error ends it."""

    def __init__(self, path: str | os.PathLike[str], *, every: int = 1, sample: int | None = None, kernels: bool = False,
                 limit: int | None = None, only: list[str] | None = None) -> None:
        super().__init__()
        if every < 1:
            raise ValueError(f"every: {every} is below 1")
        if sample is not None and sample < 1:
            raise ValueError(f"sample: {sample} is below 1")
        self.path = os.fspath(path)
        self.every, self.only = every, only
        self.samples = 16 if sample is None else sample
        self.limit = limit if limit is not None else UNLIMITED if sample is None else 1 << 20
        self.calls: list[dict[str, Any]] = []
        self.left_out = 0
        self.steps, self.recorded_step, self.counts_optimizers = 0, 0, True
        self.places: dict[Any, Any] = {}
        self.contents = Contents(os.path.dirname(os.path.abspath(self.path)))
        self.hook: Any = None
        self.printer: Any = None
        self.is_printing = False
        self.profile: Any = None
        # Scopes inside one another, as when a composite operator is taken apart.
        self.depth = 0
        if kernels:
            activities = torch.profiler.ProfilerActivity
            self.profile = torch.profiler.profile(activities=[activities.CPU, activities.CUDA])

    def step(self) -> None:
        """Ends a step of the program. Without any such call a step ends where an optimizer's does."""
        self.counts_optimizers = False
        self.end_step()

    def end_step(self) -> None:
        self.steps += 1
        self.contents.settle_what_is_done()

    def __enter__(self) -> Recorder:
        self.depth += 1
        if self.depth == 1:
            self.begin(machine())
        return super().__enter__()  # type: ignore[no-any-return]

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.depth -= 1
        if self.depth == 0:
            self.close()

    def begin(self, facts: dict[str, str]) -> None:
        """`facts`: what is known of the machine."""
        self.facts, self.first_flags = dict(facts), flags()
        self.flags, self.flag_key = self.first_flags, flag_key()
        if self.every > 1:
            self.facts["every"] = str(self.every)
        if self.only is not None:
            self.facts["only"] = ",".join(self.only)
        if self.limit < UNLIMITED:
            self.facts["limit"] = str(self.limit)
        self.hook = register_optimizer_step_post_hook(
            lambda *_: self.end_step() if self.counts_optimizers else None)
        # What PyTorch computes in order to print a tensor is not the program's.
        printing: Any = getattr(torch, "_tensor_str")
        self.printer = printer = printing._str

        def printed(*args: Any, **kwargs: Any) -> Any:
            self.is_printing = True
            try:
                return printer(*args, **kwargs)
            finally:
                self.is_printing = False

        printing._str = printed
        if self.profile:
            self.profile.__enter__()

    def close(self) -> None:
        """Writes the file."""
        self.hook.remove()
        setattr(getattr(torch, "_tensor_str"), "_str", self.printer)
        if self.profile:
            self.profile.__exit__(None, None, None)
            self.add_kernels()
        self.contents.settle()
        facts = dict(self.facts, flags=json.dumps(self.first_flags), ops=json.dumps(self.calls, allow_nan=False))
        if self.left_out:
            facts["left_out"] = str(self.left_out)
        self.contents.write(self.path, facts)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = taken_apart(self, func, args, kwargs)
        if result is not NotImplemented:
            return result
        return self.watched(func, args, kwargs, lambda: func(*args, **kwargs))

    def watched(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], call: Callable[[], Any]) -> Any:
        """What `call` gives, recorded where it is to be."""
        if is_left_out(func) or self.is_printing:
            return call()
        name = func._schema.name.split("::")[-1]
        if self.steps % self.every or (self.only is not None and name not in self.only):
            return call()
        is_large = is_past(self.limit, args, kwargs)
        if is_large and name not in PRODUCTS:
            self.left_out += 1
            return call()
        return self.record(func, name, args, kwargs, call, is_large)

    def record(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], call: Callable[[], Any], is_large: bool) -> Any:
        facts: dict[str, Any] = {"op": str(func)}
        if self.steps != self.recorded_step:
            facts["step"] = self.recorded_step = self.steps
        self.add_flags(facts)
        sample = self.sample(name, args) if is_large else None
        later = 1 if name in OVERWRITING else 0
        operands = [self.value(x, sample and sample.get(i + later)) for i, x in enumerate(args[later:])]
        facts["kwargs"] = {key: self.value(x) for key, x in kwargs.items()}
        draws = torch.Tag.nondeterministic_seeded in func.tags
        state = self.generator_state(kwargs.get("generator")) if draws else None
        result = self.run(call)
        facts["args"] = [self.value(x) for x in args[:later]] + operands
        if state is not None and state != self.generator_state(kwargs.get("generator")):
            facts["seed"], facts["philox_offset"] = state
        facts["out"] = self.value(result, sample and sample["out"])
        written = {key: self.value(x) for key, x in written_arguments(func, args, kwargs).items()}
        if written:
            facts["written"] = written
        if sample:
            facts["sampled"] = {"rows": sample["rows"], "columns": sample["columns"]}
        self.calls.append(facts)
        return result

    def add_flags(self, facts: dict[str, Any]) -> None:
        key = flag_key()
        if key == self.flag_key:
            return
        now = flags()
        facts["flags"] = {name: value for name, value in now.items() if value != self.flags[name]}
        self.flags, self.flag_key = now, key

    def run(self, call: Callable[[], Any]) -> Any:
        if not self.profile:
            return call()
        with torch.profiler.record_function(f"recorded call {len(self.calls)}"):
            return call()

    def generator_state(self, generator: Any) -> tuple[int, int] | None:
        return generator_state(generator)

    def elements(self, value: Any) -> Any:
        """The tensor whose elements are stored for it."""
        return value.detach()

    def sample(self, name: str, args: tuple[Any, ...]) -> dict[Any, Any]:
        """Of a product too large to keep: some rows and columns, the first and last ones among them."""
        a, b = (args[i] for i in PRODUCTS[name])
        rows, columns = (self.chosen(x.shape[i], x.device) for x, i in ((a, 0), (b, 1)))
        at = {"rows": rows[0], "columns": columns[0], PRODUCTS[name][0]: (rows[1], None), PRODUCTS[name][1]: (None, columns[1]),
              "out": (rows[1], columns[1])}
        if name == "addmm":
            at[0] = (rows[1] if args[0].dim() == 2 and args[0].shape[0] > 1 else None,
                     columns[1] if args[0].dim() and args[0].shape[-1] > 1 else None)
        return at

    def chosen(self, count: int, device: Any) -> tuple[list[int], Any]:
        """Places among so many, as numbers and on the device."""
        if (count, device) not in self.places:
            at = torch.linspace(0, count - 1, min(count, self.samples), dtype=torch.float64).round().long().unique()
            moved = at.pin_memory().to(device, non_blocking=True) if device.type == "cuda" and torch._C._cuda_getDeviceCount() else at
            self.places[count, device] = (at.tolist(), moved, at)
        numbers, moved, _ = self.places[count, device]
        return numbers, moved

    def value(self, value: Any, sample: Any = None) -> Any:
        if isinstance(value, torch.Tensor):
            return self.tensor(value, sample)
        if isinstance(value, (list, tuple)):
            return [self.value(x) for x in value]
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        return str(value)

    def tensor(self, value: Any, sample: Any) -> Any:
        if value.layout != torch.strided or value.dtype not in DTYPES:
            return f"{value.layout} {value.dtype} {list(value.shape)}"
        facts = {"tensor": None, "shape": list(value.shape), "stride": list(value.stride()), "offset": value.storage_offset(),
                 "device": str(value.device)}
        kept = self.elements(value).resolve_conj().resolve_neg()
        if sample:
            rows, columns = sample
            kept = kept if rows is None else kept.index_select(-2, rows)
            kept = kept if columns is None else kept.index_select(-1, columns)
        self.contents.add(kept, facts)
        return facts

    def add_kernels(self) -> None:
        """Kernels go to the call in whose time, in whose thread they were launched."""
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            self.profile.export_chrome_trace(file.name)
            with open(file.name, encoding="utf-8") as text:
                events = json.load(text)["traceEvents"]
        calls: dict[Any, list[tuple[float, float, int]]] = {}
        launches: dict[Any, tuple[Any, float]] = {}
        for x in events:
            if x.get("cat") == "user_annotation" and x["name"].startswith("recorded call "):
                calls.setdefault(x["tid"], []).append((x["ts"], x["ts"] + x["dur"], int(x["name"].split()[-1])))
            elif x.get("cat") in ("cuda_runtime", "cuda_driver"):
                launches[x["args"].get("correlation")] = (x["tid"], x["ts"])
        for x in sorted((x for x in events if x.get("cat") == "kernel"), key=lambda x: x["ts"]):
            tid, time = launches.get(x["args"].get("correlation"), (None, 0.0))
            for begin, end, number in calls.get(tid, []):
                if begin <= time <= end:
                    grid = "x".join(map(str, x["args"]["grid"])) + " of " + str(math.prod(x["args"]["block"]))
                    self.calls[number].setdefault("kernels", []).append(x["name"])
                    self.calls[number].setdefault("grids", []).append(grid)


def flag_key() -> tuple[Any, ...]:
    """What `flags` depends on, in a form that is quick to ask for."""
    return tuple([ask() for ask in _asked])


_asked = [getattr(torch._C, "_get_" + name) for name in """
cublas_allow_tf32 cudnn_allow_tf32 float32_matmul_precision cublas_allow_fp16_reduced_precision_reduction
cublas_allow_bf16_reduced_precision_reduction cublas_allow_fp16_accumulation deterministic_algorithms deterministic_algorithms_warn_only
cudnn_enabled cudnn_benchmark cudnn_deterministic flash_sdp_enabled mem_efficient_sdp_enabled math_sdp_enabled cudnn_sdp_enabled
""".split() if hasattr(torch._C, "_get_" + name)]
