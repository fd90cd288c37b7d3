#!/usr/bin/env python3
"""Asks ptxas which mma, mma.sp and wmma.mma names it accepts for a target, over a grid far wider than the documented one, and
compares them with the instructions of the wrappers.

A name that is accepted need not be an instruction: ptxas 13.0 takes wmma.mma of f64 in the shapes of other types, and for sm_80
to sm_89 that of s4, and assembles them to nothing; there are no loads for them. They are left out.

usage: probe.py TARGET
"""
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

import mma
import wmma
from instructions import BITS, FP8, INT4, INT8, NARROW, Architecture

FLOATS = [(x, x) for x in ("f64", "f32", "tf32", "f16", "bf16")] + [("f16", "bf16"), ("bf16", "f16")]
PAIRS = FLOATS + list(itertools.product(NARROW, NARROW)) + list(itertools.product(INT8 + INT4, INT8 + INT4)) + [("b1", "b1")]
SUMS = [("f64", "f64"), ("f32", "f32"), ("f16", "f16"), ("f32", "f16"), ("f16", "f32"), ("s32", "s32"), ("bf16", "bf16")]
SHAPES = [(8, 8, k) for k in (4, 8, 16, 32, 64, 128)] + [(16, 8, k) for k in (4, 8, 16, 32, 64, 96, 128, 256)]
TILES = [(16, 16, 16), (32, 8, 16), (8, 32, 16), (16, 16, 8), (8, 8, 4), (8, 8, 32), (8, 8, 128), (16, 16, 32)]
LAYOUTS = ("row.col", "row.row", "col.row", "col.col")
KINDS = [f".kind::{kind}.block_scale.scale_vec::{n}X" for kind in ("mxf8f6f4", "mxf4", "mxf4nvf4") for n in (1, 2, 4)]


def registers(element, count, first):
    prefix = "%d" if element == "f64" else "%r"
    return "{" + ", ".join(f"{prefix}{first + i}" for i in range(max(1, count))) + "}"


def statement(name, counts, extra=""):
    """counts: (element, registers) of d, a, b, c."""
    return f"{name} " + ", ".join(registers(x, n, 20 * i) for i, (x, n) in enumerate(counts)) + extra + ";"


def mma_statements():
    for order, (m, n, k), (a, b), (d, c) in itertools.product(("mma", "mma.sp", mma.ORDERED), SHAPES, PAIRS, SUMS):
        kinds = [""] + ([".kind::f8f6f4"] if a in NARROW else []) + (KINDS if a in NARROW and (m, d, c) == (16, "f32", "f32") else [])
        if (a in INT8 + INT4 + ["b1"]) != (d == "s32") or (a == "f64") != (d == "f64"):
            continue
        tails = (".xor.popc", ".and.popc") if a == "b1" else ("",)
        middles = ("", ".satfinite", ".rn", ".rz", ".rm", ".rp")
        stored = k // 2 if order != "mma" else k
        lanes = 8 if (m, n, k, a) == (8, 8, 4, "f16") else 32
        for kind, tail, middle, layout, stype in itertools.product(kinds, tails, middles, LAYOUTS, ("ue8m0", "ue4m3")):
            scaled = "block_scale" in kind
            if (layout != "row.col" and (middle or kind)) or (middle and kind) or (stype == "ue4m3" and not scaled):
                continue
            bits = lambda x: 8 if x in NARROW and "mxf4" not in kind else BITS[x]
            words = lambda x, count: count * bits(x) // lanes // (64 if x == "f64" else 32)
            name = f"{order}.sync.aligned.m{m}n{n}k{k}.{layout}{middle}{kind}.{d}.{a}.{b}.{c}{tail}{'.' + stype if scaled else ''}"
            counts = [(d, words(d, m * n)), (a, words(a, m * stored)), (b, words(b, n * k)), (c, words(c, m * n))]
            if max(count for _, count in counts) <= 20:
                yield name, statement(name, counts, (", %r90, 0" if order != "mma" else "") +
                                      (", %r91, {0, 0}, %r92, {0, 0}" if scaled else ""))


def wmma_statements():
    operand = lambda x, count: 8 if x == "f16" else count * BITS[x] // 32 // (64 if x == "f64" else 32)
    for (m, n, k), (a, b), (d, c), layout in itertools.product(TILES, PAIRS, SUMS, LAYOUTS):
        for op, middle, tail in itertools.product(("", ".xor.popc", ".and.popc"), ("", ".rn", ".rz", ".rm", ".rp"), ("", ".satfinite")):
            if a == b and bool(op) == (a == "b1") and a not in NARROW and (a[0] in "su" or a == "b1") == (d == "s32"):
                types = f"{d}.{c}" if a == "f16" else f"{d}.{a}.{b}.{c}"
                name = f"wmma.mma{op}.sync.aligned.{layout}.m{m}n{n}k{k}{middle}.{types}{tail}"
                sums = lambda x: m * n * BITS[x] // 32 // (64 if x == "f64" else 32)
                yield name, statement(name, [(d, sums(d)), (a, operand(a, m * k)), (b, operand(b, n * k)), (c, sums(c))])


def accepted(target, statements):
    """Names whose statements assemble: ptxas names the lines of the others, which are left out until it is content."""
    head = f".version 9.0\n.target sm_{target}\n.address_size 64\n.entry probe() {{\n.reg .b32 %r<100>;\n.reg .b64 %d<100>;\n"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "probe.ptx")
        while True:
            path.write_text(head + "\n".join(text for _, text in statements) + "\nret;\n}\n")
            run = subprocess.run(["ptxas", f"-arch=sm_{target}", "-O0", path, "-o", "/dev/null"], capture_output=True, text=True)
            bad = {int(line) - head.count("\n") - 1 for line in re.findall(r"line (\d+); error", run.stderr)}
            if not bad:
                if run.returncode != 0:
                    sys.exit(run.stderr)
                return {name for name, _ in statements}
            statements = [x for i, x in enumerate(statements) if i not in bad]


def assembled_to_nothing(name):
    own_shape = "m8n8k4." if ".f64" in name else "m8n8k32." if re.search(r"\.[su]4", name) else ""
    return name.startswith("wmma") and own_shape not in name


def main():
    target = sys.argv[1]
    architecture = Architecture(target)
    found = accepted(target, list(mma_statements()) + list(wmma_statements()))
    makers = (mma.instructions, mma.sparse_instructions, mma.kind_instructions, wmma.instructions)
    known = {instruction.name for make in makers for instruction in make(architecture)}
    for name in sorted(known - found):
        print("refused, but in the table:", name)
    for name in sorted(x for x in found - known if x.replace(".rn.", ".") not in known):  # .rn is FP64's default
        if not assembled_to_nothing(name):
            print("accepted, but not in the table:", name)


main()
