#!/usr/bin/env python3
"""paths_test.py ROOT: files and folders that comments and documents name are there.

A name ends like a source, a script or a document (`emulator/model/dot.hpp`, or `dot.hpp` alone) or begins with a folder of the
project (`tests/golden/x86`). It is looked for from the root, beside the text that names it, and as the end of any path of the
tree; words in capitals (NAME, eNN) stand for others. Prints each name that is not there and exits 1 if there is one. Then it
makes a small tree with such names and expects each to be noticed.
"""
import pathlib
import re
import sys
import tempfile

PLACES = ("formats", "emulator", "gpu", "experiments", "tools", "tests", "docs")
NOT_READ = ("CHANGELOG.md", "tests/structure/", "tests/golden/", "tests/command_lines/expected/", "tests/fuzz/regressions/", "tests/fuzz/seeds/")
COMMENTED = {".cpp": "//", ".hpp": "//", ".cu": "//", ".cuh": "//", ".inc": "//", ".cmake": "#", ".txt": "#", ".sh": "#"}
WHOLE = (".md", ".py")
BEFORE, AFTER = r"(?<![\w./:<>*$%{}-])", r"(?![\w/*<{$-])"
NAME = re.compile(rf"{BEFORE}(?:\.{{1,2}}/)*[\w.-]+(?:/[\w.-]+)*\.(?:hpp|cpp|cuh?|inc|py|sh|cmake|md)\b{AFTER}"
                  rf"|{BEFORE}(?:{'|'.join(PLACES)})/[\w./-]+\w/?{AFTER}")
LINK = re.compile(r"https?://\S+")
ANY_OTHER = re.compile(r"NAME|NN|FOLDER|TARGET|\bx(_part)?\.[ch]pp")

# Of other projects, what a program makes, and what is planned.
ELSEWHERE = {
    "cuda_fp8.hpp", "cuda_fp6.hpp", "cuda_fp4.hpp", "pickletools.py", "cute/arch/mma_sm100_desc.hpp", "mosaic/gpu/tcgen05.py",
    "cute/atom/mma_traits_sm100_frag.hpp", "calib/histogram.py", "tensor_quant.py", "aten/src/ATen/autocast_mode.cpp",
    "conversion_table.cpp", "kernel_groups.cpp", "instructions.cpp", "own.cu", "unit.py", "unit.sh", "in/unit.py", "my_matmul.py",
    "emulator/functions", "emulator/operators", "examples.md", "reference.md",
}


def files(root):
    tops = [path for path in sorted(root.iterdir()) if path.suffix in (".md", ".txt")]
    found = tops + [path for place in PLACES for path in sorted((root / place).rglob("*"))]
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


def texts(path):
    """The lines of a file that are for readers, with their numbers."""
    mark = COMMENTED.get(path.suffix)
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if mark is None or mark in line:
            yield number, line if mark is None else line[line.index(mark):]


def missing(root):
    there = [path.relative_to(root).as_posix() for path in files(root)]
    ends = set()
    for name in there:
        parts = name.split("/")
        ends |= {"/".join(parts[i:j]) for i in range(len(parts)) for j in ((range(1, len(parts) + 1)) if i == 0 else [len(parts)])}
    for name in there:
        path = root / name
        if (path.suffix not in COMMENTED and path.suffix not in WHOLE) or name.startswith(NOT_READ):
            continue
        for number, line in texts(path):
            for word in NAME.findall(LINK.sub("", line)):
                short = re.sub(r"^\./|/$", "", word)
                if short in ends or short in ELSEWHERE or ANY_OTHER.search(short):
                    continue
                if not (path.parent / word).exists():
                    yield f"{name}:{number}: there is no {word}"


def said_of(name, text):
    """What is missing of a small tree that holds `text` in the file `name`."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, content in (("emulator/model/dot.hpp", ""), ("docs/a.md", ""), (name, text)):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content)
        return list(missing(root))


def self_test():
    for name, text in {
        "emulator/a.hpp": "int x;  // see emulator/dot.hpp", "gpu/b.cu": "// words.hpp has them", "docs/b.md": "[here](c.md)",
        "tools/a.py": '"""reads docs/hardware/"""', "tests/a.sh": "# ./tools/run.sh does it", "README.md": "`emulator/engine/`",
    }.items():
        assert len(said_of(name, text)) == 1, (name, said_of(name, text))
    for name, text in {
        "emulator/a.hpp": '#include "emulator/dot.hpp"\n// dot.hpp, model/dot.hpp; emulator/model/ has it', "docs/b.md": "[here](a.md)",
        "README.md": "tests/NAME_test.cpp, cuda_fp8.hpp, https://a.b/c.hpp, build/*.cpp",
    }.items():
        assert said_of(name, text) == [], (name, said_of(name, text))


def main():
    found = list(missing(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found))
    self_test()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
