#!/usr/bin/env python3
"""Makes the atlas' trees of what record_dispatch.py recorded: python3 fit_atlas.py FOLDER SWEEP.npz... (needs numpy and g++).

Of every sweep the last twentieth is judged by: the shares of its calls whose plan the trees tell are printed, and nothing is
learnt from it. The tenth before it marks leaves as rules. FOLDER gets nodes.inc, thresholds.inc, labels.inc and roots.inc.
"""
import os
import subprocess
import sys
import tempfile
from collections import Counter

import numpy as np

from grow_tree import SOURCE
from launch_kinds import (CUT_FORMS, DOT, LANES, MULTIPROCESSORS, ROUND_ROBIN, RUNS_OF_8, SPLIT_LANES, SPLIT_VECTORS, TILES_OF_64, UNKNOWN, classes_of)
from record_dispatch import DTYPES, OPS, PARTS, calls_of

COST = 2.9  # wrong calls that a leaf more must save
AGREE = [998, 995, 990, 980, 950, 900, 750, 0]  # Of 1000 calls of a leaf at least so many agree.
NODE = np.dtype([(x, np.int32) for x in ("feature", "threshold", "left", "right", "label", "calls", "wrong")])

# How many parts: of rule 1 to 199 so many; 200 + w: as many as give w waves of thread blocks; 300 + i: K / QUOTIENTS[i].
QUOTIENTS = [4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048]
WAVES = range(1, 17)
FEW = [2, 4, 8, 16, 32, 64]
LEAF = 31  # in place of a feature
RULES = np.array([200 + w for w in WAVES] + FEW + [300 + i for i in range(len(QUOTIENTS))] +
                 [x for x in range(3, 133) if x not in FEW])


def up(x, y):
    return -(-x // y)


def parts_by(calls, form, rule, tile_m, tile_n):
    """How many parts of K a rule gives; of runs of 8 those that get elements."""
    tiles = up(calls[:, 6], np.maximum(tile_m, 1)) * up(calls[:, 5], np.maximum(tile_n, 1)) * calls[:, 8]
    of_vectors = up(np.maximum(calls[:, 5], calls[:, 6]), 1 << tile_n // 8) * calls[:, 8]
    tiles = np.where(form == SPLIT_LANES, of_vectors, tiles)
    quotients = np.array(QUOTIENTS)[np.clip(rule - 300, 0, len(QUOTIENTS) - 1)]
    parts = np.where(rule < 200, rule, np.where(rule < 300, MULTIPROCESSORS * (rule - 200) // np.maximum(tiles, 1),
                                                up(calls[:, 7], quotients)))
    parts = np.maximum(parts, 1)
    return np.where(form == RUNS_OF_8, parts_of_runs(calls[:, 7], parts), parts)


def parts_of_runs(k, parts):
    """Of so many parts that sgemm_largek is asked for those that get elements."""
    return up(k, np.maximum(8, up(k // np.maximum(parts, 1), 8) * 8))


def run_of(calls, form, parts):
    """Elements of K in a part; of round robin and of runs of 8 the parts themselves."""
    item = np.where(calls[:, 2] >= 2, 4, 8)
    contiguous = (calls[:, 3] == 0) | (calls[:, 4] == 1) | (calls[:, 5] == 1) | (calls[:, 6] == 1)
    each = np.where(contiguous & (calls[:, 7] % (8 * item) == 0), 8 * item, item)
    each = np.where(form == TILES_OF_64, 64, np.where(np.isin(form, SPLIT_VECTORS), 1, each))
    return np.where(np.isin(form, (ROUND_ROBIN, RUNS_OF_8)), parts, up(up(calls[:, 7], np.maximum(parts, 1)), each) * each)


def bits_of(calls, form, unit, tile, parts, lanes):
    """One number for all calls of a shape whose results have the same bits; `lanes` of split gemvx."""
    k = calls[:, 7]
    is_cut, run = np.isin(form, CUT_FORMS), run_of(calls, form, parts)
    is_counted, is_lanes = np.isin(form, (ROUND_ROBIN, RUNS_OF_8)), np.isin(form, LANES)
    whole = is_cut & ~np.isin(form, SPLIT_VECTORS) & np.where(is_counted, parts <= 1, run >= k)
    run = np.where(is_cut & ~whole, run, np.where(is_lanes, parts * 128 + tile, np.where(form == DOT, parts, 0)))
    is_tiled = (tile > 0) & ~is_lanes & ~np.isin(form, SPLIT_VECTORS)
    rest = np.where(is_tiled, np.where((form == ROUND_ROBIN) & ~whole, tile, k % np.maximum(tile, 1)), 0)
    # A part that has an incomplete tile begins with it, too.
    rest = np.where(is_tiled & is_cut & ~whole & (form != ROUND_ROBIN) & (run % np.maximum(tile, 1) != 0), 2048 + tile, rest)
    rest = np.where((form == ROUND_ROBIN) & whole, 0, np.where(form == SPLIT_LANES, lanes * 128 + tile, rest))
    return ((np.where(whole, 0, form) * 4 + unit) * 4096 + rest) * (1 << 22) + run


def label_of(form, unit, tile, rule, tile_m, tile_n):
    needs_sides = (rule >= 200) & (rule < 300) & (form != DOT) | (form == SPLIT_LANES)
    return (((form * 4 + unit) * 256 + tile) * 1024 + rule) * (1 << 14) + np.where(needs_sides, tile_m // 8 * 64 + tile_n // 8, 0)


def fields_of(label):
    """form, unit, tile, rule, tile_m, tile_n"""
    rest, sides = label >> 14, label % (1 << 14)
    rest, rule = rest // 1024, rest % 1024
    rest, tile = rest // 256, rest % 256
    return rest // 4, rest % 4, tile, rule, sides // 64 * 8, sides % 64 * 8


def bits_of_label(calls, label):
    form, unit, tile, rule, tile_m, tile_n = fields_of(label)
    parts = np.where(np.isin(form, CUT_FORMS), parts_by(calls, form, rule, tile_m, tile_n), rule)
    return bits_of(calls, form, unit, tile, parts, tile_m // 8)


def features_of(calls):
    """As leaf.cpp has them."""
    op, ta, tb, m, n, k, batch = [calls[:, i].astype(np.float64) for i in (1, 3, 4, 5, 6, 7, 8)]
    alignment = lambda i: np.minimum(16, calls[:, i] & -calls[:, i]).astype(np.float64)
    tiles = lambda x, y: np.ceil(m / x) * np.ceil(n / y) * batch
    aligned = [alignment(i) for i in (9, 10, 6)]
    return [op, ta, tb, m, n, k, batch, *aligned, m * n * batch, k / (m * n * batch), tiles(128, 128), tiles(64, 64),
            np.minimum(m, n), m / n, tiles(128, 64), tiles(64, 128), tiles(256, 128), tiles(128, 256), tiles(32, 32),
            m * n * k * batch, m * k, n * k, alignment(7), alignment(5), np.minimum(np.minimum(*aligned[:2]), aligned[2]),
            np.maximum(m, n)]


class Tree:
    def __init__(self, grower, features, labels, smallest=1):
        self.labels, number = np.unique(labels, return_inverse=True)
        self.cuts = []
        with tempfile.TemporaryDirectory() as folder:
            source, target = os.path.join(folder, "in"), os.path.join(folder, "out")
            with open(source, "wb") as file:
                np.array([len(labels), len(features), len(self.labels)], np.int64).tofile(file)
                for x in features:
                    values, rank = np.unique(x, return_inverse=True)
                    if len(values) > 60000:
                        values = np.unique(np.quantile(x, np.linspace(0, 1, 60001), method="lower"))
                        rank = np.minimum(np.searchsorted(values, x), len(values) - 1)
                    self.cuts.append(values)
                    rank.astype(np.uint16).tofile(file)
                number.astype(np.uint16).tofile(file)
            subprocess.run([grower, source, target, str(smallest)], check=True)
            self.nodes = np.fromfile(target, NODE)
        self.threshold = np.zeros(len(self.nodes))
        for i in np.flatnonzero(self.nodes["feature"] >= 0):
            cuts, rank = self.cuts[self.nodes["feature"][i]], self.nodes["threshold"][i]
            self.threshold[i] = shortest(cuts[rank], cuts[rank + 1])

    def prune(self, cost):
        """Joins leaves that save fewer wrong calls than they cost."""
        n = self.nodes
        wrong, leaves = n["wrong"].astype(np.float64), np.ones(len(n), np.int64)
        for i in range(len(n) - 1, -1, -1):
            if n["feature"][i] < 0:
                continue
            l, r = n["left"][i], n["right"][i]
            if n["wrong"][i] <= wrong[l] + wrong[r] + cost * (leaves[l] + leaves[r] - 1):
                n["feature"][i] = -1
            else:
                wrong[i], leaves[i] = wrong[l] + wrong[r], leaves[l] + leaves[r]

    def leaf_of(self, features):
        x = np.stack(features, 1)
        at, todo = np.zeros(len(x), np.int64), np.arange(len(x))
        while True:
            todo = todo[self.nodes["feature"][at[todo]] >= 0]
            if not len(todo):
                return at
            node = self.nodes[at[todo]]
            left = x[todo, node["feature"]] <= self.threshold[at[todo]]
            at[todo] = np.where(left, node["left"], node["right"])


def shortest(low, high):
    """The number in [low, high) with the shortest binary fraction; of more than 16 bits the nearest below."""
    for bits in range(1, 17):
        step = 2. ** (np.floor(np.log2(max(high, 1e-300))) - bits)
        x = np.ceil(low / step) * step
        if low <= x < high:
            return x
    return number_of(code_of(low))


def code_of(x):
    """Exponent and 16 bits of the fraction of an FP32 number, 24 bits."""
    return int(np.float32(x).view(np.uint32)) >> 7


def number_of(code):
    return float(np.uint32(code << 7).view(np.float32))


def most_frequent(fits):
    """Of each row a column that fits it, or -1: the column that fits most rows, then the one that fits most of the others, ..."""
    column, left = np.full(len(fits), -1), np.ones(len(fits), bool)
    while left.any():
        counts = fits[left].sum(0)
        best = int(counts.argmax())
        if counts[best] == 0:
            break
        hit = left & fits[:, best]
        column[hit] = best
        left &= ~hit
    return column


def rules_of(calls, form, unit, tile, parts, tile_m, tile_n, features, grower):
    """A rule for the parts of each call: of those that give them the one that most calls like it share."""
    at = np.flatnonzero(np.isin(form, CUT_FORMS))
    here, real = calls[at], run_of(calls[at], form[at], parts[at])
    fits = np.zeros((len(at), len(RULES)), bool)
    for j, rule in enumerate(RULES.tolist()):
        by = parts_by(here, form[at], np.full(len(at), rule), tile_m[at], tile_n[at])
        fits[:, j] = run_of(here, form[at], by) == real
        if 200 <= rule < 300:
            fits[:, j] &= ((tile_m[at] > 0) | (form[at] == SPLIT_LANES)) & (by > 1)
    rule = np.where(np.isin(form, (*LANES, DOT)), parts, 0)
    rule[at] = np.where(fits.any(1), RULES[fits.argmax(1)], np.minimum(parts[at], 199))
    # A coarse tree of some of the calls says which are alike.
    some = slice(None, None, max(1, len(calls) // 2_000_000))
    tree = Tree(grower, [x[some] for x in features], label_of(form, unit, tile, rule, tile_m, tile_n)[some], 40)
    leaf = tree.leaf_of([x[at] for x in features])
    # Of runs of 8 many rules give the recorded depth: the most frequent ones of all small and of all large D.
    leaf = np.where(form[at] == RUNS_OF_8, -1 - (up(here[:, 5], 32) * up(here[:, 6], 32) < 42), leaf)
    group = ((leaf * 16 + form[at]) * 4 + unit[at]) * 4096 + tile_m[at] // 8 * 64 + tile_n[at] // 8
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        column = most_frequent(fits[rows])
        rule[at[rows[column >= 0]]] = RULES[column[column >= 0]]
    return rule


class Writer:
    def __init__(self):
        self.nodes, self.roots = [], []

    def add(self, tree, agree, fields=fields_of):
        self.roots.append(len(self.nodes))
        stack = [0]
        while stack:
            i = stack.pop()
            node = tree.nodes[i]
            if node["feature"] < 0:
                self.nodes.append((LEAF, (*(int(x) for x in fields(tree.labels[node["label"]])), int(agree[i]))))
                continue
            self.nodes.append((int(node["feature"]), float(tree.threshold[i])))
            stack += [int(node["right"]), int(node["left"])]

    def write(self, folder, prefix=""):
        # Of each feature the thresholds, of leaves the labels, the most frequent ones first: two digits do for 4096.
        frequent = [[] for _ in range(LEAF + 1)]
        for (feature, value), _ in Counter(self.nodes).most_common():
            frequent[feature].append(value)
        number = [{value: i for i, value in enumerate(values)} for values in frequent]
        nodes = []
        for feature, value in self.nodes:
            x = number[feature][value]
            count = 2 if x < 4096 else 3
            nodes.append(in_digits(2 * feature + count - 2, 1) + in_digits(x, count))
        lists = frequent[:max(i for i in range(LEAF) if frequent[i]) + 1]
        thresholds = [in_digits(code_of(x), 4) for values in lists for x in values]
        labels = [label_text(*label, AGREE.index(agree)) for *label, agree in frequent[LEAF]]
        for name, words in (("nodes", nodes), ("thresholds", thresholds), ("labels", labels)):
            packed = "".join(words)
            write_lines(folder, prefix + name, ['"' + packed[i:i + 2000] + '"' for i in range(0, len(packed), 2000)])
            print(len(words), name + ":", len(packed), "characters")
        write_lines(folder, prefix + "thresholds_of_feature", [", ".join(str(len(x)) for x in lists)])
        write_lines(folder, prefix + "roots", [", ".join(map(str, self.roots))])


def in_digits(x, count):
    """A number in base 64, the highest digit first."""
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    if x >= 64 ** count:
        raise ValueError(f"{x} has more than {count} digits")
    return "".join(digits[x >> 6 * i & 63] for i in reversed(range(count)))


def label_text(form, unit, tile, rule, tile_m, tile_n, place_of_agree):
    """As unpacked_labels of packed_trees.cpp reads it."""
    fields = (form * 4 + unit, 1), (tile, 2), (rule, 2), (tile_m // 8, 2), (tile_n // 8, 1), (place_of_agree, 1)
    return "".join(in_digits(int(value), count) for value, count in fields)


def write_lines(folder, name, lines):
    with open(os.path.join(folder, name + ".inc"), "w") as file:
        file.write("".join(line + "\n" for line in lines))


def is_other(form):
    """Kernels in which lanes share K, and unknown ones, are told apart by a tree of their own."""
    return np.isin(form, (*LANES, DOT, *SPLIT_VECTORS, UNKNOWN))


def first_tree(learnt, grower):
    calls, form, parts, tile, unit, tile_m, tile_n = learnt
    other, features = is_other(form), features_of(calls)
    form, parts, tile, unit, tile_m, tile_n = (np.where(other, x, y) for x, y in
                                               zip((UNKNOWN, 1, 0, 0, 0, 0), (form, parts, tile, unit, tile_m, tile_n)))
    rule = rules_of(calls, form, unit, tile, parts, tile_m, tile_n, features, grower)
    tree = Tree(grower, features, label_of(form, unit, tile, rule, tile_m, tile_n))
    tree.prune(COST)
    return tree


def second_tree(learnt, grower):
    other = is_other(learnt[1])
    calls, form, parts, tile, unit, tile_m, tile_n = (x[other] for x in learnt)
    features = features_of(calls)
    rule = rules_of(calls, form, unit, tile, parts, tile_m, tile_n, features, grower)
    tree = Tree(grower, features, label_of(form, unit, tile, rule, tile_m, tile_n))
    tree.prune(COST)
    return tree


def said_by(trees, calls):
    """Leaves of both trees (-1: not asked) and the label of each call."""
    features = features_of(calls)
    first = trees[0].leaf_of(features)
    label = trees[0].labels[trees[0].nodes["label"][first]]
    other = np.flatnonzero(fields_of(label)[0] == UNKNOWN)
    second = np.full(len(calls), -1)
    second[other] = trees[1].leaf_of([x[other] for x in features])
    label[other] = trees[1].labels[trees[1].nodes["label"][second[other]]]
    return first, second, label


def judged(trees, sweep):
    """Leaves of a sweep's calls, of all trees one after the other, and whether what they say has the recorded bits."""
    first, second, label = said_by(trees, sweep[0])
    leaf = np.where(second < 0, first, len(trees[0].nodes) + second)
    return leaf, bits_of_label(sweep[0], label) == bits_of(sweep[0], *[sweep[i] for i in (1, 4, 3, 2)], sweep[5] // 8)


def agreement(calls, wrong):
    """Of so many calls of a leaf and wrong ones the share that agrees, of AGREE."""
    # Two more wrong calls and four right ones: of few calls little is known, and most of these were learnt from.
    agree = 1000 * (1 - (wrong + 2) / (calls + 6))
    return np.array(AGREE)[(agree[:, None] >= np.array(AGREE)).argmax(1)]


def report(trees, check, judge, name):
    """How far the calls of each leaf agree, by those that were learnt from and others; what they all say of another sweep is
    printed."""
    leaf, right = judged(trees, check)
    nodes = np.concatenate([tree.nodes for tree in trees])
    calls = nodes["calls"] + np.bincount(leaf, minlength=len(nodes))
    wrong = nodes["wrong"] + np.bincount(leaf[~right], minlength=len(nodes))
    agree = agreement(calls, wrong)
    leaf, right = judged(trees, judge)
    known = judge[1] != UNKNOWN
    print(f"{name}: {(right & known).mean():.4f} told, unknown {(~known).mean():.4f}")
    for least in AGREE:
        at = agree[leaf] == least
        if at.any():
            print(f"  {least} of 1000 agree: {at.mean():.4f} of the calls, {right[at].mean():.5f} told")
    return judge[0], right & known, np.split(agree, [len(trees[0].nodes)])


def sweep_of(file, numbers):
    """Columns calls, form, parts, tile, unit, tile_m, tile_n of the calls of one number format."""
    recorded = np.load(file)
    calls, ids = calls_of(recorded), recorded["ids"]
    keys = bytes(recorded["keys"]).decode().split("\n")
    here = np.flatnonzero(calls[:, 2] == numbers)
    calls, ids, grids = calls[here], ids[here], recorded["grids"][here[here < len(recorded["grids"])]]
    columns = [calls, *classes_of(calls, keys, ids, grids)]
    # Calls of a kernel whose plan follows from its grid, where that was not kept, teach nothing.
    has = lambda *words: np.array([any(word in key for word in words) for key in keys])[ids]
    taught = ~has("5gemvx6kernel", "dot_kernelIfLi128E") | (columns[1] != UNKNOWN)
    if "behind_copies" not in recorded:
        taught &= ~(has("5gemvx6kernel") & has("elementwise") | has("sgemm_largek"))
    return [x[taught].astype(np.int32) for x in columns]


def divided(sweeps):
    """What is learnt from, what marks rules, what is judged by."""
    parts = []
    for begin, end in ((0, 17), (17, 19), (19, 20)):
        part = [[x[len(x) * begin // 20:len(x) * end // 20] for x in sweep] for sweep in sweeps]
        parts.append([np.concatenate(x).astype(np.int64) for x in zip(*part)])
    return parts


def built_grower(folder):
    """The program that grows trees, built in a folder."""
    grower, source = os.path.join(folder, "grow_tree"), os.path.join(folder, "grow_tree" ".cpp")
    with open(source, "w") as file:
        file.write(SOURCE)
    subprocess.run(["g++", "-std=c++17", "-O3", "-march=native", "-pthread", source, "-o", grower], check=True)
    return grower


def main(words):
    folder, files = words[0], words[1:]
    writer = Writer()
    with tempfile.TemporaryDirectory() as build:
        grower = built_grower(build)
        for numbers, name in enumerate(DTYPES):
            learnt, check, judge = divided([sweep_of(file, numbers) for file in files])
            print(f"{name}: {len(learnt[0])} calls to learn from", flush=True)
            trees = [first_tree(learnt, grower), second_tree(learnt, grower)]
            of, right, agree = report(trees, check, judge, name)
            for part, part_name in enumerate(PARTS):
                for op, op_name in enumerate(OPS):
                    at = (of[:, 0] == part) & (of[:, 1] == op)
                    if at.any():
                        print(f"  {name} {part_name} {op_name}: {at.sum()} calls, {right[at].mean():.4f} told", flush=True)
            for tree, of_tree in zip(trees, agree):
                writer.add(tree, of_tree)
    writer.write(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
