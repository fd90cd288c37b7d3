#!/usr/bin/env python3
"""Makes the atlas' table of usual shapes of what record_shapes.py recorded: python3 fit_shapes.py read FILE... makes FILE.told of each, what its
launches tell; python3 fit_shapes.py FOLDER FILE... puts the table into FOLDER (needs g++); python3 fit_shapes.py extend FOLDER FILE... keeps the kinds
that the table in FOLDER has, the first ones of KINDS, and adds the others; python3 fit_shapes.py sample GOLDEN FILE... draws some calls.

FOLDER gets usual_shapes.inc, usual_shape_lists.inc and usual_shape_kinds.inc, the lists of shapes; shape_labels.inc, shape_boxes.inc and
shape_box_ends.inc: for each shape of which the trees only guess 0, where they guess what was recorded, 1, where its launches do not tell a plan, or, from 2 on, the number of
a label that says it. The numbers are coded in boxes, as emulator/gemm/atlas/coded_box.hpp has it.
"""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from fit_atlas import bits_of, fields_of, in_digits, label_of, label_text, parts_of_runs, write_lines
from launch_kinds import CUT_FORMS, DOT, LANE_COUNTS, LANES, RESTARTS, RUNS_OF_8, SPLIT_LANES, UNKNOWN, classes_of, is_told
from record_shapes import ROOT, RULE, Leaves, load
from shape_lists import (KINDS, LISTS, NUMBERS, ORDERS, by_size, calls_of, count_of, has_one_feature, has_one_layout, in_order, in_table, is_asked,
                         is_in_other_kind, is_too_large, lists_of)

SLABS = 8  # of a box
ANY = 0xffff
RIGHT, NOT_RECORDED, UNTOLD = -1, -2, -3  # no label; launches do not tell which

# Reads slabs, rows, columns and numbers of boxes; writes the length of each one's code, and the code, which it has read again.
ENCODER = r'''
#include <cstdint>
#include <cstdio>
#include <vector>
#include "emulator/gemm/atlas/bit_encoder.hpp"
#include "emulator/gemm/atlas/coded_box.hpp"
using namespace guardbit::emulator::atlas;
int main() {
  std::uint32_t size[3];
  while (std::fread(size, sizeof size, 1, stdin) == 1) {
    CodedBox box(size[0], size[1], size[2]), read(size[0], size[1], size[2]);
    std::vector<std::uint16_t> wanted(std::size_t{size[0]} * size[1] * size[2]);
    if (std::fread(wanted.data(), 2, wanted.size(), stdin) != wanted.size()) return 1;
    const auto each = [&](auto&& use) {
      std::size_t i = 0;
      for (std::size_t slab = 0; slab < size[0]; ++slab)
        for (std::size_t row = 0; row < size[1]; ++row)
          for (std::size_t column = 0; column < size[2]; ++column) use(slab, row, column, wanted[i++]);
    };
    each([&](auto slab, auto row, auto column, auto number) { box.cell(slab, row, column) = number; });
    BitEncoder encoder;
    box.code(encoder);
    const std::vector<std::uint8_t> bytes = encoder.bytes();
    BitDecoder decoder(bytes);
    read.code(decoder);
    bool same = true;
    each([&](auto slab, auto row, auto column, auto number) {
      same = same && (number == CodedBox::any || read.cell(slab, row, column) == number);
    });
    if (!same) return 1;
    const auto count = static_cast<std::uint32_t>(bytes.size());
    std::fwrite(&count, 4, 1, stdout);
    std::fwrite(bytes.data(), 1, count, stdout);
  }
}
'''


def bits_of_leaves(calls, said):
    form, unit, parts, lanes, tile, restart, _ = said.astype(np.int64).T
    place, of_restart = np.zeros(1025, np.int64), np.zeros(1025, np.int64)
    place[LANE_COUNTS], of_restart[RESTARTS] = np.arange(len(LANE_COUNTS)), np.arange(len(RESTARTS))
    parts = np.where(np.isin(form, LANES), place[lanes] + 16 * of_restart[restart], parts)
    parts = np.where(form == RUNS_OF_8, parts_of_runs(calls[:, 7], parts), parts)
    return np.where(form == UNKNOWN, -1, bits_of(calls, form, unit, tile, parts, np.where(form == SPLIT_LANES, place[lanes], 0)))


def labels_of(calls, form, parts, tile, unit, tile_m, tile_n):
    """Labels that give the recorded bits, the number of parts as it is; sgemm_largek's as cuBLAS asks for it."""
    rule = np.where(np.isin(form, (*CUT_FORMS, *LANES, DOT)), parts, 0)
    for i in np.flatnonzero(form == RUNS_OF_8):
        asked = np.arange(1, 200)
        fits = asked[parts_of_runs(calls[i, 7], asked) == parts[i]]
        if not len(fits):
            form[i] = UNKNOWN
        else:
            rule[i] = fits[0]
    too_many = (rule >= 200) & np.isin(form, CUT_FORMS)
    form = np.where(too_many, UNKNOWN, form)
    known = form != UNKNOWN
    of_split = form == SPLIT_LANES
    return label_of(form, np.where(known, unit, 0), np.where(known, tile, 0), np.where(known, rule, 0), np.where(of_split, tile_m, 0),
                    np.where(of_split, tile_n, 0))


def read(file, leaves):
    """Writes FILE.told: of each numbers and kind the shapes' numbers, and RIGHT, UNTOLD or a label; no RIGHT where strides may not say the layout."""
    rows, all_keys = load(file, leaves)
    told = {}
    for (numbers, kind, *_), at, calls, said, ids, grids in rows:
        if not len(calls):
            continue
        one_layout, calls = has_one_layout(calls), calls.astype(np.int64)
        used, ids = np.unique(ids, return_inverse=True)
        keys = [all_keys[i] for i in used]
        keeps_grid = np.array(["gemvx" in key or "dot_kernel" in key for key in keys])
        grids = np.where(keeps_grid[ids][:, None], grids, 0)
        form, parts, tile, unit, tile_m, tile_n = classes_of(calls, keys, ids, grids)
        truth = np.where(form == UNKNOWN, -1, bits_of(calls, form, unit, tile, parts, tile_m // 8))
        told_here = is_told(calls, keys, ids, grids, form)
        labelled = np.flatnonzero(((bits_of_leaves(calls, said) != truth) | ~one_layout) & told_here)
        label = np.where(told_here, RIGHT, UNTOLD)
        label[labelled] = labels_of(calls[labelled], *(x[labelled] for x in (form, parts, tile, unit, tile_m, tile_n)))
        told.setdefault((numbers, kind), []).append((at, label))
    columns = {f"{numbers} {kind} {name}": np.concatenate(x) for (numbers, kind), parts in told.items() for name, x in zip(("at", "label"), zip(*parts))}
    with open(file + ".told", "wb") as out:
        np.savez_compressed(out, **columns)


def told_of(files, numbers, kind):
    """What is told of all shapes of a kind."""
    result = np.full(count_of(kind), NOT_RECORDED)
    for z in files:
        if f"{numbers} {kind} at" in z:
            result[z[f"{numbers} {kind} at"]] = z[f"{numbers} {kind} label"]
    return result


def check_whole(leaves, numbers, kind, told):
    """That everything which the trees guess was recorded, but for what is too large: of that nothing is told."""
    for begin in range(0, len(told), 10 ** 6):
        calls = calls_of(numbers, kind, begin, min(begin + 10 ** 6, len(told)))
        here, is_guess = told[begin:begin + 10 ** 6], leaves.of(calls)[:, 6] < RULE
        here[is_guess & is_too_large(calls)] = UNTOLD
        if has_one_feature(kind):
            here[~is_guess] = NOT_RECORDED
        missing = is_guess & (here == NOT_RECORDED)
        if missing.any():
            raise SystemExit(f"numbers {numbers} kind {kind}: shape {begin + int(np.flatnonzero(missing)[0])} was not recorded")


def leave_what_has_two_names(table):
    """A matrix of one column may come with the strides of either layout. Where the two launch other kernels, nothing is said."""
    unknown = label_of(UNKNOWN, 0, 0, np.int64(0), 0, 0)
    for numbers in NUMBERS:
        for plain, transposed in ((2, 1), (7, 0)):
            a, b = by_size(plain, table[numbers, plain]), by_size(transposed, table[numbers, transposed])
            differ = a[:, :, 0, 1:] != b[:, :, 0, 1:]
            a[:, :, 0, 1:][differ] = unknown
            print(f"numbers {numbers}: {int(differ.sum())} of {differ.size} products with one column differ by layout", flush=True)


def boxes_of(numbers_of_labels, build, slabs=SLABS):
    """The codes of a kind's boxes, of so many slabs each."""
    program = os.path.join(build, "encoder")
    if not os.path.exists(program):
        with open(program + ".cpp", "w") as file:
            file.write(ENCODER)
        subprocess.run(["g++", "-std=c++20", "-O2", "-I", ROOT, program + ".cpp", "-o", program], check=True)
    boxes = [numbers_of_labels[i:i + slabs] for i in range(0, len(numbers_of_labels), slabs)]
    given = b"".join(np.array(box.shape, np.uint32).tobytes() + np.ascontiguousarray(box).astype(np.uint16).tobytes() for box in boxes)
    said, codes = subprocess.run([program], input=given, capture_output=True, check=True).stdout, []
    while said:
        count = int.from_bytes(said[:4], "little")
        codes.append(said[4:4 + count])
        said = said[4 + count:]
    if len(codes) != len(boxes):
        raise SystemExit("the encoder wrote too few boxes")
    return codes


def in_text(code):
    """Three bytes in four digits."""
    padded = code + bytes(-len(code) % 3)
    return "".join(in_digits(int.from_bytes(padded[i:i + 3], "big"), 4) for i in range(0, len(padded), 3))


def untell_what_has_two_names(told, other, name):
    """The same of heads of one feature, whose shapes were recorded by both names."""
    differ = (told != other) & (told != NOT_RECORDED) & (other != NOT_RECORDED)
    told[differ] = UNTOLD
    print(f"{name}: {int(differ.sum())} of {int((told != NOT_RECORDED).sum())} differ by layout", flush=True)


def cells_of(kind, told, number_of_label):
    """The numbers that the table has for a kind's shapes; ANY where none is asked for."""
    cells = np.where(told == NOT_RECORDED, ANY, np.where(told == UNTOLD, 1, 0))
    labelled = told >= 0
    cells[labelled] = number_of_label(told[labelled])
    return in_order(kind, cells)


def write_boxes(folder, codes):
    """`codes`: texts of all boxes."""
    packed = "".join(codes)
    write_lines(folder, "shape_boxes", ['"' + packed[i:i + 2000] + '"' for i in range(0, len(packed), 2000)])
    write_lines(folder, "shape_box_ends", [str(x) + "," for x in [0, *np.cumsum([len(x) for x in codes]).tolist()]])


def write_lists(folder):
    write_lines(folder, "usual_shapes", [f"{x}," for values in LISTS for x in values])
    write_lines(folder, "usual_shape_lists", [", ".join(str(len(x)) for x in LISTS)])
    braced = lambda values: "{" + ", ".join(map(str, values)) + "}"
    write_lines(folder, "usual_shape_kinds", [braced((numbers, *KINDS[kind][:3], braced(lists_of(kind, numbers)), braced(ORDERS[kind]))) + ","
                                              for numbers in sorted(NUMBERS) for kind in range(len(KINDS))])


def text_of_label(label):
    return "".join(label_text(*fields_of(np.int64(label)), 0))


def main(folder, files):
    leaves, files = Leaves(), [np.load(file + ".told") for file in files]
    table = {(numbers, kind): told_of(files, numbers, kind) for kind in range(len(KINDS)) for numbers in NUMBERS}
    for key, told in table.items():
        check_whole(leaves, *key, told)
    leave_what_has_two_names(table)
    for (numbers, kind), told in table.items():
        if has_one_feature(kind):
            untell_what_has_two_names(told, told_of(files, numbers, -kind), f"numbers {numbers} kind {kind}")
    table = {(numbers, kind): np.where(is_asked(kind, numbers), in_table(kind, numbers, told), NOT_RECORDED) for (numbers, kind), told in table.items()}
    labels, counts = np.unique(np.concatenate([told[told >= 0] for told in table.values()]), return_counts=True)
    ordered = labels[np.argsort(-counts, kind="stable")]
    number = np.argsort(np.argsort(-counts, kind="stable"), kind="stable") + 2
    text = []
    with tempfile.TemporaryDirectory() as build:
        for numbers in sorted(NUMBERS):
            for kind in range(len(KINDS)):
                told = table[numbers, kind]
                codes = boxes_of(cells_of(kind, told, lambda x: number[np.searchsorted(labels, x)]), build)
                text += [in_text(code) for code in codes]
                print(f"numbers {numbers} kind {kind}: of {told.size} shapes {(told != NOT_RECORDED).sum()} recorded, {(told >= 0).sum()} labels, "
                      f"{sum(map(len, codes))} bytes", flush=True)
    write_boxes(folder, text)
    write_lines(folder, "shape_labels", ['"' + "".join(text_of_label(x) for x in ordered) + '"'])
    write_lists(folder)


def lines_of(folder, name):
    with open(os.path.join(folder, name + ".inc")) as file:
        return file.read().split("\n")


def boxes_in(folder):
    """The texts of the boxes that a table has, of each numbers and kind."""
    text = "".join(line.strip().strip('"') for line in lines_of(folder, "shape_boxes"))
    ends = [int(x.rstrip(",")) for x in lines_of(folder, "shape_box_ends") if x]
    sizes, kinds = [int(x) for x in "".join(lines_of(folder, "usual_shape_lists")).split(",")], {}
    if sizes != [len(x) for x in LISTS[:len(sizes)]]:
        raise SystemExit("the table's lists are not the first ones of LISTS")
    at = 0
    for line in filter(None, lines_of(folder, "usual_shape_kinds")):
        numbers, *kind = [int(x) for x in re.findall(r"\d+", line)]
        place = sum(1 for n, _ in kinds if n == numbers)
        if tuple(kind) != (*KINDS[place][:3], *lists_of(place, numbers), *ORDERS[place]):
            raise SystemExit(f"numbers {numbers}: kind {place} of the table is another one here")
        count = -(-len(LISTS[lists_of(place, numbers)[ORDERS[place][0]]]) // SLABS)
        kinds[numbers, place] = [text[ends[i]:ends[i + 1]] for i in range(at, at + count)]
        at += count
    if at + 1 != len(ends):
        raise SystemExit("the table has another number of boxes")
    return kinds


def extend(folder, files):
    """Adds the kinds that the table in `folder` does not have; its own boxes and labels stay as they are."""
    leaves, files, boxes = Leaves(), [np.load(file + ".told") for file in files], boxes_in(folder)
    had = len(boxes) // len(NUMBERS)
    labels_text = "".join(line.strip().strip('"') for line in lines_of(folder, "shape_labels"))
    width = len(text_of_label(0))
    labels = {labels_text[i:i + width]: i // width + 2 for i in range(0, len(labels_text), width)}
    table = {(numbers, kind): told_of(files, numbers, kind) for kind in range(had, len(KINDS)) for numbers in sorted(NUMBERS)}
    total = 0
    with tempfile.TemporaryDirectory() as build:
        for (numbers, kind), told in table.items():
            check_whole(leaves, numbers, kind, told)
            if has_one_feature(kind):
                untell_what_has_two_names(told, told_of(files, numbers, -kind), f"numbers {numbers} kind {kind}")
            told = np.where(is_asked(kind, numbers) & ~is_in_other_kind(kind, numbers), in_table(kind, numbers, told), NOT_RECORDED)
            used, place, counts = np.unique(told[told >= 0], return_inverse=True, return_counts=True)
            for i in np.argsort(-counts, kind="stable"):
                labels.setdefault(text_of_label(used[i]), len(labels) + 2)
            number = np.array([labels[text_of_label(x)] for x in used], np.int64)
            codes = boxes_of(cells_of(kind, told, lambda x: number[np.searchsorted(used, x)]), build)
            boxes[numbers, kind] = [in_text(code) for code in codes]
            size = sum(map(len, boxes[numbers, kind]))
            total += size
            print(f"numbers {numbers} kind {kind}: of {told.size} shapes {(told != NOT_RECORDED).sum()} recorded, {(told >= 0).sum()} labels, "
                  f"{(told == UNTOLD).sum()} untold, {size} bytes of text", flush=True)
    print(f"{total} bytes of text, {len(labels)} labels", flush=True)
    write_boxes(folder, [text for numbers in sorted(NUMBERS) for kind in range(len(KINDS)) for text in boxes[numbers, kind]])
    write_lines(folder, "shape_labels", ['"' + "".join(labels) + '"'])
    write_lists(folder)


def sample(golden, files, count=2):
    """Writes calls drawn at random and what their launches tell, as tests/emulator/gemm/usual_shapes_test.cpp reads them."""
    files, r, lines, leaves = [np.load(file + ".told") for file in files], np.random.default_rng(1), [], Leaves()
    for kind in range(len(KINDS)):
        for numbers in sorted(NUMBERS):
            told = told_of(files, numbers, kind)
            if (told == NOT_RECORDED).all():
                continue
            check_whole(leaves, numbers, kind, told)
            asked = np.zeros(len(told), bool)
            asked[in_table(kind, numbers, np.arange(len(told)))[is_asked(kind, numbers) & ~is_in_other_kind(kind, numbers)]] = True
            for here in (told == RIGHT, told >= 0, told == UNTOLD):
                for i in r.permutation(np.flatnonzero(here & asked))[:count]:
                    call = calls_of(numbers, kind, i, i + 1)[0, 1:9]
                    label = fields_of(told[i])[:4] if told[i] >= 0 else [int(told[i])]
                    lines.append(" ".join(str(int(x)) for x in (*call, *label)))
    with open(golden, "w") as file:
        file.write("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    if sys.argv[1] == "read":
        all_leaves = Leaves()
        for name in sys.argv[2:]:
            read(name, all_leaves)
    elif sys.argv[1] == "extend":
        extend(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == "sample":
        sample(sys.argv[2], sys.argv[3:])
    else:
        main(sys.argv[1], sys.argv[2:])
