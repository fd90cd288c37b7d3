#!/usr/bin/env python3
"""Asks ptxas which forms of PTX cvt it accepts, and writes conversions.txt beside this script; --check only compares,
and --check sm_90a only what that architecture takes, which is four times as quick.

Every combination of the modifiers is tried for every pair of types, in the order of the PTX ISA's grammar. The names that
sm_90a takes come first, each with the architecture that it needs where sm_80 lacks it, then those that only sm_100a takes.
"""
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

LIST = pathlib.Path(__file__).with_name("conversions.txt")
TARGETS = ("sm_80", "sm_89", "sm_90a", "sm_100a")
INTEGERS = ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]
SCALARS = ["f16", "bf16", "f32", "f64", "tf32"] + INTEGERS
PAIRS = ["f16x2", "bf16x2", "e4m3x2", "e5m2x2", "e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2"]
QUADS = ["e4m3x4", "e5m2x4", "e2m1x4", "e2m3x4", "e3m2x4"]
# "h": 16 bits, "r": 32 bits, "l": 64 bits; registers of 8-bit integers are wider than the type.
REGISTER = dict({s: "h" for s in "f16 bf16 s8 u8 s16 u16 e4m3x2 e5m2x2 e2m3x2 e3m2x2 ue8m0x2 e2m1x4".split()},
                **{s: "r" for s in "f32 tf32 s32 u32 f16x2 bf16x2 e4m3x4 e5m2x4 e2m3x4 e3m2x4".split()},
                f64="l", s64="l", u64="l", e2m1x2="b")
REGISTERS = ".reg .b8 %b<6>; .reg .b16 %h<6>; .reg .b32 %r<6>; .reg .b64 %l<6>;"


def name_of(modifiers, destination, source):
    return ".".join(["cvt"] + [m for m in modifiers if m] + [destination, source])


def candidates():
    """(name, operands) of everything that might exist."""
    integral, floating = ["rni", "rzi", "rmi", "rpi"], ["rn", "rna", "rz", "rm", "rp"]
    for destination, source in itertools.product(SCALARS, SCALARS):
        operands = f"%{REGISTER[destination]}1, %{REGISTER[source]}2"
        for modifiers in itertools.product([""] + integral + floating, ["", "ftz"], ["", "sat"]):
            yield name_of(modifiers, destination, source), operands
        finite = itertools.product([""] + floating, *(["satfinite"], ["", "relu"]) if destination == "tf32" else
                                   (["", "relu"], ["satfinite"]))
        for modifiers in itertools.chain(finite, itertools.product([""] + floating, ["relu"])):
            yield name_of(modifiers, destination, source), operands
    for destination, source in itertools.product(PAIRS, ["f32"] + PAIRS):
        operands = f"%{REGISTER[destination]}1, %{REGISTER[source]}2" + (", %r3" if source == "f32" else "")
        order = (["", "relu"], ["", "satfinite"]) if destination in ("f16x2", "bf16x2") else (["", "satfinite"], ["", "relu"])
        for modifiers in itertools.product([""] + floating, ["", "ftz"], *order):
            yield name_of(modifiers, destination, source), operands
    for modifiers in itertools.product(["rs"], ["", "relu"], ["", "satfinite"]):
        for destination in ("f16x2", "bf16x2"):
            yield name_of(modifiers, destination, "f32"), "%r1, %r2, %r3, %r4"
        for destination in QUADS:
            yield name_of(modifiers, destination, "f32"), f"%{REGISTER[destination]}1, {{%r2, %r3, %r4, %r5}}, %r3"


def refused_lines(ptxas, target, lines):
    head = f".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k() {{ {REGISTERS}\n"
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "candidates.ptx")
        file.write_text(head + "\n".join(lines) + "\nret; }\n")
        run = subprocess.run([ptxas, f"-arch={target}", str(file), "-o", "/dev/null"], capture_output=True, text=True)
    said = run.stdout + run.stderr
    refused = {int(number) - head.count("\n") - 1 for number in re.findall(r"line (\d+); error", said)}
    if run.returncode != 0 and not refused:
        sys.exit(f"{ptxas}: {said}")
    return refused


def accepted(ptxas, target):
    names = []
    every = list(dict.fromkeys(candidates()))
    for begin in range(0, len(every), 500):
        part = every[begin:begin + 500]
        # Complaints of one stage of ptxas can hide those of the next.
        while refused := refused_lines(ptxas, target, [f"{name} {operands};" for name, operands in part]):
            part = [candidate for i, candidate in enumerate(part) if i not in refused]
        names += [name for name, _ in part]
    return names


def find_ptxas():
    for path in ("ptxas", "/usr/local/cuda/bin/ptxas"):
        try:
            said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        except OSError:
            continue
        return path, re.search(r"release ([\d.]+)", said)[1]
    return None, None


def check(is_right):
    print("the list is complete" if is_right else f"{LIST.name} is not what ptxas accepts")
    return 0 if is_right else 1


def main():
    ptxas, release = find_ptxas()
    if ptxas is None or (sys.argv[1:2] == ["--check"] and release != "13.0"):
        print(f"SKIPPED: the list is that of ptxas 13.0; here is {release or 'none'}")
        return 0
    if sys.argv[1:] == ["--check", "sm_90a"]:
        first_part = LIST.read_text().split("# sm_100a only")[0].splitlines()[2:]
        return check(accepted(ptxas, "sm_90a") == [line.split()[0] for line in first_part])
    ampere, ada, hopper, blackwell = (accepted(ptxas, target) for target in TARGETS)
    text = f"# Forms of PTX cvt that ptxas {release} accepts, written by list_conversions.py.\n# sm_90a\n"
    text += "\n".join(n if n in ampere else f"{n} sm_89" if n in ada else f"{n} sm_90a" for n in hopper) + "\n# sm_100a only\n" + "\n".join(n for n in blackwell if n not in hopper) + "\n"
    if sys.argv[1:] == ["--check"]:
        return check(LIST.read_text() == text)
    LIST.write_text(text)
    return 0


sys.exit(main())
