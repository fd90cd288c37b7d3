"""Writes the files that the command lines read: fixed numbers, in formats written by hand.

Nothing here depends on NumPy, on Python's random numbers or on its version: the numbers come from
a generator below and every file is the same bytes everywhere.
"""

from __future__ import annotations

import json
import math
import struct
import zipfile
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple


class Kind(NamedTuple):
    """An element type by its names in NumPy's and safetensors' files and in `struct`."""

    npy: str
    safetensors: str
    code: str


F16 = Kind("<f2", "F16", "e")
F32 = Kind("<f4", "F32", "f")
F64 = Kind("<f8", "F64", "d")
I8 = Kind("|i1", "I8", "b")
U8 = Kind("|u1", "U8", "B")
I32 = Kind("<i4", "I32", "i")


class Array(NamedTuple):
    kind: Kind
    shape: Tuple[int, ...]
    values: Sequence[float]

    def data(self) -> bytes:
        assert len(self.values) == math.prod(self.shape)
        numbers = [int(x) for x in self.values] if self.kind.code in "bBi" else self.values
        return struct.pack(f"<{len(numbers)}{self.kind.code}", *numbers)


class Numbers:
    """SplitMix64, and what is made of it by exact operations and one rounding."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def word(self) -> int:
        mask = (1 << 64) - 1
        self._state = (self._state + 0x9E3779B97F4A7C15) & mask
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        return self.word() % bound

    def bell(self) -> float:
        """Near a normal number: twelve uniform ones less their mean."""
        return math.ldexp(sum(self.word() >> 44 for _ in range(12)) - 6 * (1 << 20), -20)

    def bells(self, count: int, exponent: int = 0) -> List[float]:
        return [math.ldexp(self.bell(), exponent) for _ in range(count)]

    def wide(self, count: int, low: int, high: int) -> List[float]:
        """Numbers whose magnitudes spread over the binades from low to high."""
        return [math.ldexp(self.bell(), low + self.below(high - low)) for _ in range(count)]


def to_f32(x: float) -> float:
    return struct.unpack("<f", struct.pack("<f", x))[0]


# ---- Files ----


def npy_bytes(array: Array) -> bytes:
    shape = "(" + "".join(f"{n}, " for n in array.shape).rstrip(" ") + ")"
    if len(array.shape) > 1:
        shape = "(" + ", ".join(str(n) for n in array.shape) + ")"
    head = f"{{'descr': '{array.kind.npy}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + array.data()


def write_npy(path: Path, array: Array) -> None:
    path.write_bytes(npy_bytes(array))


def write_npz(path: Path, arrays: Dict[str, Array]) -> None:
    with zipfile.ZipFile(str(path), "w", zipfile.ZIP_STORED) as file:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(name + ".npy", date_time=(1980, 1, 1, 0, 0, 0))
            file.writestr(entry, npy_bytes(array))


def write_safetensors(path: Path, arrays: Dict[str, Array], metadata: Dict[str, str]) -> None:
    head: Dict[str, object] = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, array in arrays.items():
        part = array.data()
        head[name] = {
            "dtype": array.kind.safetensors,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(part)],
        }
        data += part
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_text(path: Path, text: str, executable: bool = False) -> None:
    path.write_text(text, encoding="utf-8")
    if executable:
        path.chmod(0o755)


# ---- What is in them ----

SPECIAL_NUMBERS = [
    0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, -2.5, 3.5, 0.4375, 5.0, 6.0, 7.0, 28.0, 30.0, 240.0, 448.0,
    464.0, 464.5, 480.0, 57344.0, 61440.0, 65504.0, 65519.0, 65520.0, 1e6, 3.0e38, 2.0**-6, 2.0**-9,
    2.0**-10, 1.5 * 2.0**-10, 2.0**-14, 2.0**-16, 2.0**-24, 2.0**-25, 3e-8, 1e-20, 1e-40,
    math.inf, -math.inf, math.nan,
]  # fmt: skip


def write_numbers(folder: Path) -> None:
    """Inputs of cast, quantize and trace."""
    write_npy(folder / "numbers.npy", Array(F32, (40,), SPECIAL_NUMBERS))
    write_npy(folder / "no_numbers.npy", Array(F32, (0, 4), []))
    n = Numbers(1)
    weights = {
        "weight": Array(F32, (16, 64), n.bells(1024)),
        "bias": Array(F32, (8,), n.bells(8, -3)),
        "half": Array(F16, (4, 8), n.bells(32)),
        "count": Array(I32, (3,), [1, -2, 300000]),
    }
    write_safetensors(folder / "w.safetensors", weights, {"made": "by hand"})
    write_npy(folder / "w.npy", weights["weight"])
    write_npy(folder / "x.npy", Array(F32, (64, 5), n.bells(320)))
    write_npy(folder / "codes.npy", Array(U8, (256,), list(range(256))))
    write_npz(
        folder / "pair.npz",
        {"x": Array(F32, (2, 3), n.bells(6)), "y": Array(F64, (4,), n.wide(4, -300, 300))},
    )


def write_operands(folder: Path) -> None:
    """Inputs of run: one or two executions of instructions of 16 x 8 results."""
    n = Numbers(2)
    write_npy(folder / "a16.npy", Array(F16, (16, 16), n.bells(256)))
    write_npy(folder / "b16.npy", Array(F16, (16, 8), n.bells(128)))
    write_npy(folder / "c32.npy", Array(F32, (16, 8), n.bells(128, 2)))
    write_npy(folder / "a8.npy", Array(U8, (16, 32), [n.below(0x78) for _ in range(512)]))
    write_npy(folder / "b8.npy", Array(U8, (32, 8), [n.below(0x78) for _ in range(256)]))
    write_npy(folder / "ai8.npy", Array(I8, (16, 32), [n.below(256) - 128 for _ in range(512)]))
    write_npy(folder / "bi8.npy", Array(I8, (32, 8), [n.below(256) - 128 for _ in range(256)]))
    write_npy(folder / "a64.npy", Array(F64, (8, 4), n.bells(32)))
    write_npy(folder / "b64.npy", Array(F64, (4, 8), n.bells(32)))
    write_npy(folder / "tall.npy", Array(F16, (64, 16), n.bells(1024)))
    write_npy(folder / "a_scale.npy", Array(U8, (16, 1), [120 + n.below(16) for _ in range(16)]))
    write_npy(folder / "b_scale.npy", Array(U8, (1, 8), [120 + n.below(16) for _ in range(8)]))
    write_npy(folder / "m34.npy", Array(F16, (3, 4), n.bells(12)))
    batch = {
        "a": Array(F16, (2, 16, 16), n.wide(512, -6, 6)),
        "b": Array(F16, (2, 16, 8), n.wide(256, -6, 6)),
        "c": Array(F32, (2, 16, 8), n.bells(256)),
    }
    write_safetensors(folder / "batch.safetensors", batch, {})


def write_matrices(folder: Path) -> None:
    """Inputs of gemm, explain and compare."""
    n = Numbers(3)
    rows, inner, columns = 9, 40, 7
    a = [to_f32(x) for x in n.bells(rows * inner)]
    b = [to_f32(x) for x in n.bells(inner * columns)]
    d = [
        to_f32(math.fsum(a[i * inner + k] * b[k * columns + j] for k in range(inner)))
        for i in range(rows)
        for j in range(columns)
    ]
    wrong = list(d)
    wrong[10], wrong[20], wrong[30] = d[10] * 1.001, math.nan, -d[30]
    for name, shape, values in (
        ("a.npy", (rows, inner), a),
        ("b.npy", (inner, columns), b),
        ("c.npy", (rows, columns), n.bells(rows * columns)),
        ("d.npy", (rows, columns), d),
        ("wrong.npy", (rows, columns), wrong),
        ("bias.npy", (columns,), n.bells(columns)),
        ("row_scale.npy", (rows,), n.bells(rows)),
    ):
        write_npy(folder / name, Array(F32, shape, values))
    write_npy(folder / "ah.npy", Array(F16, (33, 100), n.bells(3300)))
    write_npy(folder / "bh.npy", Array(F16, (100, 17), n.bells(1700)))


def write_trace(folder: Path) -> None:
    """A trace of two steps, whose second has overflowed."""
    trace = folder / "trace"
    trace.mkdir()
    n = Numbers(4)
    for step, exponent in ((100, -8), (200, -14)):
        tensors = {
            "fc1.weight": Array(F32, (8, 32), n.bells(256)),
            "fc1.weight.grad": Array(F32, (8, 32), n.wide(256, exponent - 20, exponent)),
            "fc1.gout": Array(F32, (4, 8), n.wide(32, exponent - 12, exponent)),
            "fc1.update": Array(F32, (8, 32), n.wide(256, exponent - 8, exponent)),
        }
        if step == 200:
            values = list(tensors["fc1.gout"].values)
            values[5], values[9] = math.inf, math.nan
            tensors["fc1.gout"] = Array(F32, (4, 8), values)
        write_safetensors(trace / f"step{step:04}.safetensors", tensors, {})
        sidecar = {"loss_scale": 65536, "step": step, "rank": 0}
        write_text(trace / f"step{step:04}.safetensors.json", json.dumps(sidecar))


def write_logs(folder: Path) -> None:
    """The same run of a loss scaler as several kinds of log."""
    scale, clean = 65536.0, 0
    rows = []
    for step in range(30):
        overflow = step in (2, 3, 11, 20)
        clean = 0 if overflow else clean + 1
        after = scale / 2 if overflow else scale
        if clean == 5:
            after, clean = scale * 2, 0
        loss = round(2.5 - step / 16, 4)
        rows.append((step, loss, scale, overflow, after))
        scale = after
    names = ("step", "loss", "scale", "overflow", "scale_after")
    write_text(folder / "log.json", json.dumps({"amp": {"log": rows}, "growth_interval": 5}))
    write_text(folder / "log.jsonl", "".join(json.dumps(dict(zip(names, r))) + "\n" for r in rows))
    lines = [",".join(names)] + [f"{s},{x},{a},{int(o)},{b}" for s, x, a, o, b in rows]
    write_text(folder / "log.csv", "\n".join(lines) + "\n")
    # The scale alone, as wandb exports it, and what Megatron-LM prints every second iteration.
    alone = ['"Step","run 7 - amp/loss_scale"'] + [f'"{s}","{a}"' for s, _, a, _, _ in rows]
    write_text(folder / "scales.csv", "\n".join(alone) + "\n")
    printed = [
        f" iteration {s + 1:8}/      30 | lm loss: {x:.6E} | loss scale: {b:.1f} | "
        f"number of skipped iterations: {sum(r[3] for r in rows[max(s - 1, 0) : s + 1])} |"
        for s, x, _, _, b in rows[1::2]
    ]
    write_text(folder / "megatron.log", "\n".join(printed) + "\n")
    # A run whose first step overflows: of two, hysteresis forgives it, and no row says so.
    printed = [
        f" iteration {i}/ 9 | loss scale: {2.0**k:.1f} | number of skipped iterations: {n} |"
        for i, k, n in ((1, 32, 1), (2, 31, 1), (3, 30, 1), (4, 30, 0), (5, 30, 0))
    ]
    write_text(folder / "skipped.log", "\n".join(printed) + "\n")
    write_text(folder / "negative.csv", "step,scale,overflow\n0,4,0\n1,-4,0\n")


SMALL_TRAINING = """\
[data]
kind = "spiral"
training = 128
test = 64
[model]
hidden = [16]
[training]
recipes = ["fp32", "fp16_amp", "fp8_delayed"]
steps = 9
batch = 32
checkpoint_every = 4
trace_every = 5
[unit]
history = 3
[scaler]
interval = 2
"""

INTEGER_TRAINING = """\
[data]
kind = "spiral"
training = 64
test = 32
[model]
hidden = [16, 16]
[training]
recipes = ["fp32", "int8_qat"]
steps = 6
batch = 32
[quantisation]
from = "fp32"
calibrators = ["max", "mse"]
"""

DIVERGING_TRAINING = SMALL_TRAINING.replace(
    '"fp16_amp", "fp8_delayed"]', '"fp16_amp"]'
).replace("[unit]", "[optimizer]\nkind = \"adam\"\nlearning_rate = 1e30\n[unit]")

WRONG_TRAINING = """\
[training]
recipes = ["fp31"]
"""

# A unit to be probed: FP32 without fused multiply-adds, k ascending from C.
UNIT = """\
import array, json, struct, sys

def read(path):
    data = open(path, 'rb').read()
    size = struct.unpack('<Q', data[:8])[0]
    out = {}
    for name, t in json.loads(data[8:8 + size]).items():
        if name == '__metadata__':
            continue
        begin, end = t['data_offsets']
        out[name] = (t['shape'], array.array('f', data[8 + size + begin:8 + size + end]))
    return out

def f32(x):
    try:
        return struct.unpack('<f', struct.pack('<f', x))[0]
    except OverflowError:
        return x * 1e300 * 1e300

x = read(sys.argv[1])
(t, m, k), a = x['a']
b, c = x['b'][1], x['c'][1]
d = array.array('f')
for i in range(t):
    s = c[i]
    for j in range(k):
        s = f32(s + f32(a[i * k + j] * b[i * k + j]))
    d.append(s)
head = json.dumps({'d': {'dtype': 'F32', 'shape': [t, 1, 1],
                         'data_offsets': [0, 4 * len(d)]}}).encode()
open(sys.argv[2], 'wb').write(struct.pack('<Q', len(head)) + head + d.tobytes())
"""


def write_programs(folder: Path) -> None:
    """Configurations of train, and a program to be probed."""
    write_text(folder / "small.toml", SMALL_TRAINING)
    write_text(folder / "integers.toml", INTEGER_TRAINING)
    write_text(folder / "diverging.toml", DIVERGING_TRAINING)
    write_text(folder / "wrong.toml", WRONG_TRAINING)
    write_text(folder / "value.toml", "[training]\nsteps = = 3\n")
    write_text(folder / "unit.py", UNIT)
    write_text(folder / "unit.sh", '#!/bin/sh\nexec "$PYTHON" in/unit.py "$@"\n', executable=True)


def write_benchmarks(folder: Path) -> None:
    """Two results of bench."""
    for name, faster in (("bench_old.json", 1.0), ("bench_new.json", 1.5)):
        results = [
            {"name": "gemm/fp16/512", "rate": 2e9 * faster, "unit": "fma/s", "ratio": 0.5 * faster},
            {"name": "convert/fp32/e4m3", "rate": 1e9 / faster, "unit": "elements/s"},
        ]
        document = {"machine": {"cpu": "a CPU"}, "results": results}
        write_text(folder / name, json.dumps(document))


def write_damaged(folder: Path, repository: Path) -> None:
    """Files to be refused, and a recording of which one bit of D is flipped."""
    golden = repository / "tests/golden"
    name = "mma.sync/mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32.safetensors"
    data = bytearray((golden / name).read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    begin = json.loads(data[8 : 8 + size])["d"]["data_offsets"][0]
    data[8 + size + begin + 4 * (4 * 128 + 3 * 8 + 5)] ^= 1
    (folder / "flipped.safetensors").write_bytes(bytes(data))
    whole = npy_bytes(Array(F32, (8,), [0.5] * 8))
    (folder / "short.npy").write_bytes(whole[:-5])
    (folder / "empty.npy").write_bytes(b"")
    (folder / "huge.safetensors").write_bytes(struct.pack("<Q", 1 << 60) + b"{}")
    write_text(folder / "not.json", "{\"log\": [[0, 1,")
    write_text(folder / "words.csv", "hello world\n")


def write_inputs(folder: Path, repository: Path) -> None:
    """Makes the folder and writes every input into it."""
    folder.mkdir()
    write_numbers(folder)
    write_operands(folder)
    write_matrices(folder)
    write_trace(folder)
    write_logs(folder)
    write_programs(folder)
    write_benchmarks(folder)
    write_damaged(folder, repository)
