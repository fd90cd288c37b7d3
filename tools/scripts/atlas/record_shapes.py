#!/usr/bin/env python3
"""Records which kernels PyTorch's matrix products of usual shapes launch: python3 record_shapes.py FOLDER PROCESS PROCESSES SECONDS [FIRST [KINDS]].

Needs what record_dispatch.py needs, and the repository: of the shapes that shape_lists.py lists those are recorded whose plan the
atlas' trees only guess. The processes take runs of shapes in turn; each writes FOLDER/PROCESS-FIRST.npz and says which run
would be next, to go on with. KINDS: numbers of shape_lists.KINDS, "32,47,-47"; -47: the shapes of 47 by their other name.
"""
import lzma
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from record_dispatch import Capture, Log, launch_block, setup, warm_up
from shape_lists import KINDS, NUMBERS, calls_of, count_of, has_one_feature, has_one_layout, is_too_large

RUN = 60000  # shapes
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
RULE = 998

# Reads rows of FIELDS, writes form, unit, parts, lanes, tile, restart, agree of each.
LEAVES = r'''
#include <cstdint>
#include <cstdio>
#include "emulator/gemm/atlas/leaf.hpp"
using namespace guardbit::emulator::atlas;
int main() {
  std::int32_t row[11];
  while (std::fread(row, sizeof row, 1, stdin) == 1) {
    ProductCall call{static_cast<Operator>(row[1]), static_cast<Numbers>(row[2]), row[5], row[6], row[7], row[8],
                     row[3] != 0, row[4] != 0, row[9], row[10]};
    const Leaf leaf = leaf_of(call);
    const std::int32_t words[7] = {static_cast<int>(leaf.form), static_cast<int>(leaf.unit), static_cast<int>(leaf.parts),
                                   leaf.lanes, leaf.tile, leaf.restart, leaf.agree};
    std::fwrite(words, sizeof words, 1, stdout);
  }
}
'''


class Leaves:
    """What the atlas' trees say of calls, by a program built of their sources."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.program = os.path.join(self.folder.name, "leaves")
        source = self.program + ".cpp"
        with open(source, "w") as file:
            file.write(LEAVES)
        atlas = os.path.join(ROOT, "emulator", "gemm", "atlas")
        subprocess.run(["g++", "-std=c++20", "-O2", "-I", ROOT, source, *(os.path.join(atlas, x) for x in ("leaf.cpp", "packed_trees.cpp", "scope.cpp")),
                        "-o", self.program], check=True)

    def of(self, calls):
        """Columns form, unit, parts, lanes, tile, restart, agree."""
        said = subprocess.run([self.program], input=calls.astype(np.int32).tobytes(), capture_output=True, check=True).stdout
        return np.frombuffer(said, np.int32).reshape(-1, 7)


def runs(kinds=range(len(KINDS))):
    """numbers, kind, begin, end of all runs of shapes."""
    return [(numbers, kind, begin, min(begin + RUN, count_of(kind))) for numbers in NUMBERS for kind in kinds
            for begin in range(0, count_of(kind), RUN)]


def guessed(run, leaves):
    """Which shapes of a run are recorded, as numbers from its begin, their calls, and what the trees say of them: where they guess; of heads of one
    feature one in 16 of the others, too, to judge them by."""
    numbers, kind, begin, end = run
    calls = calls_of(*run)
    said = leaves.of(calls_of(numbers, abs(kind), begin, end))
    is_guess = said[:, 6] < RULE
    if has_one_feature(kind):
        is_guess |= np.arange(begin, end) * 40503 % 65536 < 4096
    else:
        is_guess |= ~has_one_layout(calls)
    at = np.flatnonzero(is_guess & ~is_too_large(calls))
    return at, calls[at], said[at]


def keep_grid(keys):
    """Which names are of kernels whose plan, or whose segments, follow from the grid."""
    return np.array([any(x in key for x in ("gemvx", "dot_kernel", "xmma")) for key in keys], bool)


def packed(x):
    return np.frombuffer(lzma.compress(np.ascontiguousarray(x).tobytes(), preset=1), np.uint8)


def unpacked(x, kind):
    return np.frombuffer(lzma.decompress(x.tobytes()), kind)


def main(folder, process, processes, seconds, first=0, kinds=range(len(KINDS))):
    import torch
    begin, leaves = time.time(), Leaves()
    raw, raw_d = setup(torch)
    log, capture = Log(), Capture(torch)
    import ctypes
    log.lib.log_grid_calls(ctypes.c_uint64(1 << 40))
    mine, count = runs(kinds)[process::processes], 0
    next_run = first
    with torch.cuda.stream(capture.stream):
        warm_up(torch, raw, raw_d)
        while next_run < len(mine) and time.time() - begin < seconds:
            calls = guessed(mine[next_run], leaves)[1]
            for i in range(0, len(calls), 600):
                capture.begin()
                launch_block(torch, log, raw, raw_d, calls[i:i + 600])
                capture.end()
            count += len(calls)
            next_run += 1
    taken = log.take()
    keys = bytes(taken["keys"]).decode().split("\n")
    ids, grids = taken["ids"], taken["grids"]
    # A linear layer of one feature copies its bias first; grids are kept of kernels whose plan follows from them.
    second = np.array(["elementwise" in key.split(";")[0] for key in keys], bool)
    first_grid = np.where(second[ids][:, None], grids[:, 3:], grids[:, :3])
    kept = keep_grid(keys)[ids]
    np.savez(os.path.join(folder, f"{process}-{first}.npz"), process=process, processes=processes, first=first, next=next_run, count=count, kinds=list(kinds),
             ids=packed(ids.astype(np.uint16 if len(keys) < 65536 else np.uint32)), wide=len(keys) >= 65536, kept=packed(first_grid[kept].T.astype(np.uint32)),
             keys=packed(np.frombuffer(bytes(taken["keys"]), np.uint8)), device=torch.cuda.get_device_name(), torch=torch.__version__)
    print(process, count, "calls, next run", next_run, "of", len(mine), flush=True)


def load(file, leaves):
    """Of a file: numbers, kind, shapes' numbers, calls, what the trees say, ids, grids and the table of names."""
    z = np.load(file)
    mine = runs(z["kinds"].tolist())[int(z["process"])::int(z["processes"])][int(z["first"]):int(z["next"])]
    keys = unpacked(z["keys"], np.uint8).tobytes().decode().split("\n")
    ids = unpacked(z["ids"], np.uint32 if z["wide"] else np.uint16).astype(np.int64)
    grids = np.zeros((len(ids), 3), np.int64)
    grids[keep_grid(keys)[ids]] = unpacked(z["kept"], np.uint32).reshape(3, -1).T
    rows, done = [], 0
    for run in mine:
        at, calls, said = guessed(run, leaves)
        part = slice(done, done + len(at))
        rows.append((run, at + run[2], calls, said, ids[part], grids[part]))
        done += len(at)
    if done != len(ids):
        raise SystemExit(f"{file}: {len(ids)} calls recorded, the trees here guess {done}: not the trees that it was recorded with")
    return rows, keys


if __name__ == "__main__":
    main(sys.argv[1], *(int(x) for x in sys.argv[2:4]), float(sys.argv[4]), *(int(x) for x in sys.argv[5:6]),
         *([int(y) for y in x.split(",")] for x in sys.argv[6:7]))
