"""Reads lines.txt, the list of command lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import List, NamedTuple


class Line(NamedTuple):
    name: str
    shell: str


class BadList(Exception):
    """lines.txt says what it may not."""


_HEAD = re.compile(r"([a-z0-9][a-z0-9_-]*): (\S.*)")


def read_lines(path: Path) -> List[Line]:
    """Every `name: shell line`; an indented line continues the one before it."""
    lines: List[Line] = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{path.name}:{number}"
        if not text.strip() or text.startswith("#"):
            continue
        if text.startswith(" "):
            if not lines:
                raise BadList(f"{where}: nothing to continue")
            last = lines[-1]
            lines[-1] = Line(last.name, last.shell + "\n" + text.strip())
            continue
        match = _HEAD.fullmatch(text)
        if match is None:
            raise BadList(f"{where}: is not 'name: shell line'")
        name, shell = match.groups()
        if any(line.name == name for line in lines):
            raise BadList(f"{where}: {name} is there already")
        lines.append(Line(name, shell))
    return lines
