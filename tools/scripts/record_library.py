#!/usr/bin/env python3
"""Records matrix products of one GPU as captures of kind gemm: python3 record_library.py FOLDER [PART[:SEED] ...]
(needs PyTorch with its CUDA libraries; nvcc for `own`; a few minutes).

  lt      cuBLASLt, algorithm by algorithm: what the heuristics propose, then every algorithm id with splits of K and
          each reduction scheme that it allows
  triton  tl.dot in FP16, BF16, FP8, TF32, 3xTF32 and FP32; whole, split in slices of K, and stream-K
  torch   PyTorch's own calls over shapes, layouts and scalars drawn from a seed: mm, addmm, linear, bmm, baddbmm,
          _int_mm, _scaled_mm, 2:4 sparse, conv2d
  large   some rows and columns of products of up to 8192 x 8192 x 16384
  whole   products of several hundred rows and columns, of which one block of the GPU computes more than one tile or less
  own     a kernel of warp-level tensor core instructions, stream-K and sliced over warps; its plan is in the file

`guardbit explain FILE` finds the plans; `case`, `kernels` and `grids` of the metadata say what was called.
"""

import ctypes
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import save_file

OP_N, OP_T = 0, 1
R32F, R64F, R16F, R16BF, R8I, R32I, E4M3, E5M2 = 0, 1, 2, 14, 3, 10, 28, 29
COMPUTE = {"f16": 64, "f32": 68, "tf32": 77, "bf16x9": 78, "f64": 70, "fixed": 79, "i32": 72}
TORCH = {R32F: torch.float32, R64F: torch.float64, R16F: torch.float16, R16BF: torch.bfloat16, R8I: torch.int8,
         R32I: torch.int32, E4M3: torch.float8_e4m3fn, E5M2: torch.float8_e5m2}


class Recorder:
    def __init__(self, folder):
        self.folder = folder
        self.count = 0
        os.makedirs(folder, exist_ok=True)
        self.facts = {"capture": "1", "kind": "gemm", "arch": "sm_%d%d" % torch.cuda.get_device_capability(),
                      "device": torch.cuda.get_device_name(), "cuda": torch.version.cuda}

    def kernels(self, call):
        """Names and grids of what the call launches."""
        call()
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            call()
            torch.cuda.synchronize()
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            profile.export_chrome_trace(file.name)
            events = json.load(open(file.name))["traceEvents"]
        found = [x for x in events if x.get("cat") == "kernel"]
        grids = ["x".join(map(str, x["args"]["grid"])) + " of " + str(int(torch.tensor(x["args"]["block"]).prod()))
                 for x in found]
        return "; ".join(x["name"] for x in found), "; ".join(grids)

    def save(self, case, library, a, b, call, c=None, more=None, **metadata):
        """Records what `call` returns, [M, N]; a is [M, K], b [K, N]; `more` are further tensors."""
        d = call().clone().contiguous()
        if not torch.equal(d.view(torch.uint8), call().contiguous().view(torch.uint8)):
            raise RuntimeError("another result each time")
        torch.cuda.synchronize()
        kernels, grids = self.kernels(call)
        tensors = {"a": a, "b": b, "d": d, **({} if c is None else {"c": c}), **(more or {})}
        tensors = {name: x.detach().contiguous().cpu() for name, x in tensors.items()}
        facts = dict(self.facts, case=case, library=library, kernels=kernels, grids=grids)
        facts.update({key: str(value) for key, value in metadata.items() if value is not None})
        save_file(tensors, os.path.join(self.folder, case + ".safetensors"), metadata=facts)
        self.count += 1


def operands(source, m, n, k, seed):
    torch.manual_seed(seed)
    if source == R8I:
        return [torch.randint(-128, 128, s, device="cuda").to(torch.int8) for s in ((m, k), (k, n))]
    wide = torch.float64 if source == R64F else torch.float32
    return [torch.randn(s, device="cuda", dtype=wide).to(TORCH[source]) for s in ((m, k), (k, n))]


class CublasLt:
    """As much of cublasLt.h as is needed, of CUDA 12 and 13."""

    def __init__(self):
        torch.zeros(8, device="cuda") @ torch.zeros(8, device="cuda")
        self.lib = next(ctypes.CDLL(x) for x in ("libcublasLt.so.13", "libcublasLt.so.12") if self.loads(x))
        self.handle = ctypes.c_void_p()
        self.ok(self.lib.cublasLtCreate(ctypes.byref(self.handle)))
        self.workspace = torch.empty(1 << 25, dtype=torch.uint8, device="cuda")

    @staticmethod
    def loads(name):
        try:
            ctypes.CDLL(name)
            return True
        except OSError:
            return False

    @staticmethod
    def ok(status):
        if status != 0:
            raise RuntimeError(f"cuBLASLt status {status}")

    def set(self, function, of, key, value):
        self.ok(getattr(self.lib, function)(of, key, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value))))

    def layout(self, kind, rows, columns):
        x = ctypes.c_void_p()
        self.ok(self.lib.cublasLtMatrixLayoutCreate(ctypes.byref(x), kind, ctypes.c_uint64(rows),
                                                    ctypes.c_uint64(columns), ctypes.c_int64(rows)))
        return x


Algorithm = ctypes.c_uint64 * 8


class Result(ctypes.Structure):
    _fields_ = [("algorithm", Algorithm), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int),
                ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4)]


class Product:
    """D = alpha A B + beta C, row-major, as the column-major D^T = B^T A^T."""

    def __init__(self, lt, compute, source, result, m, n, k, transposed, alpha, beta, fast, seed):
        self.lt, self.compute, self.source, self.result = lt, compute, source, result
        self.scale = R64F if compute in (COMPUTE["f64"], COMPUTE["fixed"]) else R32I if compute == COMPUTE["i32"] else \
            R16F if compute == COMPUTE["f16"] else R32F
        self.a, self.b = operands(source, m, n, k, seed)
        self.stored_b = self.b.t().contiguous() if transposed else self.b
        self.d = torch.zeros((m, n), device="cuda", dtype=TORCH[result])
        self.c = torch.randn((m, n), device="cuda").to(TORCH[result]) if beta else None
        number = {R64F: ctypes.c_double, R32I: ctypes.c_int32, R32F: ctypes.c_float}.get(self.scale, ctypes.c_uint16)
        half = {0.0: 0, 1.0: 0x3C00}
        self.alpha = number(half[alpha] if self.scale == R16F else type(number().value)(alpha))
        self.beta = number(half[beta] if self.scale == R16F else type(number().value)(beta))
        self.desc = ctypes.c_void_p()
        lt.ok(lt.lib.cublasLtMatmulDescCreate(ctypes.byref(self.desc), compute, self.scale))
        if transposed:
            lt.set("cublasLtMatmulDescSetAttribute", self.desc, 3, ctypes.c_int32(OP_T))
        if fast is not None:
            lt.set("cublasLtMatmulDescSetAttribute", self.desc, 25, ctypes.c_int8(fast))
        self.layouts = [lt.layout(source, *((k, n) if transposed else (n, k))), lt.layout(source, k, m),
                        lt.layout(result, n, m)]

    def proposed(self, count=64):
        preference = ctypes.c_void_p()
        lib, lt = self.lt.lib, self.lt
        lt.ok(lib.cublasLtMatmulPreferenceCreate(ctypes.byref(preference)))
        lt.set("cublasLtMatmulPreferenceSetAttribute", preference, 1, ctypes.c_uint64(lt.workspace.numel()))
        results, found = (Result * count)(), ctypes.c_int(0)
        a, b, d = self.layouts
        status = lib.cublasLtMatmulAlgoGetHeuristic(lt.handle, self.desc, a, b, d, d, preference, count, results,
                                                    ctypes.byref(found))
        return [Algorithm(*x.algorithm) for x in results[:found.value] if x.state == 0] if status == 0 else []

    def by_id(self):
        """Every algorithm id with some tiles, splits and reductions that cublasLtMatmulAlgoCheck accepts."""
        lib, lt = self.lt.lib, self.lt
        ids, found = (ctypes.c_int * 200)(), ctypes.c_int(0)
        kinds = (self.compute, self.scale, self.source, self.source, self.result, self.result)
        if lib.cublasLtMatmulAlgoGetIds(lt.handle, *kinds, 200, ids, ctypes.byref(found)) != 0:
            return
        for number in ids[:found.value]:
            base = Algorithm()
            if lib.cublasLtMatmulAlgoInit(lt.handle, *kinds, number, ctypes.byref(base)) != 0:
                continue
            def cap(key, count=1):
                values, written = (ctypes.c_uint32 * count)(), ctypes.c_size_t(0)
                size = ctypes.c_size_t(ctypes.sizeof(values))
                status = lib.cublasLtMatmulAlgoCapGetAttribute(ctypes.byref(base), key, values, size, ctypes.byref(written))
                return list(values[:written.value // 4]) if status == 0 else []
            tiles, stages = cap(6, 512) or [0], cap(13, 512) or [0]
            splits = [(1, 0)] + ([(s, r) for s in (2, 3, 7) for r in (1, 2, 4) if (cap(1) or [0])[0] & r]
                                 if (cap(0) or [0])[0] else [])
            for tile in dict.fromkeys([tiles[0], tiles[len(tiles) // 2], tiles[-1]]):
                for split, scheme in splits:
                    for stage in dict.fromkeys([stages[0], stages[-1]]):
                        x = Algorithm(*base)
                        for key, value in ((1, tile), (2, split), (3, scheme), (6, stage)):
                            value = ctypes.c_uint32(value)
                            lib.cublasLtMatmulAlgoConfigSetAttribute(ctypes.byref(x), key, ctypes.byref(value), ctypes.c_size_t(4))
                        result = Result()
                        a, b, d = self.layouts
                        if lib.cublasLtMatmulAlgoCheck(lt.handle, self.desc, a, b, d, d, ctypes.byref(x),
                                                       ctypes.byref(result)) == 0 and \
                                result.workspace <= lt.workspace.numel():
                            yield x
                            break

    def config(self, algorithm, key):
        value, written = ctypes.c_uint32(0), ctypes.c_size_t(0)
        self.lt.lib.cublasLtMatmulAlgoConfigGetAttribute(ctypes.byref(algorithm), key, ctypes.byref(value),
                                                         ctypes.c_size_t(4), ctypes.byref(written))
        return value.value

    def run(self, algorithm):
        pointer = lambda x: ctypes.c_void_p(x.data_ptr())
        a, b, d = self.layouts
        # Split sums that meet in D would otherwise begin with what an earlier call left there.
        self.d.zero_()
        status = self.lt.lib.cublasLtMatmul(
            self.lt.handle, self.desc, ctypes.byref(self.alpha), pointer(self.stored_b), a, pointer(self.a), b,
            ctypes.byref(self.beta), pointer(self.d if self.c is None else self.c), d, pointer(self.d), d,
            ctypes.byref(algorithm), pointer(self.lt.workspace), ctypes.c_size_t(self.lt.workspace.numel()),
            ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        self.lt.ok(status)
        return self.d


def record_lt(recorder):
    lt = CublasLt()
    version = lt.lib.cublasLtGetVersion
    version.restype = ctypes.c_size_t
    library = f"cuBLASLt {version()}"
    cases = []
    for m, n, k in ((64, 48, 1032), (48, 40, 104), (32, 32, 4096)):
        for name, compute, source, result in (("f16", "f32", R16F, R16F), ("f16_fp32", "f32", R16F, R32F),
                                              ("f16acc", "f16", R16F, R16F), ("bf16", "f32", R16BF, R16BF),
                                              ("fp32", "f32", R32F, R32F), ("tf32", "tf32", R32F, R32F)):
            cases.append((name, compute, source, result, m, n, k, k == 104, 1.0, 0.0, None))
        cases.append(("f16_beta", "f32", R16F, R16F, m, n, k, False, 0.7, 0.3, None))
        cases.append(("tf32_beta", "tf32", R32F, R32F, m, n, k, False, 0.7, 0.3, None))
        cases.append(("bf16x9", "bf16x9", R32F, R32F, m, n, k, False, 1.0, 0.0, None))
        cases.append(("fixed", "fixed", R64F, R64F, m, n, k, False, 1.0, 0.0, None))
        k16 = k // 16 * 16
        for fast in (0, 1):
            cases.append((f"e4m3_fast{fast}", "f32", E4M3, R32F, m, n, k16, True, 1.0, 0.0, fast))
        cases.append(("int8", "i32", R8I, R32I, m, n, k16, True, 1.0, 0.0, None))
    for name, compute, source, result, m, n, k, transposed, alpha, beta, fast in cases:
        try:
            product = Product(lt, COMPUTE[compute], source, result, m, n, k, transposed, alpha, beta, fast, 7 + m)
        except RuntimeError as error:
            print(f"{name} {m}x{n}x{k}: {error}")
            continue
        seen, kept = set(), 0
        for algorithm in product.proposed() + list(product.by_id()):
            key = tuple(product.config(algorithm, x) for x in (0, 1, 2, 3, 6))
            family = (key[0], key[2], key[3])
            if family in seen or kept >= 24:
                continue
            case = f"lt_{name}_{m}x{n}x{k}_id{key[0]}_tile{key[1]}_split{key[2]}_scheme{key[3]}_stages{key[4]}"
            try:
                first = product.run(algorithm).clone()
                if not torch.equal(first.view(torch.uint8), product.run(algorithm).view(torch.uint8)):
                    print(f"{case}: another result each time")
                    continue
                recorder.save(case, library, product.a, product.b, lambda: product.run(algorithm), product.c,
                              alpha=None if alpha == 1 else alpha, beta=None if product.c is None else beta,
                              math_mode="tf32" if compute == "tf32" else None,
                              fast_accumulation=None if fast is None else str(bool(fast)).lower())
                seen.add(family)
                kept += 1
            except RuntimeError as error:
                print(f"{case}: {error}")
        print(f"{name} {m}x{n}x{k}: {kept} algorithms", flush=True)


TRITON = '''
import torch, triton, triton.language as tl

@triton.jit
def chain(a, b, m, n, k, am, bk, pm, pn, begin, end, acc, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
          PRECISION: tl.constexpr, IMPRECISE: tl.constexpr):
    rows, columns, inner = pm * M + tl.arange(0, M), pn * N + tl.arange(0, N), tl.arange(0, K)
    for t in range(begin, end):
        ks = t * K + inner
        x = tl.load(a + rows[:, None] * am + ks[None, :], (rows[:, None] < m) & (ks[None, :] < k), 0.0)
        y = tl.load(b + ks[:, None] * bk + columns[None, :], (ks[:, None] < k) & (columns[None, :] < n), 0.0)
        acc = tl.dot(x, y, acc, input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE)
    return acc

@triton.jit
def sliced(a, b, parts, m, n, k, am, bk, tiles_n, per_slice, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
           PRECISION: tl.constexpr, IMPRECISE: tl.constexpr):
    tile, part = tl.program_id(0), tl.program_id(1)
    pm, pn = tile // tiles_n, tile % tiles_n
    last = tl.minimum((part + 1) * per_slice, tl.cdiv(k, K))
    acc = chain(a, b, m, n, k, am, bk, pm, pn, part * per_slice, last, tl.zeros((M, N), tl.float32), M, N, K,
                PRECISION, IMPRECISE)
    rows, columns = pm * M + tl.arange(0, M), pn * N + tl.arange(0, N)
    tl.store(parts + part * m * n + rows[:, None] * n + columns[None, :], acc,
             (rows[:, None] < m) & (columns[None, :] < n))

@triton.jit
def stream(a, b, parts, m, n, k, am, bk, tiles_n, per_cta, total, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
           PRECISION: tl.constexpr, IMPRECISE: tl.constexpr):
    cta = tl.program_id(0)
    at, steps = cta * per_cta, tl.cdiv(k, K)
    end = tl.minimum(at + per_cta, total)
    while at < end:
        tile = at // steps
        stop = tl.minimum(end, (tile + 1) * steps)
        pm, pn = tile // tiles_n, tile % tiles_n
        acc = chain(a, b, m, n, k, am, bk, pm, pn, at - tile * steps, stop - tile * steps,
                    tl.zeros((M, N), tl.float32), M, N, K, PRECISION, IMPRECISE)
        rows, columns = pm * M + tl.arange(0, M), pn * N + tl.arange(0, N)
        tl.store(parts + cta * m * n + rows[:, None] * n + columns[None, :], acc,
                 (rows[:, None] < m) & (columns[None, :] < n))
        at = stop

@triton.jit
def add_up(parts, d, size, count, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    total = tl.zeros((SIZE,), tl.float32)
    for p in range(count):
        x = tl.load(parts + p * size + at, at < size, 0.0)
        total = tl.where(p == 0, x, total + x)
    tl.store(d + at, total.to(d.dtype.element_ty), at < size)
'''


def record_triton(recorder):
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(TRITON)
    sys.path.insert(0, os.path.dirname(file.name))
    kernels = __import__(os.path.basename(file.name)[:-3])
    import triton
    library = f"Triton {triton.__version__}"
    for source, result, precision, imprecise in (
            (R16F, R16F, "ieee", 0), (R16F, R32F, "ieee", 0), (R16BF, R16BF, "ieee", 0), (R32F, R32F, "tf32", 0),
            (R32F, R32F, "tf32x3", 0), (R32F, R32F, "ieee", 0), (E4M3, R32F, "ieee", 0), (E4M3, R32F, "ieee", 128)):
        for m, n, k in ((96, 80, 1040), (64, 64, 200)):
            for tile_k, ways in ((32, 1), (64, 1), (32, 3), (64, "stream5"), (32, "stream7")):
                if source == E4M3 and imprecise > tile_k and imprecise % tile_k:
                    continue
                name = "_".join(map(str, ("triton", str(TORCH[source])[6:], str(TORCH[result])[6:], precision, imprecise,
                                          f"{m}x{n}x{k}", f"bk{tile_k}", ways)))
                a, b = operands(source, m, n, k, 11)
                M = N = 64 if source == E4M3 else 32
                tiles_n, steps = -(-n // N), -(-k // tile_k)
                tiles = -(-m // M) * tiles_n
                d = torch.empty((m, n), device="cuda", dtype=TORCH[result])
                count = int(ways[6:]) if isinstance(ways, str) else ways
                # Parts that no block writes are -0: adding one changes nothing.
                parts = torch.full((count, m, n), -0.0, device="cuda")
                shared = dict(M=M, N=N, K=tile_k, PRECISION=precision, IMPRECISE=imprecise)
                if precision == "ieee" and source != R32F:
                    shared["PRECISION"] = "tf32"

                def call():
                    if isinstance(ways, str):
                        total = tiles * steps
                        kernels.stream[(count,)](a, b, parts, m, n, k, k, n, tiles_n, -(-total // count), total, **shared)
                    else:
                        kernels.sliced[(tiles, count)](a, b, parts, m, n, k, k, n, tiles_n, -(-steps // count), **shared)
                    kernels.add_up[(-(-m * n // 256),)](parts, d, m * n, count, 256)
                    return d

                try:
                    recorder.save(name, library, a, b, call, math_mode="tf32" if precision.startswith("tf32") else None,
                                  fast_accumulation=None if source != E4M3 else str(imprecise == 0).lower(),
                                  tiles=f"{M}x{N}x{tile_k}")
                except Exception as error:  # a precision or type that this version of Triton does not compile
                    print(f"{name}: {str(error).splitlines()[:1]}")
    print(f"Triton: {recorder.count} in all", flush=True)


OWN = r'''
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// Iterations of 16 k's, tile after tile (columns first), go to the blocks in equal shares; warp w of a block takes
// every other of them. Blocks leave the sums of their warps, added, in a workspace of one matrix for each block.
__global__ void stream(const half* a, const half* b, float* parts, int m, int n, int k, int shares) {
  __shared__ float slices[2][256];
  const int steps = k / 16, total = (m / 16) * (n / 16) * steps, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int at = blockIdx.x * shares;
  const int end = min(at + shares, total);
  while (at < end) {
    const int tile = at / steps, stop = min(end, (tile + 1) * steps);
    const int row = tile / (n / 16) * 16, column = tile % (n / 16) * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = at + warp; i < stop; i += 2) {
      const int first = (i - tile * steps) * 16;
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
      wmma::load_matrix_sync(x, a + row * k + first, k);
      wmma::load_matrix_sync(y, b + first * n + column, n);
      wmma::mma_sync(sum, x, y, sum);
    }
    wmma::store_matrix_sync(slices[warp], sum, 16, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += 64)
      parts[(size_t)blockIdx.x * m * n + (row + i / 16) * n + column + i % 16] =
          stop - at > 1 ? slices[0][i] + slices[1][i] : slices[0][i];
    __syncthreads();
    at = stop;
  }
  (void)lane;
}

// Sums of the blocks that worked on a tile, in their order.
__global__ void fix_up(const float* parts, float* d, int m, int n, int k, int shares) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= m * n) return;
  const int steps = k / 16, tile = at / n / 16 * (n / 16) + at % n / 16;
  const int first = tile * steps / shares, last = (tile * steps + steps - 1) / shares;
  float sum = parts[(size_t)first * m * n + at];
  for (int block = first + 1; block <= last; ++block) sum = sum + parts[(size_t)block * m * n + at];
  d[at] = sum;
}

extern "C" void multiply(const half* a, const half* b, float* parts, float* d, int m, int n, int k, int blocks) {
  const int total = (m / 16) * (n / 16) * (k / 16), shares = (total + blocks - 1) / blocks;
  stream<<<blocks, 64>>>(a, b, parts, m, n, k, shares);
  fix_up<<<(m * n + 255) / 256, 256>>>(parts, d, m, n, k, shares);
}
'''


def record_own(recorder):
    folder = tempfile.mkdtemp()
    source, library = os.path.join(folder, "own.cu"), os.path.join(folder, "own.so")
    with open(source, "w") as file:
        file.write(OWN)
    # Several nvcc may be there; the one of the toolkit compiles for this machine.
    nvcc = next((x for x in ("/usr/local/cuda/bin/nvcc", "nvcc") if os.path.exists(x)), "nvcc")
    subprocess.run([nvcc, "-arch=sm_%d%d" % torch.cuda.get_device_capability(), "-fmad=false", "-shared", "-Xcompiler", "-fPIC",
                    source, "-o", library], check=True)
    multiply = ctypes.CDLL(library).multiply
    for m, n, k in ((64, 48, 256), (96, 80, 1040), (32, 32, 4096)):
        for blocks in (1, 3, 5, 8, 13, 132):
            a, b = operands(R16F, m, n, k, 13)
            parts = torch.zeros((blocks, m, n), device="cuda")
            d = torch.empty((m, n), device="cuda")

            def call():
                multiply(*(ctypes.c_void_p(x.data_ptr()) for x in (a, b, parts, d)), m, n, k, blocks)
                torch.cuda.synchronize()
                return d

            plan = ("sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 lanes=2x16:round_robin "
                    f"stream_k={blocks}x16x16x16:ceil d=fp32")
            recorder.save(f"own_f16_{m}x{n}x{k}_blocks{blocks}", "guardbit", a, b, call, plan=plan)
    print(f"own kernel: {recorder.count} in all", flush=True)


def settings(name):
    """Sets PyTorch's switches for products of that kind; the type of the operands."""
    matmul = torch.backends.cuda.matmul
    matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = name == "tf32"
    matmul.allow_fp16_accumulation = name == "f16acc"
    matmul.allow_fp16_reduced_precision_reduction = name != "f16full"
    matmul.allow_bf16_reduced_precision_reduction = name != "bf16full"
    return {"f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}.get(name[:4].rstrip("af"), torch.float32)


def laid_out(x, transposed):
    return x.transpose(-1, -2).contiguous().transpose(-1, -2) if transposed else x.contiguous()


class Draw:
    """Shapes and choices of one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        torch.manual_seed(seed)

    def size(self, low, high, multiple=1):
        """Of no preferred magnitude."""
        x = math.exp(self.random.uniform(math.log(low), math.log(high + 1)))
        return max(multiple, int(x) // multiple * multiple)

    def shape(self, multiple=1, deepest=16384):
        """M, N and K; the operands stay small enough for a file of each product."""
        cells, multiple = self.choice(1 << 15, 1 << 15, 1 << 17), self.random.choice([multiple, max(multiple, 8), max(multiple, 64)])
        k = self.size(16, deepest, multiple)
        widest = max(2 * multiple, min(320, cells // k))
        return self.size(1, widest, multiple), self.size(1, widest, multiple), k

    def choice(self, *values):
        return self.random.choice(values)

    def values(self, *shape, dtype=torch.float32):
        return torch.randn(shape, device="cuda").to(dtype)


def record_torch(recorder, seed=1, count=16):
    library = f"PyTorch {torch.__version__}"
    draw = Draw(seed)

    def attempt(case, *arguments, **metadata):
        try:
            recorder.save(case, library, *arguments, **metadata)
        except Exception as error:  # a shape that the library does not take
            print(f"{case}: {str(error).splitlines()[:1]}", flush=True)

    for i in range(count):
        for name in ("f16", "bf16", "tf32", "fp32", "f16acc", "f16full", "bf16full", "f64"):
            dtype, (m, n, k) = settings(name), draw.shape()
            layout = draw.choice("NN", "NT", "TN", "TT")
            a, b = laid_out(draw.values(m, k, dtype=dtype), layout[0] == "T"), laid_out(draw.values(k, n, dtype=dtype), layout[1] == "T")
            math_mode = "tf32" if name == "tf32" else None
            call = draw.choice("mm", "mm", "addmm", "bias", "linear", "bmm") if i % 2 else "mm"
            case = f"torch{seed}_{i}_{call}_{name}_{m}x{n}x{k}_{layout}"
            if call == "mm":
                attempt(case, a, b, lambda: a @ b, math_mode=math_mode)
            elif call == "addmm":
                alpha, beta = draw.choice(1.0, 0.5, 1.7), draw.choice(1.0, 0.25, -0.3)
                c = draw.values(m, n, dtype=dtype)
                attempt(f"{case}_{alpha}_{beta}", a, b, lambda: torch.addmm(c, a, b, beta=beta, alpha=alpha), c,
                        math_mode=math_mode, alpha=alpha, beta=beta)
            elif call in ("bias", "linear"):
                bias, weight = draw.values(n, dtype=dtype), b.t().contiguous()
                function = (lambda: torch.addmm(bias, a, b)) if call == "bias" else \
                    (lambda: torch.nn.functional.linear(a, weight, bias))
                attempt(case, a, b, function, math_mode=math_mode, more={"bias": bias})
            else:
                count_of = draw.choice(2, 3, 5)
                m, n, k = max(1, m // 2), max(1, n // 2), max(1, k // count_of)
                x, y = draw.values(count_of, m, k, dtype=dtype), draw.values(count_of, k, n, dtype=dtype)
                x, y = laid_out(x, layout[0] == "T"), laid_out(y, layout[1] == "T")
                case = f"torch{seed}_{i}_bmm_{name}_{count_of}x{m}x{n}x{k}_{layout}"
                if draw.choice(True, False):
                    attempt(case, x, y, lambda: torch.bmm(x, y), math_mode=math_mode)
                else:
                    c = draw.values(count_of, m, n, dtype=dtype)
                    attempt(case + "_0.5_2", x, y, lambda: torch.baddbmm(c, x, y, beta=2, alpha=0.5), c,
                            math_mode=math_mode, alpha=0.5, beta=2.0)

        settings("f16")
        m, n, k = draw.shape(8)
        m = max(m, 17)
        a, b = (torch.randint(-128, 128, s, device="cuda").to(torch.int8) for s in ((m, k), (n, k)))
        b = b.t() if draw.choice(True, False) else b.t().contiguous()
        attempt(f"torch{seed}_{i}_int8_{m}x{n}x{k}", a, b, lambda: torch._int_mm(a, b))

        m, n, k = draw.shape(16)
        formats = draw.choice((torch.float8_e4m3fn, torch.float8_e4m3fn), (torch.float8_e4m3fn, torch.float8_e5m2),
                              (torch.float8_e5m2, torch.float8_e4m3fn))
        a, b = draw.values(m, k, dtype=formats[0]), draw.values(n, k, dtype=formats[1]).t()
        fast, scaling, result = draw.choice(True, False), draw.choice("one", "one", "tensor", "row", "block"), \
            draw.choice(torch.float32, torch.bfloat16, torch.float16)
        scales = {"one": ((1,), (1,)), "tensor": ((1,), (1,)), "row": ((m, 1), (1, n))}.get(scaling)
        if scaling == "block":
            n, k = max(128, n // 128 * 128), max(128, k // 128 * 128)
            a, b = draw.values(m, k, dtype=formats[0]), draw.values(n, k, dtype=formats[1]).t()
            scales = ((m, k // 128), (k // 128, n // 128))
        x, y = (torch.rand(s, device="cuda") + 0.5 if scaling != "one" else torch.ones(s, device="cuda") for s in scales)
        if scaling in ("row", "block"):
            result = torch.bfloat16
        if scaling == "block":  # the library takes scales of rows with rows innermost, of blocks with K innermost
            fast, x, y = False, x.t().contiguous().t(), y.t().contiguous().t()
        scaled = {} if scaling == "one" else {"scale_a": x, "scale_b": y}
        attempt(f"torch{seed}_{i}_scaled_{str(formats[0])[14:18]}_{str(formats[1])[14:18]}_{scaling}_{str(result)[6:]}_"
                f"fast{int(fast)}_{m}x{n}x{k}", a, b,
                lambda: torch._scaled_mm(a, b, scale_a=x, scale_b=y, out_dtype=result, use_fast_accum=fast),
                fast_accumulation=str(fast).lower(), more=scaled)

        dtype = draw.choice(torch.float16, torch.bfloat16, torch.int8)
        m, n, k = draw.shape(64, 4096)
        a, b = (torch.randint(-20, 20, s, device="cuda").to(torch.int8) if dtype == torch.int8 else draw.values(*s, dtype=dtype)
                for s in ((m, k), (n, k)))
        a = (a.float() * torch.tensor(draw.choice([1, 1, 0, 0], [0, 1, 0, 1], [1, 0, 0, 1]), device="cuda").repeat(m, k // 4)).to(dtype)
        packed = None
        try:
            packed = torch.sparse.to_sparse_semi_structured(a)
        except Exception as error:
            print(f"sparse {m}x{n}x{k}: {str(error).splitlines()[:1]}")
        if packed is not None:
            attempt(f"torch{seed}_{i}_sparse_{str(dtype)[6:]}_{m}x{n}x{k}", a, b.t(), lambda: torch.mm(packed, b.t()),
                    sparsity="2:4")

        for name in ("f16", "bf16", "tf32", "fp32"):
            dtype, groups = settings(name), draw.choice(1, 1, 1, 2, 4)
            channels, outputs = groups * draw.size(3, 96 // groups, draw.choice(1, 4, 8)), groups * draw.size(4, 96 // groups, draw.choice(1, 4, 8))
            image, filters = draw.choice(7, 8, 9, 14, 16), draw.choice((1, 1), (3, 3), (3, 3), (5, 5), (1, 3), (7, 7))
            stride, dilation, batch = draw.choice(1, 1, 2), draw.choice(1, 1, 2), draw.choice(1, 2, 4)
            padding = draw.choice(0, 1, 2)
            last = draw.choice(True, False)
            a, b = draw.values(batch, channels, image, image, dtype=dtype), draw.values(outputs, channels // groups, *filters, dtype=dtype)
            if last:
                a, b = a.to(memory_format=torch.channels_last), b.to(memory_format=torch.channels_last)
            bias = draw.values(outputs, dtype=dtype) if draw.choice(True, False, False) else None
            attempt(f"torch{seed}_{i}_conv_{name}_{'nhwc' if last else 'nchw'}_{batch}x{channels}x{image}_{outputs}x"
                    f"{filters[0]}x{filters[1]}_p{padding}s{stride}d{dilation}g{groups}" + ("_bias" if bias is not None else ""), a, b,
                    lambda: torch.nn.functional.conv2d(a, b, bias, stride, padding, dilation, groups),
                    math_mode="tf32" if name == "tf32" else None, kind="conv2d", stride=stride, padding=padding,
                    dilation=dilation, groups=groups, layout="NHWC" if last else "NCHW", more={} if bias is None else {"bias": bias})
        print(f"PyTorch: {recorder.count} in all", flush=True)


def record_large(recorder, seed=1):
    """A recording has 16 of the rows and of the columns: enough to tell plans apart in a file of less than a MiB."""
    library, draw = f"PyTorch {torch.__version__}", Draw(seed)
    for m, n, k in ((4096, 4096, 4096), (8192, 8192, 2048), (1000, 3000, 5000), (512, 512, 16384), (2048, 1024, 8192),
                    (128, 8192, 8192), (8192, 64, 4096), (640, 640, 12288), (1, 4096, 4096), (16, 11008, 4096)):
        for name in ("f16", "bf16", "tf32", "fp32", "e4m3_fast0", "e4m3_fast1", "int8", "f16acc"):
            dtype = settings(name)
            rows, columns = (torch.randperm(x, device="cuda")[:16].sort().values for x in (m, n))
            fast = None if "fast" not in name else name.endswith("1")
            a, b = draw.values(m, k), draw.values(n, k)
            one = torch.ones(1, device="cuda")
            if name == "int8":
                a, b = (x.mul(40).clamp(-128, 127).to(torch.int8) for x in (a, b))
                product = lambda: torch._int_mm(a, b.t())
            elif fast is not None:
                a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
                product = lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast)
            else:
                a, b = a.to(dtype), b.to(dtype)
                product = lambda: a @ b.t()
            case = f"large{seed}_{name}_{m}x{n}x{k}"
            try:
                recorder.save(case, library, a[rows], b[columns].t(), lambda: product()[rows][:, columns],
                              math_mode="tf32" if name == "tf32" else None, rows=rows.tolist(), columns=columns.tolist(),
                              fast_accumulation=None if fast is None else str(fast).lower())
            except Exception as error:
                print(f"{case}: {str(error).splitlines()[:1]}", flush=True)
    print(f"large: {recorder.count} in all", flush=True)


def record_whole(recorder, seed=1):
    library, draw = f"PyTorch {torch.__version__}", Draw(seed)
    for m, n, k in ((192, 256, 2048), (384, 128, 2048), (200, 264, 1032), (1024, 64, 1024)):
        for name in ("tf32", "fp32", "f16acc"):
            dtype, transposed = settings(name), draw.choice(True, False)
            a, b = draw.values(m, k, dtype=dtype), laid_out(draw.values(k, n, dtype=dtype), transposed)
            recorder.save(f"whole{seed}_{name}_{m}x{n}x{k}_N{'T' if transposed else 'N'}", library, a, b, lambda: a @ b,
                          math_mode="tf32" if name == "tf32" else None)
    print(f"whole: {recorder.count} in all", flush=True)


def main():
    recorder = Recorder(sys.argv[1])
    parts = {"lt": record_lt, "triton": record_triton, "torch": record_torch, "large": record_large,
             "whole": record_whole, "own": record_own}
    for part in sys.argv[2:] or parts:
        name, _, seed = part.partition(":")
        try:
            parts[name](recorder, **({"seed": int(seed)} if seed else {}))
        except Exception as error:
            print(f"{name} ended early: {error!r}", flush=True)
    print(f"{recorder.count} results in {sys.argv[1]}")


main()
