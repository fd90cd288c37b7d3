"""documents.py [--write] FILE...: runs examples (.py) and the code of pages (.md), and compares what they print.

An example's output stands beside it in a .txt file, that of a page's ```python block in the ```text block that follows it.
Blocks of a page share their names; one that defines a test is not run. `# needs: torch` in the first lines of a file or
block names packages without which it is left out. --write writes the outputs instead.
"""

import argparse
import contextlib
import difflib
import importlib.util
import io
import os
import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDS = re.compile(r"^# needs: (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:(\s*)^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def missing(text):
    """Packages that the text says it needs and that are not installed."""
    found = NEEDS.search(text)
    return [name for name in (found[1].split() if found else []) if importlib.util.find_spec(name) is None]


@contextlib.contextmanager
def in_root():
    """Paths in examples and pages are those of the tree."""
    before = os.getcwd()
    os.chdir(ROOT)
    try:
        yield
    finally:
        os.chdir(before)


def _output(run):
    printed = io.StringIO()
    with in_root(), contextlib.redirect_stdout(printed):
        run()
    return "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines())


def output_of_example(path):
    return _output(lambda: runpy.run_path(str(path), run_name="__main__"))


def run_page(text, name):
    """The page with the outputs that its blocks have."""
    names = {"__name__": "__main__"}
    skipped = False

    def block(found):
        nonlocal skipped
        code, between, expected = found.groups()
        skipped = skipped or bool(missing(code))
        if re.search("^def test_", code, re.MULTILINE) or skipped:
            return found[0]
        line = text.count("\n", 0, found.start(1))
        printed = _output(lambda: exec(compile("\n" * line + code, name, "exec"), names))
        if not printed and expected is None:
            return found[0]
        return f"```python\n{code}```\n{between if between is not None else chr(10)}```text\n{printed}```\n"

    return BLOCK.sub(block, text)


def _without_machine(text):
    """What depends on the machine stands for itself: times and the engine."""
    return re.sub(r"\bengine \w+", "engine", re.sub(r"\b\d+\.\d+ s\b", "0 s", text))


def difference(expected, printed, name):
    expected, printed = _without_machine(expected), _without_machine(printed)
    return "".join(difflib.unified_diff(expected.splitlines(True), printed.splitlines(True), name, "printed now"))


def check(path, write=False):
    """What differs, as text; nothing where all is as it stands."""
    if path.suffix == ".py":
        printed, file = output_of_example(path), path.with_suffix(".txt")
        expected = file.read_text() if file.exists() else ""
    else:
        expected, file = path.read_text(), path
        printed = run_page(expected, str(path))
    if write and printed != expected:
        file.write_text(printed)
        return ""
    return difference(expected, printed, str(file))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="write the outputs instead of comparing them")
    arguments = parser.parse_args()
    differs = False
    for path in arguments.files:
        lacks = missing(path.read_text()) if path.suffix == ".py" else []
        if lacks:
            print(f"SKIPPED: {path} needs {', '.join(lacks)}")
            continue
        found = check(path.resolve(), arguments.write)
        print(found or f"{path}: as it stands")
        differs = differs or bool(found)
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
