"""A program that runs, compared call by call with a recording of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from .contents import Recording
from .recorder import OVERWRITING, UNLIMITED, is_left_out, is_past, written_arguments

# Arguments that go from attention to its backward, which may not be set.
STATES = frozenset("philox_seed philox_offset rng_state unused logsumexp".split())
# Of these only the first result is compared: the others are sums for backward, which may be padded, and such states.
ATTENTION = ("_scaled_dot_product_", "_flash_attention_", "_efficient_attention_", "_cudnn_attention_")
INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Differs(BaseException):
    """The first difference. No `except Exception` of a script catches it."""


def codes_of(tensor: Any) -> Any:
    """The bits of its elements, as whole numbers."""
    rows = tensor.contiguous()
    if rows.dtype == torch.complex64:
        return rows.view(torch.int64)
    return rows.view(INTEGERS[rows.element_size()])


def element_text(tensor: Any, place: int) -> str:
    rows = tensor.reshape(-1)
    value, code = rows[place], int(codes_of(rows)[place])
    if not (value.is_floating_point() or value.is_complex()):
        return str(value.item())
    bits = 8 * value.element_size()
    return f"0x{code % 2**bits:0{bits // 4}x} ({value.item():.9g})" if value.is_floating_point() else f"0x{code % 2**bits:016x}"


class Against:
    """Calls of a program beside those of a recording; raises Differs at the first that is not the same."""

    def __init__(self, path: str, elements: Callable[[Any], Any], is_gpus: Callable[[Any], bool]) -> None:
        self.recording = Recording(path)
        self.elements, self.is_gpus = elements, is_gpus
        metadata = self.recording.metadata
        self.every = int(metadata.get("every", "1"))
        self.only = metadata["only"].split(",") if "only" in metadata else None
        self.limit = int(metadata.get("limit", UNLIMITED))
        self.at = self.compared = self.steps = 0
        self.is_over = False
        self.first_of_step = {call["step"]: i for i, call in enumerate(self.recording.calls) if "step" in call}
        self.hook: Any = None

    def begin(self) -> None:
        self.hook = register_optimizer_step_post_hook(lambda *_: self.end_step())

    def end_step(self) -> None:
        self.steps += 1
        if self.every > 1 and self.steps % self.every == 0:
            self.at = self.first_of_step.get(self.steps, len(self.recording.calls))

    def close(self) -> None:
        self.hook.remove()

    def summary(self) -> str:
        end = ""
        rest = self.next_call() if self.every == 1 else None
        if self.is_over:
            end = "; it ends there, the program went on"
        elif rest is not None:
            end = f"; it goes on with {rest['op']}"
        return f"{self.compared} calls equal those of {self.recording.path}{end}"

    def watched(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], call: Callable[[], Any]) -> Any:
        name = func._schema.name.split("::")[-1]
        if self.is_over or self.steps % self.every or is_left_out(func) or not self.is_gpus((args, kwargs)):
            return call()
        is_large = is_past(self.limit, args, kwargs)
        if (self.only is not None and name not in self.only) or (is_large and name not in ("mm", "addmm")):
            return call()
        recorded = self.next_call()
        if recorded is None:
            self.is_over = self.every == 1
            return call()
        where = f"{func}, call {self.compared + 1}"
        if recorded["op"] != str(func):
            raise Differs(f"call {self.compared + 1} is {func} here, {recorded['op']} in {self.recording.path}")
        for i, (argument, value) in enumerate(zip(func._schema.arguments, args)):
            if i < len(recorded.get("args", ())) and not (i == 0 and name in OVERWRITING) and argument.name not in STATES:
                self.compare(value, recorded["args"][i], f"{where}: {argument.name}", recorded, i, name, " before it")
        for key, value in kwargs.items():
            if key in recorded.get("kwargs", {}):
                self.compare(value, recorded["kwargs"][key], f"{where}: {key}", recorded, key, name, " before it")
        result = call()
        if recorded.get("out") is not None:
            here, there = result, recorded["out"]
            if name.startswith(ATTENTION) and not name.endswith("_backward"):
                here, there = here[0], there[0]
            self.compare(here, there, f"{where}: its result", recorded, "out", name)
        for key, value in written_arguments(func, args, kwargs).items():
            if key in recorded.get("written", {}):
                self.compare(value, recorded["written"][key], f"{where}: {key}", recorded, key, name, " after it")
        self.at += 1
        self.compared += 1
        return result

    def next_call(self) -> Any:
        """The recording's next call of the GPU."""
        calls = self.recording.calls
        while self.at < len(calls) and not is_of_gpu(calls[self.at]):
            self.at += 1
        return calls[self.at] if self.at < len(calls) else None

    def compare(self, here: Any, there: Any, what: str, recorded: dict[str, Any], argument: Any, name: str, when: str = "") -> None:
        if isinstance(there, dict):
            self.compare_tensors(here, there, what + when, recorded, argument, name)
        elif isinstance(there, list) and isinstance(here, (list, tuple)):
            if len(here) != len(there):
                raise Differs(f"{what} has {len(here)} parts here, {len(there)} in {self.recording.path}")
            for i, (x, y) in enumerate(zip(here, there)):
                self.compare(x, y, f"{what}, part {i}", recorded, None, name, when)
        elif isinstance(here, (bool, int, float)) and not same_number(here, there):
            raise Differs(f"{what} is {here} here, {there} in {self.recording.path}")

    def compare_tensors(self, here: Any, there: dict[str, Any], what: str, recorded: dict[str, Any], argument: Any, name: str) -> None:
        if not isinstance(here, torch.Tensor):
            raise Differs(f"{what} is no tensor here, one in {self.recording.path}")
        expected = self.recording.tensor(there["tensor"])
        if list(here.shape) != list(there["shape"]):
            raise Differs(f"{what} has shape {list(here.shape)} here, {list(there['shape'])} in {self.recording.path}")
        if here.dtype != expected.dtype:
            raise Differs(f"{what} is of {here.dtype} here, of {expected.dtype} in {self.recording.path}")
        actual = self.elements(here)
        at: list[Any] = [None] * actual.dim()
        if "sampled" in recorded:
            for axis, places in sampled_axes(name, argument, actual, recorded["sampled"]):
                at[axis] = torch.tensor(places, dtype=torch.int64)
                actual = actual.index_select(axis, at[axis])
        if actual.shape != expected.shape:
            raise Differs(f"{what} has samples of shape {list(actual.shape)} here, {list(expected.shape)} in {self.recording.path}")
        differs = (codes_of(actual) != codes_of(expected)).reshape(-1)
        count = int(differs.sum())
        if count == 0:
            return
        first = int(differs.nonzero()[0])
        place = [int(x) for x in torch.unravel_index(torch.tensor(first), actual.shape)] if actual.dim() else []
        place = [x if places is None else int(places[x]) for x, places in zip(place, at)]
        raise Differs(f"{what}: element {place} is {element_text(actual, first)} here, {element_text(expected, first)} in {self.recording.path}; "
                      f"{count} of {differs.numel()} elements differ")


def sampled_axes(name: str, argument: Any, tensor: Any, sampled: dict[str, list[int]]) -> list[tuple[int, list[int]]]:
    """The axes of an argument of a product, or of its result ("out"), of which only some places are stored."""
    rows, columns = (-2, sampled["rows"]), (-1, sampled["columns"])
    first = 0 if name == "mm" else 1
    if argument == first:
        return [rows]
    if argument == first + 1:
        return [columns]
    if argument == "out":
        return [rows, columns]
    if argument != 0:
        return []
    return [axis for axis in (rows, columns) if tensor.dim() >= -axis[0] and tensor.shape[axis[0]] > 1]


def is_of_gpu(call: dict[str, Any]) -> bool:
    """Whether a tensor of it is on a GPU; recordings that do not say where their tensors are, are of a GPU alone."""
    def devices(value: Any) -> list[str]:
        if isinstance(value, dict) and "tensor" in value:
            return [value.get("device", "cuda")]
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [device for part in parts for device in devices(part)]

    found = devices([call.get("args", []), call.get("kwargs", {}), call.get("out")])
    return any(device.startswith("cuda") for device in found)


def same_number(here: Any, there: Any) -> bool:
    if isinstance(there, str):
        try:
            there = float(there)
        except ValueError:
            return True
    if not isinstance(there, (bool, int, float)):
        return True
    return bool(here == there) or (here != here and there != there)
