"""Generators of the GPU: a seed and an offset that every call moves on."""

from __future__ import annotations

import os
import struct
import weakref
from typing import Any

import torch


# Operators see a generator without what Python has added to it.
_by_address: dict[int, Any] = {}


def of_gpu(generator: Any) -> Any:
    """One of ours, if it is such a one."""
    if isinstance(generator, GpuGenerator):
        return generator
    known = _by_address.get(generator._cdata)
    return known() if known is not None else None


class GpuGenerator(torch._C.Generator):
    """A generator that says it is of cuda:0."""

    seed_: int
    offset: int

    @staticmethod
    def __new__(cls, seed: int = 67280421310721) -> Any:
        make: Any = torch._C.Generator.__new__
        self = make(cls, device="cpu")
        self.seed_, self.offset = seed, 0
        _by_address[self._cdata] = weakref.ref(self)
        return self

    def __init__(self, seed: int = 67280421310721) -> None:
        pass

    @property
    def device(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return torch.device("cuda", 0)

    def manual_seed(self, seed: int) -> GpuGenerator:
        self.seed_, self.offset = int(seed) % 2**64, 0
        return self

    def seed(self) -> int:
        self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        return self.seed_

    def initial_seed(self) -> int:
        return self.seed_

    def get_state(self) -> Any:
        return torch.frombuffer(bytearray(struct.pack("<QQ", self.seed_, self.offset)), dtype=torch.uint8).clone()

    def set_state(self, state: Any) -> GpuGenerator:
        self.seed_, self.offset = struct.unpack("<QQ", bytes(state.cpu().tolist()))
        return self

    def get_offset(self) -> int:
        return self.offset

    def set_offset(self, offset: int) -> GpuGenerator:
        self.offset = offset
        return self

    def clone_state(self) -> GpuGenerator:
        other = GpuGenerator(self.seed_)
        other.offset = self.offset
        return other

    graphsafe_get_state = clone_state

    def __reduce__(self) -> Any:
        return (_restored, (self.seed_, self.offset))


def _restored(seed: int, offset: int) -> GpuGenerator:
    return GpuGenerator(seed).set_offset(offset)


default = GpuGenerator()


class _OfEither(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, torch._C.Generator)


class Generator(torch._C.Generator, metaclass=_OfEither):
    """In the place of torch.Generator: of the CPU as before, of cuda one of ours."""

    @staticmethod
    def __new__(cls, device: Any = "cpu") -> Any:
        if torch.device(device).type == "cuda":
            return GpuGenerator()
        return torch._C.Generator(device=device)
