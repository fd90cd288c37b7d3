#!/usr/bin/env python3
"""Checks how the tree is laid out, or draws it.

folders.py ROOT           prints every breach of the rules below; exits with 1 if there is one
folders.py ROOT --show    prints the floors of every folder: each entry includes only entries of floors below its own

An entry of a folder is one of its sub-folders, or one of its own files by stem: x.hpp and x.cpp are one entry, x. Rules:

  circle     in no folder do entries include each other in a circle
  name       outside tests/, no file name without its ending stands for two things
  header     a source has a header of its name beside it, or is named for the header that it implements (x_*.cpp of
             x.hpp), or is a main program, a command, an experiment or a test
  entries    formats, emulator, gpu, experiments and tools have at most 14 entries, other folders at most 25 files by
             stem, where x_*.cpp belongs to x.hpp; collections of like things are excepted
  listed     every source is named in a CMakeLists.txt or a .cmake file
  glob       no CMake file searches folders for sources
  map        the table in CONTRIBUTING.md names every folder of those five, in an order in which none includes a later one
  link       a page (.md) links to files, and names files of code, that are there

An exception names its reason. One that is no longer needed is a breach as well.
"""

import argparse
import os
import re
import sys
from pathlib import Path, PurePosixPath

TOP = ("formats", "emulator", "gpu", "experiments", "tools")
HEADERS = (".hpp", ".cuh", ".inc")
SOURCES = (".cpp", ".cu")
MOST_ENTRIES, MOST_FILES = 14, 25

# Sources that have no header of their name, though they are no main program, command, experiment or test.
WITHOUT_HEADER = {
    "gpu/cuda/injection/kernel_groups.cpp": "stands for a file that is generated",
    "tools/gpu/without_cuda.cpp": "is command_gpu.cpp where there is no CUDA",
    "tools/benchmarks/benchmark_main.cpp": "is a main program",
    "tools/python/module.cpp": "is where the Python module begins",
    "tools/python/no_driver.cpp": "is a library of its own",
    "tools/benchmarks/peers/cpfloat.cpp": "is the part of peers.hpp that needs CPFloat",
    "tools/benchmarks/peers/ml_dtypes.cpp": "is the part of peers.hpp that needs ml_dtypes",
}

# Names that stand for several things.
SHARED_NAMES = {
    "mma": "the modules of gpu/wrappers are named for the units that they wrap",
    "probe": "a module of gpu/wrappers as well: the kernels that `guardbit gpu probe-questions` asks",
    "recipes": "guardbit.recipes, as Python calls what `recipe` does",
}

# Folders of many like things, each of which is found by its name.
COLLECTIONS = {
    "emulator/catalogue/arch": "one page a machine",
    "experiments/suite": "one file an experiment",
    "tools/commands": "one file a command",
    "tests/tools": "one file a command",
    "tests/fuzz": "one file a parser",
    "tests/mutation": "one folder of one program",
}

MAIN = re.compile(r"^main\.cpp$")
NAMED_FOR_ITS_ROLE = (
    (re.compile(r"^tools/commands/command_\w+\.cpp$"), "a command"),
    (re.compile(r"^tools/gpu/(questions/)?(command|gpu)_\w+\.cpp$"), "a command"),
    (re.compile(r"^experiments/suite/e\d\d_\w+\.cpp$"), "an experiment"),
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
LISTED = re.compile(r"[\w./-]+\.(?:cpp|cu)\b")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE_PATH = re.compile(r"`((?:%s)/[\w./-]+\.(?:hpp|cpp|cu|py|sh|md|json|txt|toml|safetensors))`" % "|".join(TOP + ("tests", "docs")))
MAPPED = re.compile(r"`((?:%s)/\w+)/`" % "|".join(TOP))
PLACEHOLDER = re.compile("NAME|NN")
SEARCH = re.compile(r"\bfile\s*\(\s*GLOB(?:_RECURSE)?\b([^)]*)\)|\baux_source_directory\s*\(([^)]*)\)", re.IGNORECASE)


class Tree:
    """The files of a source tree, by their paths from its root; built and hidden folders are left out."""

    def __init__(self, root):
        self.root = root
        self.files = []
        for folder, names, files in os.walk(root):
            inside = os.path.relpath(folder, root)
            names[:] = sorted(n for n in names if not n.startswith((".", "__")) and not (inside == "." and n == "build"))
            self.files += [PurePosixPath(inside, name) for name in sorted(files)]
        self.code = [f for f in self.files if f.parts[0] in TOP + ("tests",) and f.suffix in HEADERS + SOURCES]
        known = set(self.code)
        self.includes = []
        for file in self.code:
            for name in INCLUDE.findall(self.text(file)):
                if PurePosixPath(name) in known:
                    self.includes.append((file, PurePosixPath(name)))

    def text(self, file):
        return (self.root / file).read_text(errors="replace")

    def folders(self):
        """Folders of TOP that hold code, at any depth, the root first."""
        found = {PurePosixPath(".")}
        for file in self.code:
            if file.parts[0] in TOP:
                found.update(file.parents)
        return sorted(found)


# ---- Graphs of entries ----


def entry(folder, file):
    """The entry of the folder that the file lies in, or None."""
    depth, parts = len(folder.parts), file.parts
    if parts[:depth] != folder.parts or len(parts) == depth:
        return None
    return parts[depth] if len(parts) > depth + 1 else file.stem


def graph_of(tree, folder):
    """{entry: {entry that it includes: (file, included file), one of them}}."""
    graph = {}
    for file in tree.code:
        if file.parts[0] in TOP and (name := entry(folder, file)):
            graph.setdefault(name, {})
    for file, included in tree.includes:
        from_, to = entry(folder, file), entry(folder, included)
        if file.parts[0] not in TOP or from_ is None or to is None or from_ == to:
            continue
        graph[from_].setdefault(to, (file, included))
    return graph


def floors_of(graph):
    """Lists of entries from the ground up, and the entries that stand in or above a circle."""
    left, floors = {name: set(below) for name, below in graph.items()}, []
    while left:
        ground = sorted(name for name, below in left.items() if not below & left.keys())
        if not ground:
            break
        floors.append(ground)
        for name in ground:
            del left[name]
    return floors, left


def circle_in(left):
    """One circle of the entries that found no floor."""
    path, name = [], sorted(left)[0]
    while name not in path:
        path.append(name)
        name = sorted(left[name] & left.keys())[0]
    return path[path.index(name):] + [name]


# ---- Rules: each yields (path, breach) ----


def circles(tree):
    for folder in tree.folders():
        graph = graph_of(tree, folder)
        _, left = floors_of(graph)
        if left:
            circle = circle_in(left)
            steps = [f"{graph[a][b][0]} includes {graph[a][b][1]}" for a, b in zip(circle, circle[1:])]
            yield folder, "circle " + " -> ".join(circle) + ": " + ", ".join(steps)


def names(tree):
    places = {}
    for file in tree.files:
        if file.parts[0] in TOP and file.suffix in HEADERS + SOURCES + (".py", ".sh") and file.name != "main.cpp":
            places.setdefault(file.stem, {}).setdefault(file.parent, file)
    for stem, found in sorted(places.items()):
        if len(found) > 1 and stem not in SHARED_NAMES and not stem.startswith("__"):  # __main__.py
            first, *others = found.values()
            for other in others:
                yield other, f"the name '{stem}' stands for {first} as well"
    yield from unneeded(SHARED_NAMES, (stem for stem, found in places.items() if len(found) > 1), "SHARED_NAMES")


def owner(file, stems):
    """The header's stem that the file is, or is named for; None without one."""
    words = file.stem.split("_")
    for count in range(len(words), 0, -1):
        if "_".join(words[:count]) in stems:
            return "_".join(words[:count])
    return None


def header_stems(tree):
    stems = {}
    for file in tree.code:
        if file.suffix in HEADERS:
            stems.setdefault(file.parent, set()).add(file.stem)
    return stems


def headers(tree):
    stems, needed = header_stems(tree), set()
    for file in tree.code:
        if file.suffix not in SOURCES or file.parts[0] not in TOP or MAIN.match(file.name):
            continue
        if any(pattern.match(str(file)) for pattern, _ in NAMED_FOR_ITS_ROLE) or owner(file, stems.get(file.parent, ())):
            continue
        needed.add(str(file))
        if str(file) not in WITHOUT_HEADER:
            yield file, "no header of its name, and it is named for none, in its folder"
    yield from unneeded(WITHOUT_HEADER, needed, "WITHOUT_HEADER")


def entries(tree):
    stems = header_stems(tree)
    things, files = {}, {}
    for file in tree.code:
        for folder in file.parents:
            things.setdefault(folder, set()).add(entry(folder, file))
        stem = owner(file, stems.get(file.parent, ())) or file.stem
        files.setdefault(file.parent, set()).add(stem)
    for folder in map(PurePosixPath, TOP):
        if len(things.get(folder, ())) > MOST_ENTRIES:
            yield folder, f"{len(things[folder])} entries, more than {MOST_ENTRIES}"
    large = {str(folder) for folder, held in files.items() if len(held) > MOST_FILES}
    for folder in sorted(large - COLLECTIONS.keys()):
        yield folder, f"{len(files[PurePosixPath(folder)])} files by stem, more than {MOST_FILES}"


def cmake_files(tree):
    return [f for f in tree.files if f.name == "CMakeLists.txt" or f.suffix == ".cmake"]


def without_comments(text):
    return re.sub(r"#.*", "", text)


def listed(tree):
    named = set()
    for file in cmake_files(tree):
        for word in LISTED.findall(without_comments(tree.text(file))):
            # A .cmake file is read where a CMakeLists.txt above it stands.
            named.update(folder / word.lstrip("/") for folder in file.parents)
    for file in tree.code:
        if file.suffix in SOURCES and file not in named:
            yield file, "is in no CMakeLists.txt"


def globs(tree):
    for file in cmake_files(tree):
        for search in SEARCH.finditer(without_comments(tree.text(file))):
            patterns = (search[1] or "").split()[1:] if search[1] is not None else None
            patterns = [p for p in patterns or [] if p != "CONFIGURE_DEPENDS"]
            if search[1] is None or not patterns or not all(p.endswith(".safetensors") for p in patterns):
                yield file, "searches folders for sources: " + " ".join(search[0].split())


def mapped(tree):
    page = PurePosixPath("CONTRIBUTING.md")
    if page not in tree.files:
        return
    table = tree.text(page).partition("\n## The map")[2].partition("\n## ")[0]
    rows = {}
    for number, line in enumerate(table.splitlines()):
        for name in MAPPED.findall(line.split("|")[1] if line.startswith("|") else ""):
            rows[name] = number
    missing = {"/".join(f.parts[:2]) for f in tree.code if f.parts[0] in TOP and len(f.parts) > 2} - rows.keys()
    for name in sorted(missing):
        yield page, f"its map leaves out {name}/"
    upward = set()
    for file, included in tree.includes:
        above, below = ("/".join(f.parts[:2]) for f in (included, file))
        if file.parts[0] == included.parts[0] and rows.get(above, 0) > rows.get(below, len(table)):
            upward.add((below, above))
    for below, above in sorted(upward):
        yield page, f"its map has {above}/ behind {below}/, which includes it"


def links(tree):
    known = set(map(str, tree.files)) | {str(folder) for file in tree.files for folder in file.parents}
    for page in tree.files:
        if page.suffix != ".md" or page.name == "CHANGELOG.md":  # which names what was
            continue
        text = tree.text(page)
        for target in LINK.findall(text):
            if "://" not in target and os.path.normpath(page.parent / target) not in known:
                yield page, f"links to {target}, which is not there"
        for name in CODE_PATH.findall(text):
            if name not in known and str(page.parent / name) not in known and not PLACEHOLDER.search(name):
                yield page, f"names `{name}`, which is not there"


def unneeded(exceptions, needed, table):
    """Exceptions for files or names that break no rule (any more)."""
    for name in exceptions.keys() - set(needed):
        yield name, f"is no exception (any more): take it out of {table} in folders.py"


RULES = (circles, names, headers, entries, listed, globs, mapped, links)


def breaches(tree):
    return [f"{path}: {text}" for rule in RULES for path, text in rule(tree)]


# ---- The picture ----


def show(tree):
    for folder in tree.folders():
        graph = graph_of(tree, folder)
        if len(graph) < 2:
            continue
        floors, left = floors_of(graph)
        print(f"{'the root' if str(folder) == '.' else str(folder) + '/'}, data passes from top to bottom")
        for number, floor in enumerate(floors):
            for name in floor:
                mark = "/" if (tree.root / folder / name).is_dir() else ""
                below = ", ".join(sorted(graph[name]))
                print(f"  {number + 1:2}  {name}{mark}" + (f"  <- {below}" if below else ""))
        if left:
            print("   ?  " + ", ".join(sorted(left)) + "  (in or above a circle)")
        print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", metavar="ROOT", type=Path)
    parser.add_argument("--show", action="store_true", help="draw the floors instead")
    arguments = parser.parse_args()
    tree = Tree(arguments.root)
    if arguments.show:
        show(tree)
        return 0
    found = breaches(tree)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
