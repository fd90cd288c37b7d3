"""What the names of launched kernels say of the order of K."""
import re

import numpy as np

CHAIN, PARTS, IN_PLACE, ROUNDED_PARTS, ROUND_ROBIN, TILES_OF_64, LANES_HALVES, LANES_ASCENDING, UNKNOWN, RUNS_OF_8 = range(10)
USUAL, SIMT, K8 = 0, 1, 2
CUT_FORMS = (PARTS, IN_PLACE, ROUNDED_PARTS, ROUND_ROBIN, TILES_OF_64)


# Layers for which sgemm_largek's parts are known: up to so many elements of K, and 32 x 32 tiles of D.
LARGEK_K, LARGEK_TILES = 640, 132


def kernels_of(signature):
    """The kernels of a call, and whether memory was set before them."""
    launched = [x for x in signature.split(";") if x and "elementwise" not in x]
    return [x for x in launched if not x.startswith("set")], any(x.startswith("set") for x in launched)


# After so many elements a lane's chain is added to its sum and begins again; a label has the place in this list.
RESTARTS = [0, 16, 32, 128, 256]


def lanes_of(name):
    """(form, lanes, run, place in RESTARTS) of kernels in which lanes of a CUDA core's multiply-adds share K; run 0:
    ceil(K / lanes)."""
    if "gemvNSP" in name and "Li1ELi32ELi4E" in name:
        return LANES_HALVES, 32, 4, 0
    if "gemmk1" in name or "magma_sgemmEx" in name or ("gemv2N" in name and "fLi128ELi1E" in name):
        return LANES_ASCENDING, 1, 1, 0
    if "dot_kernelIfLi128E" in name:
        return LANES_HALVES, 128, 2, 0
    if "gemv2T" in name and "Li128ELi16ELi4ELi4E" in name:
        return LANES_ASCENDING, 16, 1, 2
    if "gemv2T" in name and "Li128ELi16ELi2ELi2E" in name or "gemmSN_TN_kernelIfLi128ELi16ELi2ELi4E" in name:
        return LANES_ASCENDING, 16, 1, 1
    if "gemmSN_NN_kernelIfLi128ELi2E" in name:
        return LANES_ASCENDING, 2, 0, 4
    if "gemmSN_NN_kernelIfLi256ELi4E" in name:
        return LANES_ASCENDING, 4, 0, 3
    return None


def kind_of(signature):
    """(form where K is cut, form where it is not, tile of K that may be incomplete first or run of a lane, unit, lanes)."""
    kernels, is_set = kernels_of(signature)
    unknown = (UNKNOWN, UNKNOWN, 0, USUAL, 1)
    if not kernels:
        return unknown
    name, reduced, alone = kernels[0], any("splitKreduce" in x for x in kernels[1:]), len(kernels) == 1
    lanes = lanes_of(name)
    if lanes and (alone or "reduce_1Block" in kernels[1]):
        return lanes[0], lanes[0], lanes[2], SIMT, int(np.log2(lanes[1])) + 16 * lanes[3]
    if "nvjet" in name:
        if "splitK" in name and reduced:
            return TILES_OF_64, UNKNOWN, 0, USUAL, 1
        return (CHAIN, CHAIN, 0, USUAL, 1) if alone and "splitK" not in name else unknown
    cutlass = re.search(r"gemm\w*?_(\d+)x(\d+)(?:_(\d+)x(\d+))?_[nt][nt]_align(\d)", name)
    if "cutlass" in name and cutlass:
        is_simt = "simt" in name
        unit = SIMT if is_simt else K8 if re.search(r"75_tensorop_(bf16_|f16_)?s1688gemm_(bf16|f16)", name) else USUAL
        tile = 0 if is_simt else int(cutlass.group(3) or 32)
        rounded = re.search(r"_(bf16|f16)_s\d+gemm", name)
        if reduced:
            return (ROUNDED_PARTS if rounded else PARTS), CHAIN, tile, unit, 1
        return (IN_PLACE if is_set else CHAIN, CHAIN, tile, unit, 1) if alone else unknown
    if "sm90_xmma" in name and alone:
        return CHAIN, CHAIN, 0, USUAL, 1
    if "sm80_xmma" in name:
        if "ffma" in name:
            return ROUND_ROBIN, (CHAIN if alone else UNKNOWN), 0, SIMT, 1
        if alone:
            return (CHAIN if "f16f16" in name else UNKNOWN), CHAIN, 0, USUAL, 1
    return unknown


def tile_of(signature):
    """Columns and rows of D that a thread block computes, of kernels that cut K; 0 where the name does not say."""
    found = re.search(r"tilesize(\d+)x(\d+)x", signature) or re.search(r"nvjet_sm90_\w+?_(\d+)x(\d+)_", signature) or \
        re.search(r"gemm\w*?_(\d+)x(\d+)", signature)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def gemvx_lanes(calls, keys, ids, grids):
    """Lanes of cuBLAS' gemvx, by its threads and the rows of a block, and the run of each; 0 lanes where it is not this kernel
    or its grid is not known. A run of 64 is no longer than a lane's share."""
    found = [re.search(r"5gemvx6kernel.*/(\d+);", key.split("#")[0]) for key in keys]
    alone = [len(kernels_of(key.split("#")[0])[0]) == 1 for key in keys]
    threads = np.array([int(x.group(1)) if x and y else 0 for x, y in zip(found, alone)], np.int64)[ids]
    vector = np.array(["Lb1ELb0ELi" in key for key in keys])[ids]
    lanes, run = np.zeros(len(ids), np.int64), np.ones(len(ids), np.int64)
    at = np.flatnonzero((threads > 0) & (np.arange(len(ids)) < len(grids)))
    m, n, k = calls[at, 5], calls[at, 6], calls[at, 7]
    rows, blocks = np.maximum(m, n), grids[at, 0].astype(np.int64)
    sides = 2 ** np.arange(1, 9)
    fits = (-(-rows[:, None] // sides) == blocks[:, None]) & (sides < threads[at][:, None])
    sure = fits.sum(1) == 1
    usual = {}
    for key in np.unique(ids[at][sure]):
        mine = sure & (ids[at] == key)
        usual[key] = int(np.bincount(fits[mine].argmax(1)).argmax())
    side = fits.argmax(1)
    for i in np.flatnonzero(~sure & fits.any(1)):
        common = usual.get(ids[at][i])
        if common is not None and fits[i, common]:
            side[i] = common
    lanes[at] = np.where(fits.any(1), threads[at] // sides[side], 0)
    is_strided = np.where(m > 1, calls[at, 3] == 1, calls[at, 4] == 0)
    wide = lanes[at] > 24
    takes_runs = np.where(k <= 338, True, np.where(k <= 555, vector[at] | ~wide, ~wide & is_strided))
    run[at] = np.where(takes_runs, 64, 1)
    return lanes, run


def is_largek(calls, keys, ids):
    """Calls that cuBLAS' sgemm_largek with tiles of 32 x 32 computes, of those whose parts are known."""
    named = np.array(["sgemm_largek_lds64ILb1ELb0ELi5ELi5E" in key for key in keys])[ids]
    tiles = -(-calls[:, 5] // 32) * -(-calls[:, 6] // 32)
    return named & (calls[:, 3] == 0) & (calls[:, 4] == 1) & (calls[:, 7] <= LARGEK_K) & (tiles <= LARGEK_TILES)


def classes_of(calls, keys, ids, grids=()):
    """Columns form, parts, tile, unit, tile_m, tile_n of each call; parts: of lanes the logarithm
    of their number, and 16 times their place in RESTARTS."""
    rows = []
    for key in keys:
        signature, depth, word = key.rsplit("#", 2)
        kind = kind_of(signature)
        split = int(word) if word != "0" else (1 if depth.startswith("x") else int(depth))
        rows.append((*kind[:4], kind[4], max(1, split), *tile_of(signature)))
    cut_form, whole_form, tile, unit, lanes, parts, tile_m, tile_n = np.array(rows, np.int64).T[:, ids]
    form = np.where(parts > 1, cut_form, whole_form)
    # Above 256 elements the blocks' sums are added in an order that is not known.
    is_dot = np.array(["dot_kernel" in key for key in keys])[ids]
    form = np.where(is_dot & (calls[:, 7] > 256), UNKNOWN, form)
    form = np.where(is_largek(calls, keys, ids), RUNS_OF_8, form)
    is_cut, is_lanes = np.isin(form, CUT_FORMS), np.isin(form, (LANES_HALVES, LANES_ASCENDING))
    unit = np.where((unit == SIMT) & (calls[:, 2] == 3), USUAL, unit)
    tile = np.where(np.isin(form, (CHAIN, PARTS, IN_PLACE, ROUNDED_PARTS)) | is_lanes, tile, 0)
    if len(grids):
        gemv, run = gemvx_lanes(calls, keys, ids, grids)
        form, lanes = np.where(gemv > 0, LANES_HALVES, form), np.where(gemv > 0, np.log2(np.maximum(gemv, 1)).astype(np.int64), lanes)
        is_lanes, tile, unit = is_lanes | (gemv > 0), np.where(gemv > 0, run, tile), np.where(gemv > 0, SIMT, unit)
        unit = np.where(calls[:, 2] == 3, USUAL, unit)
    known = form != UNKNOWN
    return [form, np.where(is_cut, parts, np.where(is_lanes, lanes, 1)), np.where(known, tile, 0), np.where(known, unit, 0),
            np.where(is_cut, tile_m, 0), np.where(is_cut, tile_n, 0)]
