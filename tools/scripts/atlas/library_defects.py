#!/usr/bin/env python3
"""library_defects.py OUT.json SECONDS [SEED]: looks for products of cuBLASLt that no order of additions explains (on a GPU, with PyTorch).

Every algorithm that the library offers is configured at random (tile, stages, cluster, parts of K, how they are added) and run on operands whose
sums are exact in FP32 whatever their order: ones, powers of two, small whole numbers; and on normal ones, beside a bound. D is filled with NaN
before; what lies behind it must stay. A wrong result is repeated twice. OUT.json has what was run, by algorithm, and of each kind of wrong result
its smallest cases: whether the library's heuristic offers that configuration, and how often each element of K was added.
"""
import collections
import ctypes
import json
import random
import re
import sys
import time

import torch

FP32, FP64, FP16, INT8, INT32, BF16, E4M3, E5M2 = 0, 1, 2, 3, 10, 14, 28, 29
TORCH = {FP32: torch.float32, FP64: torch.float64, FP16: torch.float16, INT8: torch.int8, INT32: torch.int32, BF16: torch.bfloat16,
         E4M3: torch.float8_e4m3fn, E5M2: torch.float8_e5m2}
IN_16, IN_32, IN_TF32, IN_64, IN_INT = 64, 68, 77, 70, 72
# name, A and B, D, what is computed in, its scale's type
PRODUCTS = [("f16", FP16, FP32, IN_32, FP32), ("f16 to f16", FP16, FP16, IN_32, FP32), ("bf16", BF16, FP32, IN_32, FP32),
            ("bf16 to bf16", BF16, BF16, IN_32, FP32), ("tf32", FP32, FP32, IN_TF32, FP32), ("f32", FP32, FP32, IN_32, FP32),
            ("f64", FP64, FP64, IN_64, FP64), ("e4m3", E4M3, BF16, IN_32, FP32), ("int8", INT8, INT32, IN_INT, INT32)]
ROUNDING = {FP16: 2.0 ** -11, BF16: 2.0 ** -8, FP32: 2.0 ** -24, FP64: 2.0 ** -53, INT32: 0.0}
ID, TILE, SPLIT, REDUCTION, SWIZZLE, CUSTOM, STAGES, INNER, CLUSTER = range(9)
NAMES = ("id", "tile", "parts", "reduction", "swizzle", "custom", "stages", "inner", "cluster")
SIZES = {INNER: ctypes.c_uint16, CLUSTER: ctypes.c_uint16}
GUARD = 4096
WORKSPACE = 64 << 20


class Algorithm(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64 * 8)]


class Found(ctypes.Structure):
    _fields_ = [("algorithm", Algorithm), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int), ("waves", ctypes.c_float),
                ("reserved", ctypes.c_int * 4)]


def library():
    torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
    path = next(x.group(0) for x in (re.search(r"/\S*libcublasLt\.so\S*", line) for line in open("/proc/self/maps")) if x)
    return ctypes.CDLL(path)


LT = library()
HANDLE = ctypes.c_void_p()
assert LT.cublasLtCreate(ctypes.byref(HANDLE)) == 0


def caps(algorithm, attribute, kind=ctypes.c_int32, most=1):
    values, written = (kind * most)(), ctypes.c_size_t()
    status = LT.cublasLtMatmulAlgoCapGetAttribute(ctypes.byref(algorithm), attribute, values, ctypes.sizeof(values), ctypes.byref(written))
    return list(values)[:written.value // ctypes.sizeof(kind)] if status == 0 else []


def configured(algorithm, attribute, value):
    number = SIZES.get(attribute, ctypes.c_uint32)(value)
    return LT.cublasLtMatmulAlgoConfigSetAttribute(ctypes.byref(algorithm), attribute, ctypes.byref(number), ctypes.sizeof(number)) == 0


def config_of(algorithm):
    config = {}
    for attribute, name in enumerate(NAMES):
        number, written = SIZES.get(attribute, ctypes.c_uint32)(), ctypes.c_size_t()
        if LT.cublasLtMatmulAlgoConfigGetAttribute(ctypes.byref(algorithm), attribute, ctypes.byref(number), ctypes.sizeof(number),
                                                   ctypes.byref(written)) == 0:
            config[name] = number.value
    return config


class Product:
    """D[m, n] = A B, all in column-major order; `turned`: whether A and B are stored transposed."""

    def __init__(self, kind, m, n, k, turned):
        self.name, self.operand, self.result, self.compute, self.scale = kind
        self.m, self.n, self.k, self.turned = m, n, k, turned
        self.operation = ctypes.c_void_p()
        assert LT.cublasLtMatmulDescCreate(ctypes.byref(self.operation), self.compute, self.scale) == 0
        for attribute, is_turned in zip((3, 4), turned):
            value = ctypes.c_int32(int(is_turned))
            assert LT.cublasLtMatmulDescSetAttribute(self.operation, attribute, ctypes.byref(value), 4) == 0
        # Rows and columns of A and B as they lie in memory.
        self.stored = ((k, m) if turned[0] else (m, k), (n, k) if turned[1] else (k, n))
        self.layouts = [*(self.layout(self.operand, *shape) for shape in self.stored), self.layout(self.result, m, n)]

    @staticmethod
    def layout(kind, rows, columns):
        made = ctypes.c_void_p()
        assert LT.cublasLtMatrixLayoutCreate(ctypes.byref(made), kind, ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows)) == 0
        return made

    def close(self):
        LT.cublasLtMatmulDescDestroy(self.operation)
        for layout in self.layouts:
            LT.cublasLtMatrixLayoutDestroy(layout)

    def types(self):
        return self.compute, self.scale, self.operand, self.operand, self.result, self.result

    def checked(self, algorithm):
        a, b, d = self.layouts
        found = Found()
        status = LT.cublasLtMatmulAlgoCheck(HANDLE, self.operation, a, b, d, d, ctypes.byref(algorithm), ctypes.byref(found))
        return status == 0 and found.workspace <= WORKSPACE

    def chosen(self, most):
        """What the library's heuristic offers."""
        preference, wanted = ctypes.c_void_p(), ctypes.c_uint64(WORKSPACE)
        assert LT.cublasLtMatmulPreferenceCreate(ctypes.byref(preference)) == 0
        assert LT.cublasLtMatmulPreferenceSetAttribute(preference, 1, ctypes.byref(wanted), 8) == 0
        a, b, d = self.layouts
        found, count = (Found * most)(), ctypes.c_int()
        LT.cublasLtMatmulAlgoGetHeuristic(HANDLE, self.operation, a, b, d, d, preference, most, found, ctypes.byref(count))
        LT.cublasLtMatmulPreferenceDestroy(preference)
        return [x.algorithm for x in found[:count.value] if x.state == 0]

    def drawn(self, draw):
        """An algorithm of the library with a random configuration, or none where it cannot be."""
        ids, count = (ctypes.c_int * 128)(), ctypes.c_int()
        LT.cublasLtMatmulAlgoGetIds(HANDLE, *self.types(), 128, ids, ctypes.byref(count))
        if count.value == 0:
            return None
        algorithm = Algorithm()
        if LT.cublasLtMatmulAlgoInit(HANDLE, *self.types(), draw.choice(ids[:count.value]), ctypes.byref(algorithm)) != 0:
            return None
        for attribute, values in ((TILE, caps(algorithm, 6, ctypes.c_uint32, 1024)), (STAGES, caps(algorithm, 13, ctypes.c_uint32, 256))):
            if values:
                configured(algorithm, attribute, draw.choice(values))
        most_custom = (caps(algorithm, 7) or [0])[0]
        if most_custom > 0:
            configured(algorithm, CUSTOM, draw.randint(0, most_custom))
        if (caps(algorithm, 2, ctypes.c_uint32) or [0])[0]:
            configured(algorithm, SWIZZLE, draw.randint(0, 1))
        configured(algorithm, INNER, draw.choice((0, 0, 1, 2, 3, 4, 5, 6, 7)))
        configured(algorithm, CLUSTER, draw.choice((0, 0, 1, 2, 3, 4, 5, 6, 8)))
        mask = (caps(algorithm, 1, ctypes.c_uint32) or [0])[0]
        if (caps(algorithm, 0) or [0])[0] and mask and draw.random() < 0.8:
            configured(algorithm, SPLIT, draw.choice((2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 24, 32, 33)))
            configured(algorithm, REDUCTION, draw.choice([1 << i for i in range(3) if mask >> i & 1]))
        return algorithm if self.checked(algorithm) else None

    def run(self, algorithm, a, b, d, workspace):
        number = {FP64: ctypes.c_double, INT32: ctypes.c_int32}.get(self.scale, ctypes.c_float)
        alpha, beta = number(1), number(0)
        place = [ctypes.c_void_p(x.data_ptr()) for x in (a, b, d)]
        layout_a, layout_b, layout_d = self.layouts
        return LT.cublasLtMatmul(HANDLE, self.operation, ctypes.byref(alpha), place[0], layout_a, place[1], layout_b, ctypes.byref(beta), place[2],
                                 layout_d, place[2], layout_d, ctypes.byref(algorithm), ctypes.c_void_p(workspace.data_ptr()),
                                 ctypes.c_size_t(WORKSPACE), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))


def operands(product, kind, generator):
    """A and B as they lie in memory (rows of the tensors are columns of the matrices), and their numbers in FP64."""
    def drawn(rows, columns):
        shape = (columns, rows)
        if kind == "ones":
            x = torch.ones(shape, device="cuda", dtype=torch.float64)
        elif kind == "powers":
            x = torch.exp2(torch.randint(0, 3, shape, device="cuda", generator=generator).double())
            x *= torch.randint(0, 2, shape, device="cuda", generator=generator).double() * 2 - 1
        elif kind == "whole":
            x = torch.randint(-3, 4, shape, device="cuda", generator=generator).double()
        else:
            x = torch.randn(shape, device="cuda", generator=generator, dtype=torch.float64)
            x = (x * 20).round().clamp(-127, 127) if product.operand == INT8 else x
        stored = x.to(TORCH[product.operand])
        if product.compute == IN_TF32:
            stored = ((stored.view(torch.int32) + 0x1000) & ~0x1fff).view(torch.float32)
        return stored, stored.double()
    (a, wide_a), (b, wide_b) = (drawn(*shape) for shape in product.stored)
    # D's columns are the tensor's rows.
    left = wide_b.T if product.turned[1] else wide_b
    right = wide_a.T if product.turned[0] else wide_a
    return a, b, left @ right, left.abs() @ right.abs()


def wrong_elements(product, d, exact, magnitudes, kind, parts):
    """Places where D is not what any order of additions gives."""
    got, unit = d.double(), ROUNDING[product.result]
    if product.result == INT32 or kind != "normal" and product.result in (FP32, FP64):
        bound = torch.zeros_like(exact)
    elif kind != "normal":
        bound = (parts + 1) * unit * magnitudes
    else:
        inside = 2.0 ** (-52 if product.compute == IN_64 else -22)
        bound = (product.k * inside + (parts + 1) * unit) * magnitudes
    return ~((got - exact).abs() <= bound)


def counted(product, algorithm, workspace):
    """How often each k is added to D[0, j], from rows of B that are one-hot: [first, last + 1, times] of each run of equal ones."""
    m, n, k = product.m, product.n, product.k
    a = torch.ones((m, k) if product.turned[0] else (k, m), device="cuda").to(TORCH[product.operand])
    d = torch.empty(m * n, dtype=TORCH[product.result], device="cuda")
    times = []
    for first in range(0, k, n):
        width = min(n, k - first)
        b = torch.zeros(n, k, device="cuda")
        b[torch.arange(width), torch.arange(first, first + width)] = 1
        b = (b if not product.turned[1] else b.T.contiguous()).to(TORCH[product.operand])
        if product.run(algorithm, a, b, d, workspace) != 0:
            return None
        times += d.view(n, m)[:width, 0].double().tolist()
    runs = []
    for at, number in enumerate(times):
        if runs and runs[-1][2] == number:
            runs[-1][1] = at + 1
        else:
            runs.append([at, at + 1, number])
    return runs


def main():
    out, seconds = sys.argv[1], float(sys.argv[2])
    draw = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    generator = torch.Generator("cuda").manual_seed(draw.randrange(1 << 30))
    workspace = torch.zeros(WORKSPACE, dtype=torch.uint8, device="cuda")
    runs, refused, wrong = collections.Counter(), collections.Counter(), {}
    begun = time.time()
    while time.time() - begun < seconds:
        kind = draw.choice(PRODUCTS)
        step = draw.choice((1, 2, 4, 8, 8, 8, 16, 16)) if kind[1] in (FP16, BF16, FP32, FP64) else 16
        size = lambda most: max(step, int(2 ** (draw.random() * most)) // step * step)
        m, n = size(9), size(9)
        k = draw.choice((8648, 8648 // step * step, 4096 + step * draw.randint(0, 24), size(14), size(11))) // step * step
        turned = (True, False) if kind[1] in (E4M3, INT8) else (draw.random() < 0.5, draw.random() < 0.5)
        product = Product(kind, m, n, k, turned)
        data = draw.choice(("ones", "powers", "whole", "normal"))
        a, b, exact, magnitudes = operands(product, data, generator)
        element = torch.tensor([], dtype=TORCH[kind[2]]).element_size()
        memory = torch.empty(m * n + GUARD // element, dtype=TORCH[kind[2]], device="cuda")
        algorithms = product.chosen(24)
        offered = len(algorithms)
        for _ in range(60):
            algorithm = product.drawn(draw)
            if algorithm:
                algorithms.append(algorithm)
        for at, algorithm in enumerate(algorithms):
            config = config_of(algorithm)
            parts = max(1, config.get("parts", 1))
            outcomes = []
            for _ in range(3):
                memory.view(torch.uint8).fill_(0xff)
                status = product.run(algorithm, a, b, memory, workspace)
                if status != 0:
                    refused[f"{kind[0]}, algorithm {config['id']}, status {status}"] += 1
                    break
                bad = wrong_elements(product, memory[:m * n].view(n, m), exact, magnitudes, data, parts)
                spilled = int((memory[m * n:].view(torch.uint8) != 0xff).sum())
                outcomes.append((int(bad.sum()), spilled))
                if outcomes[-1] == (0, 0):
                    break
            if not outcomes:
                continue
            runs[f"{kind[0]}, algorithm {config['id']}, {'cut' if parts > 1 else 'whole'}"] += 1
            if outcomes[0] == (0, 0):
                continue
            place = bad.nonzero()[0].tolist() if outcomes[-1][0] else [0, 0]
            key = f"{kind[0]}, algorithm {config['id']}, reduction {config.get('reduction', 0)}, {'cut' if parts > 1 else 'whole'}"
            case = {"m": m, "n": n, "k": k, "turned": turned, "data": data, "config": config, "is_offered": at < offered, "wrong_and_behind": outcomes,
                    "row": place[1], "column": place[0], "got": float(memory[:m * n].view(n, m)[place[0], place[1]].double()),
                    "exact": float(exact[place[0], place[1]])}
            kept = wrong.setdefault(key, {"count": 0, "offered": 0, "cases": []})
            kept["count"] += 1
            kept["offered"] += at < offered
            if len(kept["cases"]) < 4 or m * n * k < kept["cases"][-1]["m"] * kept["cases"][-1]["n"] * kept["cases"][-1]["k"]:
                case["times_each_k_is_added"] = counted(product, algorithm, workspace)
            kept["cases"] = sorted(kept["cases"] + [case], key=lambda x: x["m"] * x["n"] * x["k"])[:4]
        product.close()
    report = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "cublasLt": LT.cublasLtGetVersion(),
              "runs": sum(runs.values()), "by_algorithm": dict(sorted(runs.items())), "refused": dict(sorted(refused.items())), "wrong": wrong}
    json.dump(report, open(out, "w"), indent=1)
    print(f"{report['runs']} runs of {len(runs)} kinds, {sum(x['count'] for x in wrong.values())} wrong in {len(wrong)} kinds")


if __name__ == "__main__":
    main()
