#!/usr/bin/env python3
"""Makes the atlas' table of listed convolutions: python3 fit_listed_convolutions.py FOLDER QUERIES FILE..., or `sample GOLDEN QUERIES FILE...`: draws
recorded calls for tests/emulator/gemm/listed_convolutions_test.cpp; or
`extend FOLDER FILE...`: keeps FOLDER's table and takes what the launches of the calls in FILEs tell in place of what it says of them, and lists that it does not have,
`sample_more GOLDEN FILE...`: adds lines of these calls, and
`sample_drawn GOLDEN FILE...`: writes lines of drawn ones (record_listed_convolutions.py, `drawn`), by which the test judges what listed calls around tell, and
`missing OUT FOLDER WANTED...`: writes for record_listed_convolutions.py which calls the table does not tell (`missing` below says how they are named).

QUERIES has query_convolutions.py's answers: f16-0.npz, f16-1.npz, ... tf32-1.npz of the listed calls, and for each FILE that sweep_convolutions.py recorded
(t1.npz) those of its calls (t1.engines.npz). Other FILEs are record_listed_convolutions.py's. What was recorded says which kernels an engine with its
settings is, and so in which order it adds; where engines leave that to cuBLAS, only what was recorded of the very call counts.

FOLDER gets listed_*.inc, as emulator/gemm/atlas/convolutions/listed_convolutions.cpp reads them.
"""
import base64
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict

import numpy as np

import convolution_kinds
from convolution_kinds import NUMBER
from convolution_lists import IMAGES, KINDS, VARIANTS, calls_of, drawn_of, extent_of
from fit_atlas import up, write_lines
from fit_convolutions import bits_of, kinds_of, sweep_of
from fit_shapes import ANY, boxes_of, in_text
from launch_kinds import LANES_HALVES, RESTARTS, lanes_of
from query_convolutions import NONE, load as engines_of
from record_listed_convolutions import BY_ATOMICS, FAILED
from record_shapes import ROOT, unpacked

SLABS = 32  # of a box
FORWARD, DATA, WEIGHT = range(3)
TYPES = ("f16", "bf16", "tf32")
TF32 = 2
UNTOLD = 1
# In the table's order: what VARIANTS has.
TABLE_VARIANTS = sorted(VARIANTS)
GROUPS = 5  # of each variant: the passes, and whether the gradients are added by atomics
# Engines, by their numbers in cuDNN 9.19, whose kernels cut K into segments where knob 25 is 0: of 16 bits and of TF32, of each pass.
SEGMENTED = (("e62", "e67", "e65"), ("e67", "e71", "e68"))
# Engines that give a product to cuBLAS.
PRODUCTS = ("e58", "e63", "e62")
# Engines whose parts of K have so many channels as knob 17 says; knob 12 is -1 where all have.
IN_PARTS = ("e23", "e41")
# The engine of Winograd's transforms. Of filters of 3 x 3 and several channels and outputs the product between them is one chain (73,358 of 73,358
# recorded gradients of weights); of others no plan is known.
TRANSFORMS = "e17"
# Launches do not say which of two tilings it is; how such parts are cut and how the last wave is, no rule says for certain.
NOT_TOLD = ("unknown", "tiled_narrow", "tiled_wide", "last_segments")
REDUCED = (NUMBER["reduced"], NUMBER["reduced_in_16_bits"])


# Reads slabs, rows and columns of boxes, the length of each one's code, and the code; writes their numbers.
DECODER = r'''
#include <cstdint>
#include <cstdio>
#include <vector>
#include "emulator/gemm/atlas/bit_decoder.hpp"
#include "emulator/gemm/atlas/coded_box.hpp"
using namespace guardbit::emulator::atlas;
int main() {
  std::uint32_t size[4];
  while (std::fread(size, sizeof size, 1, stdin) == 1) {
    std::vector<std::uint8_t> bytes(size[3]);
    if (std::fread(bytes.data(), 1, bytes.size(), stdin) != bytes.size()) return 1;
    BitDecoder decoder(bytes);
    CodedBox box(size[0], size[1], size[2]);
    box.code(decoder);
    std::vector<std::uint16_t> numbers;
    for (std::size_t slab = 0; slab < size[0]; ++slab)
      for (std::size_t row = 0; row < size[1]; ++row)
        for (std::size_t column = 0; column < size[2]; ++column) numbers.push_back(box.cell(slab, row, column));
    std::fwrite(numbers.data(), 2, numbers.size(), stdout);
  }
}
'''


def knobs(engine):
    return {int(key): int(value) for key, value in (x.split("=") for x in engine.split()[1:])}


def is_segmented(engine, numbers, direction):
    return engine.split()[0] == SEGMENTED[numbers == TF32][direction] and knobs(engine).get(25) == 0 and 27 in knobs(engine)


class Lists:
    """All listed calls: columns n c h k f s p, and where those of each kind begin."""

    def __init__(self, of_kind=calls_of):
        kinds = [of_kind(kind) for kind in range(len(KINDS))]
        self.calls = np.concatenate([calls[recorded] for calls, recorded in kinds]).astype(np.int64)
        self.at = [np.flatnonzero(recorded) for _, recorded in kinds]
        self.begin = np.concatenate([[0], np.cumsum([len(x) for x in self.at])])
        self.place = [np.cumsum(recorded) - 1 for _, recorded in kinds]

    def fields(self, which, last, numbers):
        """As fit_convolutions.py has them."""
        n, c, h, k, f, s, p = self.calls[which].T
        return np.stack([n, c, h, h, k, f, s, p, np.full(len(n), last), np.full(len(n), numbers), np.zeros(len(n), int)], 1)


def captured(files, lists):
    """Of each variant: numbers of listed calls; of output, gradients, and gradients as cudnn.deterministic has them the launches' names, grids and parts that
    cuBLAS' reduction adds."""
    names, result = {}, defaultdict(list)
    for file in files:
        z = np.load(file)
        keys = unpacked(z["keys"], np.uint8).tobytes().decode().split("\n")
        labels, unique = unpacked(z["labels"], np.uint32).reshape(5, -1), unpacked(z["unique"], np.uint32).reshape(-1, 5).astype(np.int64)
        unique[:, 0] = np.array([names.setdefault(key, len(names)) for key in keys])[unique[:, 0]]
        numbers, last, kind, at = unpacked(z["which"], np.uint32).reshape(4, -1).astype(np.int64)
        for variant in set(zip(numbers.tolist(), last.tolist())):
            mine = np.flatnonzero((numbers == variant[0]) & (last == variant[1]))
            which = np.zeros(len(mine), np.int64)
            for x in np.unique(kind[mine]).tolist():
                here = kind[mine] == x
                which[here] = lists.begin[x] + lists.place[x][at[mine][here]]
            result[variant].append((which, unique[labels[:, mine]]))
    return {variant: tuple(np.concatenate(x, axis) for x, axis in zip(zip(*parts), (0, 1))) for variant, parts in result.items()}, list(names)


class Engines:
    """What was recorded of engines with their settings: of each type, layout, pass and whether the filter has one place the kinds, how often."""

    def __init__(self):
        self.kinds, self.tiles = defaultdict(Counter), defaultdict(set)

    def add(self, numbers, last, direction, names, engines, calls, kinds, tiles, launched=True):
        one = (calls[:, 5] == 1).astype(int)
        known = (engines != NONE) & launched
        rows, counts = np.unique(np.stack([engines, one, *kinds.T, *tiles.T], 1)[known], axis=0, return_counts=True)
        for (engine, place, *rest), count in zip(rows.tolist(), counts.tolist()):
            self.kinds[numbers, last, direction, names[engine], place][tuple(rest[:5])] += count
            if is_segmented(names[engine], numbers, direction):
                setting = knobs(names[engine])
                self.tiles[numbers == TF32, direction, setting[2], setting[13]].add(tuple(rest[5:]))

    def of(self, numbers, last, direction, engine, one):
        here = self.kinds.get((numbers, last, direction, engine, one))
        # Of FP16 and BF16 an engine with its settings has the same kinds: 1,223 of 1,226 do, of the others one was not known.
        return here or (self.kinds.get((1 - numbers, last, direction, engine, one)) if numbers < TF32 else None) or Counter()


def tiles_of(names, ids):
    found = [re.search(r"tilesize(\d+)x(\d+)x(\d+)", name) for name in names]
    return np.array([tuple(map(int, x.groups())) if x else (0, 0, 0) for x in found])[ids]


class Labels:
    """Rows of form, fma, tile, input, parts, channels of a part, and of segmented kernels rows, columns, and those of a cluster."""

    def __init__(self):
        self.number, self.rows = {}, []

    def of(self, *row):
        if row not in self.number:
            self.number[row] = len(self.rows) + 2
            self.rows.append(row)
        return self.number[row]

    def of_kind(self, kind, direction):
        form, fma, tile, parts, operands = kind
        if convolution_kinds.KINDS[form] in NOT_TOLD:
            return UNTOLD
        return self.of(form, fma, tile, operands, parts, 0, 0, 0, 0, 0)


def label_of_engine(engine, one, kinds, direction, numbers, engines, labels):
    """The number of a label; None: it depends on the call."""
    setting = knobs(engine)
    operands = {kind[4] % 4 for kind in kinds}
    if is_segmented(engine, numbers, direction):
        tiles = engines.tiles[numbers == TF32, direction, setting[2], setting[13]]
        if len(tiles) != 1 or len(operands) != 1:
            return UNTOLD
        (rows, columns, depth), = tiles
        return labels.of(NUMBER["blocks"], 0, depth, *operands, 1, 0, rows, columns, setting[27], setting[28])
    if direction == FORWARD and engine.split()[0] == IN_PARTS[numbers == TF32] and 17 in setting:
        form = "split" if numbers == TF32 and setting[12] < 0 else "split_last_first"
        return labels.of(NUMBER[form], 0, 64, *operands, 1, setting[17], 0, 0, 0, 0) if len(operands) == 1 else UNTOLD
    if len(kinds) == 1 and not (one and engine.split()[0] == PRODUCTS[direction]):
        return labels.of_kind(next(iter(kinds)), direction)
    return None


def table_of(variant, answer, of_calls, engines, labels, lists):
    """Numbers of labels along passes and calls; `of_calls`: of each pass the kinds recorded of calls, 0 where none was."""
    numbers, last = variant
    names, asked = answer
    one = (lists.calls[:, 4] == 1).astype(int)
    result = np.full((3, len(lists.calls)), UNTOLD, np.int64)
    for direction in range(3):
        key = asked[direction, 1].astype(np.int64) * 2 + one
        for x in np.unique(key).tolist():
            if x // 2 == NONE:
                continue
            at, engine = np.flatnonzero(key == x), names[x // 2]
            kinds = engines.of(numbers, last, direction, engine, x % 2)
            label = label_of_engine(engine, x % 2, kinds, direction, numbers, engines, labels) if kinds else UNTOLD
            if engine.split()[0] == TRANSFORMS and direction == WEIGHT:
                n, c, h, k, f, *_ = lists.calls[at].T
                result[direction, at[(f == 3) & (c > 1) & (k > 1)]] = labels.of(NUMBER["transformed"], 1, 0, 0, 1, 0, 0, 0, 0, 0)
            elif label is not None:
                result[direction, at] = label
            elif of_calls is not None:
                each, number = np.unique(of_calls[direction][at], axis=0, return_inverse=True)
                result[direction, at] = np.array([labels.of_kind(tuple(kind), direction) for kind in each.tolist()])[number.reshape(-1)]
    # The strides of an output of one channel are those of either layout.
    if last:
        result[:, lists.calls[:, 3] == 1] = UNTOLD
    return result


def learn(queries, files):
    """What engines are, the answers for the listed calls, and of variants the kinds that were recorded of each call."""
    lists, engines, of_calls = Lists(), Engines(), {}
    answers = {(numbers, last): engines_of(os.path.join(queries, f"{TYPES[numbers]}-{last}.npz")) for numbers in range(3) for last in (0, 1)}
    is_sweep = lambda file: "seed" in np.load(file)
    recorded, names = captured([file for file in files if not is_sweep(file)], lists)
    for (numbers, last), (which, launched) in recorded.items():
        if numbers > TF32:
            continue
        calls = lists.fields(which, last, numbers)
        answer, asked = answers[numbers, last]
        kept = np.zeros((3, len(lists.calls), 5), np.int64)
        for direction, must_repeat in ((0, 0), (1, 0), (2, 0), (1, 1), (2, 1)):
            here = launched[direction + 2 * must_repeat]
            kinds = kinds_of(names, here[:, 0], here[:, 3], calls[:, 5], direction)
            engines.add(numbers, last, direction, answer, asked[direction, must_repeat][which].astype(np.int64), calls, kinds, tiles_of(names, here[:, 0]), here[:, 0] != names.index(FAILED))
            kept[direction, which] = kinds
        of_calls[numbers, last] = kept
    for file in files:
        if is_sweep(file):
            learn_sweep(file, os.path.join(queries, os.path.basename(file).replace(".npz", ".engines.npz")), engines)
    return lists, engines, answers, of_calls, (recorded, names)


def learn_sweep(file, queries, engines):
    names, asked = engines_of(queries)
    data, keys, good, calls, kinds = sweep_of(file)
    asked = asked[:, :, good].astype(np.int64)
    n, c, k, last, numbers, deterministic = (calls[:, i] for i in (0, 1, 4, 8, 9, 10))
    for variant in {(x, y) for x, y in zip(numbers.tolist(), last.tolist()) if x <= TF32}:
        here = (numbers == variant[0]) & (last == variant[1]) & ~((variant[1] == 1) & ((c == 1) | (k == 1)))
        for direction in range(3):
            engine = np.where(deterministic == 1, asked[direction, 1], asked[direction, 0])[here]
            engines.add(*variant, direction, names, engine, calls[here], kinds[here, direction], tiles_of(keys, data["ids"][good][here, direction].astype(np.int64)))


def texts_of(kind, numbers, recorded, build):
    """The texts of a kind's boxes; `numbers`: of the calls that are `recorded`, others may become any."""
    cells = np.full(int(np.prod(extent_of(kind))), ANY, np.int64)
    cells[recorded] = numbers
    return [in_text(code) for code in boxes_of(cells.reshape(extent_of(kind)), build, SLABS)]


def write_table(folder, labels, texts):
    """`texts`: of boxes, by variant, group and kind."""
    parts = [text for variant in TABLE_VARIANTS for group in range(GROUPS) for kind in range(len(KINDS)) for text in texts[variant, group, kind]]
    packed, braced = "".join(parts), lambda values: "{" + ", ".join(map(str, values)) + "},"
    pairs, sides, kinds = [], [], []
    for filter, stride, padding, channels, of_side in KINDS:
        kinds.append((filter, stride, padding, len(pairs), len(channels), len(sides), len(of_side)))
        pairs += channels
        sides += of_side
    write_lines(folder, "listed_boxes", ['"' + packed[i:i + 2000] + '"' for i in range(0, len(packed), 2000)])
    write_lines(folder, "listed_box_ends", [str(x) + "," for x in np.concatenate([[0], np.cumsum([len(x) for x in parts])]).tolist()])
    write_lines(folder, "listed_labels", [braced(row) for row in labels.rows])
    write_lines(folder, "listed_kinds", [braced(row) for row in kinds])
    write_lines(folder, "listed_channels", [braced(pair) for pair in pairs])
    write_lines(folder, "listed_sides", [str(x) + "," for x in sides])
    write_lines(folder, "listed_images", [str(x) + "," for x in IMAGES])


def main(folder, queries, files):
    lists, engines, answers, of_calls, _ = learn(queries, files)
    labels, texts = Labels(), {}
    with tempfile.TemporaryDirectory() as build:
        for numbers, last in TABLE_VARIANTS:
            if numbers > TF32:
                nothing = np.full(len(lists.calls), UNTOLD)
                groups = [nothing, nothing, nothing, 0 * nothing, 0 * nothing]
            else:
                names, asked = answers[numbers, last]
                table = table_of((numbers, last), (names, asked), of_calls.get((numbers, last)), engines, labels, lists)
                groups = [*table, *(asked[1:, 0] != asked[1:, 1]).astype(np.int64)]
                print(TYPES[numbers], last, "told of output and gradients:", *((x != UNTOLD).mean().round(4) for x in groups[:3]), "by atomics:",
                      *(x.mean().round(4) for x in groups[3:]), flush=True)
            for group, of_group in enumerate(groups):
                for kind in range(len(KINDS)):
                    texts[(numbers, last), group, kind] = texts_of(kind, of_group[lists.begin[kind]:lists.begin[kind + 1]], lists.at[kind], build)
    write_table(folder, labels, texts)


# Clusters of so many thread blocks that run at once, and elements of K that are left whole of the last wave's tiles, of so many elements of D: as
# convolution_segments.cpp has them.
AT_ONCE = {1: 132, 2: 66, 3: 39, 4: 30, 5: 22, 6: 17, 7: 15, 8: 15, 16: 7}
WHOLE = {64 * 64: 640, 64 * 128: 448, 128 * 128: 384, 128 * 256: 288}


def segments_of(kernel, calls, direction, numbers):
    """Segments of K that a kernel (rows and columns of a tile, its K, rows and columns of a cluster) has, 0 where that is not told; whether a second kernel
    adds them; and the blocks of its grid."""
    rows, columns, of_k, cluster_rows, cluster_columns = kernel
    n, c, h, w, k, f, s, p = calls.T[:8]
    pixels = n * ((h + 2 * p - f) // s + 1) * ((w + 2 * p - f) // s + 1)
    if direction == WEIGHT:
        sides, depth = (up(k, rows), up(c, columns) * f * f), up(pixels, of_k)
    else:
        m, across, channels = (pixels, k, c) if direction == FORWARD else (n * h * w, c, k)
        sides, depth = (up(m, rows), up(across, columns)), up(channels, of_k) * f * f
    clusters, each = up(sides[0], cluster_rows) * up(sides[1], cluster_columns), cluster_rows * cluster_columns
    at_once, area = AT_ONCE.get(each, 0), rows * columns
    if at_once == 0:
        return 0 * n, n < 0, 0 * n
    is_full, last = clusters > at_once, clusters % at_once
    is_whole = (last == 0) | (at_once // np.maximum(last, 1) < 2) | (depth * of_k <= WHOLE.get(area, 0))
    most = at_once // clusters
    long_ones = depth // up(1056, of_k)
    by_second = ~is_full & (most >= 2) & (long_ones > 8) & (most > 8)
    many = np.minimum(most, long_ones)

    def doubled(gain):
        count = np.ones_like(n)
        longest = lambda x: up(depth, np.maximum(x, 1))
        for _ in range(8):
            count = np.where((2 * count <= most) & (longest(count) - longest(2 * count) >= gain), 2 * count, count)
        at_last = (count < most) & (2 * count > most) & (longest(count) - longest(most) >= gain)
        return up(depth, longest(np.where(at_last, most, count)))

    count = doubled(up((296 * area + 504 * 64 * 64) * (8 if numbers == 1 else 1), area * of_k))
    if direction == WEIGHT and numbers == TF32 and (rows, columns) == (128, 64):
        count = np.where((doubled(16) == count) & (doubled(20) == count), count, 0)
    is_uneven = (numbers == TF32) & (up(depth, up(depth, np.maximum(many, 1))) != many)
    count = np.where(by_second, np.where(is_uneven | (many > 56 * 32 // of_k), 0, many), count)
    count = np.where(most < 2, 1, count)
    count = np.where(is_full, is_whole.astype(np.int64), count)
    return count, by_second, np.where(is_full, at_once, clusters * np.maximum(count, 1)) * each


def segmented_numbers(launches, calls, direction, numbers, names, labels):
    """Numbers of labels of launches that may cut K into segments. Their names do not say how blocks are clustered: grids do, where all clusters that
    would give this grid have K cut in the same way."""
    result, tiles = np.full(len(calls), UNTOLD), tiles_of(names, launches[:, 0])
    by_second = np.array(["split_k_kernel" in name for name in names])[launches[:, 0]]
    operands = np.array([convolution_kinds.input_of(name, direction) for name in names])[launches[:, 0]]
    kernels = Counter((*row[6:8], row[2], *row[8:10]) for row in labels.rows if row[6])
    for each in {(*x[:3], y) for x, y in zip(tiles.tolist(), operands.tolist())}:
        at = np.flatnonzero((tiles == each[:3]).all(1) & (operands == each[3]))
        blocks, first, same = launches[at, 1:4].prod(1), np.zeros(len(at), np.int64), np.ones(len(at), bool)
        chosen = np.full(len(at), UNTOLD)
        for kernel in sorted(kernels):
            if kernel[:3] != each[:3]:
                continue
            count, second, of_grid = segments_of(kernel, calls[at], direction, numbers)
            fits = (of_grid == blocks) & ((count == 0) | (second == by_second[at]))
            same &= ~fits | (first == 0) | (count == first)
            same &= ~fits | (count > 0)
            is_first = fits & (first == 0) & (count > 0)
            if is_first.any():
                chosen[is_first] = labels.of(NUMBER["blocks"], 0, kernel[2], each[3], 1, 0, *kernel[:2], *kernel[3:])
                first[is_first] = count[is_first]
        result[at] = np.where(same, chosen, UNTOLD)
    return result


# What multiplies, in a label.
TENSOR_CORES, FMA, EIGHTS = range(3)


def is_contradicted(numbers, launches, calls, direction, names, labels):
    """Where the table names a kernel that cuts K into segments and the grid that was recorded is another than it would have, or the table names another kind
    and the launch may cut K."""
    rows = np.array(labels.rows)[np.maximum(numbers - 2, 0)]
    may_cut = np.array(["segment_k_on" in name for name in names])[launches[:, 0]]
    result = may_cut & (rows[:, 6] == 0)
    for kernel in np.unique(rows[may_cut & ~result][:, [6, 7, 2, 8, 9]], axis=0).tolist():
        at = np.flatnonzero(may_cut & (rows[:, [6, 7, 2, 8, 9]] == kernel).all(1))
        for of_type in np.unique(calls[at, 9]).tolist():
            here = at[calls[at, 9] == of_type]
            result[here] = segments_of(kernel, calls[here], direction, of_type)[2] != launches[here, 1:4].prod(1)
    return result & (numbers > UNTOLD)


def set_parts_in_place(kinds, launches, calls, names):
    """Of a kernel of a product that lays its parts of K behind each other the grid has a depth that the batch of images does not explain; memory is set before it."""
    n, h, f, last = (calls[:, i] for i in (0, 2, 5, 8))
    batch = np.where((last == 0) & (h > 1) & (f == 1), n, 1)
    alone = {}
    for i in np.unique(launches[:, 0]).tolist():
        kernels = [x for _, x in convolution_kinds.kernels_of(names[i] + "#1#0")]
        is_gemm = bool(kernels) and re.search(r"cutlass_\d\d_\w*gemm|sm80_xmma_gemm", kernels[0]) is not None and not any("splitKreduce" in x for x in kernels)
        alone[i] = (is_gemm, "cutlass" in names[i] and len(kernels) == 1 and names[i].startswith("set"))
    is_gemm, adds = (np.array([alone[i][j] for i in launches[:, 0].tolist()]) for j in (0, 1))
    parts, is_cut = launches[:, 3] // batch, is_gemm & (f == 1) & (launches[:, 3] != batch)
    # Of 16 bits how each part is rounded is not known.
    is_told = is_cut & adds & (parts * batch == launches[:, 3]) & (calls[:, 9] >= TF32)
    kinds[is_cut & ~is_told] = (0, 0, 0, 1, 0)
    kinds[is_told, 0], kinds[is_told, 3] = NUMBER["reduced_in_place"], parts[is_told]
    return is_cut


def label_of_product(name, direction, parts, labels):
    """The number of a label of a product that cuBLAS computes, as launch_kinds.py knows its kernels; `parts`: what its reduction adds."""
    kernels = [x for _, x in convolution_kinds.kernels_of(name + "#1#0")]
    of_images = direction == WEIGHT and len(kernels) > 1 and "reduce_wgrad_nchw_helper" in kernels[-1]
    kernels = kernels[:len(kernels) - of_images]
    is_reduced = len(kernels) == 2 and "splitKreduce" in kernels[1]
    if len(kernels) != 1 + is_reduced:
        return UNTOLD
    whole = NUMBER["innermost" if direction != WEIGHT else "images" if of_images else "chain"]
    lanes = lanes_of(kernels[0] + ";")
    if lanes and not is_reduced:
        form, count, run, restart = lanes
        if count == 1:
            return labels.of(whole, FMA, 0, 0, 1, 0, 0, 0, 0, 0)
        form = NUMBER[("images_" if of_images else "") + ("shared_halves" if form == LANES_HALVES else "shared_ascending")]
        return labels.of(form, FMA, run, 0, count, RESTARTS[restart], 0, 0, 0, 0)
    if re.search(r"75_tensorop_(bf16_|f16_)?s1688gemm_(bf16|f16)", kernels[0]):
        if not is_reduced:
            return labels.of(whole, EIGHTS, 32, 0, 1, 0, 0, 0, 0, 0)
        is_rounded = re.search(r"_(bf16|f16)_s\d+gemm", kernels[0])
        return UNTOLD if of_images else labels.of(NUMBER["reduced_in_16_bits" if is_rounded else "reduced"], EIGHTS, 32, 0, parts, 0, 0, 0, 0, 0)
    if "nvjet" in kernels[0] and "splitK" in kernels[0] and is_reduced and not of_images:
        return labels.of(NUMBER["reduced_by_64"], TENSOR_CORES, 0, 0, parts, 0, 0, 0, 0, 0)
    return UNTOLD


def numbers_of(variant, which, launched, names, labels, lists):
    """Numbers of labels along passes and recorded calls, and whether the gradients are added by atomics."""
    numbers, last = variant
    calls, result = lists.fields(which, last, numbers), np.full((GROUPS, len(which)), UNTOLD)
    is_segmented, atomic = (np.array([any(word in name for word in words) for name in names]) for words in (("segment_k_on",), BY_ATOMICS))
    for direction in range(3):
        launches = launched[direction + 2 * (direction > 0)]
        kinds = kinds_of(names, launches[:, 0], launches[:, 3], calls[:, 5], direction)
        kinds[:, 3] = np.where(np.isin(kinds[:, 0], REDUCED) & (launches[:, 4] > 0), launches[:, 4], kinds[:, 3])
        # Names do not say whether the last part's sum comes first.
        kinds[(kinds[:, 0] == NUMBER["split"]) & (kinds[:, 3] > 2) & (direction == FORWARD)] = (0, 0, 0, 1, 0)
        is_cut = set_parts_in_place(kinds, launches, calls, names)
        each, number = np.unique(kinds, axis=0, return_inverse=True)
        result[direction] = np.array([labels.of_kind(tuple(kind), direction) for kind in each.tolist()])[number.reshape(-1)]
        is_open = (result[direction] == UNTOLD) & (calls[:, 5] == 1) & ~is_cut
        for name, parts in np.unique(launches[is_open][:, [0, 4]], axis=0).tolist():
            here = is_open & (launches[:, 0] == name) & (launches[:, 4] == parts)
            result[direction, here] = label_of_product(names[name], direction, parts, labels)
        cut = np.flatnonzero(is_segmented[launches[:, 0]])
        if len(cut):
            result[direction, cut] = segmented_numbers(launches[cut], calls[cut], direction, numbers, names, labels)
        if direction:
            result[2 + direction] = atomic[launched[direction][:, 0]]
    if last:
        result[:3, lists.calls[which][:, 3] == 1] = UNTOLD
    return result


def bits_of_numbers(numbers, calls, direction, labels):
    """One number for all labels that give a call the same bits."""
    rows = np.array(labels.rows)[numbers - 2]
    kind, fma, tile, operands, parts, of_part = rows[:, :6].T.copy()
    parts = np.where(of_part > 0, up(calls[:, 1], np.maximum(of_part, 1)), parts)
    whole = NUMBER[("blocks", "blocks_descending", "chain")[direction]]
    for kernel in np.unique(rows[rows[:, 6] > 0][:, [6, 7, 2, 8, 9]], axis=0).tolist():
        at = np.flatnonzero((rows[:, [6, 7, 2, 8, 9]] == kernel).all(1))
        for of_type in np.unique(calls[at, 9]).tolist():
            here = at[calls[at, 9] == of_type]
            count, second, _ = segments_of(kernel, calls[here], direction, of_type)
            kind[here] = np.where(count == 0, 0, np.where(count == 1, whole, np.where(second, NUMBER["segments_descending"], NUMBER["segments"])))
            parts[here] = count
    bits = bits_of(calls, direction, kind, fma, np.where((kind == NUMBER["chain"]) & (rows[:, 6] > 0), 0, tile), parts, operands)
    return np.where((kind >= NUMBER["shared_halves"]) | (fma == EIGHTS), -numbers, bits)


def extend(folder, files):
    """Replaces what the table says of calls whose launches were recorded and tell it, and adds lists that it does not have; all else stays."""
    lists, labels, texts = Lists(), Labels(), {}
    recorded, names = captured(files, lists)
    with tempfile.TemporaryDirectory() as build:
        table = Table(folder, build)
        for row in table.labels:
            labels.of(*row)
        for variant in TABLE_VARIANTS:
            which, launched = recorded.get(variant, (np.zeros(0, np.int64), np.zeros((5, 0, 5), np.int64)))
            found = numbers_of(variant, which, launched, names, labels, lists) if len(which) else np.zeros((GROUPS, 0), np.int64)
            has_failed = launched[..., 0] == (names.index(FAILED) if FAILED in names else -1)
            for kind in range(len(KINDS)):
                mine = np.flatnonzero((which >= lists.begin[kind]) & (which < lists.begin[kind + 1]))
                at, calls = which[mine] - lists.begin[kind], lists.fields(which[mine], variant[1], variant[0])
                for group in range(GROUPS):
                    if not len(mine) and table.has(kind) and (variant, group, kind) in table.texts:
                        texts[variant, group, kind] = table.texts[variant, group, kind]
                        continue
                    here, fresh = table.of(variant, group, kind)[lists.at[kind]], found[group, mine]
                    if group < 3:
                        both = (fresh > UNTOLD) & (here[at] > UNTOLD)
                        same = np.zeros(len(mine), bool)
                        if both.any():
                            had, has = (bits_of_numbers(x[both], calls[both], group, labels) for x in (here[at], fresh))
                            same[both] = had == has
                        had = here[at]
                        if len(mine):
                            wrong = is_contradicted(had, launched[group + 2 * (group > 0)][mine], calls, group, names, labels)
                            print((wrong & (fresh <= UNTOLD)).sum(), "no longer told;", end=" ")
                            had = np.where(wrong, UNTOLD, had)
                        fresh = np.where(same | (fresh <= UNTOLD), had, fresh)
                        print(variant, KINDS[kind][:3], len(KINDS[kind][3]), "pass", group, "told %.4f" % (here > UNTOLD).mean(), "of", len(here), "before; of", both.sum(), "told twice", (both & ~same).sum(),
                              "differ;", end=" ")
                    else:
                        failed = has_failed[group - 2, mine]
                        print("atomics: of", len(at), "recorded", (here[at] != fresh)[~failed].sum(), "differ, %.4f are" % fresh.mean() if len(at) else "", end=" ")
                        fresh = np.where(failed, here[at], fresh)
                    here = here.copy()
                    here[at] = fresh
                    texts[variant, group, kind] = texts_of(kind, here, lists.at[kind], build)
                    print("told %.4f" % (here > UNTOLD).mean() if group < 3 else "", sum(len(x) for x in texts[variant, group, kind]), "digits, before", sum(len(x) for x in table.texts.get((variant, group, kind), ())), flush=True)
    write_table(folder, labels, texts)


def run(source, name, given, build):
    """What a C++ program writes."""
    program = os.path.join(build, name)
    if not os.path.exists(program):
        with open(program + ".cpp", "w") as file:
            file.write(source)
        subprocess.run(["g++", "-std=c++20", "-O2", "-I", ROOT, program + ".cpp", "-o", program], check=True)
    return subprocess.run([program], input=given, capture_output=True, check=True).stdout


class Table:
    """The table that a folder has. Of each variant (numbers, last), group and kind: the texts of its boxes, and its numbers along pairs, sides and images."""

    def __init__(self, folder, build):
        lines = lambda name: [x.strip() for x in open(os.path.join(folder, f"listed_{name}.inc"))]
        rows = lambda name: [tuple(int(x) for x in line.strip("{}, ").split(",")) for line in lines(name)]
        self.labels, channels, sides = rows("labels"), rows("channels"), [x for x, in rows("sides")]
        self.kinds = [(*row[:3], channels[row[3]:row[3] + row[4]], sides[row[5]:row[5] + row[6]]) for row in rows("kinds")]
        self.images = [x for x, in rows("images")]
        text, ends = "".join(x[1:-1] for x in lines("boxes")), [x for x, in rows("box_ends")]
        sizes = [[(min(SLABS, len(pairs) - i), len(sides), len(self.images)) for i in range(0, len(pairs), SLABS)] for *_, pairs, sides in self.kinds]
        self.texts, given, at = {}, [], 0
        for variant in TABLE_VARIANTS[:(len(ends) - 1) // (GROUPS * sum(len(x) for x in sizes))]:
            for group in range(GROUPS):
                for kind, boxes in enumerate(sizes):
                    self.texts[variant, group, kind] = [text[ends[i]:ends[i + 1]] for i in range(at, at + len(boxes))]
                    codes = [base64.b64decode(x) for x in self.texts[variant, group, kind]]
                    given += [np.array((*size, len(code)), np.uint32).tobytes() + code for size, code in zip(boxes, codes)]
                    at += len(boxes)
        if at != len(ends) - 1:
            raise SystemExit("the lists have other boxes")
        numbers, self.numbers, at = np.frombuffer(run(DECODER, "decoder", b"".join(given), build), np.uint16), {}, 0
        for key in self.texts:
            extent = (len(self.kinds[key[2]][3]), len(self.kinds[key[2]][4]), len(self.images))
            self.numbers[key] = numbers[at:at + int(np.prod(extent))].reshape(extent)
            at += int(np.prod(extent))

    def has(self, kind):
        """Whether a kind of convolution_lists.py is here, with the same channels, sides and images."""
        return kind < len(self.kinds) and self.images == IMAGES and self.kinds[kind] == (*KINDS[kind][:3], list(KINDS[kind][3]), list(KINDS[kind][4]))

    def of(self, variant, group, kind):
        """The numbers of convolution_lists.py's calls of a kind: those that are here, of others UNTOLD, or 0 of additions by atomics."""
        if self.has(kind) and (variant, group, kind) in self.numbers:
            return self.numbers[variant, group, kind].reshape(-1).astype(np.int64)
        *filter, pairs, sides = KINDS[kind]
        result = np.full(extent_of(kind), UNTOLD if group < 3 else 0, np.int64)
        for i, (*other, had, had_sides) in enumerate(self.kinds):
            if other != list(filter) or (variant, group, i) not in self.numbers:
                continue
            places = [np.array([(x, had.index(y)) for x, y in enumerate(wanted) if y in had], np.int64).reshape(-1, 2).T
                      for wanted, had in ((list(pairs), had), (list(sides), had_sides), (IMAGES, self.images))]
            result[np.ix_(*(x[0] for x in places))] = self.numbers[variant, group, i][np.ix_(*(x[1] for x in places))]
        return result.reshape(-1)


def missing(out, folder, wanted):
    """Writes which calls the table does not tell all passes of, and each fiftieth that it tells. `wanted`: NUMBERS,LAST:KINDS, or
    NUMBERS,LAST:KINDS:PRODUCTS,CHANNELS for those of up to 2^PRODUCTS multiplications and so many channels and outputs."""
    with tempfile.TemporaryDirectory() as build:
        table = Table(folder, build)
    arrays = {}
    for words in wanted:
        variant, kinds, *limits = [tuple(int(x) for x in part.split(",")) for part in words.split(":")]
        for kind in kinds:
            calls, recorded = calls_of(kind)
            n, c, h, k, f, s, p = calls.T.astype(np.int64)
            q = (h + 2 * p - f) // s + 1
            asked = recorded & ~((variant[1] == 1) & (k == 1))
            for products, channels in limits:
                asked &= (n * c * k * f * f * q * q <= 2 ** products) & (np.maximum(c, k) <= channels)
            told = np.all([table.of(variant, group, kind) > UNTOLD for group in range(3)], 0)
            at = np.flatnonzero(asked & (~told | (np.arange(len(told)) % 50 == 7)))
            arrays["%d %d %d %d" % (len(arrays), *variant, kind)] = at.astype(np.uint32)
            print(variant, kind, len(at), "of", int(recorded.sum()))
    np.savez_compressed(out, **arrays)


def launched_kind(name, grid, kind, engine, call, direction):
    """kind, fma, tile, parts and operands of a launch; of segments the parts that its grid has; None where that is not told."""
    if "segment_k_on" not in name:
        return kind if kind[0] else None
    setting = knobs(engine)
    (rows, columns, depth), = {tuple(x) for x in tiles_of([name], [0]).tolist()}
    m, n, _, channels, places = convolution_kinds.product_of(call, direction)
    up = lambda x, y: -(-x // y)
    across = up(call[1], columns) * call[5] ** 2 if direction == WEIGHT else up(n, columns)
    parts = int(np.prod(grid)) / (up(up(m, rows), setting[27]) * setting[27] * up(across, setting[28]) * setting[28])
    form = NUMBER["segments_descending" if "split_k_kernel" in name else "segments"]
    return (form, 0, depth, int(parts), kind[4]) if parts == int(parts) and parts > 1 else None


def sample(golden, queries, files):
    """Lines: numbers, last, deterministic, pass, n c h k f s p; form, unit, tile, parts and operands as the launches have them."""
    lists, _, answers, _, (recorded, names) = learn(queries, files)
    r, lines = np.random.default_rng(1), []
    for (numbers, last), (which, launched) in sorted(recorded.items()):
        if numbers > TF32:
            continue
        calls, (engine_names, asked) = lists.fields(which, last, numbers), answers[numbers, last]
        for direction in range(3):
            here, wanted = launched[direction + 2 * (direction > 0)], Counter()
            for i in r.permutation(len(which))[:3000].tolist():
                kind = tuple(kinds_of(names, here[i:i + 1, 0], here[i:i + 1, 3], calls[i:i + 1, 5], direction)[0].tolist())
                name, engine = names[here[i, 0]], int(asked[direction, 1][which[i]])
                found = launched_kind(name, here[i, 1:4].tolist(), kind, engine_names[engine], calls[i, :8].tolist(), direction) if engine != NONE else None
                if found is None or wanted[found[0]] == 12:
                    continue
                wanted[found[0]] += 1
                lines.append(" ".join(str(x) for x in (numbers, last, 1, direction, *lists.calls[which[i]].tolist(), *found)))
    with open(golden, "w") as file:
        file.write("".join(line + "\n" for line in lines))


def sample_more(golden, files):
    """Adds lines of calls that `extend` took, but of those whose kernels may cut K into segments."""
    lists, labels = Lists(), Labels()
    recorded, names = captured(files, lists)
    r, lines = np.random.default_rng(2), []
    for variant, (which, launched) in sorted(recorded.items()):
        some = np.sort(r.permutation(len(which))[:20000])
        which, launched = which[some], launched[:, some]
        found = numbers_of(variant, which, launched, names, labels, lists)
        for direction in range(3):
            wanted = Counter()
            for i in r.permutation(len(which)).tolist():
                number = found[direction, i]
                form, unit, tile, operands, parts, *rest = labels.rows[number - 2] if number > UNTOLD else (0,) * 10
                if form == 0 or rest[1] or wanted[form, unit] == 3:
                    continue
                wanted[form, unit] += 1
                lines.append(" ".join(str(x) for x in (*variant, 1, direction, *lists.calls[which[i]].tolist(), form, unit, tile, parts, operands)))
    with open(golden, "a") as file:
        file.write("".join(line + "\n" for line in lines))


def sample_drawn(golden, files):
    """Lines of drawn calls whose launches tell their order, 130 of each pass and type, but of those whose kernels may cut K into segments."""
    lists, labels, lines = Lists(drawn_of), Labels(), []
    recorded, names = captured(files, lists)
    r = np.random.default_rng(3)
    for variant, (which, launched) in sorted(recorded.items()):
        found = numbers_of(variant, which, launched, names, labels, lists)
        for direction in range(3):
            told = [i for i in r.permutation(len(which)).tolist() if found[direction, i] > UNTOLD and not labels.rows[found[direction, i] - 2][6]]
            for i in told[:130]:
                form, unit, tile, operands, parts, *_ = labels.rows[found[direction, i] - 2]
                lines.append(" ".join(str(x) for x in (*variant, 1, direction, *lists.calls[which[i]].tolist(), form, unit, tile, parts, operands)))
    with open(golden, "w") as file:
        file.write("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    if sys.argv[1] == "sample_drawn":
        sample_drawn(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == "missing":
        missing(sys.argv[2], sys.argv[3], sys.argv[4:])
    elif sys.argv[1] == "extend":
        extend(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == "sample_more":
        sample_more(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == "sample":
        sample(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        main(sys.argv[1], sys.argv[2], sys.argv[3:])
