#!/usr/bin/env python3
"""Makes the atlas' trees of what record_dispatch.py recorded: python3 fit_atlas.py FOLDER SWEEP.npz... [--judge N]
(needs numpy and scikit-learn). The N last sweeps (1) are not learnt from: the shares of their calls whose launches the
trees tell are printed. FOLDER gets launches.inc and roots.inc.
"""
import os
import re
import sys

import numpy as np
from sklearn.tree import DecisionTreeClassifier

LEAVES = 9000  # of each tree: 1.3 MB of text in all
SPLITS_WORD = 10  # of the parameters of cuBLASLt's splitK reduction: how many parts it adds
CHAIN, PARTS, IN_PLACE, ROUNDED_PARTS, ROUND_ROBIN, TILES_OF_64, UNKNOWN = 0, 1, 2, 3, 4, 5, 9
USUAL, SIMT, K8 = 0, 1, 2


def kind_of(signature):
    """(form where K is cut, form where it is not, tile of K that may be incomplete first, unit) of launches."""
    kernels = [x for x in signature.split(";") if x and "elementwise" not in x]
    is_set = any(x.startswith("set") for x in kernels)
    kernels = [x for x in kernels if not x.startswith("set")]
    if not kernels:
        return UNKNOWN, UNKNOWN, 0, USUAL
    name, reduced, alone = kernels[0], any("splitKreduce" in x for x in kernels[1:]), len(kernels) == 1
    if "nvjet" in name:
        if "splitK" in name and reduced:
            return TILES_OF_64, UNKNOWN, 0, USUAL
        return (CHAIN, CHAIN, 0, USUAL) if alone and "splitK" not in name else (UNKNOWN, UNKNOWN, 0, USUAL)
    cutlass = re.search(r"gemm\w*?_(\d+)x(\d+)(?:_(\d+)x(\d+))?_[nt][nt]_align(\d)", name)
    if "cutlass" in name and cutlass:
        is_simt = "simt" in name
        unit = SIMT if is_simt else K8 if re.search(r"75_tensorop_(bf16_|f16_)?s1688gemm_(bf16|f16)", name) else USUAL
        tile = 0 if is_simt else int(cutlass.group(3) or 32)
        rounded = re.search(r"_(bf16|f16)_s\d+gemm", name)
        if reduced:
            return (ROUNDED_PARTS if rounded else PARTS), CHAIN, tile, unit
        return (IN_PLACE if is_set else CHAIN, CHAIN, tile, unit) if alone else (UNKNOWN, UNKNOWN, 0, USUAL)
    if "sm90_xmma" in name and alone:
        return CHAIN, CHAIN, 0, USUAL
    if "sm80_xmma" in name:
        if "ffma" in name:
            return ROUND_ROBIN, (CHAIN if alone else UNKNOWN), 0, SIMT
        if alone:
            return (CHAIN if "f16f16" in name else UNKNOWN), CHAIN, 0, USUAL
    return UNKNOWN, UNKNOWN, 0, USUAL


def codes_of(sweep):
    """What the leaves of the trees say of each call: form, parts, tile and unit in decimal places."""
    calls, ids, grids = sweep["calls"].astype(np.int64), sweep["ids"], sweep["grids"].astype(np.int64)
    kinds = np.array([kind_of(x) for x in sweep["names"].tolist()])[ids]
    parts = np.maximum(1, grids[:, 2] // np.where(calls[:, 1] == 2, calls[:, 8], 1))
    parts[sweep["word_calls"]] = np.maximum(1, sweep["words"][:, SPLITS_WORD])
    form = np.where(parts > 1, kinds[:, 0], kinds[:, 1])
    tile = np.where(form <= ROUNDED_PARTS, kinds[:, 2], 0)
    cut = (form >= PARTS) & (form <= TILES_OF_64)
    unit = np.where((kinds[:, 3] == SIMT) & (calls[:, 2] == 3), USUAL, kinds[:, 3])
    code = form * 100_000_000 + np.where(cut, parts, 1) * 100_000 + tile * 10 + unit
    return np.where(form == UNKNOWN, UNKNOWN * 100_000_000, code)


def features_of(calls):
    """As leaf.cpp has them."""
    op, ta, tb, m, n, k, batch = [calls[:, i].astype(np.float64) for i in (1, 3, 4, 5, 6, 7, 8)]
    alignment = lambda i: np.minimum(16, calls[:, i] & -calls[:, i]).astype(np.float64)
    tiles = lambda side: np.ceil(m / side) * np.ceil(n / side) * batch
    return np.stack([op, ta, tb, m, n, k, batch, alignment(9), alignment(10), alignment(6), m * n * batch,
                     k / (m * n * batch), tiles(128), tiles(64), np.minimum(m, n), m / n], 1).astype(np.float32)


def write_tree(tree, codes, nodes):
    stack = [(0, None)]
    while stack:
        i, parent = stack.pop()
        if parent is not None:
            nodes[parent][1] = len(nodes)
        counts = tree.value[i, 0]
        if tree.children_left[i] < 0:
            nodes.append([31, int(codes[counts.argmax()]), 0])
            continue
        # Features are FP32: the next threshold below in FP32 parts them as the one in FP64 does.
        threshold = np.float32(tree.threshold[i])
        if float(threshold) > float(tree.threshold[i]):
            threshold = np.nextafter(threshold, np.float32(-np.inf))
        at = len(nodes)
        nodes.append([int(tree.feature[i]), 0, int(threshold.view(np.uint32))])
        stack += [(tree.children_right[i], at), (tree.children_left[i], None)]


def main(words):
    judges = int(words[words.index("--judge") + 1]) if "--judge" in words else 1
    words = words[:words.index("--judge")] if "--judge" in words else words
    folder, files = words[0], words[1:]
    sweeps = [np.load(file) for file in files]
    calls = np.concatenate([x["calls"] for x in sweeps]).astype(np.int64)
    codes = np.concatenate([codes_of(x) for x in sweeps])
    judged = np.concatenate([np.full(len(x["calls"]), i >= len(sweeps) - judges) for i, x in enumerate(sweeps)])
    nodes, roots = [], []
    for numbers, name in enumerate(("f16", "bf16", "tf32", "f32")):
        here = calls[:, 2] == numbers
        x, (all_codes, y) = features_of(calls[here]), np.unique(codes[here], return_inverse=True)
        learnt = ~judged[here]
        model = DecisionTreeClassifier(max_leaf_nodes=LEAVES, random_state=0).fit(x[learnt], y[learnt])
        right = model.predict(x[~learnt]) == y[~learnt]
        for part, part_name in enumerate(("dense", "realistic", "drawn")):
            for op, op_name in enumerate(("mm", "addmm", "bmm")):
                of = (calls[here][~learnt, 0] == part) & (calls[here][~learnt, 1] == op)
                if of.any():
                    print(f"{name} {part_name} {op_name}: {of.sum()} calls, {right[of].mean():.4f} told")
        roots.append(len(nodes))
        write_tree(model.tree_, all_codes[model.classes_], nodes)
    with open(os.path.join(folder, "launches.inc"), "w") as file:
        for i in range(0, len(nodes), 200):
            file.write("".join("{%d,%d,%d}," % tuple(x) for x in nodes[i:i + 200]) + "\n")
    with open(os.path.join(folder, "roots.inc"), "w") as file:
        file.write(", ".join(map(str, roots)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
