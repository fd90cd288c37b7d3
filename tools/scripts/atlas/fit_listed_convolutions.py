#!/usr/bin/env python3
"""Makes the atlas' table of listed convolutions: python3 fit_listed_convolutions.py FOLDER QUERIES FILE..., or `sample GOLDEN QUERIES FILE...`: draws
recorded calls for tests/emulator/gemm/listed_convolutions_test.cpp.

QUERIES has query_convolutions.py's answers: f16-0.npz, f16-1.npz, ... tf32-1.npz of the listed calls, and for each FILE that sweep_convolutions.py recorded
(t1.npz) those of its calls (t1.engines.npz). Other FILEs are record_listed_convolutions.py's. What was recorded says which kernels an engine with its
settings is, and so in which order it adds; where engines leave that to cuBLAS, only what was recorded of the very call counts.

FOLDER gets listed_*.inc, as emulator/gemm/atlas/convolutions/listed_convolutions.cpp reads them.
"""
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict

import numpy as np

import convolution_kinds
from convolution_kinds import NUMBER
from convolution_lists import IMAGES, KINDS, calls_of, extent_of
from fit_atlas import write_lines
from fit_convolutions import kinds_of, sweep_of
from fit_shapes import ANY, boxes_of, in_text
from query_convolutions import NONE, load as engines_of
from record_listed_convolutions import FAILED, runs
from record_shapes import unpacked

SLABS = 32  # of a box
FORWARD, DATA, WEIGHT = range(3)
TYPES = ("f16", "bf16", "tf32")
TF32 = 2
UNTOLD = 1
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


def knobs(engine):
    return {int(key): int(value) for key, value in (x.split("=") for x in engine.split()[1:])}


def is_segmented(engine, numbers, direction):
    return engine.split()[0] == SEGMENTED[numbers == TF32][direction] and knobs(engine).get(25) == 0 and 27 in knobs(engine)


class Lists:
    """All listed calls: columns n c h k f s p, and where those of each kind begin."""

    def __init__(self):
        kinds = [calls_of(kind) for kind in range(len(KINDS))]
        self.calls = np.concatenate([calls[recorded] for calls, recorded in kinds]).astype(np.int64)
        self.at = [np.flatnonzero(recorded) for _, recorded in kinds]
        self.begin = np.concatenate([[0], np.cumsum([len(x) for x in self.at])])
        self.place = [np.cumsum(recorded) - 1 for _, recorded in kinds]

    def fields(self, which, last, numbers):
        """As fit_convolutions.py has them."""
        n, c, h, k, f, s, p = self.calls[which].T
        return np.stack([n, c, h, h, k, f, s, p, np.full(len(n), last), np.full(len(n), numbers), np.zeros(len(n), int)], 1)


def captured(files, lists):
    """Of each variant: numbers of listed calls; of output, gradients, and gradients as cudnn.deterministic has them the launches' names and grids."""
    names, result = {}, defaultdict(list)
    for file in files:
        z = np.load(file)
        keys = unpacked(z["keys"], np.uint8).tobytes().decode().split("\n")
        labels, unique = unpacked(z["labels"], np.uint32).reshape(5, -1), unpacked(z["unique"], np.uint32).reshape(-1, 4).astype(np.int64)
        unique[:, 0] = np.array([names.setdefault(key, len(names)) for key in keys])[unique[:, 0]]
        begin = 0
        for variant, kind, at in runs(z["kinds"].tolist())[int(z["process"])::int(z["processes"])][int(z["first"]):int(z["next"])]:
            result[variant].append((lists.begin[kind] + lists.place[kind][at], unique[labels[:, begin:begin + len(at)]]))
            begin += len(at)
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
        if convolution_kinds.KINDS[form] in NOT_TOLD or direction == WEIGHT and form in REDUCED:
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


def main(folder, queries, files):
    lists, engines, answers, of_calls, _ = learn(queries, files)
    labels, text, ends = Labels(), [], [0]
    with tempfile.TemporaryDirectory() as build:
        for numbers in range(3):
            for last in (0, 1):
                names, asked = answers[numbers, last]
                table = table_of((numbers, last), (names, asked), of_calls.get((numbers, last)), engines, labels, lists)
                by_atomics = (asked[1:, 0] != asked[1:, 1]).astype(np.int64)
                for group in (*table, *by_atomics):
                    for kind in range(len(KINDS)):
                        cells = np.full(int(np.prod(extent_of(kind))), ANY, np.int64)
                        cells[lists.at[kind]] = group[lists.begin[kind]:lists.begin[kind + 1]]
                        text += [in_text(code) for code in boxes_of(cells.reshape(extent_of(kind)), build, SLABS)]
                ends = np.concatenate([[0], np.cumsum([len(x) for x in text])]).tolist()
                print(TYPES[numbers], last, "told of output and gradients:", *((x != UNTOLD).mean().round(4) for x in table), "by atomics:",
                      *(x.mean().round(4) for x in by_atomics), ends[-1], "digits", flush=True)
    packed, braced = "".join(text), lambda values: "{" + ", ".join(map(str, values)) + "},"
    pairs, sides, kinds = [], [], []
    for filter, stride, padding, channels, of_side in KINDS:
        kinds.append((filter, stride, padding, len(pairs), len(channels), len(sides), len(of_side)))
        pairs += channels
        sides += of_side
    write_lines(folder, "listed_boxes", ['"' + packed[i:i + 2000] + '"' for i in range(0, len(packed), 2000)])
    write_lines(folder, "listed_box_ends", [str(x) + "," for x in ends])
    write_lines(folder, "listed_labels", [braced(row) for row in labels.rows])
    write_lines(folder, "listed_kinds", [braced(row) for row in kinds])
    write_lines(folder, "listed_channels", [braced(pair) for pair in pairs])
    write_lines(folder, "listed_sides", [str(x) + "," for x in sides])
    write_lines(folder, "listed_images", [str(x) + "," for x in IMAGES])


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
    """Lines: numbers, last, deterministic, pass, n c h k f s p; form, fma, tile, parts and operands as the launches have them."""
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
                found = launched_kind(name, here[i, 1:].tolist(), kind, engine_names[engine], calls[i, :8].tolist(), direction) if engine != NONE else None
                if found is None or wanted[found[0]] == 12:
                    continue
                wanted[found[0]] += 1
                lines.append(" ".join(str(x) for x in (numbers, last, 1, direction, *lists.calls[which[i]].tolist(), *found)))
    with open(golden, "w") as file:
        file.write("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    if sys.argv[1] == "sample":
        sample(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        main(sys.argv[1], sys.argv[2], sys.argv[3:])
