#!/usr/bin/env python3
"""Tells how lanes share K in scores of attention of one query: record_one_position.py record OUT.npz on the GPU, record_one_position.py fit OUT.npz FOLDER.

`record` computes bmm of one query and many keys, [heads, 1, features] by [heads, features, keys], in FP32, BF16 and FP16 and keeps 24 places of each result. The
operands' exact products add to zero, so that what is left tells the order. `fit` computes the same with guardbit by each likely plan, and writes
one_position_*.inc for FOLDER (emulator/gemm/atlas). It needs the package guardbit.
"""
import os
import sys

import numpy as np
import torch

HEADS = [1, 2, 4, 8, 12, 32]
FEATURES = [8, 16, 24, 32, 48, 64, 80, 96, 128]
KEYS = [*range(2, 131), 144, 150, 160, 176, 192, 196, 197, 200, 224, 250, 255, 256, 257, 272, 288, 300, 320, 384, 400, 500, 512, 513, 640, 768, 1000, 1024]
# Format, PyTorch's type, the atlas' name, and the instruction of tensor cores.
TYPES = (("fp32", torch.float32, "f32", None), ("bf16", torch.bfloat16, "bf16", "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16"),
         ("fp16", torch.float16, "f16", "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16"))
PLACES = 24


def cases():
    return [(kind, features, keys, heads) for kind in range(len(TYPES)) for features in FEATURES for keys in KEYS for heads in HEADS]


def base(kind):
    """Rows of numbers of many sizes, of which queries and keys are made."""
    r = np.random.default_rng(31 + kind)
    return tuple(torch.from_numpy((r.standard_normal(size) * np.exp2(r.integers(-7, 8, size))).astype(np.float32)).to(TYPES[kind][1]) for size in ((64, 512), (1024, 512)))


def operands(queries, keys, heads, count, features):
    half = features // 2
    order = torch.from_numpy(np.random.default_rng(900 + half).permutation(half)).to(queries.device)
    a, b = queries[:heads, :half], keys[:count, :half]
    q, k = torch.cat([a, a[:, order]], 1), torch.cat([b, -b[:, order]], 1)
    return q[:, None].contiguous(), k[None].expand(heads, count, features).contiguous().transpose(1, 2)


def places(count):
    return torch.from_numpy(np.unique(np.linspace(0, count - 1, PLACES).astype(int)) if count > PLACES else np.arange(count))


def record(out):
    bases = [tuple(x.cuda() for x in base(kind)) for kind in range(len(TYPES))]
    found = [[] for _ in TYPES]
    for kind, features, keys, heads in cases():
        result = torch.bmm(*operands(*bases[kind], heads, keys, features)).reshape(-1)
        found[kind].append(result[places(result.numel()).cuda()])
    np.savez_compressed(out, device=torch.cuda.get_device_name(), torch=torch.__version__,
                        **{TYPES[kind][0]: torch.cat(x).view(torch.int32 if kind == 0 else torch.int16).cpu().numpy() for kind, x in enumerate(found)})


def letter_of(guardbit, kind, x, y, wanted):
    """Of the plans that give all places; ? where none does, or several do."""
    name, _, _, tensor_core = TYPES[kind]
    k = x.shape[-1]
    plans = {"0": "simt/fma.fp32"} | {str(power): f"simt/fma.fp32 lanes={2 ** power}x{-(-k // 2 ** power)}:round_robin:halves" for power in range(1, 6)}
    if tensor_core:
        plans["t"] = tensor_core
    right = [letter for letter, plan in plans.items() if torch.equal(torch.as_tensor(guardbit.matmul(x, y, plan=f"{plan} d={name}")).reshape(-1), wanted)]
    return right[0] if len(right) == 1 else "?"


def fit(recorded, folder):
    import guardbit
    bases, at, letters = [base(kind) for kind in range(len(TYPES))], [0] * len(TYPES), {}
    results = [torch.from_numpy(recorded[x[0]]).view(x[1]) for x in TYPES]
    for kind, features, keys, heads in cases():
        x, y = operands(*bases[kind], heads, keys, features)
        here = places(heads * keys)
        wanted = results[kind][at[kind]:at[kind] + len(here)]
        at[kind] += len(here)
        head, key = here // keys, here % keys
        letters.setdefault((kind, features, heads), []).append(letter_of(guardbit, kind, x[head], y[head, :, key][:, :, None].contiguous(), wanted))
    with open(os.path.join(folder, "one_position_keys.inc"), "w") as file:
        file.write("".join(f"{x}," for x in KEYS) + "\n")
    with open(os.path.join(folder, "one_position_rows.inc"), "w") as file:
        for (kind, features, heads), row in letters.items():
            file.write('{Numbers::%s, %d, %d, "%s"},\n' % (TYPES[kind][2], features, heads, "".join(row)))


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(sys.argv[2])
    else:
        fit(np.load(sys.argv[2]), sys.argv[3])
