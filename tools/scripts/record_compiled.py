#!/usr/bin/env python3
"""Records matrix products that compilers made, as captures of kind gemm.

  record_compiled.py record FOLDER [--seconds 240] [--jax 420] [--torch 280] [--seed 1]   (needs JAX, PyTorch with Triton, a GPU)
      products drawn from a seed: JAX's (XLA chooses or tunes a Triton kernel, cuBLAS or cuBLASLt) and those of
      torch.compile (Triton templates, one of their configurations drawn, or the fastest of three); several processes share
      the GPU; what is finished in time is packed into FOLDER/*.tar.gz, errors are in FOLDER/log.txt
  record_compiled.py fill FOLDER CAPTURE.safetensors|ARCHIVE.tar.gz ...         (needs NumPy)
      the same captures with their operands

Operands are functions of their place and a seed, so that a recording holds D alone (at most 48 rows, 48 columns and two
batch entries of it) and `fill` adds the rows of A and the columns of B. The metadata say what was called: `case`, `shape`
(batch, M, N, K of the whole call), `rows`, `columns`, `batches` (those that were kept), `alpha`, `activation`, `call`
(everything that was drawn), `choice` (the kernel that torch.compile took) and `hlo` (what XLA made of the call).
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib

import numpy as np

KEPT = 48
MASK = {"f32": 0x7FFFFF, "f16": 0x7FE000, "bf16": 0x7F0000}
EXPONENTS = {"normal": (0, 0, 1, 1, 2, 2, 3, 4), "wide": (-2, 0, 1, 2, 4, 6, 8, 10)}
SAFETENSORS = {"f32": "F32", "f16": "F16", "bf16": "BF16"}


# Operands

def hashed(seed, index):
    """64 bits of each index (Steele, Lea and Flood's splitmix64)."""
    x = index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed * 0x632BE59BD9B4E019 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def values(operand, *places):
    """FP32 elements of an operand at the outer product of places along its dimensions. They are numbers of its format."""
    index = np.zeros((1,) * len(places), np.uint64)
    for axis, (size, at) in enumerate(zip(operand["shape"], places)):
        at = np.asarray(at, np.uint64).reshape([-1 if i == axis else 1 for i in range(len(places))])
        index = index * np.uint64(size) + at
    bits = hashed(operand["seed"], index)
    if operand["format"] == "int8":
        return ((bits >> np.uint64(20)) % np.uint64(255)).astype(np.float32) - 127
    exponents = np.array([127 + operand["lift"] - e for e in EXPONENTS[operand["spread"]]], np.uint32)
    word = (bits >> np.uint64(8)).astype(np.uint32) & np.uint32(MASK[operand["format"]])
    word |= exponents[(bits >> np.uint64(40)).astype(np.uint32) & np.uint32(7)] << np.uint32(23)
    word |= (bits >> np.uint64(63)).astype(np.uint32) << np.uint32(31)
    return word.view(np.float32)


def whole(operand):
    return values(operand, *(np.arange(size) for size in operand["shape"]))


def encoded(x, kind):
    """Bytes of FP32 numbers that the format has."""
    if kind == "bf16":
        return (np.ascontiguousarray(x).view(np.uint32) >> np.uint32(16)).astype(np.uint16).tobytes()
    return np.ascontiguousarray(x).astype(np.float16 if kind == "f16" else np.float32).tobytes()


# Files

def write_safetensors(path, tensors, metadata):
    """tensors: name -> (dtype, shape, bytes)"""
    header, at = {"__metadata__": {key: str(value) for key, value in metadata.items()}}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(x[2] for x in tensors.values()))
    os.rename(path + ".part", path)


def read_safetensors(file):
    header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    data = file.read()
    metadata = header.pop("__metadata__", {})
    return {name: (x["dtype"], x["shape"], data[slice(*x["data_offsets"])]) for name, x in header.items()}, metadata


# Draws

class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def choice(self, *options):
        return self.random.choice(options)

    def weighted(self, **options):
        return self.random.choices(list(options), list(options.values()))[0]

    def shape(self, kinds):
        kind = self.random.choice(kinds)
        small = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 31, 32, 33)
        middle = (48, 64, 72, 96, 100, 128, 130, 160, 192, 200, 256, 320, 333)
        large = (384, 512, 640, 768, 1000, 1024, 1536, 2048)
        ks = (1, 2, 5, 8, 15, 16, 24, 32, 33, 48, 64, 72, 96, 100, 128, 160, 200, 250, 256, 320, 384, 500, 512)
        long = (640, 768, 1000, 1024, 1280, 1500, 2048, 3000, 4096)
        sides, depths = {"tiny": (small, ks), "small": (small + middle, ks), "middle": (middle, ks + long), "deep": (middle, long + (8192,)),
                         "thin": (small, long + (8192,)), "large": (large, ks + long)}[kind]
        m, n, k = self.random.choice(sides), self.random.choice(sides), self.random.choice(depths)
        if self.random.random() < 0.1:
            m = 1
        elif self.random.random() < 0.1:
            n = 1
        while k * max(m, n) > 1 << 22:
            k //= 2
        return m, n, k


def operands_of(item, seed):
    g, m, n, k = item["shape"]
    lift = max(0, (k.bit_length() - 1) // 2 - 1)
    made = {}
    for number, (name, shape) in enumerate((("a", (g, m, k)), ("b", (g, k, n)), ("bias", (n,)), ("c", (g, m, n)))):
        if name == "bias" and "bias" not in item["epilogue"] or name == "c" and item["epilogue"] != "residual":
            continue
        made[name] = {"shape": shape, "seed": seed * 4 + number, "format": item["operand"], "spread": item["spread"],
                      "lift": lift if name in ("bias", "c") else 0}
    return made


def draw_jax(count, seed):
    draw, items = Draw(seed), []
    for i in range(count):
        m, n, k = draw.shape(("tiny", "small", "middle", "middle", "deep", "deep", "deep", "thin", "large"))
        kind = draw.weighted(bf16=14, bf16_f32=14, f16=10, f16_f32=10, f32_default=18, f32_highest=14, f32_high=4, algorithm=10)
        batch = draw.choice(1, 1, 1, 1, 1, 2, 3, 5)
        if batch * k * max(m, n) > 1 << 22:
            batch = 1
        item = {"by": "jax", "kind": kind, "shape": [batch, m, n, k], "operand": kind.split("_")[0], "spread": draw.choice("normal", "normal", "wide"),
                "result": "f32" if kind.startswith("f32") or kind.endswith("f32") or kind == "algorithm" else kind,
                "transposed": draw.choice("NN", "NN", "NT", "TN", "TT"), "backend": draw.weighted(default=50, triton=35, cublaslt=10, cublas=5),
                "prologue": draw.weighted(none=80, convert=8, scale=6, int8=6),
                "epilogue": draw.weighted(none=46, bias=12, relu=8, scale=8, cast=8, bias_relu=6, residual=8, gelu=4),
                "algorithm": None, "contracted": 1}
        if kind == "algorithm":
            item["algorithm"], item["operand"] = draw.choice(
                ("TF32_TF32_F32", "f32"), ("TF32_TF32_F32_X3", "f32"), ("BF16_BF16_F32", "f32"), ("BF16_BF16_F32", "bf16"),
                ("BF16_BF16_F32_X3", "f32"), ("BF16_BF16_F32_X6", "f32"), ("BF16_BF16_F32_X9", "f32"), ("F16_F16_F32", "f16"),
                ("F32_F32_F32", "f32"))
        if batch == 1 and k % 8 == 0 and draw.choice(True, *[False] * 9):
            item["contracted"] = draw.choice(2, 4, 8)
        if item["prologue"] == "convert" and item["operand"] != "f32" or item["prologue"] == "int8" and item["operand"] == "f32":
            item["prologue"] = "none"
        if item["epilogue"] == "cast" and item["result"] != "f32" or item["epilogue"] == item["prologue"] == "scale":
            item["epilogue"] = "none"
        items.append(item)
    return items


def draw_torch(count, seed):
    draw, items = Draw(seed), []
    for i in range(count):
        m, n, k = draw.shape(("small", "middle", "middle", "deep", "deep", "large", "large"))
        kind = draw.weighted(bf16=28, f16=24, f32_tf32=26, f32_ieee=22)
        batch = draw.choice(1, 1, 1, 1, 1, 2, 3)
        m, n, k = max(m, 2), max(n, 2), max(k, 2)
        if draw.choice(True, False):  # what persistent kernels with TMA take
            n, k = -(-n // 16) * 16, -(-k // 16) * 16
        if batch * k * max(m, n) > 1 << 22:
            batch = 1
        epilogue = draw.weighted(none=18, bias=16, relu=14, gelu=8, gelu_tanh=5, scale=12, residual=14, cast=10, bias_relu=10)
        operand = kind.split("_")[0]
        result = ("bf16" if operand == "f32" else "f32") if epilogue == "cast" else operand
        items.append({"by": "torch", "kind": kind, "shape": [batch, m, n, k], "operand": operand, "spread": draw.choice("normal", "normal", "wide"),
                      "result": result, "transposed": draw.choice("NN", "NT", "NT", "TN"), "epilogue": epilogue,
                      "tuned": draw.choice(True, False, False, False, False), "tma": draw.choice(True, True, False), "prologue": "none"})
    return items


def name_of(item, number):
    g, m, n, k = item["shape"]
    parts = [item["by"], f"{number:03d}", item["kind"], item.get("backend"), item["algorithm"] if item.get("algorithm") else None,
             f"{g}x{m}x{n}x{k}" if g > 1 else f"{m}x{n}x{k}", item["transposed"],
             *(item[x] for x in ("prologue", "epilogue") if item[x] != "none"), item["spread"] if item["spread"] != "normal" else None]
    return "_".join(x for x in parts if x)


SCALE = 0.37


def factor_of(item):
    """SCALE as the program multiplies by it: in JAX a Python number takes the format of the array beside it."""
    array = item["operand"] if item["prologue"] == "scale" else item["result"]
    if item["by"] != "jax" or array == "f32":
        return SCALE
    if array == "f16":
        return float(np.float16(SCALE))
    word = int(np.float32(SCALE).view(np.uint32))
    return float(np.uint32((word + 0x7FFF + (word >> 16 & 1)) & 0xFFFF0000).view(np.float32))


def prepared(item, number):
    """Operands' descriptions with the formats in which they are passed; metadata that say what was asked."""
    operands = operands_of(item, number + (1000 if item["by"] == "torch" else 0))
    if item["prologue"] == "int8":
        operands["a"]["format"] = "int8"
    if item["prologue"] == "convert":
        for name in ("a", "b") if number % 2 else ("a",):
            operands[name]["format"] = "bf16"
    for name in ("bias", "c"):
        if name in operands:
            operands[name]["format"] = item["result"] if item["by"] == "jax" else item["operand"]
    metadata = {"capture": "1", "kind": "gemm", "case": name_of(item, number), "call": json.dumps(item)}
    if item["epilogue"] == "scale" or item["prologue"] == "scale":
        metadata["alpha"] = repr(factor_of(item))
    if item["epilogue"] == "residual":
        metadata["beta"] = "1"
    for word in ("gelu_tanh", "gelu", "relu"):
        if word in item["epilogue"]:
            metadata["activation"] = word
            break
    return operands, metadata


def save(folder, item, number, operands, metadata, d, checksums):
    """d: the whole result as raw bytes of [batch, M, N] in the item's format."""
    g, m, n, k = item["shape"]
    draw = random.Random(number)
    keep = lambda size, most: sorted(draw.sample(range(size), most)) if size > most else list(range(size))
    batches, rows, columns = keep(g, 2), keep(m, KEPT), keep(n, KEPT)
    dtype = np.uint32 if len(d) == 4 * g * m * n else np.uint16
    part = np.frombuffer(d, dtype).reshape(g, m, n)[np.ix_(batches, rows, columns)]
    if g == 1:
        part = part[0]
    else:
        metadata["batches"] = json.dumps(batches)
    if len(rows) < m:
        metadata["rows"] = json.dumps(rows)
    if len(columns) < n:
        metadata["columns"] = json.dumps(columns)
    metadata.update(shape=json.dumps(item["shape"]), operands=json.dumps(operands), checksums=json.dumps(checksums))
    written = {4: "F32"}.get(dtype().itemsize) or SAFETENSORS[item["stored"]]
    write_safetensors(os.path.join(folder, metadata["case"] + ".safetensors"), {"d": (written, part.shape, part.tobytes())}, metadata)


# JAX

OPTIONS = {"default": [{}],
           "triton": [{"xla_gpu_triton_gemm_any": True, "xla_gpu_cublas_fallback": False}, {"xla_gpu_cublas_fallback": False}, {}],
           "cublaslt": [{"xla_gpu_enable_triton_gemm": False, "xla_gpu_enable_cublaslt": True}, {"xla_gpu_enable_triton_gemm": False}, {}],
           "cublas": [{"xla_gpu_enable_triton_gemm": False, "xla_gpu_enable_cublaslt": False}, {"xla_gpu_enable_triton_gemm": False}, {}]}


class JaxWorker:
    def __init__(self):
        import jax
        import jax.numpy as jnp
        self.jax, self.jnp = jax, jnp
        self.formats = {"f32": jnp.float32, "f16": jnp.float16, "bf16": jnp.bfloat16, "int8": jnp.int8}
        device = jax.devices()[0]
        self.facts = {"arch": "sm_90", "device": device.device_kind, "library": f"JAX {jax.__version__}"}
        self.refused = set()

    def product(self, item):
        jax, jnp, formats = self.jax, self.jnp, self.formats
        kind = formats[item["operand"]]
        precision = {"f32_highest": jax.lax.Precision.HIGHEST, "f32_high": jax.lax.Precision.HIGH}.get(item["kind"])
        if item["algorithm"]:
            precision = getattr(jax.lax.DotAlgorithmPreset, item["algorithm"])
        result = formats[item["result"]]
        first = 1 if item["shape"][0] > 1 else 0
        contracted = 2 if item["contracted"] > 1 else 1

        def axes(k_first):
            return tuple(first + x + (0 if k_first else 1) for x in range(contracted))

        dimensions = ((axes(item["transposed"][0] == "T"), axes(item["transposed"][1] == "N")), ((0,), (0,)) if first else ((), ()))

        def call(x, y, *more):
            if item["prologue"] == "scale":
                x = x * SCALE
            x, y = x.astype(kind), y.astype(kind)
            z = jax.lax.dot_general(x, y, dimensions, precision=precision, preferred_element_type=result)
            if item["epilogue"] == "scale":
                z = z * SCALE
            if more:
                z = z + more[0]
            if "relu" in item["epilogue"]:
                z = jnp.maximum(z, 0)
            if item["epilogue"] == "gelu":
                z = jax.nn.gelu(z, approximate=False)
            return z.astype(jnp.bfloat16) if item["epilogue"] == "cast" else z

        return call

    def arguments(self, item, operands):
        g, m, n, k = item["shape"]
        arguments, sums = [], {}
        for name, operand in operands.items():
            x = whole(operand)
            sums[name] = zlib.crc32(x.tobytes())
            if name in "ab":
                swap = item["transposed"]["ab".index(name)] == "T"
                if item["contracted"] > 1:
                    parts = (k // item["contracted"], item["contracted"])
                    x = x.reshape((g, m) + parts) if name == "a" else x.reshape((g,) + parts + (n,))
                    if swap:
                        x = np.transpose(x, (0, 2, 3, 1) if name == "a" else (0, 3, 1, 2))
                elif swap:
                    x = np.swapaxes(x, 1, 2)
            if name != "bias" and g == 1:
                x = x[0]
            arguments.append(self.jnp.asarray(np.ascontiguousarray(x)).astype(self.formats[operand["format"]]))
        return arguments, sums

    def run(self, item, number, folder):
        operands, metadata = prepared(item, number)
        metadata.update(self.facts)
        arguments, sums = self.arguments(item, operands)
        lowered = self.jax.jit(self.product(item)).lower(*arguments)
        for options in OPTIONS[item["backend"]]:
            words = json.dumps(options)
            if words in self.refused:
                continue
            try:
                compiled = lowered.compile(compiler_options=options or None)
                break
            except Exception as error:
                if "No such compile option" in str(error) or "nrecognized" in str(error):
                    self.refused.add(words)
                elif options is OPTIONS[item["backend"]][-1]:
                    raise
                print(f"{metadata['case']}: options {words}: {str(error).splitlines()[0][:200]}", flush=True)
        metadata["options"] = words
        metadata["hlo"] = brief_hlo(compiled.as_text())
        results = [np.asarray(compiled(*arguments)).tobytes() for _ in range(2)]
        if results[0] != results[1]:
            raise RuntimeError("another result each time")
        item["stored"] = "bf16" if item["epilogue"] == "cast" else item["result"]
        save(folder, item, number, operands, metadata, results[0], sums)


def brief_hlo(text):
    """The optimised program without layouts' and sources' details."""
    text = re.sub(r", metadata=\{[^}]*\}", "", text)
    # The table of sources names files of the machine that recorded.
    text = re.sub(r"\nFileNames\n.*?\nStackFrames\n(\d[^\n]*\n)*", "\n", text, flags=re.DOTALL)
    text = re.sub(r"\"(wait_on_operation_queues|force_earliest_schedule|reification_cost|operation_queue_id)\":(\[[^\]]*\]|\"[^\"]*\"|\w+),?", "", text)
    return text[:16000]


# torch.compile

class TorchWorker:
    def __init__(self):
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        import torch
        from torch._inductor import config, select_algorithm
        self.torch, self.config = torch, config
        self.formats = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
        config.max_autotune_gemm_backends = "TRITON"
        for owner, key in ((config, "force_disable_caches"), (config.triton, "enable_persistent_tma_matmul")):
            try:
                setattr(owner, key, True)
            except Exception as error:
                print(f"{key}: {error}", flush=True)
        self.facts = {"arch": "sm_%d%d" % torch.cuda.get_device_capability(), "device": torch.cuda.get_device_name(),
                      "cuda": torch.version.cuda, "library": f"PyTorch {torch.__version__}"}
        self.item, self.draw, self.chosen = None, None, []
        select_algorithm.add_preprocessing_fn(self.choose)

    def choose(self, choices):
        """One of the templates' configurations, or three that are timed."""
        triton = [x for x in choices if not type(x).__name__.startswith("Extern")]
        persistent = [x for x in triton if "tma" in x.name or "persistent" in x.name]
        if persistent and self.item["tma"]:
            triton = persistent
        picked = self.draw.sample(triton, min(len(triton), 3 if self.item["tuned"] else 1)) if triton else list(choices)
        self.chosen += [f"{x.name}: {getattr(x, 'description', '')}" for x in picked]
        return picked

    def product(self, item):
        torch, formats, epilogue = self.torch, self.formats, item["epilogue"]

        def call(x, y, *more):
            if "bias" in epilogue and x.dim() == 2:
                z = torch.addmm(more[0], x, y)
            else:
                z = torch.bmm(x, y) if x.dim() == 3 else torch.mm(x, y)
                if more:
                    z = z + more[0]
            if "relu" in epilogue:
                z = torch.relu(z)
            if epilogue in ("gelu", "gelu_tanh"):
                z = torch.nn.functional.gelu(z, approximate="tanh" if epilogue == "gelu_tanh" else "none")
            if epilogue == "scale":
                z = z * SCALE
            return z.to(formats[item["result"]]) if epilogue == "cast" else z

        return call

    def run(self, item, number, folder):
        torch = self.torch
        operands, metadata = prepared(item, number)
        metadata.update(self.facts)
        g = item["shape"][0]
        torch.backends.cuda.matmul.allow_tf32 = item["kind"] == "f32_tf32"
        arguments, sums = [], {}
        for name, operand in operands.items():
            x = whole(operand)
            sums[name] = zlib.crc32(x.tobytes())
            x = torch.from_numpy(np.ascontiguousarray(x)).to("cuda").to(self.formats[operand["format"]])
            if name in "ab" and item["transposed"]["ab".index(name)] == "T":
                x = x.transpose(1, 2).contiguous().transpose(1, 2)
            arguments.append(x[0] if name != "bias" and g == 1 else x)
        self.item, self.draw, self.chosen = item, random.Random(number), []
        torch._dynamo.reset()
        compiled = torch.compile(self.product(item), mode="max-autotune-no-cudagraphs", dynamic=False)
        results = []
        with torch.no_grad():
            for _ in range(2):
                d = compiled(*arguments).contiguous()
                torch.cuda.synchronize()
                results.append(d.view(torch.uint8).cpu().numpy().tobytes())
        if results[0] != results[1]:
            raise RuntimeError("another result each time")
        if not self.chosen:
            raise RuntimeError("no template was asked for")
        metadata["choice"] = " | ".join(self.chosen)
        item["stored"] = item["result"]
        save(folder, item, number, operands, metadata, results[0], sums)


# Processes

def work(by, folder, count, seconds, seed):
    """Takes items that no other process has taken, until time is over."""
    end = time.time() + seconds
    worker = {"jax": JaxWorker, "torch": TorchWorker}[by]()
    print(f"{by}: ready after {time.time() - end + seconds:.1f} s", flush=True)
    items = draw_jax(count, seed) if by == "jax" else draw_torch(count, seed + 1)
    for number, item in enumerate(items):
        if time.time() > end:
            break
        try:
            os.close(os.open(os.path.join(folder, f"{by}_{number}.taken"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        start = time.time()
        try:
            worker.run(item, number, folder)
            print(f"{name_of(item, number)}: {time.time() - start:.1f} s", flush=True)
        except Exception as error:
            print(f"{name_of(item, number)}: failed after {time.time() - start:.1f} s: {type(error).__name__}: "
                  + " / ".join(str(error).splitlines()[:6])[:600], flush=True)


def record(options):
    folder = os.path.join(options.scratch, "captures")
    os.makedirs(folder, exist_ok=True)
    os.makedirs(options.folder, exist_ok=True)
    begin = time.time()
    environment = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false", TF_CPP_MIN_LOG_LEVEL="2", PYTHONUNBUFFERED="1")
    processes = []

    def start(by, index):
        left = options.seconds - (time.time() - begin)
        private = dict(environment, TORCHINDUCTOR_CACHE_DIR=f"{options.scratch}/inductor{index}", TRITON_CACHE_DIR=f"{options.scratch}/triton{index}")
        log = open(os.path.join(options.scratch, f"{by}{index}.log"), "ab")
        count = options.jax if by == "jax" else options.torch
        return subprocess.Popen([sys.executable, os.path.abspath(__file__), "work", by, folder, str(count), str(left), str(options.seed)], env=private,
                                stdout=log, stderr=log, start_new_session=True)

    for by, workers in (("jax", options.jax_workers), ("torch", options.torch_workers)):
        for index in range(workers):
            processes.append([by, index, start(by, index), 0])
    while time.time() - begin < options.seconds + 15 and any(x[2].poll() is None for x in processes):
        time.sleep(1)
        if time.time() - begin > 100 and not any(x.endswith(".safetensors") for x in os.listdir(folder)):
            print("nothing after 100 s: given up")
            break
        for entry in processes:  # a process that died is started again: the item that killed it stays taken
            if entry[2].poll() not in (None, 0) and entry[3] < 5 and time.time() - begin < options.seconds - 20:
                entry[3] += 1
                entry[2] = start(entry[0], entry[1])
    for _, _, process, _ in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    pack(folder, options)
    with open(os.path.join(options.folder, "log.txt"), "w") as out:
        for by, index, process, restarts in processes:
            out.write(f"== {by} {index}: exit {process.poll()}, started {restarts + 1} times\n")
            with open(os.path.join(options.scratch, f"{by}{index}.log"), errors="replace") as log:
                out.write(log.read()[-400000:])
    count = lambda by: sum(x.startswith(by) and x.endswith(".safetensors") for x in os.listdir(folder))
    print(f"{count('jax')} of JAX, {count('torch')} of torch.compile in {time.time() - begin:.0f} s")


def pack(folder, options, most=14 << 20):
    for by in ("jax", "torch"):
        names, part = sorted(x for x in os.listdir(folder) if x.startswith(by) and x.endswith(".safetensors")), 0
        while names and part < 3:
            path = os.path.join(options.folder, f"{by}{part}.tar.gz")
            with open(path, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz", compresslevel=6) as archive:
                while names and raw.tell() < most:
                    archive.add(os.path.join(folder, names[0]), names[0])
                    names.pop(0)
            part += 1


# Filling

def filled(tensors, metadata):
    g, m, n, k = json.loads(metadata["shape"])
    batches = json.loads(metadata.get("batches", "null")) or [0]
    rows = json.loads(metadata.get("rows", "null")) or range(m)
    columns = json.loads(metadata.get("columns", "null")) or range(n)
    operands = json.loads(metadata.pop("operands"))
    metadata.pop("checksums", None)
    item = json.loads(metadata["call"])
    result = {}
    for name, operand in operands.items():
        places = {"a": (batches, rows, range(k)), "b": (batches, range(k), columns), "bias": (columns,), "c": (batches, rows, columns)}[name]
        x = values(operand, *(list(p) for p in places))
        if name != "bias" and g == 1:
            x = x[0]
        kind = item["operand"] if name in "ab" else operand["format"]
        both_narrow = all(operands[o]["format"] == "bf16" for o in "ab")
        if name in "ab" and both_narrow:
            kind = "bf16"
        result[name] = (SAFETENSORS[kind], x.shape, encoded(x, kind))
    return {**result, "d": tensors["d"]}


def fill(options):
    os.makedirs(options.folder, exist_ok=True)

    def one(file, name):
        tensors, metadata = read_safetensors(file)
        write_safetensors(os.path.join(options.folder, os.path.basename(name)), filled(tensors, metadata), metadata)

    for path in options.captures:
        if path.endswith(".tar.gz"):
            with tarfile.open(path) as archive:
                for entry in archive:
                    one(archive.extractfile(entry), entry.name)
        else:
            with open(path, "rb") as file:
                one(file, path)


def main():
    if sys.argv[1:2] == ["work"]:
        return work(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    x = commands.add_parser("record")
    x.add_argument("folder")
    x.add_argument("--scratch", default=os.path.join(tempfile.gettempdir(), "record_compiled"))
    x.add_argument("--seconds", type=float, default=240)
    x.add_argument("--jax", type=int, default=420)
    x.add_argument("--torch", type=int, default=280)
    x.add_argument("--seed", type=int, default=1)
    x.add_argument("--jax-workers", type=int, default=5)
    x.add_argument("--torch-workers", type=int, default=5)
    x = commands.add_parser("fill")
    x.add_argument("folder")
    x.add_argument("captures", nargs="+")
    options = parser.parse_args()
    {"record": record, "fill": fill}[options.command](options)


main()
