"""The tensors of a recording: written by content, read by name."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import struct
import tempfile
from typing import Any

import torch

DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
          torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint64: "U64",
          torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8", torch.bool: "BOOL", torch.complex64: "C64",
          torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2"}
TYPES = {name: dtype for dtype, name in DTYPES.items()}
# Bytes of elements that may wait on their way from a GPU before they are waited for.
MOST_WAITING = 256 << 20


class Contents:
    """Tensors by content, in a temporary file until all are known."""

    def __init__(self, folder: str) -> None:
        self.file = tempfile.TemporaryFile(dir=folder)
        self.names: dict[Any, str] = {}
        self.entries: list[tuple[str, list[int], int, int]] = []
        # Copies on their way from a GPU, and where their names go.
        self.waiting: list[tuple[Any, dict[str, Any]]] = []
        self.bytes_waiting = 0
        # An event, and how many of them had been copied when it was recorded.
        self.mark: tuple[Any, int] = (None, 0)

    def add(self, tensor: Any, facts: dict[str, Any]) -> None:
        """Puts the tensor's name into `facts["tensor"]`; of one on a GPU later, so that nothing waits for the GPU here."""
        if tensor.device.type == "cpu":
            facts["tensor"] = self.name(tensor.contiguous())
            return
        tensor = tensor.contiguous()
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.device.type == "cuda")
        host.copy_(tensor, non_blocking=True)
        facts["tensor"] = None
        self.waiting.append((host, facts))
        self.bytes_waiting += host.numel() * host.element_size()
        if self.bytes_waiting > MOST_WAITING:
            self.settle()

    def settle(self, count: int | None = None) -> None:
        """Names what was copied: the first `count` of those that wait, or all, after waiting for the GPU."""
        if count is None and self.waiting:
            torch.accelerator.synchronize()
        for host, facts in self.waiting[:count]:
            facts["tensor"] = self.name(host)
            self.bytes_waiting -= host.numel() * host.element_size()
        del self.waiting[:count]
        self.mark = (None, 0) if count is None else (self.mark[0], self.mark[1] - count)

    def settle_what_is_done(self) -> None:
        """The same of copies that are known to be done, without waiting."""
        event, count = self.mark
        if event is not None and event.query():
            self.settle(count)
            event = None
        if event is None and self.waiting:
            event = torch.cuda.Event()
            event.record()
            self.mark = (event, len(self.waiting))

    def name(self, tensor: Any) -> str:
        """`tensor` is on the CPU and contiguous."""
        data: Any = tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8).numpy().data if tensor.numel() else b""
        key = (tensor.dtype, tuple(tensor.shape), hashlib.blake2b(data, digest_size=20).digest())
        if key not in self.names:
            self.names[key] = f"t{len(self.entries)}"
            self.entries.append((DTYPES[tensor.dtype], list(tensor.shape), self.file.tell(), len(data)))
            self.file.write(data)
        return self.names[key]

    def write(self, path: str, metadata: dict[str, str]) -> None:
        # Wide elements first: every tensor is then aligned to its elements.
        order = sorted(range(len(self.entries)), key=lambda i: (-TYPES[self.entries[i][0]].itemsize, i))
        header: dict[str, Any] = {"__metadata__": metadata}
        at = 0
        for i in order:
            dtype, shape, _, size = self.entries[i]
            header[f"t{i}"] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        part = path + ".part"
        with open(part, "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text)
            for i in order:
                _, _, begin, size = self.entries[i]
                self.file.seek(begin)
                while size > 0:
                    piece = self.file.read(min(size, 1 << 24))
                    out.write(piece)
                    size -= len(piece)
        os.replace(part, path)


class Recording:
    """A file that a recorder wrote: `calls`, `metadata`, `tensor(name)`. Raises ValueError of one line where it is none."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file: Any = lzma.open(path, "rb") if path.endswith(".xz") else open(path, "rb")
        try:
            size = struct.unpack("<Q", self.file.read(8))[0]
            header = json.loads(self.file.read(size) if size < 1 << 31 else b"")
            self.metadata: dict[str, str] = header.pop("__metadata__")
            self.calls: list[dict[str, Any]] = json.loads(self.metadata["ops"])
            self.places = {name: (x["dtype"], x["shape"], 8 + size + x["data_offsets"][0], x["data_offsets"][1] - x["data_offsets"][0])
                           for name, x in header.items()}
            if not all(isinstance(x, dict) and isinstance(x.get("op"), str) for x in self.calls):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, struct.error, lzma.LZMAError, EOFError):
            raise ValueError(f"{path}: is no recording of a program") from None

    def tensor(self, name: str) -> Any:
        """Its elements, row by row, on the CPU."""
        if name not in self.places:
            raise ValueError(f"{self.path}: has no tensor {name}")
        dtype, shape, begin, size = self.places[name]
        self.file.seek(begin)
        data = bytearray(self.file.read(size))
        elements = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
        try:
            return elements.view(TYPES[dtype]).reshape(shape)
        except (KeyError, RuntimeError):
            raise ValueError(f"{self.path}: the tensor {name} has not the elements that the header says") from None
