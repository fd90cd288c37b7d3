#!/usr/bin/env python3
"""Prints what docs/EXPERIMENTS.md needs of the experiments' results, one finding a line.

usage: guardbit experiment run --all --json | fold_experiments.py >docs/experiments/results.json

Left out are the figures, the tables that repeat the findings by key, and the verdicts of single findings, which follow from
their numbers; numbers without a reference keep seven digits.
"""
import json
import sys

KEPT = ("name", "slug", "verdict", "seconds", "notes", "findings")


def finding(f):
    f = {key: value for key, value in f.items() if key != "verdict"}
    if "reference" in f or not isinstance(f["measured"], float):
        return f
    return {**f, "measured": float(f"{f['measured']:.7g}")}


def main():
    try:
        experiments = json.load(sys.stdin)["experiments"]
        kept = [{key: e[key] for key in KEPT} for e in experiments]
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"fold_experiments.py: {error!r}: not what 'guardbit experiment run --all --json' prints")
    for e in kept:
        e["findings"] = [finding(f) for f in e["findings"]]
    text = json.dumps({"experiments": kept}, ensure_ascii=False, separators=(",", ":"))
    print(text.replace('{"name":', '\n{"name":').replace('{"key":', '\n{"key":'))


if __name__ == "__main__":
    main()
