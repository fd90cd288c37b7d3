"""What is not compared: every mask, with its reason.

A mask replaces what a pattern matches by a word in angle brackets. The masks apply in their order
to everything that is text: output, messages and written files.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import List, NamedTuple, Tuple

# An engine is the fastest that the CPU has, so its name, and the width of its column, vary.
ENGINE = "(?:auto|reference|portable|avx512|avx2|neon|cpu|host|eigen)"
ENGINES = rf"{ENGINE}(?:, {ENGINE})*"
NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?"


class Mask(NamedTuple):
    pattern: str
    replacement: str
    reason: str


MASKS: Tuple[Mask, ...] = (
    Mask(
        rf"(?m)^guardbit: .*(?:: at work, .*|, [0-9]+ plans, {NUMBER} s)\n",
        "",
        "signs of life, which only a slow build gives",
    ),
    Mask(r"\bguardbit \d+\.\d+\.\d+\b", "guardbit <VERSION>", "the version grows"),
    Mask(r'("version": )"\d+\.\d+\.\d+"', r'\1"<VERSION>"', "the version grows"),
    Mask(
        r'("program": )"[0-9a-f]{16}"',
        r'\1"<PROGRAM>"',
        "records name the program by a hash of its file",
    ),
    Mask(r"\bfingerprint [0-9a-f]{16}\b", "fingerprint <PROGRAM>", "the same in pages of 'report'"),
    Mask(
        rf'("(?:seconds|images_per_second|ratio_to_eigen)": ){NUMBER}',
        r"\1<TIME>",
        "times and rates of JSON",
    ),
    Mask(rf"(?m)\b{NUMBER} s(?=[:;,.)<]|$)", "<TIME> s", "times in sentences and pages"),
    Mask(
        r"(?m)^(recipe +unit) +engine +time +images/s",
        r"\1  engine  time  images/s",
        "the head of the table of 'train': columns are as wide as times and rates",
    ),
    Mask(
        rf"(?m)^(\w+ +\w+) +{ENGINES} +[0-9.]+ s +[0-9]+(?: +[0-9.]+x?)?(?= +[0-9.]+ [KM]iB)",
        r"\1 <ENGINE> <TIME> <RATE>",
        "times and rates in the table of 'train'",
    ),
    Mask(
        rf"(?m)^(\w+ +\w+) +{ENGINES} +(?=(?:[0-9.]+%|-) )",
        r"\1 <ENGINE> ",
        "the CPU chooses the engine: the same table where nothing was computed",
    ),
    Mask(
        rf"(<td[^>]*>){ENGINES}(?=</td>)",
        r"\1<ENGINE>",
        "the CPU chooses the engine: pages of 'report'",
    ),
    Mask(
        r'(<TIME> s</td>⏎\n<td class="n">)[0-9.]+(?=</td>)',
        r"\1<RATE>",
        "rates beside times in the table of a page of 'report'",
    ),
    Mask(
        r"(?m)^(E[0-9]{2} .*?) +[0-9]+\.[0-9]{2}$",
        r"\1 <TIME>",
        "seconds in the table of several experiments",
    ),
    Mask(rf'("engine": )"(?:{ENGINES})"', r'\1"<ENGINE>"', "the CPU chooses the engine"),
    Mask(rf"\bengine (?:{ENGINES})\b", "engine <ENGINE>", "the CPU chooses the engine"),
    Mask(
        r"(?m)^( *outputs  mismatches  engine) +file$",
        r"\1  file",
        "the head of the table of 'verify': its column is as wide as the engine's name",
    ),
    Mask(
        rf"(?m)^( *[0-9]+ +[0-9]+)  (?:{ENGINES}) +(?=\S)",
        r"\1  <ENGINE>  ",
        "the CPU chooses the engine: the table of 'verify'",
    ),
)

_COMPILED = [(re.compile(m.pattern), m.replacement) for m in MASKS]


def masked(text: str, paths: List[Tuple[Path, str]]) -> str:
    """The text without what may vary. `paths` are folders and the words that stand for them."""
    for path, word in paths:
        text = text.replace(str(path), word)
    for pattern, replacement in _COMPILED:
        text = pattern.sub(replacement, text)
    return text
