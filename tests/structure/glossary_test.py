#!/usr/bin/env python3
"""glossary_test.py ROOT: holds docs/GLOSSARY.md against the tree.

Every term of its tables must occur in the sources, and no retired word may stand in any text outside its exceptions.
Prints each breach and exits 1 if there is one. Then it makes a small tree with one breach after the other and expects
each to be noticed.
"""
import functools
import pathlib
import re
import sys
import tempfile

GLOSSARY = pathlib.Path("docs/GLOSSARY.md")
SOURCES = ("formats/", "emulator/", "gpu/", "experiments/", "tools/", "tests/")
TEXTS = SOURCES + ("docs", "README.md", "CMakeLists.txt")
SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh", ".inc", ".py", ".sh", ".md", ".txt", ".cmake", ".json", ".toml"}
# It holds the words that it forbids; and digits of base 64.
NOT_READ, CODED = "tests/structure/", "emulator/gemm/atlas/"


def rows(text, title):
    """The cells of the tables below the headings that `title` accepts."""
    heading, found = "", []
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("|") and title(heading):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[0] not in ("term", "word") and not cells[0].startswith("--"):
                found.append(cells)
    return found


def files(root, places):
    """The texts below these folders, and those of the places that are files."""
    for place in places:
        top = root / place
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            name = path.relative_to(root)
            is_coded = path.suffix == ".inc" and name.as_posix().startswith(CODED)
            read = path.suffix in SUFFIXES and not is_coded and not name.as_posix().startswith(NOT_READ)
            if read and path.is_file() and not any(part.startswith(".") for part in name.parts):
                yield path


def words(text):
    """Lower case, the parts of names as words: SumOrder and sum_order become "sum order"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_(?!\.)", " ", text).lower()


class Text:
    """A file's text; as words only where somebody asks, which takes long for all of them."""

    def __init__(self, root, path):
        self.name = path.relative_to(root).as_posix()
        self.text = path.read_text(errors="replace")
        self.packed = self.text.lower().translate({ord(x): None for x in " _"})

    def may_say(self, said):
        return said.replace(" ", "") in self.packed

    @functools.cached_property
    def words(self):
        return words(self.text)

    @functools.cached_property
    def running_words(self):
        return re.sub(r"[\s/*#]+", " ", self.words)


def missing_terms(texts, glossary):
    sources = [text for text in texts if text.name.startswith(SOURCES)]
    for cells in rows(glossary, lambda heading: heading != "Retired words"):
        term = words(cells[0])
        pattern = re.compile(rf"(?<![a-z]){re.escape(term)}(s|es)?(?![a-z])")
        # Its first word decides which files are worth a look: a line may end behind it.
        first = term.split()[0]
        if not any(text.may_say(first) and pattern.search(text.running_words) for text in sources):
            yield f"{GLOSSARY}: no source says '{cells[0]}'"


def retired_words(texts, glossary):
    retired = []
    for cells in rows(glossary, lambda heading: heading == "Retired words"):
        exceptions = re.findall(r"`([^`]+)`", cells[2])
        for word in cells[0].split(","):
            said = words(word.strip())
            pattern = re.compile(rf"(?<![a-z]){re.escape(said)}s?(?![a-z])")
            retired.append((word.strip(), said, pattern, exceptions, cells[1]))
    for text in texts:
        if text.name == GLOSSARY.as_posix():
            continue
        for word, said, pattern, exceptions, instead in retired:
            # Most files hold no retired word at all.
            if not text.may_say(said) or any(exception in text.name for exception in exceptions):
                continue
            for number, (line, line_as_words) in enumerate(zip(text.text.split("\n"), text.words.split("\n")), 1):
                if pattern.search(line_as_words) and not any(exception in line for exception in exceptions):
                    yield f"{text.name}:{number}: '{word}' is retired; say {instead}"


def breaches(root):
    glossary = (root / GLOSSARY).read_text()
    texts = [Text(root, path) for path in files(root, TEXTS)]
    return [*missing_terms(texts, glossary), *retired_words(texts, glossary)]


SMALL_GLOSSARY = """# Glossary
| term | meaning |
|---|---|
| near miss | a plan with few mismatches |
## Retired words
| word | say instead | where it may still stand |
|---|---|---|
| dealt, plan.lanes, grid unit | partition | `dealt with`, `docs/old/` |
"""


def said_of(name, text, source="struct NearMiss;"):
    """Breaches of a small tree that holds `text` in the file `name`."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, content in ((GLOSSARY, SMALL_GLOSSARY), ("emulator/a.hpp", source), (name, text)):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content)
        return breaches(root)


def self_test():
    noticed = {
        "tools/a.cpp": "// K is\n// Dealt to warps",
        "emulator/b.cpp": "class DealtPlans;",
        "tests/b.cpp": "bool is_dealt();",
        "gpu/a.cu": "x = plan.lanes;",
        "docs/a.md": "specials are dealt with; K is dealt.\nK is dealt out",
        "README.md": "dealt",
        "docs/b.md": "two grid units",
    }
    for name, text in noticed.items():
        said = said_of(name, text)
        assert len(said) == 1 and said[0].startswith(name + ":"), (name, said)
    for name, text in {"tools/a.cpp": "// an ideal; plan lanes; dealtern", "docs/a.md": "dealt with",
                       "docs/old/a.md": "dealt"}.items():
        assert said_of(name, text) == [], name
    assert said_of("docs/a.md", "near miss", source="int near; // a miss") != []
    assert said_of("tests/a.cpp", "", source="// a plan that is a near\n// miss") == []


def main():
    found = breaches(pathlib.Path(sys.argv[1]))
    print("\n".join(found))
    self_test()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
