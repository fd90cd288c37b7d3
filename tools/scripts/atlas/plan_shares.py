#!/usr/bin/env python3
"""plan_shares.py FILE...: of the calls of recorded sweeps, the share of each class of plans, as a table of docs/ATLAS.md.

FILEs are what record_dispatch.py wrote. The last twentieth of each is counted, as in the judgement of the atlas' trees.
"""
import sys

import numpy as np
from fit_atlas import DTYPES, PARTS, sweep_of
from launch_kinds import CHAIN, CUT_FORMS, DOT, K8, LANES, UNKNOWN


def classes_of_plans(columns):
    """Columns: part of the sweep, and whether the call is one ascending chain, a chain with its incomplete tile first, shared by
    lanes, cut, unknown."""
    calls, form, parts, tile, unit = columns[:5]
    k, place_of_lanes = calls[:, 7], parts % 16
    is_lanes = np.isin(form, LANES)
    # A tile that is incomplete changes bits only where an instruction is.
    instruction = np.where((calls[:, 2] == DTYPES.index("tf32")) | (unit == K8), 8, 16)
    is_whole = (tile == 0) | (k % instruction == 0) | (k <= tile)
    chain = (form == CHAIN) & is_whole | is_lanes & (place_of_lanes == 0)
    return calls[:, 0], {
        "one ascending chain": chain,
        "a chain, incomplete tile first": (form == CHAIN) & ~is_whole,
        "lanes": is_lanes & ~chain,
        "cut": np.isin(form, CUT_FORMS) | (form == DOT),
        "unknown": form == UNKNOWN,
    }


def main(files):
    if not files:
        sys.exit(__doc__)
    print("| numbers | part | calls |", " | ".join(classes_of_plans([np.zeros((0, 11), np.int64), *[np.zeros(0, np.int64)] * 4])[1]), "|")
    print("|---" * 8 + "|")
    for numbers, name in enumerate(DTYPES):
        sweeps = [[x[len(x) * 19 // 20:] for x in sweep_of(file, numbers)] for file in files]
        part_of, classes = classes_of_plans([np.concatenate(x) for x in zip(*sweeps)])
        for part, part_name in enumerate(PARTS):
            at = part_of == part
            if at.any():
                shares = " | ".join(f"{100 * is_one[at].mean():.1f} %" for is_one in classes.values())
                print(f"| {name} | {part_name} | {at.sum():,} | {shares} |")


if __name__ == "__main__":
    main(sys.argv[1:])
