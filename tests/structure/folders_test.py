#!/usr/bin/env python3
"""folders_test.py ROOT: the tree keeps the rules of folders.py, and each of them is noticed when a small tree breaks it."""

import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # a test leaves the source tree as it is
import folders  # noqa: E402

LISTS = "CMakeLists.txt"

# A tree that keeps every rule.
SOUND = {
    "formats/value.hpp": "",
    "formats/files/npy.hpp": '#include "formats/value.hpp"',
    "formats/files/npy.cpp": '#include "formats/files/npy.hpp"',
    "formats/files/npy_header.cpp": "",
    "tools/commands/command_cast.cpp": '#include "formats/files/npy.hpp"',
    "tools/commands/main.cpp": "",
    "experiments/suite/e01_loss.cpp": "",
    "tests/formats/npy_test.cpp": "",
    "tests/tools/npy.cpp": "",
    "formats/" + LISTS: "add_library(formats files/npy.cpp files/npy_header.cpp)",
    "tools/" + LISTS: "add_executable(tool commands/command_cast.cpp commands/main.cpp)",
    "experiments/" + LISTS: "add_library(experiments suite/e01_loss.cpp)",
    "tests/" + LISTS: "file(GLOB golden CONFIGURE_DEPENDS golden/*.safetensors)\nadd_executable(t formats/npy_test.cpp tools/npy.cpp)",
}

# What is added to it or put in the place of a file, and the beginning of what must be said.
BREACHES = {
    "a file of a folder includes one of a folder above it": (
        {"formats/files/npy.hpp": '#include "formats/conversion/convert.hpp"',
         "formats/conversion/convert.hpp": '#include "formats/files/npy.hpp"'},
        "formats: circle conversion -> files -> conversion: "),
    "a file and a folder beside it include each other": (
        {"formats/value.hpp": '#include "formats/files/npy.hpp"'},
        "formats: circle files -> value -> files: "),
    "files of a folder without sub-folders include each other": (
        {"formats/files/npz.hpp": '#include "formats/files/npy.hpp"',
         "formats/files/npy.cpp": '#include "formats/files/npz.hpp"'},
        "formats/files: circle npy -> npz -> npy: "),
    "a lower library includes a higher one": (
        {"formats/value.hpp": '#include "tools/console/terminal.hpp"',
         "tools/console/terminal.hpp": '#  include "formats/value.hpp"'},
        ".: circle formats -> tools -> formats: "),
    "a name stands for two things": (
        {"gpu/value.cuh": ""},
        "gpu/value.cuh: the name 'value' stands for formats/value.hpp as well"),
    "a source without a header": (
        {"formats/files/zip.cpp": "", "formats/" + LISTS: "files/npy.cpp files/npy_header.cpp files/zip.cpp"},
        "formats/files/zip.cpp: no header of its name"),
    "a source named for a header of another folder": (
        {"formats/value_of.cpp": "", "formats/value.hpp": None, "emulator/value.hpp": "",
         "formats/files/npy.hpp": "", "formats/" + LISTS: "files/npy.cpp files/npy_header.cpp value_of.cpp"},
        "formats/value_of.cpp: no header of its name"),
    "an experiment in another folder": (
        {"experiments/e02_scale.cpp": "", "experiments/" + LISTS: "suite/e01_loss.cpp e02_scale.cpp"},
        "experiments/e02_scale.cpp: no header of its name"),
    "too many entries": (
        {f"gpu/entry{i}.hpp": "" for i in range(15)},
        "gpu: 15 entries, more than 14"),
    "too many files": (
        {f"gpu/questions/question{i}.hpp": "" for i in range(26)},
        "gpu/questions: 26 files by stem, more than 25"),
    "a source that nothing lists": (
        {"tools/commands/command_show.cpp": ""},
        "tools/commands/command_show.cpp: is in no CMakeLists.txt"),
    "a source that only a comment lists": (
        {"tools/" + LISTS: "commands/command_cast.cpp # commands/main.cpp"},
        "tools/commands/main.cpp: is in no CMakeLists.txt"),
    "a test that nothing lists": (
        {"tests/formats/zip_test.cpp": ""},
        "tests/formats/zip_test.cpp: is in no CMakeLists.txt"),
    "a search for sources": (
        {"gpu/" + LISTS: "file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp *.safetensors)"},
        "gpu/CMakeLists.txt: searches folders for sources: file(GLOB_RECURSE"),
    "a folder that the map leaves out": (
        {"CONTRIBUTING.md": "\n## The map\n| `formats/files/` | |\n| `tools/commands/` | |\n## More"},
        "CONTRIBUTING.md: its map leaves out experiments/suite/"),
    "a map against the order of inclusion": (
        {"CONTRIBUTING.md": "\n## The map\n| `formats/files/` | |\n| `formats/text/`, `tools/commands/` | |\n| `experiments/suite/` | |\n## More",
         "formats/text/words.hpp": "", "formats/files/npy.hpp": '#include "formats/text/words.hpp"'},
        "CONTRIBUTING.md: its map has formats/text/ behind formats/files/, which includes it"),
    "a link to nothing": (
        {"docs/PAGE.md": "[there](../formats/value.hpp#part), [out](https://example.org/x.md), [not there](OTHER.md)"},
        "docs/PAGE.md: links to OTHER.md, which is not there"),
    "a file that a page names is gone": (
        {"README.md": "`formats/value.hpp`, `formats/code.hpp` and `formats/NAME.hpp`"},
        "README.md: names `formats/code.hpp`, which is not there"),
    "a folder of sources": (
        {"gpu/parts.cmake": "aux_source_directory(. sources)"},
        "gpu/parts.cmake: searches folders for sources: aux_source_directory("),
}

# Exceptions that nothing needs, by the name of their table.
UNNEEDED = {
    "WITHOUT_HEADER": "formats/files/npy.cpp",
    "SHARED_NAMES": "value",
}


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text + "\n")


def said_of(changes):
    """What is said of the sound tree with these changes."""
    with tempfile.TemporaryDirectory() as scratch:
        write(Path(scratch), SOUND)
        write(Path(scratch), changes)
        return folders.breaches(folders.Tree(Path(scratch)))


def failures(root):
    for breach in folders.breaches(folders.Tree(root)):
        yield breach
    tables = (folders.WITHOUT_HEADER, folders.SHARED_NAMES)
    for table in tables:
        table.clear()  # what they name is not in the small trees
    for breach in said_of({}):
        yield f"the sound tree is refused: {breach}"
    for title, (changes, expected) in BREACHES.items():
        said = said_of(changes)
        if len(said) != 1 or not said[0].startswith(expected):
            yield f"{title}: expected one line that begins with '{expected}', got {said}"
    for name, key in UNNEEDED.items():
        table = getattr(folders, name)
        table[key] = "a reason"
        said = said_of({})
        table.clear()
        if len(said) != 1 or f"take it out of {name}" not in said[0]:
            yield f"an exception of {name} that nothing needs: got {said}"


def main():
    found = list(failures(Path(sys.argv[1])))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
