#!/usr/bin/env python3
"""Writes the first inputs of the fuzz targets: seeds.py FOLDER makes FOLDER/TARGET/*.

They are small recordings of tests/golden, what the documents show, and files made here. Larger
ones that no program here writes lie in tests/fuzz/seeds/TARGET.
"""

import gzip
import io
import json
import re
import struct
import sys
import zipfile
from pathlib import Path

root = Path(__file__).resolve().parents[2]
golden = root / "tests/golden"
seeds = {}


def add(target, *contents):
    for content in contents:
        data = content.encode() if isinstance(content, str) else content
        seeds.setdefault(target, []).append(data)


def safetensors(header, data):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def npy(descr, shape, data, fortran=False, version=1):
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


def archive(entries, method):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as out:
        for name, content, comment in entries:
            info = zipfile.ZipInfo(name)
            info.compress_type, info.comment = method, comment
            out.writestr(info, content)
    return file.getvalue()


add("safetensors",
    safetensors({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
    safetensors({"__metadata__": {"format.a": "e2m1", "packing.a": "dense", "step": "3"},
                 "a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                 "b": {"dtype": "F8_E4M3", "shape": [2, 1], "data_offsets": [4, 6]},
                 "c": {"dtype": "BOOL", "shape": [], "data_offsets": [6, 7]}}, bytes(7)))
for path in ("gemm/mm_f16_8x8x8", "mma.sync/mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16"):
    add("safetensors", (golden / f"{path}.safetensors").read_bytes())
for path in [*golden.glob("mma*/*.safetensors"), *golden.glob("x86/*.safetensors")]:
    if path.stat().st_size < 4096:
        add("capture", path.read_bytes())

for path in golden.glob("gemm/*.safetensors"):
    if path.stat().st_size < 4096:
        add("product_capture", path.read_bytes())
add("product_capture",
    safetensors({"__metadata__": {"capture": "1", "kind": "conv2d", "arch": "sm_90", "padding": "1,1", "stride": "[2, 1]",
                                  "dilation": "1", "groups": "1", "alpha": "0.5", "activation": "relu"},
                 "a": {"dtype": "F16", "shape": [1, 1, 2, 2], "data_offsets": [0, 8]},
                 "b": {"dtype": "F16", "shape": [1, 1, 1, 1], "data_offsets": [8, 10]},
                 "d": {"dtype": "F16", "shape": [1, 1, 2, 4], "data_offsets": [10, 26]},
                 "bias": {"dtype": "F16", "shape": [1], "data_offsets": [26, 28]}}, bytes(28)))
add("function_capture",
    safetensors({"__metadata__": {"capture": "1", "kind": "function", "arch": "sm_90", "function": "expf", "toolkit": "13.0"},
                 "x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                 "d": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}}, bytes(16)))

arrays = [npy("<f4", (2, 2), bytes(16)), npy("|u1", (3,), bytes(3)), npy(">f8", (), bytes(8)),
          npy("<f2", (2, 3), bytes(12), fortran=True), npy("|V2", (2,), bytes(4), version=2),
          npy("|b1", (0, 5), b"")]
add("npy", *arrays)
add("npz",
    archive([(f"a{i}.npy", array, b"") for i, array in enumerate(arrays)], zipfile.ZIP_STORED),
    archive([("a.npy", arrays[0], b""), ("b.npy", npy("|u1", (6,), bytes(6)), b"format=e4m3")],
            zipfile.ZIP_DEFLATED))

for path in golden.glob("traces/*.pt"):
    add("torch", path.read_bytes())
    if not zipfile.is_zipfile(path):
        continue
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            if name.endswith("data.pkl"):
                add("pickle", file.read(name))
                add("torch_program", file.read(name))
for path in golden.glob("traces/*.h5"):
    add("hdf5", path.read_bytes())

images = b"\0\0\x08\x03" + struct.pack(">3I", 2, 2, 2) + bytes(8)
add("idx", images, b"\0\0\x08\x01" + struct.pack(">I", 3) + bytes(3), gzip.compress(images, mtime=0))

add("format_name", "fp16", "e4m3fn", "e5m6:bias=20:specials=none", "e3m4:unsigned:nosubnormals",
    "int4", "float8_e8m0fnu", "mxfp4")
add("value", "-1.5e-3", "0x1.8p-3", "inf", "-nan", "0x3c00:fp16", "0b0111:e2m1", " 12 ", "1e20000",
    "0.1", "0x7f:int8")

guide = (root / "docs/GEMM.md").read_text()
plans = set(re.findall(r"[`']((?:sm_\d+|simt|cpu)\S*/[^`'\n]+ d=[a-z0-9]+)[`']", guide))
add("plan", *sorted(plans)[:40],
    "simt/fma.fp32 input=rz:3x3:slices split=3x8:round_robin d=fp32",
    "simt/fma.fp32 stream_k=4x8x8x8 alpha=0.5 beta=2 add=rounded d=fp16")
add("spec",
    "# a unit\nname u\narch chip\nshape m0n0k16\nformats fp16 fp16 fp32 fp32\n"
    "step dot addend=c into=fp32 terms=8 kept_fraction_bits=24 min_exponent=-132\n",
    "name v\narch x\nfamily mma.sync\nshape m16n8k64\nformats e2m1 e2m1 fp32 fp32\n"
    "scale ue4m3 4\nsparsity 8 4 2\ntoolkit 1208 0\nevidence measured a text\n"
    "step dot addend=0 into=fp32 summation=fused terms=32 k=2:0\n"
    "step add addend=s1 into=fp32\nstep convert addend=s2 into=fp32\n",
    "name w\narch y\nshape m8n8k16\nformats int8 uint8 int32 int32\n"
    "step dot addend=c into=int32 summation=integer\n")
add("instruction_name", "sm_90 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "sm_90a wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16 12.8",
    "cdna3 V_MFMA_F32_16X16X16_F16", "x86 tdpbf16ps 13.0", "sm_100a tcgen05.mma")

add("trace_name", "step0100.2.weight.grad", "s200.7.gout", "rank_0/iter_5/fc1.act",
    "grads.fc1.weight", "a.b/c")
add("quirks", "modelopt", "modelopt_numpy", "none", "left_edge,zero_bin_kept,fp32_counts")
add("settings", "\x001,2,5:9:2", "\x01" "1e-3:10:x10", "\x02two,one", "\x03/a/b", "\x044:1000000000:x2",
    "\x050.5")
add("scaler_pattern", "clean*100,overflow,clean*3", "overflow*2")
add("scaler_log",
    '[[1, 2.5, 1024, 0, 1024], [2, NaN, 1024, 1, 512]]',
    'run.a\0{"run": {"a": {"init_scale": 8, "log": [{"step": 1, "scale": 8, "overflow": false}]},'
    ' "b": {"step": [1, 2], "scale": [8, 4], "scale_after": [4, 4]}}}',
    '{"step": 1, "scale": 8, "overflow": true}\n{"step": 2, "scale": 4, "overflow": false}\n',
    "step,loss,scale,overflow,scale after\n1,0.5,65536,0,65536\n2,inf,65536,1,32768\n",
    "# a log\n1 0.5 65536 false 65536\n", "step;scale;found_inf\n1;2;True\n")
for path in [*(root / "docs/training").glob("*.toml")]:
    add("train_config", path.read_bytes())
add("train_config", '[data]\nkind = "spiral"\n[model]\nhidden = [4]\n[scaler]\nkind = "dynamic"\n',
    "[unit]\nplan = 'simt/fma.fp32 d=fp32'\n")
add("train_log", "step,loss,scale,skipped,correct,rows,gradients,underflow,overflow\n"
    "1,0.5,65536,0,3,64,100,2,0\n2,inf,65536,1,3,64,100,2,1\n")
add("sidecar", '{"step": 3, "rank": 0, "loss_scale": 1024, "role": "wgrad", '
    '"tensors": {"x": {"step": 4, "tensor": "fc1"}}}')

add("plan_book", '{"plan_book": 1, "plans": {"mm fp16[8,8;8,1] fp16[8,8;1,8]": '
    '["simt/fma.fp32 split=4x8:ceil d=fp32", "simt/fma.fp32 d=fp32"]}}')
add("screen_verdict", '{"kind": "screen", "runs": [{"host": "n1", "time": "2026-11-27T08:00:01Z", "part": 1, '
    '"parts": 2, "seconds": 1.5, "seed": 1, "failure": "", "coverage": null}], "gpus": [{"host": "n1", '
    '"time": "2026-11-27T08:00:01Z", "uuid": "GPU-1", "name": "H200", "pci": "0", "verdict": "healthy"}]}')
part = '{"kind":"results","command":"trace","part":1,"parts":2,"question":{"formats":1},"pieces":["a","b"]}\n'
add("results_file", part + '{"piece":0,"rank":0,"result":{"x":1}}\n',
    part.replace('"parts":2', '"parts":1') + '{"piece":0,"rank":0,"result":1}\n{"piece":1,"rank":0,"result":2}\n')
add("ranges", "3/8", "0:32:4", "0,8,16", "-24:24:1", "64")

for target, contents in seeds.items():
    folder = Path(sys.argv[1]) / target
    folder.mkdir(parents=True, exist_ok=True)
    for i, content in enumerate(contents):
        (folder / f"seed{i:02}").write_bytes(content)
