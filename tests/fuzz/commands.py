#!/usr/bin/env python3
"""Mutates the command lines of tests/command_lines/lines.txt and the files that they read, and runs them.

A command may end with 0, 1, 2 or 130, within ten seconds, and what it prints has none of the words that only the authors of
a library understand. Anything else is printed with what repeats it, and kept.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import List, NamedTuple, Optional

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "command_lines"))

from inputs import write_inputs  # noqa: E402
from lines import read_lines  # noqa: E402

GOOD_STATUSES = (0, 1, 2, 130)
SECONDS = 10
LIBRARY_WORDS = (b"[json.exception", b"basic_", b"std::", b"what():", b"terminate called",
                 b"Assertion", b"toml::", b"vector::", b"iostream error")  # fmt: skip
WORDS = ["", "-", "--", "-1", "0", "1", "1e999", "nan", "-inf", "2^16", "2^-9999", "99999999999999999999", "x", "é", "\x1b[31m",
         "a\nb", "%s%n", "*", "[", "in", "in/x.npy", "/dev/null", "/nowhere/x.npy", "nowhere.npy", "in/x.npy:", ":x", "--json", "--help", "=",
         "fp16", "e4m3", "mxfp8_e4m3", "nvfp4", "e20m20", "e0m0", "0:32:4", "32:0", "0:1:0", "sm_90", "mma.sync",
         "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16", "K=1", "K=", "=1", "a" * 5000, "--threads=0", "--seed=-1"]  # fmt: skip
# What takes long because it was asked to, or does nothing but other programs.
LEFT_OUT = re.compile(r"[|<>;&$`]|--exec|\bgpu\b|\btrain\b.*-o|--all")


class Case(NamedTuple):
    words: List[str]
    file: Optional[str]
    content: bytes


def simple_lines() -> List[List[str]]:
    lines = []
    for line in read_lines(HERE.parent / "command_lines" / "lines.txt"):
        if LEFT_OUT.search(line.shell) or not line.shell.startswith("guardbit "):
            continue
        lines.append(shlex.split(line.shell.replace("\n", " "))[1:])
    return lines


def mutated_words(words: List[str], chance: random.Random) -> List[str]:
    words = list(words)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(len(words) + 1)
        kind = chance.randrange(7)
        if kind == 0 or not words:
            words.insert(at, chance.choice(WORDS))
        elif kind == 1:
            del words[at % len(words)]
        elif kind == 2:
            words[at % len(words)] = chance.choice(WORDS)
        elif kind == 3:
            words.insert(at, chance.choice(words))
        elif kind == 4:
            words[at % len(words)] += chance.choice(WORDS)
        else:
            word = list(words[at % len(words)])
            for _ in range(chance.choice((1, 1, 2))):
                place = chance.randrange(len(word) + 1)
                letter = chr(chance.choice((chance.randrange(1, 128), chance.randrange(48, 58))))
                word[place : place + chance.randrange(2)] = letter
            words[at % len(words)] = "".join(word)
    return [word.replace("\0", "") for word in words]


def mutated_bytes(data: bytes, chance: random.Random) -> bytes:
    text = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        kind, at = chance.randrange(6), chance.randrange(len(text) + 1)
        if kind == 0:
            del text[at:]
        elif kind == 1:
            del text[at : at + chance.randrange(1, 9)]
        elif kind == 2:
            text[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
        elif kind == 3 and text:
            text[at % len(text)] ^= 1 << chance.randrange(8)
        elif kind == 4 and text:
            # Most of what decides stands at the beginning.
            text[chance.randrange(min(len(text), 300))] = chance.choice((0, 255, 45, 57, 34, 123, 93, 10))
        else:
            text[at : at + 8] = chance.choice((b"\xff" * 8, b"\0" * 8, b"99999999", b"-1", b"NaN", b"1e999", b"null", b"[[[[[[[["))  # fmt: skip
    return bytes(text)


def draw(lines: List[List[str]], inputs: Path, chance: random.Random) -> Case:
    words = chance.choice(lines)
    files = [w for w in words if (w.startswith("in/") and (inputs / w[3:]).is_file())]
    if files and chance.random() < 0.5:
        file = chance.choice(files)
        data = (inputs / file[3:]).read_bytes()
        if len(data) < 2_000_000:
            return Case(words, file, mutated_bytes(data, chance))
    return Case(mutated_words(words, chance), None, b"")


def limits() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))


def fault_of(case: Case, command: Path, inputs: Path, folder: Path) -> Optional[str]:
    """What the command did wrong in this folder, which it may fill."""
    (folder / "in").mkdir(parents=True)
    for source in inputs.iterdir():
        (folder / "in" / source.name).symlink_to(source)
    (folder / "repo").symlink_to(REPOSITORY)
    if case.file is not None:
        (folder / case.file).unlink()
        (folder / case.file).write_bytes(case.content)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder), "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run([str(command)] + case.words, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=SECONDS, preexec_fn=limits)  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"longer than {SECONDS} s"
    except (ValueError, OSError) as error:  # words that no command line can hold
        return None if "Argument list" in str(error) or "null" in str(error) else str(error)
    if done.returncode not in GOOD_STATUSES:
        return f"status {done.returncode}: {done.stderr[-300:]!r}"
    if done.returncode == 2 and done.stderr.strip().count(b"\n") > 1 and b"guardbit:" not in done.stderr:
        return f"no line of ours: {done.stderr[-300:]!r}"
    given = b" ".join(os.fsencode(word) for word in case.words) + case.content
    for word in LIBRARY_WORDS:
        if word in done.stderr + done.stdout[:100_000] and word not in given:
            return f"says {word.decode()}: {(done.stderr or done.stdout)[-300:]!r}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guardbit", type=Path, required=True, metavar="PATH")
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="cases to run (1000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where folders of faulty cases go")
    options = parser.parse_args()
    command = options.guardbit.resolve()
    lines = simple_lines()
    scratch = Path(tempfile.mkdtemp(prefix="guardbit-fuzz-"))
    inputs = scratch / "inputs"
    write_inputs(inputs, REPOSITORY)

    def one(number: int) -> Optional[str]:
        chance = random.Random(f"{options.seed} {number}")
        case = draw(lines, inputs, chance)
        folder = scratch / f"case{number}"
        fault = fault_of(case, command, inputs, folder)
        if fault is not None and options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            shutil.copytree(folder, options.keep / folder.name, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        if fault is None:
            return None
        changed = f" ({case.file} changed)" if case.file else ""
        return f"case {number}: guardbit {shlex.join(case.words)[:400]}{changed}\n  {fault}"

    try:
        faults = 0
        with ThreadPoolExecutor(max_workers=options.jobs) as pool:
            for report in pool.map(one, range(options.count)):
                if report is not None:
                    faults += 1
                    print(report, flush=True)
        print(f"{options.count} cases of {len(lines)} command lines, seed {options.seed}: {faults} faults")
        return 1 if faults else 0
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
