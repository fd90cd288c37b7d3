#!/usr/bin/env python3
"""Makes the atlas' trees of convolutions of what record_convolutions.py and sweep_convolutions.py recorded: python3 fit_convolutions.py FOLDER FILE.npz...,
or `second FOLDER FILE.npz...`: keeps FOLDER's trees and makes second ones, which are asked where the first know no plan.

Of every file the last twentieth is judged by, the two before it mark leaves, as fit_atlas.py does. Which of two tilings
cuDNN's wgrad2d_shmem_tiling takes its name does not say: the recorded results do, where they were kept, and a tree of those
answers for the others.
"""
import hashlib
import itertools
import os
import sys
import tempfile

import numpy as np

from convolution_kinds import DATA, FORWARD, NUMBER, WEIGHT, kernels_of, kind_of, segments_of
from fit_atlas import AGREE, LEAF, Tree, Writer, agreement, built_grower, divided, number_of, up
from record_convolutions import GRIDS, PLACES, operands_of, output_of, places_of
from sweep_convolutions import NAMES, calls_of

COST = 1.2
DIRECTIONS = ("forward", "data", "weight")
BF16 = 1
# Of these numbers cuDNN mostly takes the same kernels: each has a tree.
TOGETHER = ((0, BF16), (2,), (3,))
FIELDS = ("n", "c", "h", "w", "k", "f", "s", "p", "last", "numbers", "deterministic")
SEGMENTS = (NUMBER["segments"], NUMBER["segments_descending"], NUMBER["last_segments"])
# Gradients of weights of which the first trees do not tell kernels apart that give other bits, where channels do not lie together: TF32's unit may multiply
# operands in 16 bits, and the last part's sum may come first.
ASKED_IN_16_BITS = ("split", "split_last_first")
OPERANDS = 64  # ways how operands become TF32, and four times the place in WAVES
LEAST_CHUNK = 64  # pixels, where a product for each place of the filter is asked for them
REDUCED = (NUMBER["reduced"], NUMBER["reduced_in_16_bits"])
SPLITS = (NUMBER["split"], NUMBER["split_last_first"], NUMBER["split_in_place"], *REDUCED, *SEGMENTS)
# How many segments a call has is read from its grid, which has been tried on too few results for a rule; of weights' products with reduced parts one
# result in six was another.
MOST_OF_SEGMENTS = 980


def features_of(x):
    """As convolution_leaf.cpp has them; `x`: columns of FIELDS."""
    n, c, h, w, k, f, s, p, last, numbers, deterministic = x.T
    q, r = (h + 2 * p - f) // s + 1, (w + 2 * p - f) // s + 1
    alignment = lambda y: np.minimum(16, y & -y)
    tiles = lambda y, z: up(y, 64) * up(z, 64)
    result = [n, c, h, w, k, f, s, p, last, deterministic, q, r, alignment(c), alignment(k), alignment(w), alignment(r), c * f * f, k * f * f,
              n * q * r, n * h * w, n * q * r * k, n * h * w * c, n * q * r * k * c * f * f, tiles(n * q * r, k), tiles(n * h * w, c),
              tiles(c * f * f, k), np.minimum(c, k), np.maximum(c, k), numbers == BF16]
    return [y.astype(np.float64) for y in result]


def pixels_of(x):
    """Of an output."""
    h, w, _, f, s, p = x.T[2:8]
    return ((h + 2 * p - f) // s + 1) * ((w + 2 * p - f) // s + 1)


def rows_and_columns(x):
    """Of the matrix of a weight gradient, and its K."""
    n, c, h, w, k, f, s, p = x.T[:8]
    return k, c * f * f, n * ((h + 2 * p - f) // s + 1) * ((w + 2 * p - f) // s + 1)


def bits_of(x, direction, kind, fma, tile, parts, operands):
    """One number for all calls of a shape whose results have the same bits."""
    f, images = x[:, 5], x[:, 0]
    rest = lambda depth: np.where(tile > 0, depth % np.maximum(tile, 1), 0)
    is_reduced = np.isin(kind, REDUCED)
    if direction == WEIGHT:
        _, _, depth = rows_and_columns(x)
        is_split, of_images = np.isin(kind, SPLITS), kind == NUMBER["images"]
        used = np.where(is_split & ~is_reduced, np.minimum(parts, up(depth, np.maximum(tile, 1))), np.where(of_images, images, np.where(is_reduced, parts, 1)))
        walks_tiles = of_images | is_reduced | (kind == NUMBER["chain"])
        first = np.where(walks_tiles, rest(np.where(of_images, depth // images, depth)), 0)
        kind = np.where((is_split | of_images) & (used <= 1), NUMBER["chain"], kind)
        kind = np.where((kind == NUMBER["split_last_first"]) & (used <= 2), NUMBER["split"], kind)
        kind = np.where((kind == NUMBER["segments_descending"]) & (used <= 2), NUMBER["segments"], kind)
        is_split = np.isin(kind, SPLITS)
        detail = np.where(is_split, used, 0) * 256 + np.where(is_split & ~is_reduced, tile, first)
        return ((kind * 2 + fma) * OPERANDS + operands) * (1 << 20) + detail
    channels = x[:, 4] if direction == DATA else x[:, 1]
    # Parts of K: blocks of channels in turn, or segments of tiles, of each place one.
    in_turn, is_cut = np.isin(kind, (NUMBER["split"], NUMBER["split_last_first"])), np.isin(kind, (NUMBER["segments"], NUMBER["last_segments"]))
    blocks = up(channels, np.maximum(tile, 1))
    used = np.where(in_turn, np.minimum(parts, blocks), np.where(is_cut, np.minimum(parts, blocks * f * f), 1))
    # Where some parts have no block, or there are two, it does not matter which is the first.
    kind = np.where((kind == NUMBER["split_last_first"]) & ((parts > blocks) | (used <= 2)), NUMBER["split"], kind)
    kind = np.where((in_turn | is_cut) & (used <= 1), NUMBER["blocks_descending" if direction == DATA else "blocks"], kind)
    is_parted = (in_turn | is_cut) & (used > 1)
    in_blocks = np.isin(kind, (NUMBER["blocks"], NUMBER["blocks_descending"]))
    whole = in_blocks & (tile >= channels)
    pads = in_blocks & (channels % 16 != 0) & (f > 1)
    one = f == 1
    first = np.where(np.isin(kind, (NUMBER["innermost"], *REDUCED)), rest(channels), 0)
    kind = np.where(one & np.isin(kind, [NUMBER[y] for y in ("outermost", "per_place", "blocks", "blocks_descending")]), NUMBER["innermost"], kind)
    kind = np.where((kind == NUMBER["blocks"]) & whole & ~pads, NUMBER["innermost"], kind)
    kind = np.where((kind == NUMBER["outermost"]) & (channels == 1), NUMBER["innermost"], kind)
    first = np.where((kind == NUMBER["per_place"]) & (pixels_of(x) > tile), tile, first)
    in_blocks = np.isin(kind, (NUMBER["blocks"], NUMBER["blocks_descending"]))
    detail = np.where(in_blocks, np.where(whole, 1, tile), np.where(is_reduced, parts * 256 + first, np.where(is_parted, used * 256 + tile, first)))
    return ((kind * 2 + fma) * OPERANDS + operands) * (1 << 20) + detail


def label_of(kind, fma, tile, parts, operands):
    return (((kind * 2 + fma) * OPERANDS + operands) * 256 + tile) * 1024 + np.where(np.isin(kind, SPLITS), np.minimum(parts, 1023), 1)


def fields_of(label):
    """kind, fma, tile, parts, how operands become TF32"""
    rest, parts = label // 1024, label % 1024
    rest, tile = rest // 256, rest % 256
    rest, operands = rest // OPERANDS, rest % OPERANDS
    return rest // 2, rest % 2, tile, parts, operands


def packed(label):
    """As Writer.add takes them; a leaf's first digit is twice the kind and fma, its columns are eight times how operands become TF32."""
    kind, fma, tile, parts, operands = fields_of(label)
    return (kind * 2 + fma) // 4, (kind * 2 + fma) % 4, tile, parts, 8 * operands, 0


def bits_of_label(x, direction, label):
    return bits_of(x, direction, *fields_of(label))


def kinds_of(keys, ids, depths, filters, direction):
    """kind, fma, tile, parts, operands of launches; `depths`: of the grids of the kernels that multiply."""
    each, number = np.unique(ids.astype(np.int64) << 24 | depths.astype(np.int64) << 4 | np.minimum(filters, 5), return_inverse=True)
    found = [kind_of_core(keys[x >> 24], x >> 4 & (1 << 20) - 1, direction, (x & 15) ** 2) for x in each.tolist()]
    return np.array(found, np.int64)[number.reshape(-1)]


def sweep_of(file):
    """What sweep_convolutions.py recorded, its names of launches, which of its calls are good, and of these the calls (columns of FIELDS) and kinds."""
    data = dict(np.load(file))
    keys = bytes(data["keys"]).decode().split("\n")
    if "calls" in data:
        calls = data["calls"].astype(np.int32)
    else:
        source = calls_of(int(data["seed"]), int(data["numbers"]) if "numbers" in data else -1)
        calls = np.array([[x[name] for name in NAMES] for x in itertools.islice(source, int(data["count"]))], np.int32)
    if hashlib.sha256(calls.tobytes()).hexdigest() != str(data["digest"]):
        raise SystemExit("the seed gives other calls here than there")
    kinds = np.zeros((len(calls), 3, 5), np.int64)
    for direction in range(3):
        kinds[:, direction] = kinds_of(keys, data["ids"][:, direction], data["grids"][:, direction, 2], calls[:, 6], direction)
    for direction in range(3):
        set_segments(keys, data["ids"][:, direction], data["grids"][:, direction], calls[:, 1:], kinds, direction)
    # A call that failed has no launches. Images of one channel have strides of both layouts, of which PyTorch takes the first.
    nothing = np.array([key == "" for key in keys])[data["ids"]].any(1)
    good = ~nothing & ~((calls[:, 2] == 1) & (calls[:, 9] == 1))
    return data, keys, good, calls[good][:, 1:].astype(np.int64), kinds[good]


def swept(file):
    """As `recorded`."""
    *_, calls, kinds = sweep_of(file)
    return file, calls, kinds


def set_segments(keys, ids, grids, calls, kinds, direction):
    """Calls whose kernel takes segments of K; `calls`: columns of FIELDS."""
    kernels = {i: kernels_of(key if "#" in key else key + "#1#0") for i, key in enumerate(keys) if "segment_k_on" in key}
    for i in np.flatnonzero(np.isin(ids, list(kernels))):
        found = segments_of(kernels[int(ids[i])], grids[i].tolist(), direction, calls[i, :8].tolist())
        if found:
            kinds[i, direction] = found


def kind_of_core(key, depth, direction, filter_places):
    """kind_of, where the depth of the grid of the kernel that multiplies is all that is known of the grids."""
    kernels = kernels_of(key + "#1#0")
    return kind_of(key + "#1#0", [0] * (3 * kernels[0][0] + 2) + [depth] if kernels else [], direction, filter_places)


def recorded(file):
    """The file, calls (columns of FIELDS) and of each direction kind, fma, tile, parts, and how operands become TF32."""
    data = dict(np.load(file))
    if "rows" not in data:
        return swept(file)
    keys = bytes(data["keys"]).decode().split("\n")
    rows, ids, grids = data["rows"], data["ids"].reshape(-1, 3), data["grids"].reshape(-1, 3, GRIDS)
    width = rows[:, 13] if rows.shape[1] > 13 else rows[:, 2]
    calls = np.stack([rows[:, 0], rows[:, 1], rows[:, 2], width, *[rows[:, i] for i in (3, 4, 5, 6, 7, 8, 9)]], 1)
    known, found = {}, []
    for i in range(len(rows)):
        for direction in range(3):
            place = rows[i, 4] ** 2
            key = (int(ids[i, direction]), grids[i, direction].tobytes(), direction, min(place, 25))
            if key not in known:
                known[key] = kind_of(keys[ids[i, direction]], grids[i, direction].tolist(), direction, place)
            found.append(known[key])
    kinds = np.array(found, np.int64).reshape(-1, 3, 5)
    segmented = np.array([next((3 * i for i, name in kernels_of(key) if "segment_k_on" in name), 0) for key in keys])
    for direction in range(3):
        at = np.minimum(segmented[ids[:, direction]], GRIDS - 3)[:, None] + np.arange(3)
        set_segments(keys, ids[:, direction], np.take_along_axis(grids[:, direction], at, 1), calls, kinds, direction)
    return file, calls.astype(np.int64), kinds


def tiled(image, gradient, rows_of_lane, columns_of_lane, run):
    """Of [places, images, rows, columns] the sums that one of wgrad2d_shmem_tiling's tilings gives, in FP32. Each thread has a chain of
    multiply-adds over its pixels; sixteen units, of every fourth image and every fourth group of rows, are added in ascending order; then
    eight lanes: neighbours, then the outer and the inner pairs, then these two."""
    products = image.astype(np.float64) * gradient
    row, column = np.arange(image.shape[2]), np.arange(image.shape[3])
    lanes = []
    for lane in range(8):
        at_row, at_column = divmod(lane, columns_of_lane)
        columns, total = column[column // run % columns_of_lane == at_column], np.zeros(len(image), np.float32)
        for unit in range(16):
            rows = row[(row // rows_of_lane % 4 == unit % 4) & (row % rows_of_lane == at_row)]
            chain = np.zeros(len(image), np.float32)
            for i in range(unit // 4, image.shape[1], 4):
                for r in rows:
                    for c in columns:
                        chain = (chain + products[:, i, r, c]).astype(np.float32)
            total = total + chain
        lanes.append(total)
    pairs = [lanes[2 * i] + lanes[2 * i + 1] for i in range(4)]
    return (pairs[0] + pairs[3]) + (pairs[1] + pairs[2])


TILINGS = {"tiled_narrow": (2, 4, 2), "tiled_wide": (4, 2, 6)}


def rounded_bits(values, numbers):
    """Codes of FP16 or BF16 as int32."""
    if numbers == 0:
        return values.astype(np.float16).view(np.int16).astype(np.int32)
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).view(np.int16).astype(np.int32)


def tiling_of(row, values):
    """Which tiling gives the recorded weight gradient: its number, or 0 where neither or both do."""
    x = dict(zip(("n", "c", "h", "k", "f", "s", "p"), row[:7].tolist()), w=int(row[13]) if len(row) > 13 else int(row[2]), dt=int(row[8]))
    seed, (q, q2) = int(row[11]), output_of(x)
    image, _, gradient, _ = operands_of(x, seed)
    padded = np.pad(image, ((0, 0), (0, 0), (x["p"],) * 2, (x["p"],) * 2))
    at = places_of(x, seed)[2]
    a = np.stack([padded[:, c, r:r + (q - 1) * x["s"] + 1:x["s"], t:t + (q2 - 1) * x["s"] + 1:x["s"]] for _, c, r, t in at])
    b = np.stack([gradient[:, k] for k, _, _, _ in at])
    right = [name for name, shape in TILINGS.items() if (rounded_bits(tiled(a, b, *shape), x["dt"]) == values).all()]
    return NUMBER[right[0]] if len(right) == 1 else 0


def set_tilings(data, grower):
    """Which tiling calls take, where results tell: what a tree of them says of all calls of the kernel."""
    features, labels = [], []
    for file, calls, kinds in data:
        given = np.load(file)
        if "values" not in given:
            continue
        rows, values = given["rows"], given["values"].reshape(-1, 3, PLACES)
        place = np.cumsum(rows[:, 12]) - 1
        told = (kinds[:, WEIGHT, 0] == NUMBER["tiled_narrow"]) & (rows[:, 12] == 1) & (rows[:, 11] % 2 == 1)
        for i in np.flatnonzero(told):
            tiling = tiling_of(rows[i], values[place[i], WEIGHT])
            if tiling:
                features.append(calls[i])
                labels.append(tiling)
    if not labels:
        return
    columns = lambda x: features_of(x) + [x[:, 9].astype(np.float64)]
    features, labels = np.array(features), np.array(labels)
    some = np.arange(len(labels)) % 5 > 0
    tree = Tree(grower, columns(features[some]), labels[some], 3)
    said = lambda x: tree.labels[tree.nodes["label"][tree.leaf_of(columns(x))]]
    print(f"tilings: {len(labels)} results tell, of a fifth of them {(said(features[~some]) == labels[~some]).mean():.4f} told", flush=True)
    tree = Tree(grower, columns(features), labels, 3)
    for _, calls, kinds in data:
        at = np.flatnonzero(kinds[:, WEIGHT, 0] == NUMBER["tiled_narrow"])
        kinds[at, WEIGHT, 0] = said(calls[at])


def told(tree, x, kinds, direction):
    """Leaves of calls, and whether what they say has the recorded bits."""
    leaf = tree.leaf_of(features_of(x))
    return leaf, bits_of_label(x, direction, tree.labels[tree.nodes["label"][leaf]]) == bits_of(x, direction, *kinds.T)


def tree_of(data, direction, together, grower, writer, asked=None):
    """`asked`: of each file and call whether this tree is asked; all where it is left out."""
    chosen = [np.isin(x[:, 9], together) for _, x, _ in data]
    if asked:
        chosen = [here & of_tree for here, of_tree in zip(chosen, asked)]
    (x, kinds), check, judge = divided([(x[here], kinds[here, direction]) for here, (_, x, kinds) in zip(chosen, data)])
    tree = Tree(grower, features_of(x), label_of(*kinds.T))
    tree.prune(COST)
    leaf, right = told(tree, *check, direction)
    number = tree.nodes["calls"] + np.bincount(leaf, minlength=len(tree.nodes))
    wrong = tree.nodes["wrong"] + np.bincount(leaf[~right], minlength=len(tree.nodes))
    agree = agreement(number, wrong)
    in_segments = np.isin(fields_of(tree.labels)[0], SEGMENTS if direction != WEIGHT else (*SEGMENTS, *REDUCED))[tree.nodes["label"]]
    agree[in_segments] = np.minimum(agree[in_segments], MOST_OF_SEGMENTS)
    leaf, right = told(tree, *judge, direction)
    known = judge[1][:, 0] != 0
    for numbers in together:
        at = judge[0][:, 9] == numbers
        shares = [(a, at & (agree[leaf] == a)) for a in AGREE]
        print(f"{DIRECTIONS[direction]} {('f16', 'bf16', 'tf32', 'f32')[numbers]}: {len(x)} calls learnt from, of {at.sum()} others {(right & known)[at].mean():.4f} told, "
              f"{(~known)[at].mean():.4f} of kernels without a plan;", " ".join(f"{a}: {here.sum() / at.sum():.3f} {right[here].mean():.4f}" for a, here in shares if here.any()),
              flush=True)
    writer.add(tree, agree, packed)
    writer.roots += writer.roots[-1:] * (len(together) - 1)


class PackedTrees:
    """The trees of a folder, as Writer.write packed them."""

    def __init__(self, folder):
        digits = {x: i for i, x in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}
        text = lambda name: open(os.path.join(folder, f"convolution_{name}.inc")).read()
        numbers = lambda name: [digits[x] for x in "".join(line.strip()[1:-1] for line in text(name).split("\n"))]
        plain = lambda name: [int(x) for x in text(name).split(",") if x.strip()]
        many = lambda codes, at, count: sum(codes[at + i] << 6 * (count - 1 - i) for i in range(count))
        thresholds, labels, codes = numbers("thresholds"), numbers("labels"), numbers("nodes")
        values, at = [], 0
        for count in plain("thresholds_of_feature"):
            values.append([number_of(many(thresholds, 4 * (at + i), 4)) for i in range(count)])
            at += count
        # Kind (form and unit), tile, rule, columns / 8, rows / 8, place in AGREE.
        leaves = [(codes_[0] // 4, codes_[0] % 4, many(codes_, 1, 2), many(codes_, 3, 2), 8 * many(codes_, 5, 2), 8 * codes_[7], AGREE[codes_[8]])
                  for codes_ in (labels[i:i + 9] for i in range(0, len(labels), 9))]
        self.nodes, self.roots, at = [], plain("roots"), 0
        while at < len(codes):
            feature, count = codes[at] // 2, 2 + codes[at] % 2
            value = many(codes, at + 1, count)
            self.nodes.append((feature, leaves[value] if feature == LEAF else values[feature][value]))
            at += 1 + count

    def leaves_of(self, features, root):
        """The nodes that calls end in."""
        feature, threshold, right = (np.array(x) for x in self._links())
        x, at, todo = np.stack(features, 1), np.full(len(features[0]), root), np.arange(len(features[0]))
        while True:
            todo = todo[feature[at[todo]] != LEAF]
            if not len(todo):
                return at
            here = at[todo]
            at[todo] = np.where(x[todo, feature[here]] <= threshold[here], here + 1, right[here])

    def _links(self):
        """Of each node its feature, its threshold, and its right child; the left one is the next node."""
        right, open_nodes = [0] * len(self.nodes), []
        for i, (feature, _) in enumerate(self.nodes):
            if i and self.nodes[i - 1][0] == LEAF and open_nodes:
                right[open_nodes.pop()] = i
            if feature != LEAF:
                open_nodes.append(i)
        return [x[0] for x in self.nodes], [0. if x[0] == LEAF else x[1] for x in self.nodes], right


def second(folder, data, grower):
    """Adds trees of the calls of which the folder's first twelve know no plan."""
    first, writer = PackedTrees(folder), Writer()
    # Which of two tilings it is no launch says.
    for _, _, kinds in data:
        kinds[np.isin(kinds[..., 0], [NUMBER[name] for name in TILINGS])] = (0, 0, 0, 1, 0)
    # Second trees that the folder has go.
    end = (first.roots + [len(first.nodes)])[12]
    writer.nodes, writer.roots, told_twice = first.nodes[:end], first.roots[:12], []
    for direction in (FORWARD, DATA, WEIGHT):
        for together in TOGETHER:
            asked = []
            for _, x, _ in data:
                leaves = first.leaves_of(features_of(x), first.roots[4 * direction + together[0]])
                kinds = np.array([(2 * node[0] + node[1] // 2) for node in (first.nodes[i][1] for i in leaves.tolist())])
                asked.append((kinds == 0) | (kinds == NUMBER["per_place"]) & (pixels_of(x) > LEAST_CHUNK))
                if direction == WEIGHT and BF16 in together:
                    told_twice.append(np.isin(kinds, [NUMBER[name] for name in ASKED_IN_16_BITS]) & (x[:, 8] == 0))
            if any((np.isin(x[:, 9], together) & here).any() for (_, x, _), here in zip(data, asked)):
                tree_of(data, direction, together, grower, writer, asked)
                continue
            writer.roots.append(len(writer.nodes))
            writer.nodes.append((LEAF, (*packed(0), 0)))
    # Which kernel alone: tiles and parts are the first trees'.
    for _, _, kinds in data:
        kinds[:, WEIGHT, 2:4] = (0, 1)
    tree_of(data, WEIGHT, TOGETHER[0], grower, writer, told_twice)
    writer.roots.pop()
    writer.write(folder, "convolution_")


def main(words):
    is_second = words[0] == "second"
    folder, files = words[is_second], words[is_second + 1:]
    with tempfile.TemporaryDirectory() as build:
        grower = built_grower(build)
        data = [recorded(file) for file in files]
        if is_second:
            second(folder, data, grower)
            return
        set_tilings(data, grower)
        writer = Writer()
        for direction in (FORWARD, DATA, WEIGHT):
            for together in TOGETHER:
                tree_of(data, direction, together, grower, writer)
        writer.write(folder, "convolution_")


if __name__ == "__main__":
    main(sys.argv[1:])
