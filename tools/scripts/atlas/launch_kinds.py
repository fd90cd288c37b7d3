"""What the names of launched kernels say of the order of K."""
import re

import numpy as np

# As leaf.hpp's Form has them.
(CHAIN, PARTS, IN_PLACE, ROUNDED_PARTS, ROUND_ROBIN, TILES_OF_64, LANES_HALVES, LANES_ASCENDING, UNKNOWN, RUNS_OF_8, DOT, SPLIT_LANES,
 SPLIT_CHAINS) = range(13)
USUAL, SIMT, K8 = 0, 1, 2
MULTIPROCESSORS = 132
SPLIT_VECTORS = (SPLIT_LANES, SPLIT_CHAINS)
CUT_FORMS = (PARTS, IN_PLACE, ROUNDED_PARTS, ROUND_ROBIN, TILES_OF_64, RUNS_OF_8, *SPLIT_VECTORS)
LANES = (LANES_HALVES, LANES_ASCENDING)


def kernels_of(signature):
    """The kernels of a call, and whether memory was set before them."""
    launched = [x for x in signature.split(";") if x and "elementwise" not in x]
    return [x for x in launched if not x.startswith("set")], any(x.startswith("set") for x in launched)


# After so many elements a lane's chain is added to its sum and begins again; a label has the place in this list.
RESTARTS = [0, 16, 32, 128, 256]
# Numbers of lanes; a label has the place in this list.
LANE_COUNTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 24]


def lanes_of(name):
    """(form, lanes, run, place in RESTARTS) of kernels in which lanes of a CUDA core's multiply-adds share K; run 0:
    ceil(K / lanes)."""
    if "gemvNSP" in name and "Li1ELi32ELi4E" in name:
        return LANES_HALVES, 32, 4, 0
    if "gemvNSP" in name and "Li1ELi16ELi4E" in name and "/768;" in name + ";":
        return LANES_HALVES, 24, 4, 0
    if "gemv2N" in name and "fLi128ELi2ELi4ELi4E" in name:
        return LANES_ASCENDING, 2, 0, 0
    if "gemmk1" in name or "magma_sgemmEx" in name or ("gemv2N" in name and "fLi128ELi1E" in name):
        return LANES_ASCENDING, 1, 1, 0
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
    """(form where K is cut, form where it is not, tile of K: one that may be incomplete first, that parts take in turn or a lane's run, unit,
    lanes)."""
    kernels, is_set = kernels_of(signature)
    unknown = (UNKNOWN, UNKNOWN, 0, USUAL, 1)
    if not kernels:
        return unknown
    name, reduced, alone = kernels[0], any("splitKreduce" in x for x in kernels[1:]), len(kernels) == 1
    lanes = lanes_of(name)
    if lanes and alone:
        return lanes[0], lanes[0], lanes[2], SIMT, LANE_COUNTS.index(lanes[1]) + 16 * lanes[3]
    if "dot_kernelIfLi128E" in name and "reduce_1Block" in kernels[-1]:
        return DOT, DOT, 0, SIMT, 1
    if "gemv2T" in name and "Li128ELi16ELi4ELi4E" in name and reduced:
        return SPLIT_CHAINS, SPLIT_CHAINS, 0, SIMT, 1
    if any("sgemm_largek" in x for x in kernels):
        return RUNS_OF_8, CHAIN, 0, SIMT, 1
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
            return ROUND_ROBIN, (CHAIN if alone else UNKNOWN), 8, SIMT, 1
        in_turn = re.search(r"tf32\w*_tilesize\d+x\d+x(\d+)_", name)
        if in_turn and (in_turn.group(1) == "64" if alone else in_turn.group(1) == "32" and "split_k_kernel" in kernels[1]):
            return ROUND_ROBIN, (CHAIN if alone else UNKNOWN), int(in_turn.group(1)), USUAL, 1
        if alone:
            return (CHAIN if "f16f16" in name else UNKNOWN), CHAIN, 0, USUAL, 1
    return unknown


def tile_of(signature):
    """Columns and rows of D that a thread block computes, of kernels that cut K; 0 where the name does not say."""
    if "gemv2T" in signature:
        return 8, 8
    powers = re.search(r"sgemm_largek_lds64ILb\dELb\dELi(\d)ELi(\d)E", signature)
    if powers:
        return 2 ** int(powers.group(1)), 2 ** int(powers.group(2))
    found = re.search(r"tilesize(\d+)x(\d+)x", signature) or re.search(r"nvjet_sm90_\w+?_(\d+)x(\d+)_", signature) or \
        re.search(r"gemm\w*?_(\d+)x(\d+)", signature)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


# Of FP32's gemvx of one product, by its name's first four flags and its threads: lanes, and the least and the greatest K of which results told that
# lanes take runs of 64 (or their share, if that is less), or of one: 1,132 results, none of them another.
TOLD_GEMVX = {("0110", 64): ((16, 1408, 1792, 1),), ("0110", 128): ((32, 60, 512, 64), (32, 520, 4096, 1)),
              ("0110", 512): ((16, 832, 1792, 1), (32, 1408, 2000, 1)), ("1110", 64): ((2, 3, 56, 64),), ("0100", 64): ((2, 3, 1700, 64),),
              ("0100", 128): ((2, 176, 330, 64), (32, 336, 1080, 1)), ("0100", 256): ((32, 1008, 9800, 1),),
              ("0100", 512): ((16, 341, 3072, 64), (32, 1560, 3136, 64))}


def told_gemvx(calls, keys, ids, grids):
    """Lanes and run of each call of one of TOLD_GEMVX of which the grid leaves one answer; elsewhere 0 and 0."""
    rows, blocks = np.maximum(calls[:, 5], calls[:, 6]), np.zeros(len(ids), np.int64)
    blocks[:len(grids)] = grids[:, 0]
    answers, lanes, run = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
    named = {}
    for i, key in enumerate(keys):
        found = re.search(r"5gemvx6kernelIiiffffLb(\d)ELb(\d)ELb(\d)ELb(\d)E.*?/(\d+);", key.split("#")[0])
        if found:
            named.setdefault(("".join(found.groups()[:4]), int(found.group(5))), []).append(i)
    for kernel, mine in named.items():
        at = np.flatnonzero(np.isin(ids, mine) & (calls[:, 8] == 1))
        for count, least, most, each in TOLD_GEMVX.get(kernel, ()):
            fits = at[(calls[at, 7] >= least) & (calls[at, 7] <= most) & (-(-rows[at] // (kernel[1] // count)) == blocks[at])]
            answers[fits] += 1
            lanes[fits], run[fits] = count, each
    return np.where(answers == 1, lanes, 0), np.where(answers == 1, run, 0)


def runs_of_gemvx(calls, wide, vector):
    """Elements of K that a lane of gemvx takes at once: 64 (or its share, if that is less) or one. A guess, by the results."""
    k = calls[:, 7]
    is_strided = np.where(calls[:, 5] > 1, calls[:, 3] == 1, calls[:, 4] == 0)
    return np.where(k <= 338, 64, np.where(np.where(k <= 555, vector | ~wide, ~wide & is_strided), 64, 1))


def runs_of_split_gemvx(calls, lanes, parts):
    """The same, of a kernel whose blocks share K, too."""
    share = -(-calls[:, 7] // np.maximum(parts, 1))
    few = np.where(lanes == 2, parts != 9, np.where(lanes == 4, (share > 1500) & (parts != 8), True))
    return np.where(np.where(lanes >= 32, parts == 32, np.where(lanes == 16, (share > 640) | (parts == 32), few)), 64, 1)


def gemvx_lanes(calls, keys, ids, grids, parts):
    """Lanes of cuBLAS' gemvx, by its threads and the rows of a block, the run of each, and the rows of a block; 0 lanes where it is
    not this kernel or its grid is not known. A run of 64 is no longer than a lane's share."""
    found = [re.search(r"5gemvx6kernel.*?/(\d+);", key.split("#")[0]) for key in keys]
    threads = np.array([int(x.group(1)) if x else 0 for x in found], np.int64)[ids]
    vector = np.array(["Lb1ELb0ELi" in key for key in keys])[ids]
    lanes, run, rows_of_block = np.zeros(len(ids), np.int64), np.ones(len(ids), np.int64), np.ones(len(ids), np.int64)
    at = np.flatnonzero((threads > 0) & (np.arange(len(ids)) < len(grids)))
    rows, blocks = np.maximum(calls[at, 5], calls[at, 6]), grids[at, 0].astype(np.int64)
    sides = 2 ** np.arange(1, 9)
    fits = (-(-rows[:, None] // sides) == blocks[:, None]) & (sides < threads[at][:, None])
    sure = fits.sum(1) == 1
    usual = {}
    for key in np.unique(ids[at][sure]):
        mine = sure & (ids[at] == key)
        usual[key] = int(np.bincount(fits[mine].argmax(1)).argmax())
    # A kernel whose launches tell nothing has 32 lanes.
    side = np.where(sure, fits.argmax(1), np.log2(np.maximum(threads[at] // 64, 1)).astype(np.int64))
    for i in np.flatnonzero(~sure & fits.any(1)):
        common = usual.get(ids[at][i])
        if common is not None and fits[i, common]:
            side[i] = common
        elif not fits[i, side[i]]:
            side[i] = fits[i].argmax()
    lanes[at] = np.where(fits.any(1), threads[at] // sides[side], 0)
    rows_of_block[at] = sides[side]
    run[at] = np.where(parts[at] > 1, runs_of_split_gemvx(calls[at], lanes[at], parts[at]), runs_of_gemvx(calls[at], lanes[at] > 24, vector[at]))
    told, of_told = told_gemvx(calls, keys, ids, grids)
    here = (told > 0) & (parts <= 1)
    lanes, run, rows_of_block = np.where(here, told, lanes), np.where(here, of_told, run), np.where(here, threads // np.maximum(told, 1), rows_of_block)
    return lanes, run, rows_of_block


def is_told(calls, keys, ids, grids, form):
    """Whether launches tell the plan; `form` as classes_of has it. Those of gemvx mostly do not tell lanes and runs: a block's rows follow from its
    grid only where there are many rows, and the run is a guess, but for the ones of TOLD_GEMVX."""
    is_gemvx = np.array(["5gemvx6kernel" in key for key in keys])[ids]
    return ~is_gemvx | (form == LANES_HALVES) & (told_gemvx(calls, keys, ids, grids)[0] > 0)


def has_segments(calls, keys, ids):
    """Calls whose last tiles of D a kernel with segments of K may cut: not more than seven in ten multiprocessors have one."""
    sides = [re.search(r"tilesize(\d+)x(\d+)x", key) if "segment_k_on" in key else None for key in keys]
    columns, rows = (np.array([int(x.group(i)) if x else 0 for x in sides], np.int64)[ids] for i in (1, 2))
    tiles = -(-calls[:, 6] // np.maximum(columns, 1)) * -(-calls[:, 5] // np.maximum(rows, 1)) * calls[:, 8]
    last = tiles % MULTIPROCESSORS
    return (columns > 0) & (last > 0) & (last <= 0.7 * MULTIPROCESSORS)


def classes_of(calls, keys, ids, grids=()):
    """Columns form, parts, tile, unit, tile_m, tile_n of each call; parts: of lanes their place in LANE_COUNTS, and 16 times that of
    their restart in RESTARTS. Of split gemvx tile_m is eight times the place of the lanes in LANE_COUNTS, and tile_n eight times the
    logarithm of a block's rows."""
    rows = []
    for key in keys:
        signature, depth, word = key.rsplit("#", 2)
        kind = kind_of(signature)
        split = int(word) if word != "0" else (1 if depth.startswith("x") else int(depth))
        # Of a batch that does not divide the grid's depth the parts are not known, but by the older rule of FP32's tiles of 8.
        if depth.startswith("x") and kind[0] in (RUNS_OF_8, ROUND_ROBIN) and kind[2] != 8:
            kind = (UNKNOWN, kind[1], *kind[2:]) if depth == "x1" else (UNKNOWN, UNKNOWN, *kind[2:])
        rows.append((*kind[:4], kind[4], max(1, split), *tile_of(signature)))
    cut_form, whole_form, tile, unit, lanes, parts, tile_m, tile_n = np.array(rows, np.int64).T[:, ids]
    form = np.where(parts > 1, cut_form, whole_form)
    form = np.where(has_segments(calls, keys, ids), UNKNOWN, form)
    is_dot, blocks = form == DOT, np.zeros(len(ids), np.int64)
    if len(grids):
        blocks[:len(grids)] = grids[:, 0]
    form, parts = np.where(is_dot & (blocks == 0), UNKNOWN, form), np.where(is_dot, blocks, parts)
    unit = np.where((unit == SIMT) & (calls[:, 2] == 3), USUAL, unit)
    if len(grids):
        gemv, run, rows_of_block = gemvx_lanes(calls, keys, ids, grids, parts)
        is_reduced = np.array(["splitKreduce" in key for key in keys])[ids]
        is_alone = np.array([len(kernels_of(key.split("#")[0])[0]) == 1 for key in keys])[ids]
        is_gemv, is_split = (gemv > 0) & is_alone, (gemv > 0) & is_reduced
        form = np.where(is_gemv, LANES_HALVES, np.where(is_split, SPLIT_LANES, form))
        places = np.zeros(1025, np.int64)
        places[LANE_COUNTS] = np.arange(len(LANE_COUNTS))
        lanes, tile = np.where(is_gemv, places[np.minimum(gemv, 1024)], lanes), np.where(is_gemv | is_split, run, tile)
        unit = np.where(is_gemv | is_split, np.where(calls[:, 2] == 3, USUAL, SIMT), unit)
        tile_m, tile_n = np.where(is_split, 8 * places[np.minimum(gemv, 1024)], tile_m), np.where(is_split, 8 * np.log2(rows_of_block).astype(np.int64), tile_n)
    has_tile = np.isin(form, (CHAIN, PARTS, IN_PLACE, ROUNDED_PARTS, ROUND_ROBIN, SPLIT_LANES, *LANES))
    # Of kernels that take tiles in turn, but do not here, no tile is incomplete first.
    whole = (form == CHAIN) & (cut_form == ROUND_ROBIN)
    is_cut, known = np.isin(form, CUT_FORMS), form != UNKNOWN
    return [form, np.where(is_cut | (form == DOT), parts, np.where(np.isin(form, LANES), lanes, 1)),
            np.where(known & has_tile & ~whole, tile, 0), np.where(known, unit, 0), np.where(is_cut, tile_m, 0),
            np.where(is_cut, tile_n, 0)]
