#!/usr/bin/env python3
"""Mutates the command lines of tests/command_lines/lines.txt and of lines.txt here, and the files that they read, and runs them.

A command may end with 0, 1, 2 or 130; it says something at least every ten seconds and then ends on Ctrl-C; what it prints
has no control characters and none of the words that only the authors of a library understand. Anything else is printed
with what repeats it, and kept.

The build's guardbit_command_server runs them (tests/command_lines/command_server.cpp). Commands cannot change what others read:
as root they run as another user, who may write into the folder of the case alone.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from multiprocessing import Process, Queue
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "command_lines"))

from inputs import write_inputs  # noqa: E402
from lines import Line as NamedLine  # noqa: E402
from lines import read_lines  # noqa: E402

GOOD_STATUSES = (0, 1, 2, 130)
SECONDS = 10
NOBODY = 65534
LIBRARY_WORDS = re.compile(
    rb"\[json\.exception|basic_|std::|what\(\):|terminate called|Assertion|toml::|toml\+\+|vector::|map::|iostream error|"
    rb"\bsto[idlu]|_M_|bad_alloc|bad_cast|filesystem error|regex|HDF5-DIAG|\bH5[A-Z]|nlohmann|CLI::|Could not convert|"
    rb"not in range|At Most|At Least|\d required |disallowed flag|INI was|Number less|parsing number|syntax error while|"
    rb"Error while parsing|it is not what is expected here")  # fmt: skip
CONTROLS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
WORDS = ["", "-", "--", "-1", "0", "1", "1e999", "nan", "-inf", "2^16", "2^-9999", "99999999999999999999", "x", "é", "\x1b[31m",
         "a\nb", "%s%n", "*", "[", "in", "in/x.npy", "/dev/null", "/nowhere/x.npy", "nowhere.npy", "in/x.npy:", ":x", "--json", "--help", "=",
         "fp16", "e4m3", "mxfp8_e4m3", "nvfp4", "e20m20", "e0m0", "0:32:4", "32:0", "0:1:0", "sm_90", "mma.sync",
         "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16", "K=1", "K=", "=1", "a" * 5000, "--threads=0", "--seed=-1"]  # fmt: skip
# What a shell would read, and what takes long because it was asked to.
LEFT_OUT = re.compile(r"[|<>;&$`]|--all|[A-Z_]+=[^ ]* guardbit")


class Line(NamedTuple):
    words: List[str]
    files: List[str]
    weight: float


class Case(NamedTuple):
    words: List[str]
    file: Optional[str]
    content: bytes


# ---- What is run ----


def lines_to_mutate() -> List[NamedLine]:
    """All command lines; those of this folder have names with `fuzz-` before them."""
    further = read_lines(HERE / "lines.txt")
    return read_lines(HERE.parent / "command_lines" / "lines.txt") + [NamedLine("fuzz-" + line.name, line.shell) for line in further]


def make_folder(folder: Path, guardbit: Path) -> None:
    """`in` and `repo` as command lines know them, and `made`, with what the steps of each line before the last one write."""
    folder.mkdir(parents=True)
    write_inputs(folder / "in", REPOSITORY)
    golden = folder / "repo" / "tests" / "golden"
    for path in (REPOSITORY / "tests" / "golden").iterdir():
        if path.name in ("atlas", "gemm", "mma.sp", "mma.sync", "nccl", "operators", "traces", "wgmma", "wmma"):
            shutil.copytree(path, golden / path.name)
    (golden / "compiled").mkdir()
    for path in (REPOSITORY / "tests" / "golden" / "compiled").glob("*_006_*"):
        shutil.copy(path, golden / "compiled")
    (folder / "repo" / "docs" / "experiments").mkdir(parents=True)
    shutil.copy(REPOSITORY / "docs" / "experiments" / "results.json", folder / "repo" / "docs" / "experiments")
    environment = {"PATH": f"{guardbit.parent}:/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8", "PYTHON": sys.executable}
    for line in lines_to_mutate():
        if "\n" not in line.shell:
            continue
        place = folder / "made" / line.name
        place.mkdir(parents=True)
        (place / "in").symlink_to("../../in")
        (place / "repo").symlink_to("../../repo")
        subprocess.run(["/bin/sh", "-c", line.shell], cwd=place, env=environment, capture_output=True, stdin=subprocess.DEVNULL)
        (place / "in").unlink()
        (place / "repo").unlink()


def simple_commands(folder: Path) -> List[List[str]]:
    """Every command of the lists that needs no shell, whose words name the files of `folder`."""
    commands = []
    for line in lines_to_mutate():
        made = folder / "made" / line.name
        for part in line.shell.split("\n"):
            if LEFT_OUT.search(part) or not part.startswith("guardbit "):
                continue
            words = shlex.split(part)[1:]
            outputs = {i + 1 for i, word in enumerate(words) if word in ("-o", "--output")}
            commands.append([f"made/{line.name}/{word}" if i not in outputs and word and (made / word).exists() else word
                             for i, word in enumerate(words)])  # fmt: skip
    return commands


def files_of(words: List[str], folder: Path) -> List[str]:
    """The files that a command names, with those that lie in a folder that it names."""
    files = []
    for word in words:
        path = folder / word.split(":")[0] if word.startswith(("in/", "repo/", "made/")) else None
        if path is None or len(word) > 200:
            continue
        if path.is_file():
            files.append(path)
        elif path.is_dir():
            files += [p for p in path.rglob("*") if p.is_file()]
        elif "*" in word:
            files += [p for p in folder.glob(word) if p.is_file()]
    return [str(p.relative_to(folder)) for p in files if p.stat().st_size < 2_000_000]


# ---- Mutations ----


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


def starts_programs(words: List[str], original: List[str]) -> bool:
    """Another program than the one of the list: nobody knows what it would do."""
    given = [words[i + 1] for i, word in enumerate(words[:-1]) if word == "--exec"]
    if any(word.startswith("--exec=") for word in words):
        return True
    return any(word not in original for word in given)


def draw(lines: List[Line], sums: List[float], folder: Path, chance: random.Random) -> Case:
    line = chance.choices(lines, cum_weights=sums)[0]
    if line.files and chance.random() < 0.5:
        file = chance.choice(line.files)
        return Case(line.words, file, mutated_bytes((folder / file).read_bytes(), chance))
    while True:
        words = mutated_words(line.words, chance)
        if words != line.words and not starts_programs(words, line.words):
            return Case(words, None, b"")


# ---- Running ----


class Server:
    """The program that runs commands in `folder`."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.folder, self.places = folder, (folder.parent / "out", folder.parent / "error")
        self.kept = {entry.name for entry in os.scandir(folder)}
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder), "LC_ALL": "C.UTF-8", "PYTHON": sys.executable}
        words = [str(program), *map(str, self.places), str(SECONDS)]
        if os.geteuid() == 0:
            words.append(str(NOBODY))
            folder.chmod(0o777)
            folder.parent.chmod(0o755)
            for place in self.places:
                place.touch()
                place.chmod(0o666)
        self.process = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, words: List[str]) -> Tuple[str, int, float, bytes, bytes]:
        text = b"".join(os.fsencode(word) + b"\0" for word in words)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(struct.pack("<I", len(text)) + text)
        self.process.stdin.flush()
        state, number, seconds = self.process.stdout.readline().split()
        out, error = (place.open("rb").read(1_000_000) for place in self.places)
        return state.decode(), int(number), float(seconds), out, error

    def tidy(self) -> None:
        for entry in os.scandir(self.folder):
            if entry.name in self.kept:
                continue
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)


def fault_of(case: Case, state: str, number: int, out: bytes, error: bytes) -> Optional[str]:
    end = (error or out)[-300:]
    if state in ("silent", "deaf"):
        return f"{state} for {SECONDS} s: {end!r}"
    if state == "signal" or number not in GOOD_STATUSES:
        return f"{state} {number}: {end!r}"
    last = error.rstrip(b"\n").rpartition(b"\n")[2]
    if number == 2 and not last.startswith(b"guardbit: "):
        return f"no line of ours: {end!r}"
    given = b" ".join(os.fsencode(word) for word in case.words) + case.content
    to_output = "-" in case.words or any(word.endswith(("=-", "-o-")) for word in case.words)
    shown = error if to_output else error + out[:100_000]
    for match in LIBRARY_WORDS.finditer(shown):
        if match[0] not in given:
            return f"says {match[0].decode()}: {end!r}"
    if CONTROLS.search(shown):
        return f"a control character: {end!r}"
    return None


class Worker(NamedTuple):
    """What each process of the fuzzer needs."""

    program: Path
    folder: Path
    lines: List[Line]
    seed: int
    keep: Optional[Path]


def work(worker: Worker, numbers: List[int], reports: "Queue[Tuple[Optional[str], str]]") -> None:
    server = Server(worker.program, worker.folder)
    folder, sums = worker.folder, []
    for line in worker.lines:
        sums.append((sums[-1] if sums else 0) + line.weight)
    for number in numbers:
        chance = random.Random(f"{worker.seed} {number}")
        case = draw(worker.lines, sums, folder, chance)
        before = b""
        if case.file is not None:
            before = (folder / case.file).read_bytes()
            (folder / case.file).write_bytes(case.content)
        state, status, _, out, error = server.run(case.words)
        fault = fault_of(case, state, status, out, error)
        if fault is not None:
            changed = ""
            if case.file is not None:
                changed = f" ({case.file} changed)"
                if worker.keep is not None:
                    worker.keep.mkdir(parents=True, exist_ok=True)
                    (worker.keep / f"case{number}.{case.file.replace('/', '+')}").write_bytes(case.content)
            fault = f"case {number}: guardbit {shlex.join(case.words)[:400]}{changed}\n  {fault}"
        if case.file is not None:
            (folder / case.file).write_bytes(before)
        server.tidy()
        last = error.rstrip(b"\n").rpartition(b"\n")[2].decode("utf-8", "backslashreplace") if status == 2 else ""
        reports.put((fault, last))


def lines_of(program: Path, folder: Path) -> List[Line]:
    """The command lines, each the less likely the longer it takes; what takes a second is left out."""
    server = Server(program, folder)
    lines = []
    for words in simple_commands(folder):
        state, status, seconds, _, _ = server.run(words)
        server.tidy()
        if state == "exit" and seconds < 1:
            lines.append(Line(words, files_of(words, folder), 1 / max(seconds, 0.004)))
    return lines


def kind_of(message: str) -> str:
    """The message without what differs from case to case."""
    text = re.sub(r"'[^']*'", "'…'", re.sub(r"\d+", "9", message))
    return re.sub(r"(guardbit: )?[^ :]*(in|made|repo)/[^ :]*", "FILE", text)[:160]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guardbit", type=Path, required=True, metavar="PATH", help="guardbit_command_server lies beside it")
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="cases to run (1000)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first one (0)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where changed files of faulty cases go")
    parser.add_argument("--messages", type=Path, metavar="FILE", help="write each kind of refusal and an example here")
    options = parser.parse_args()
    program = options.guardbit.resolve().parent / "guardbit_command_server"
    if not program.exists():
        parser.error(f"{program} is not there: build the target guardbit_command_server")
    memory = Path("/dev/shm")
    scratch = Path(tempfile.mkdtemp(prefix="guardbit-fuzz-", dir=memory if memory.is_dir() else None))
    start = time.monotonic()
    try:
        first = scratch / "0" / "work"
        make_folder(first, options.guardbit.resolve())
        scratch.chmod(0o755)
        lines = lines_of(program, first)
        reports: "Queue[Tuple[Optional[str], str]]" = Queue()
        for job in range(options.jobs):
            folder = scratch / str(job) / "work"
            if job != 0:
                shutil.copytree(first, folder)
            numbers = list(range(options.first + job, options.first + options.count, options.jobs))
            worker = Worker(program, folder, lines, options.seed, options.keep)
            Process(target=work, args=(worker, numbers, reports), daemon=True).start()
        faults = 0
        messages: Dict[str, str] = {}
        counts: "collections.Counter[str]" = collections.Counter()
        for done in range(1, options.count + 1):
            fault, last = reports.get()
            if fault is not None:
                faults += 1
                print(fault, flush=True)
            if last:
                counts[kind_of(last)] += 1
                messages.setdefault(kind_of(last), last)
            if done % 5000 == 0:
                print(f"{done} cases, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        if options.messages is not None:
            options.messages.write_text("".join(f"{n:6d}  {messages[kind][:400]}\n" for kind, n in counts.most_common()))
        print(f"{options.count} cases of {len(lines)} command lines, seed {options.seed}, {time.monotonic() - start:.0f} s: "
              f"{faults} faults")  # fmt: skip
        return 1 if faults else 0
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
