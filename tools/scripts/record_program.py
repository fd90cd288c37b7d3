#!/usr/bin/env python3
"""Records every operator that a PyTorch program calls, with its inputs and outputs:

  python3 record_program.py [OPTIONS] FILE.safetensors PROGRAM [ARGUMENTS ...]

or, inside a program, `with Recorder("file.safetensors"): ...`. `guardbit replay FILE` computes the operators again.
Operators are seen below autograd and autocast, so casts and backward operators are calls of their own. Views and empty
allocations are left out. Needs PyTorch; on a computer without a GPU the operators of the CPU are recorded.

The file: tensors `t0`, `t1`, ... in safetensors, each content once; in `__metadata__`, `ops` is a JSON list of calls
{"op", "args", "kwargs", "out"} in the order of execution. A tensor of a call is {"tensor", "shape", "stride",
"offset", "device"}: stored contiguous, with the stride and offset (in elements) that it had. Inputs are as before the
call, outputs as after it. A call may also have
  written        {argument: tensors}: what the call left in arguments that are not among its outputs
  seed, philox_offset   the state of the device's generator before a call that draws from it
  flags          settings that have changed since the call before
  kernels, grids what it launched (--kernels)
  sampled        {"rows", "columns"}: of a product past --limit only these are stored
Numbers that JSON does not have are the strings "inf", "-inf" and "nan". Metadata also has the versions, the flags at
the beginning, the workspace and the device.
"""

import argparse
import hashlib
import importlib.metadata
import json
import math
import os
import runpy
import shutil
import struct
import subprocess
import sys
import tempfile

import torch
from torch.utils._python_dispatch import TorchDispatchMode

DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
          torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint64: "U64",
          torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8", torch.bool: "BOOL", torch.complex64: "C64",
          torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2"}
# What neither computes nor moves anything, beside the views that the schema names.
LEFT_OUT = {"_unsafe_view", "lift_fresh", "detach", "detach_", "alias", "empty", "empty_like", "empty_strided", "new_empty",
            "new_empty_strided", "empty_permuted", "resize_", "set_", "record_stream", "is_same_size",
            "_has_compatible_shallow_copy_type", "is_pinned"}
# Arguments that these change without saying so in their schema.
SILENTLY_WRITTEN = {"native_batch_norm": ("running_mean", "running_var"),
                    "cudnn_batch_norm": ("running_mean", "running_var")}
PRODUCTS = {"mm": (0, 1), "addmm": (1, 2)}


def flags():
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


def machine():
    """What does not change while a program runs."""
    facts = {"capture": "1", "kind": "recording", "torch": torch.__version__, "device": "cpu",
             "threads": str(torch.get_num_threads())}
    for package in ("nvidia-cublas", "nvidia-cudnn-cu13", "triton"):
        try:
            facts[package.split("-")[1] if "-" in package else package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"],
                                capture_output=True, text=True, check=False).stdout.strip()
        facts.update(device=torch.cuda.get_device_name(0), cuda=torch.version.cuda, driver=driver,
                     arch="sm_%d%d" % torch.cuda.get_device_capability(0),
                     multiprocessors=str(properties.multi_processor_count),
                     cudnn_runtime=str(torch.backends.cudnn.version()),
                     workspace=os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""),
                     lt_workspace=os.environ.get("CUBLASLT_WORKSPACE_SIZE", ""))
        version = getattr(torch._C, "_cuda_getCurrentBlasHandle", None) and torch.backends.cuda.preferred_blas_library()
        facts["blas"] = str(version)
    return facts


def generator_state(generator=None):
    """Seed and offset of the CUDA generator that a call would draw from."""
    if generator is None or generator.device.type != "cuda":
        if not torch.cuda.is_available() or not torch.cuda.is_initialized():
            return None
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
    seed, offset = struct.unpack("<QQ", bytes(generator.get_state().numpy())[:16])
    return seed, offset


class Contents:
    """Tensors by content, in a temporary file until all are known."""

    def __init__(self, folder):
        self.file = tempfile.TemporaryFile(dir=folder)
        self.names, self.entries = {}, []

    def name(self, tensor):
        """`tensor` is on the CPU and contiguous."""
        data = tensor.reshape(-1).view(torch.uint8).numpy().data if tensor.numel() else b""
        key = (tensor.dtype, tuple(tensor.shape), hashlib.blake2b(data, digest_size=20).digest())
        if key not in self.names:
            self.names[key] = f"t{len(self.entries)}"
            self.entries.append((DTYPES[tensor.dtype], list(tensor.shape), self.file.tell(), len(data)))
            self.file.write(data)
        return self.names[key]

    def write(self, path, metadata):
        # Wide elements first: every tensor is then aligned to its elements.
        width = {"F64": 8, "I64": 8, "U64": 8, "C64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2,
                 "U16": 2}
        order = sorted(range(len(self.entries)), key=lambda i: (-width.get(self.entries[i][0], 1), i))
        header, at = {"__metadata__": metadata}, 0
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


class Recorder(TorchDispatchMode):
    """Records the operators called in its scope; the file is written at the end of the scope."""

    def __init__(self, path, kernels=False, limit=1 << 62, only=None):
        super().__init__()
        self.path, self.limit, self.only = path, limit, only
        self.calls, self.left_out = [], 0
        self.contents = Contents(os.path.dirname(os.path.abspath(path)))
        self.profile = None
        # Scopes inside one another, as when a composite operator is taken apart.
        self.depth = 0
        if kernels:
            activities = torch.profiler.ProfilerActivity
            self.profile = torch.profiler.profile(activities=[activities.CPU, activities.CUDA])

    def __enter__(self):
        self.depth += 1
        if self.depth > 1:
            return super().__enter__()
        self.facts, self.first_flags = machine(), flags()
        self.flags = self.first_flags
        if self.profile:
            self.profile.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.depth -= 1
        if self.depth > 0:
            return
        if self.profile:
            self.profile.__exit__(None, None, None)
            self.add_kernels()
        facts = dict(self.facts, flags=json.dumps(self.first_flags), ops=json.dumps(self.calls, allow_nan=False))
        if self.left_out:
            facts["left_out"] = str(self.left_out)
        self.contents.write(self.path, facts)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if torch.is_inference_mode_enabled() and func._can_decompose():
            # Without autograd composite operators arrive whole.
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        name = func._schema.name.split("::")[-1]
        if func.is_view or name in LEFT_OUT or func.namespace in ("prim", "profiler"):
            return func(*args, **kwargs)
        if self.only is not None and name not in self.only:
            return func(*args, **kwargs)
        if self.size((args, kwargs)) > self.limit and name not in PRODUCTS:
            self.left_out += 1
            return func(*args, **kwargs)
        return self.record(func, name, args, kwargs)

    def record(self, func, name, args, kwargs):
        call = {"op": str(func)}
        now = flags()
        if now != self.flags:
            call["flags"] = {key: value for key, value in now.items() if value != self.flags[key]}
            self.flags = now
        sample = self.sample(name, args) if self.size((args, kwargs)) > self.limit else None
        call["args"] = [self.value(x, sample and sample.get(i)) for i, x in enumerate(args)]
        call["kwargs"] = {key: self.value(x) for key, x in kwargs.items()}
        state = generator_state(kwargs.get("generator"))
        result = self.run(func, args, kwargs)
        if state is not None and state != generator_state(kwargs.get("generator")):
            call["seed"], call["philox_offset"] = state
        call["out"] = self.value(result, sample and sample["out"])
        written = self.written(func, name, args, kwargs)
        if written:
            call["written"] = written
        if sample:
            call["sampled"] = {"rows": sample["rows"].tolist(), "columns": sample["columns"].tolist()}
        self.calls.append(call)
        return result

    def run(self, func, args, kwargs):
        if not self.profile:
            return func(*args, **kwargs)
        with torch.profiler.record_function(f"recorded call {len(self.calls)}"):
            return func(*args, **kwargs)

    def written(self, func, name, args, kwargs):
        """Arguments that the call changed and does not return."""
        returned = {x for r in func._schema.returns if r.alias_info for x in r.alias_info.before_set}
        found = {}
        for i, argument in enumerate(func._schema.arguments):
            silent = argument.name in SILENTLY_WRITTEN.get(name, ())
            alias = argument.alias_info
            if not silent and (alias is None or not alias.is_write or alias.before_set & returned):
                continue
            value = kwargs.get(argument.name, args[i] if i < len(args) else None)
            if value is not None and self.size(value):
                found[argument.name] = self.value(value)
        return found

    @staticmethod
    def size(value):
        """Bytes of all tensors in it."""
        if isinstance(value, torch.Tensor):
            return value.numel() * value.element_size()
        if isinstance(value, dict):
            return sum(Recorder.size(x) for x in value.values())
        return sum(Recorder.size(x) for x in value) if isinstance(value, (list, tuple)) else 0

    def sample(self, name, args):
        """Of a product too large to keep: 16 rows and columns, the first and last ones among them."""
        a, b = (args[i] for i in PRODUCTS[name])
        rows, columns = (torch.linspace(0, n - 1, min(n, 16)).round().long().unique() for n in (a.shape[0], b.shape[1]))
        at = {"rows": rows, "columns": columns, PRODUCTS[name][0]: (rows, None), PRODUCTS[name][1]: (None, columns),
              "out": (rows, columns)}
        if name == "addmm":
            at[0] = (rows if args[0].dim() == 2 and args[0].shape[0] > 1 else None,
                     columns if args[0].dim() and args[0].shape[-1] > 1 else None)
        return at

    def value(self, value, sample=None):
        if isinstance(value, torch.Tensor):
            return self.tensor(value, sample)
        if isinstance(value, (list, tuple)):
            return [self.value(x) for x in value]
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        return str(value)

    def tensor(self, value, sample):
        if value.layout != torch.strided or value.dtype not in DTYPES:
            return f"{value.layout} {value.dtype} {list(value.shape)}"
        facts = {"shape": list(value.shape), "stride": list(value.stride()), "offset": value.storage_offset(),
                 "device": str(value.device)}
        kept = value.detach().resolve_conj().resolve_neg()
        if sample:
            rows, columns = sample
            kept = kept if rows is None else kept.index_select(-2, rows.to(kept.device))
            kept = kept if columns is None else kept.index_select(-1, columns.to(kept.device))
        return {"tensor": self.contents.name(kept.contiguous().cpu()), **facts}

    def add_kernels(self):
        """Kernels go to the call in whose time, in whose thread they were launched."""
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            self.profile.export_chrome_trace(file.name)
            with open(file.name, encoding="utf-8") as text:
                events = json.load(text)["traceEvents"]
        calls, launches = {}, {}
        for x in events:
            if x.get("cat") == "user_annotation" and x["name"].startswith("recorded call "):
                calls.setdefault(x["tid"], []).append((x["ts"], x["ts"] + x["dur"], int(x["name"].split()[-1])))
            elif x.get("cat") in ("cuda_runtime", "cuda_driver"):
                launches[x["args"].get("correlation")] = (x["tid"], x["ts"])
        for x in sorted((x for x in events if x.get("cat") == "kernel"), key=lambda x: x["ts"]):
            tid, time = launches.get(x["args"].get("correlation"), (None, 0))
            for begin, end, number in calls.get(tid, []):
                if begin <= time <= end:
                    grid = "x".join(map(str, x["args"]["grid"])) + " of " + str(math.prod(x["args"]["block"]))
                    self.calls[number].setdefault("kernels", []).append(x["name"])
                    self.calls[number].setdefault("grids", []).append(grid)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", action="store_true", help="also names and grids of the kernels")
    parser.add_argument("--limit", type=int, default=1 << 62, metavar="BYTES",
                        help="of products with larger operands only samples are stored; other such calls are left out")
    parser.add_argument("--only", metavar="NAMES", help="only these operators, as in 'mm,addmm'")
    parser.add_argument("--xz", action="store_true", help="compress the file; it is then FILE.safetensors.xz")
    parser.add_argument("file")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    for problem, place in ((not os.path.isfile(options.program), options.program),
                           (not os.path.isdir(os.path.dirname(os.path.abspath(options.file))), options.file)):
        if problem:
            parser.error(f"{place}: no such file or folder")
    sys.argv = [options.program, *options.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(options.program))
    only = options.only.split(",") if options.only else None
    recorder = Recorder(options.file, options.kernels, options.limit, only)
    try:
        with recorder:
            runpy.run_path(options.program, run_name="__main__")
    finally:
        if options.xz and os.path.exists(options.file):
            subprocess.run(["xz", "-9", "-T0", "-f", options.file], check=True)
    print(f"{options.file}: {len(recorder.calls)} calls, {len(recorder.contents.entries)} tensors"
          + (f", {recorder.left_out} left out" if recorder.left_out else ""))


if __name__ == "__main__":
    main()
