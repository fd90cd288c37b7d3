#!/usr/bin/env python3
"""Records which kernels PyTorch's matrix products launch: python3 record_dispatch.py sweep OUT SEED SECONDS,
programs OUT SEED SECONDS (calls of small programs), or operands OUT SEED COUNT SECONDS (calls with operands and results, as captures
of kind gemm).

Needs PyTorch with CUDA, and g++ and CUPTI of the toolkit (CUDA_HOME). A sweep draws calls from a seed
until its time is over: a third each of dense, realistic and log-uniform sizes; it stores the launches of each as a number in a
table of names, and grids where a plan follows from them. A sweep runs no kernel: its calls are captured. It stores no calls but
their digest: the seed gives them again (`calls_of`).
"""
import ctypes
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from launch_log import SOURCE

OPS = ("mm", "addmm", "bmm")
DTYPES = ("f16", "bf16", "tf32", "f32")
PARTS = ("dense", "realistic", "drawn", "programs")
FIELDS = ("part", "op", "dtype", "ta", "tb", "m", "n", "k", "batch", "lda", "ldb")

HIDDEN = [64, 96, 128, 192, 256, 288, 320, 384, 448, 512, 576, 640, 672, 768, 896, 1024, 1152, 1280, 1408, 1536, 1600,
          1664, 1792, 2048, 2304, 2560, 2816, 3072, 3200, 3328, 3584, 3840, 4096, 4304, 4544, 4608, 4864, 5120, 5376,
          5632, 6144, 6400, 6656, 6912, 7168, 8192, 8960, 9216, 9728, 10240, 10752, 11008, 11264, 12288, 13696, 13824,
          14336, 16384, 18432, 18944, 20480, 22016, 24576, 25600, 27648, 28672]
OUTS = [1, 2, 3, 4, 5, 8, 10, 16, 20, 32, 100, 101, 128, 200, 256, 365, 512, 1000, 1024, 21841, 21843, 28996, 30522,
        32000, 32128, 49152, 49408, 50257, 50265, 50272, 50304, 51200, 51865, 64000, 65024, 102400, 128256, 131072,
        151936, 152064, 250002, 250112, 256000]
RECO = [1, 2, 4, 8, 10, 13, 16, 24, 26, 27, 32, 39, 48, 64, 80, 100, 128, 200, 256, 300, 367, 400, 415, 429, 479, 512,
        624, 1024, 2048, 4096]
CHANNELS = [3, 16, 24, 32, 40, 48, 64, 80, 96, 112, 120, 128, 144, 160, 184, 192, 240, 256, 320, 384, 480, 512, 576,
            640, 672, 728, 768, 960, 1024, 1152, 1280, 1536, 1920, 2048]
SEQ = [1, 2, 4, 7, 8, 16, 32, 49, 50, 64, 77, 100, 128, 144, 196, 197, 224, 256, 257, 288, 384, 400, 512, 576, 577, 640,
       729, 768, 1024, 1025, 1280, 1369, 1500, 1536, 2048, 2304, 3072, 4096, 8192, 16384, 32768]
BATCHES = [1, 1, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 100, 128, 192, 250, 256, 384, 512, 1000, 1024,
           2048, 4096, 8192]
HEADS = [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 25, 32, 36, 40, 48, 64, 96, 128]
HEAD = [8, 16, 24, 32, 40, 48, 64, 72, 80, 96, 112, 128, 160, 192, 256]


def pick(r, values, count):
    return (values if isinstance(values, np.ndarray) else np.asarray(values, dtype=np.int64))[(r.random(count) * len(values)).astype(np.int64)]


def listed(r, count):
    """Multiples of 8, powers of two and their neighbours."""
    power = (1 << (r.random(count) * 15).astype(np.int64))
    near = np.maximum(1, power + (r.random(count) * 3).astype(np.int64) - 1)
    eight = 8 * np.maximum(1, np.exp2(r.random(count) * 11).astype(np.int64))
    coarse = 64 * np.maximum(1, np.exp2(r.random(count) * 8).astype(np.int64))
    which = r.random(count)
    return np.where(which < .35, power, np.where(which < .6, near, np.where(which < .85, eight, coarse)))


def drawn(r, count, most=17):
    return np.maximum(1, np.exp2(r.random(count) * most).astype(np.int64))


def draw(r, count, part, op):
    """Columns m, n, k, batch, ta, tb, lda, ldb; too large ones are left out."""
    ta, tb = r.random(count) < .5, r.random(count) < .5
    batch = np.ones(count, np.int64)
    if part == "dense":
        m, n, k = (listed(r, count) for _ in range(3))
        if op == "bmm":
            batch = np.maximum(1, np.exp2(r.random(count) * 9).astype(np.int64))
    elif part == "drawn":
        m, n, k = (drawn(r, count) for _ in range(3))
        if op == "bmm":
            batch = np.maximum(1, np.exp2(r.random(count) * 10).astype(np.int64))
    elif op == "bmm":
        batch = pick(r, BATCHES, count) * pick(r, HEADS, count)
        seq, other, head = pick(r, SEQ, count), pick(r, SEQ, count), pick(r, HEAD, count)
        other = np.where(r.random(count) < .7, seq, other)
        role = (r.random(count) * 4).astype(np.int64)
        m = np.where(role == 2, other, seq)
        n = np.where(role == 0, other, head)
        k = np.where(role == 0, head, np.where(role == 2, seq, other))
        usual_a, usual_b = role == 2, role == 0
        keep = r.random(count) < .7
        ta, tb = np.where(keep, usual_a, ta), np.where(keep, usual_b, tb)
    else:
        tokens = pick(r, BATCHES, count) * np.where(r.random(count) < .6, pick(r, SEQ, count), 1)
        odd = r.random(count) < .15
        tokens = np.where(odd, drawn(r, count, 14), tokens)
        kind = r.random(count)
        wide = pick(r, HIDDEN, count)
        inner = np.where(kind < .55, pick(r, HIDDEN, count), np.where(kind < .75, wide,
                         np.where(kind < .88, pick(r, RECO, count), pick(r, CHANNELS, count))))
        outer = np.where(kind < .55, wide * np.where(r.random(count) < .15, 3, 1),
                         np.where(kind < .75, pick(r, OUTS, count),
                                  np.where(kind < .88, pick(r, RECO, count), pick(r, CHANNELS, count))))
        role = r.random(count)
        forward, grad_x = role < .5, role < .75
        m = np.where(grad_x, tokens, outer)
        n = np.where(forward, outer, inner)
        k = np.where(forward, inner, np.where(grad_x, outer, tokens))
        keep = r.random(count) < .7
        ta = np.where(keep, ~grad_x, ta)
        tb = np.where(keep, forward, tb)
    lda, ldb = np.where(ta, m, k), np.where(tb, k, n)
    if part != "realistic":
        pad = pick(r, [1, 2, 4, 8, 64], count)
        lda = np.where(r.random(count) < .08, lda + pad, lda)
        ldb = np.where(r.random(count) < .08, ldb + pad, ldb)
    f = lambda x: x.astype(np.float64)
    size_a = f(np.where(ta, k, m)) * lda * batch
    size_b = f(np.where(tb, n, k)) * ldb * batch
    good = (f(m) * n * k * batch <= 2. ** 36) & (size_a < 2 ** 28.5) & (size_b < 2 ** 28.5) & \
        (f(m) * n * batch < 2 ** 28.5)
    return [x[good].astype(np.int64) for x in (ta, tb, m, n, k, batch, lda, ldb)]


# Floors of powers of two from 1 to 1023 in equal steps of the exponent.
SIZES = np.array([int(2 ** (i / 256)) for i in range(2560)])
SEQUENCES = np.array([1, 4, 7, 8, 10, 12, 16, 17, 20, 24, 28, 30, 32, 33, 40, 48, 49, 50, 63, 64, 65, 80, 96, 100, 127, 128, 129, 196, 197, 200, 250, 255,
             256, 257, 384, 511, 512])
POWERS = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])
UP_TO_128, UP_TO_256 = SIZES[SIZES <= 128], SIZES[SIZES <= 256]
EIGHTS, COARSE = 8 * UP_TO_128, 32 * UP_TO_128


def mixed(r, count, *parts):
    """Of each part (share, values) so many, at random."""
    which, result, bound = r.random(count), np.zeros(count, np.int64), 0.
    for share, values in parts:
        result = np.where((which >= bound) & (which < bound + share), pick(r, values, count), result)
        bound += share
    return result


def draw_programs(r, count, op):
    """Columns as `draw`: layers of small programs and their gradients, tensors without gaps."""
    size = lambda: mixed(r, count, (.3, EIGHTS), (.25, COARSE), (.15, POWERS), (.3, SIZES))
    groups = mixed(r, count, (.6, POWERS[:9]), (.4, UP_TO_256))
    sequences = mixed(r, count, (.5, SEQUENCES), (.2, POWERS), (.3, SIZES))
    if op == "bmm":
        batch = groups * pick(r, [1, 1, 2, 2, 3, 4, 4, 6, 8, 8, 12, 16], count)
        head = mixed(r, count, (.8, HEAD), (.2, UP_TO_256))
        other = np.where(r.random(count) < .7, sequences, pick(r, SEQUENCES, count))
        role = (r.random(count) * 4).astype(np.int64)
        m = np.where(role == 2, other, sequences)
        n, k = np.where(role == 0, other, head), np.where(role == 0, head, np.where(role == 2, sequences, other))
    else:
        batch = np.ones(count, np.int64)
        tokens = np.where(r.random(count) < .6, groups * np.where(r.random(count) < .3, 1, sequences), size())
        inner, outer = size(), size()
        role = r.random(count)
        forward, of_data = role < .5, role < .75
        m, n = np.where(of_data, tokens, outer), np.where(forward, outer, inner)
        k = np.where(forward, inner, np.where(of_data, outer, tokens))
    ta, tb = r.random(count) < .5, r.random(count) < .5
    keep = r.random(count) < .8
    if op == "bmm":
        ta, tb = np.where(keep, role == 2, ta), np.where(keep, role == 0, tb)
    else:
        ta, tb = np.where(keep, ~of_data, ta), np.where(keep, forward, tb)
    good = (m * n * k * batch <= 2 ** 36) & (np.maximum(m * k, np.maximum(n * k, m * n)) * batch < 2 ** 28)
    return [x[good].astype(np.int64) for x in (ta, tb, m, n, k, batch, np.where(ta, m, k), np.where(tb, k, n))]


def block_of(part, op, dtype, columns):
    """Rows of FIELDS."""
    calls = np.stack(columns, 1)
    return np.concatenate([np.tile(np.array([[part, op, dtype]]), (len(calls), 1)), calls], 1).astype(np.int32)


def blocks_of_programs(seed):
    """Without an end: rows of FIELDS, 600 or fewer of one operator and type at a time."""
    r = np.random.Generator(np.random.PCG64(seed))
    while True:
        op, dtype = (int(pick(r, x, 1)[0]) for x in ([0, 0, 0, 0, 1, 1, 1, 1, 2, 2], [0, 0, 1, 1, 1, 2, 3, 3, 3, 3]))
        yield block_of(3, op, dtype, draw_programs(r, 600, OPS[op]))


def blocks_of_layers(seed):
    """As blocks_of_programs, with more of what these trees tell least well: mm, and FP32."""
    r = np.random.Generator(np.random.PCG64(seed))
    while True:
        op, dtype = (int(pick(r, x, 1)[0]) for x in ([0, 0, 0, 0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 3, 3, 3, 3, 3]))
        yield block_of(3, op, dtype, draw_programs(r, 600, OPS[op]))


def blocks_of_sweep(seed):
    """Without an end: rows of FIELDS, 600 or fewer of one operator and type at a time."""
    r = np.random.Generator(np.random.PCG64(seed))
    while True:
        op, dtype, part = (int(pick(r, x, 1)[0]) for x in ([0, 0, 0, 0, 1, 1, 1, 2, 2], [0, 1, 2, 3], [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]))
        yield block_of(part, op, dtype, draw(r, 600, PARTS[part], OPS[op]))


SWEEPS = {"sweep": blocks_of_sweep, "programs": blocks_of_programs, "layers": blocks_of_layers}


def calls_of(recorded):
    """The calls of a file of this script."""
    if "calls" in recorded:
        return recorded["calls"].astype(np.int64)
    rows, count, all_of_them = [], 0, len(recorded["ids"])
    # The first sweeps of this kind, which did not say so, were of programs.
    blocks = SWEEPS[str(recorded["sweep"]) if "sweep" in recorded else "programs"]
    for block in blocks(int(recorded["seed"])):
        if count >= all_of_them:
            break
        rows.append(block)
        count += len(block)
    calls = np.concatenate(rows)
    if hashlib.sha256(calls.tobytes()).hexdigest() != str(recorded["digest"]):
        raise SystemExit("the seed gives other calls here than there")
    return calls.astype(np.int64)


def built_log():
    """The logger as a shared library in a folder that goes with the process."""
    folder = tempfile.TemporaryDirectory()
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    source, library = os.path.join(folder.name, "log" ".cpp"), os.path.join(folder.name, "log.so")
    with open(source, "w") as file:
        file.write(SOURCE)
    subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", "-O2", source, "-o", library, f"-I{home}/include",
                    f"-I{home}/extras/CUPTI/include", f"-L{home}/lib64", f"-L{home}/extras/CUPTI/lib64", "-lcupti",
                    "-ldl"], check=True)
    return folder, library


class Log:
    def __init__(self):
        self.folder, library = built_log()
        self.lib = ctypes.CDLL(library)
        for f in ("log_ids", "log_grids"):
            getattr(self.lib, f).restype = ctypes.POINTER(ctypes.c_uint32)
        for f in ("log_calls", "log_names", "log_grid_count"):
            getattr(self.lib, f).restype = ctypes.c_uint64
        self.lib.log_name.restype = ctypes.c_char_p
        self.lib.log_name.argtypes = [ctypes.c_uint64]
        status = self.lib.log_start()
        if status:
            raise SystemExit(f"CUPTI status {status}")
        self.mark, self.drop = self.lib.log_mark, self.lib.log_drop

    def array(self, name, shape):
        if 0 in shape:
            return np.zeros(shape, np.uint32)
        return np.ctypeslib.as_array(getattr(self.lib, name)(), shape).copy()

    def take(self):
        keys = [self.lib.log_name(i).decode() for i in range(self.lib.log_names())]
        return {"ids": self.array("log_ids", (self.lib.log_calls(),)),
                "grids": self.array("log_grids", (self.lib.log_grid_count(), 6)),
                "keys": np.frombuffer("\n".join(keys).encode(), np.uint8)}

    def take_with_grids(self):
        """Grids of all calls whose plan follows from them, else 0."""
        taken = self.take()
        keys = bytes(taken["keys"]).decode().split("\n")
        # A linear layer of one feature copies its bias first.
        second = np.array(["elementwise" in key.split(";")[0] for key in keys])[taken["ids"]]
        taken["grids"][second, 0] = taken["grids"][second, 3]
        taken["grids"][~np.array(["gemvx" in key or "dot_kernel" in key for key in keys])[taken["ids"]]] = 0
        taken["grids"][:, 1:] = 0
        return taken


class Capture:
    """A stream whose calls are captured into graphs that nothing runs: the same launches as without, for nothing."""

    def __init__(self, torch):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.stream = torch.cuda.Stream()
        self.handle = ctypes.c_void_p(self.stream.cuda_stream)

    def begin(self):
        status = self.driver.cuStreamBeginCapture_v2(self.handle, ctypes.c_int(2))
        if status:
            raise SystemExit(f"cuStreamBeginCapture status {status}")

    def end(self):
        graph = ctypes.c_void_p()
        if self.driver.cuStreamEndCapture(self.handle, ctypes.byref(graph)) == 0 and graph.value:
            self.driver.cuGraphDestroy(graph)


def setup(torch):
    torch.zeros(8, device="cuda")
    half = 2 ** 28.5
    size = int(half * 4) // 4096 * 4096 + 4096
    return torch.empty(size, dtype=torch.uint8, device="cuda"), torch.empty(size, dtype=torch.uint8, device="cuda")


def views(torch, source, dtype, call, op):
    """Operands of one call as views of `source` (a, b)."""
    ta, tb, m, n, k, batch, lda, ldb = call
    sa = (1, lda) if ta else (lda, 1)
    sb = (1, ldb) if tb else (ldb, 1)
    if op == "bmm":
        a = source[0].as_strided((batch, m, k), ((k if ta else m) * lda, *sa))
        b = source[1].as_strided((batch, k, n), ((n if tb else k) * ldb, *sb))
    else:
        a, b = source[0].as_strided((m, k), sa), source[1].as_strided((k, n), sb)
    return a, b


def run(torch, op, a, b, d, bias):
    if op == "mm":
        torch.mm(a, b, out=d)
    elif op == "addmm":
        torch.addmm(bias, a, b, out=d)
    else:
        torch.bmm(a, b, out=d)


def warm_up(torch, raw, raw_d):
    """Handles, workspaces and first kernels, which no capture may make."""
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        x, d = raw.view(dtype).as_strided((64, 64), (64, 1)), raw_d.view(dtype).as_strided((64, 64), (64, 1))
        torch.mm(x, x, out=d)
        torch.addmm(raw.view(dtype).as_strided((64,), (1,)), x, x, out=d)
        three = (2, 32, 32), (1024, 32, 1)
        torch.bmm(x.as_strided(*three), x.as_strided(*three), out=d.as_strided(*three))
    torch.cuda.synchronize()


def launch_block(torch, log, raw, raw_d, rows):
    """Launches calls of one operator and type, of which FIELDS are the columns, while a capture goes on."""
    op, dtype_i = OPS[rows[0][1]], int(rows[0][2])
    dtype = {0: torch.float16, 1: torch.bfloat16}.get(dtype_i, torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = dtype_i == 2
    source, target = raw.view(dtype), raw_d.view(dtype)
    for _, _, _, *call in rows.tolist():
        a, b = views(torch, (source, source), dtype, call, op)
        m, n, batch = call[2], call[3], call[5]
        d = target.as_strided((batch, m, n), (m * n, n, 1)) if op == "bmm" else target.as_strided((m, n), (n, 1))
        log.drop()
        run(torch, op, a, b, d, source.as_strided((n,), (1,)))
        log.mark(batch)


def sweep(out, seed, seconds, name):
    import torch
    begin = time.time()
    raw, raw_d = setup(torch)
    log, capture = Log(), Capture(torch)
    log.lib.log_grid_calls(ctypes.c_uint64(1 << 40))
    rows = []
    with torch.cuda.stream(capture.stream):
        warm_up(torch, raw, raw_d)
        for block in SWEEPS[name](seed):
            if time.time() - begin > seconds:
                break
            capture.begin()
            launch_block(torch, log, raw, raw_d, block)
            capture.end()
            rows.append(block)
    calls = np.concatenate(rows)
    np.savez_compressed(out, seed=seed, sweep=name, digest=hashlib.sha256(calls.tobytes()).hexdigest(),
                        device=torch.cuda.get_device_name(), torch=torch.__version__, behind_copies=True, **log.take_with_grids())
    print(out, len(calls), "calls", flush=True)


FRACTION = {"f16": 10, "bf16": 7, "tf32": 10, "f32": 23}


def values(r, shape, dtype):
    """FP32 numbers that the format has: any fraction, exponents -3..3, both signs."""
    bits = FRACTION[dtype]
    whole = (1 << bits) + (r.random(shape) * (1 << bits)).astype(np.int64)
    x = whole.astype(np.float64) * np.exp2(np.floor(r.random(shape) * 7) - 3 - bits)
    return np.where(r.random(shape) < .5, -x, x).astype(np.float32)


def operands_of(seed, dtype, rows, columns, k):
    """a [rows, k], b [k, columns], bias [columns]; every other seed's exact products cancel."""
    r = np.random.Generator(np.random.PCG64(seed))
    a, b = values(r, (rows, k), dtype), values(r, (k, columns), dtype)
    bias = values(r, (columns,), dtype)
    if seed % 2 and k > 1:
        h = k // 2
        to = h + np.argsort(r.random(h), kind="stable")
        a[:, to] = a[:, :h]
        b[to, :] = -b[:h, :]
        bias[:] = 0
        if k % 2:
            a[:, k - 1] *= np.float32(2. ** -10) if dtype != "f16" else 1
    return a, b, bias


def operands(out, seed, count, seconds):
    import torch
    from safetensors.numpy import save_file
    begin = time.time()
    raw, raw_d = setup(torch)
    raw_b = torch.empty_like(raw)
    log = Log()
    r = np.random.Generator(np.random.PCG64(seed))
    os.makedirs(out, exist_ok=True)
    index = []
    results = {}
    number = 0
    last = None
    while number < count and time.time() - begin < seconds:
        op_i = int(pick(r, [0, 0, 1, 1, 2], 1)[0])
        dtype_i = int(pick(r, [0, 1, 2, 3], 1)[0])
        part_i = int(pick(r, [0, 1, 2], 1)[0])
        op, name = OPS[op_i], DTYPES[dtype_i]
        dtype = {0: torch.float16, 1: torch.bfloat16}.get(dtype_i, torch.float32)
        torch.backends.cuda.matmul.allow_tf32 = dtype_i == 2
        if last != dtype:
            for x in (raw, raw_b):
                x.view(dtype).normal_()
            last = dtype
        calls = np.stack(draw(r, 40, PARTS[part_i], op), 1).tolist()
        for call in calls[:20]:
            ta, tb, m, n, k, batch, lda, ldb = call
            if k > 20000 and r.random() < .8:
                continue
            rows = sorted({0, m - 1} | {int(r.random() * m) for _ in range(4)})
            columns = sorted({0, n - 1} | {int(r.random() * n) for _ in range(6)})
            s = seed * 100000 + number
            ha, hb, hbias = operands_of(s, name, len(rows), len(columns), k)
            a, b = views(torch, (raw.view(dtype), raw_b.view(dtype)), dtype, call, op)
            a0, b0 = (a[0], b[0]) if op == "bmm" else (a, b)
            tr, tc = torch.tensor(rows, device="cuda"), torch.tensor(columns, device="cuda")
            a0[tr] = torch.from_numpy(ha).cuda().to(dtype)
            b0[:, tc] = torch.from_numpy(hb).cuda().to(dtype)
            bias = torch.zeros(n, device="cuda", dtype=dtype)
            bias[tc] = torch.from_numpy(hbias).cuda().to(dtype)
            target = raw_d.view(dtype)
            d = target.as_strided((batch, m, n), (m * n, n, 1)) if op == "bmm" else target.as_strided((m, n), (n, 1))
            torch.cuda.synchronize()
            log.drop()
            run(torch, op, a, b, d, bias)
            log.mark(batch)
            torch.cuda.synchronize()
            d0 = (d[0] if op == "bmm" else d)[tr][:, tc]
            bits = d0.contiguous().view(torch.int16 if dtype_i < 2 else torch.int32).cpu().numpy()
            results["d%d" % number] = bits
            index.append([part_i, op_i, dtype_i] + call + [s])
            # The capture for explain.
            fmt = {0: torch.float16, 1: torch.bfloat16}.get(dtype_i, torch.float32)
            from safetensors.torch import save_file as save_torch
            meta = {"capture": "1", "kind": "gemm", "arch": "sm_90", "library": "cublas-13",
                    "device": torch.cuda.get_device_name(),
                    "call": json.dumps({"op": "aten." + op, "m": m, "n": n, "k": k, "batch": batch, "dtype": name,
                                        "a_stride": list(a.stride()), "b_stride": list(b.stride()), "rows": rows,
                                        "columns": columns})}
            if dtype_i == 2:
                meta["math_mode"] = "tf32"
            t = {"a": torch.from_numpy(ha).to(fmt), "b": torch.from_numpy(hb).to(fmt), "d": d0.cpu().contiguous()}
            if op == "addmm":
                t["bias"] = torch.from_numpy(hbias).to(fmt)
            save_torch(t, os.path.join(out, "%d.safetensors" % number), metadata=meta)
            results["r%d" % number], results["c%d" % number] = np.array(rows), np.array(columns)
            number += 1
    np.savez(out + ".npz", calls=np.array(index), device=torch.cuda.get_device_name(), **log.take(), **results)
    print(out, number, "calls with operands", flush=True)


if __name__ == "__main__":
    if sys.argv[1] in SWEEPS:
        sweep(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[1])
    else:
        operands(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
