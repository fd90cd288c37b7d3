#!/usr/bin/env python3
"""Counts lines of code below each top folder: no blank lines, no comments.

Without REV it counts the files that git tracks, as they are in the working tree; with REV those of that commit. Tests have
a line of their own and are in no sum.
"""

import argparse
import collections
import io
import re
import subprocess
import tokenize

C_LIKE = {".cpp", ".hpp", ".cu", ".cuh"}
HASH = {".py", ".sh", ".cmake"}


def strip_c_comments(text: str) -> str:
    """The text without comments; strings, among them raw ones, stay whole."""
    token = re.compile(
        r'R"(?P<mark>[^()\s]{0,16})\(.*?\)(?P=mark)"'
        r'|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'"
        r"|//(?:\\\n|[^\n])*"
        r"|/\*.*?\*/",
        re.DOTALL,
    )

    def kept(match: "re.Match[str]") -> str:
        word = match.group(0)
        return re.sub(r"[^\n]", "", word) if word.startswith("/") else word

    return token.sub(kept, text)


def strip_python_comments(text: str) -> str:
    """The text without comments and without strings that stand alone, which are documentation."""
    lines = text.splitlines()
    before = None
    try:
        for t in tokenize.generate_tokens(io.StringIO(text).readline):
            alone = t.type == tokenize.STRING and before in (
                None, tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)  # fmt: skip
            if t.type == tokenize.COMMENT:
                lines[t.start[0] - 1] = lines[t.start[0] - 1][: t.start[1]]
            elif alone and t.line.strip().startswith(('"""', "'''", '"', "'")):
                for i in range(t.start[0] - 1, t.end[0]):
                    lines[i] = ""
            if t.type != tokenize.COMMENT:
                before = t.type
    except (tokenize.TokenError, IndentationError):
        return text
    return "\n".join(lines)


def lines_of_code(path: str, text: str) -> int:
    extension = "." + path.rsplit(".", 1)[-1] if "." in path.rsplit("/", 1)[-1] else ""
    if path.endswith("CMakeLists.txt"):
        extension = ".cmake"
    if extension in C_LIKE:
        text = strip_c_comments(text)
    elif extension == ".py":
        text = strip_python_comments(text)
    elif extension in HASH:
        text = "\n".join(x for x in text.splitlines() if not x.lstrip().startswith("#"))
    else:
        return 0
    return sum(1 for x in text.splitlines() if x.strip())


def git(*words: str) -> bytes:
    return subprocess.run(["git", *words], check=True, stdout=subprocess.PIPE).stdout


def files_of(revision: str):
    listing = git("ls-tree", "-r", "--name-only", revision) if revision else git("ls-files")
    for path in listing.decode().splitlines():
        if not re.search(r"\.(cpp|hpp|cu|cuh|py|sh|cmake)$|CMakeLists\.txt$", path):
            continue
        if revision:
            yield path, git("show", f"{revision}:{path}").decode(errors="replace")
        else:
            try:
                with open(path, errors="replace") as file:
                    yield path, file.read()
            except FileNotFoundError:
                pass  # deleted, not yet committed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="?", default="", metavar="REV")
    revision = parser.parse_args().revision
    count, files = collections.Counter(), collections.Counter()
    for path, text in files_of(revision):
        folder = path.split("/")[0] if "/" in path else "."
        count[folder] += lines_of_code(path, text)
        files[folder] += 1
    for folder in sorted(count):
        if folder != "tests":
            print(f"{folder:12} {count[folder]:7} lines {files[folder]:5} files")
    print(f"{'sum':12} {sum(count.values()) - count['tests']:7}")
    if "tests" in count:
        print(f"{'tests':12} {count['tests']:7} lines {files['tests']:5} files")


if __name__ == "__main__":
    main()
