#!/usr/bin/env python3
"""Runs the command lines of lines.txt and compares what they print and write with expected/.

README.md says how to add a line and how to review a change.
"""

from __future__ import annotations

import argparse
import difflib
import fnmatch
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional

sys.dont_write_bytecode = True  # a test leaves the source tree as it is

from inputs import write_inputs  # noqa: E402
from lines import BadList, Line, read_lines  # noqa: E402
from masks import MASKS  # noqa: E402
from recording import CUT_TEXT, Workplace, make_programs, record  # noqa: E402

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected"
REPOSITORY = HERE.parent.parent

STATUS_DIFFERS, STATUS_BAD_INPUT, STATUS_SKIPPED = 1, 2, 77


class Report(NamedTuple):
    text: str
    seconds: float


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guardbit", type=Path, metavar="PATH", help="the command to be run")
    parser.add_argument("--update", action="store_true",
                        help="print what differs and store it as expected")  # fmt: skip
    parser.add_argument("--against", type=Path, metavar="PATH",
                        help="compare with this other command, to the last line of every file, "
                             "instead of with what is stored")  # fmt: skip
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN",
                        help="only lines of such names, as in 'cast*'; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the command lines and run none")
    parser.add_argument("--masks", action="store_true", help="print what is not compared, and why")
    parser.add_argument("--jobs", type=int, default=2, metavar="N",
                        help="lines that run at the same time (2)")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS",
                        help="for one line (60)")  # fmt: skip
    parser.add_argument("--keep", type=Path, metavar="DIR",
                        help="run in this new folder and leave it")  # fmt: skip
    parser.add_argument("--times", action="store_true", help="print the slowest lines")
    return parser.parse_args()


def chosen(lines: List[Line], patterns: List[str]) -> List[Line]:
    if not patterns:
        return lines
    return [x for x in lines if any(fnmatch.fnmatchcase(x.name, p) for p in patterns)]


def record_all(
    lines: List[Line], command: Path, scratch: Path, options: argparse.Namespace
) -> Dict[str, Report]:
    """What each line did with the command, by its name. Makes the folder `scratch`."""
    scratch.mkdir(parents=True)
    inputs, programs = scratch / "inputs", scratch / "programs"
    write_inputs(inputs, REPOSITORY)
    make_programs(programs, command)
    work = Workplace(scratch / "lines", inputs, programs, REPOSITORY, options.timeout)
    work.scratch.mkdir()

    def timed(line: Line) -> Report:
        start = time.monotonic()
        text = record(line, work, whole=options.against is not None)
        return Report(text, time.monotonic() - start)

    with ThreadPoolExecutor(max_workers=max(1, options.jobs)) as pool:
        return dict(zip([x.name for x in lines], pool.map(timed, lines)))


# ---- Expected texts ----


def expected_file(name: str) -> Path:
    return EXPECTED / (name + ".txt")


def stored(name: str) -> Optional[str]:
    path = expected_file(name)
    return path.read_bytes().decode("utf-8") if path.exists() else None


def store(name: str, text: str) -> None:
    EXPECTED.mkdir(exist_ok=True)
    expected_file(name).write_bytes(text.encode("utf-8"))


def forgotten_files(lines: List[Line]) -> List[Path]:
    names = {x.name for x in lines}
    return [path for path in sorted(EXPECTED.glob("*")) if path.stem not in names]


def difference(before: str, after: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), old, new, lineterm="")
    return "\n".join(lines) + "\n"


# ---- What is asked for ----


def compare(
    lines: List[Line],
    reports: Dict[str, Report],
    before: Callable[[str], Optional[str]],
    options: argparse.Namespace,
) -> List[str]:
    """Prints how lines differ from what they did before; the names of those that do."""
    differing = []
    for line in lines:
        old, new = before(line.name), reports[line.name].text
        if old == new:
            continue
        differing.append(line.name)
        if old is None:
            print(f"{line.name}: nothing is stored")
        else:
            place = str(options.against or f"expected/{line.name}.txt")
            text = difference(old, new, place, f"{line.name}, now")
            print(text, end="")
            if CUT_TEXT in text:
                print("(only the beginning of a long text is stored: --against an older build "
                      "compares all of it)")  # fmt: skip
        if not options.update:
            against = f" --against {options.against}" if options.against else ""
            print(f"repeat: python3 {Path(__file__)} --guardbit {options.guardbit}{against} "
                  f"--only {line.name}\n")  # fmt: skip
    return differing


def update(differing: List[str], reports: Dict[str, Report], forgotten: List[Path]) -> int:
    for name in differing:
        store(name, reports[name].text)
    for path in forgotten:
        path.unlink()
        print(f"removed {path.name}, which belonged to no line")
    print(f"{len(differing)} of {len(reports)} lines stored anew"
          + (": review what is above, or 'git diff'" if differing else ""))  # fmt: skip
    return 0


def check(
    lines: List[Line], options: argparse.Namespace, command: Path, scratch: Path
) -> int:
    start = time.monotonic()
    reports = record_all(lines, command, scratch / "now", options)
    seconds = time.monotonic() - start
    forgotten: List[Path] = []
    if options.against:
        others = record_all(lines, options.against.resolve(), scratch / "against", options)
        differing = compare(lines, reports, lambda name: others[name].text, options)
    else:
        differing = compare(lines, reports, stored, options)
        forgotten = [] if options.only else forgotten_files(lines)
    if options.times:
        for name in sorted(reports, key=lambda n: -reports[n].seconds)[:20]:
            print(f"{reports[name].seconds:6.2f} s  {name}")
    if options.update:
        return update(differing, reports, forgotten)
    for path in forgotten:
        print(f"expected/{path.name} belongs to no line")
    print(f"{len(lines)} command lines, {len(differing)} differ, {seconds:.1f} s")
    return STATUS_DIFFERS if differing or forgotten else 0


def fail(text: str) -> int:
    print(f"run.py: {text}", file=sys.stderr)
    return STATUS_BAD_INPUT


def main() -> int:
    options = parse_arguments()
    try:
        lines = chosen(read_lines(HERE / "lines.txt"), options.only)
    except BadList as error:
        return fail(str(error))
    if options.masks:
        for mask in MASKS:
            print(f"{mask.reason}\n  {mask.pattern}\n  -> {mask.replacement}")
        return 0
    if options.list:
        for line in lines:
            print(f"{line.name}: " + line.shell.replace("\n", "\n    "))
        return 0
    if not lines:
        return fail("no line of such a name; --list prints them")
    if options.guardbit is None:
        return fail("needs --guardbit PATH")
    if options.update and options.against:
        return fail("--update stores what --guardbit does; not together with --against")
    for path in (options.guardbit, options.against):
        if path is not None and not path.is_file():
            print(f"SKIPPED: there is no command {path}")
            return STATUS_SKIPPED
    if options.keep is not None:
        if options.keep.exists():
            return fail(f"{options.keep} exists already")
        return check(lines, options, options.guardbit.resolve(), options.keep.resolve())
    scratch = Path(tempfile.mkdtemp(prefix="guardbit-lines-"))
    try:
        return check(lines, options, options.guardbit.resolve(), scratch)
    finally:
        shutil.rmtree(str(scratch), ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
