"""What there is: formats, machines, instructions, plans of libraries, engines."""

from __future__ import annotations

import json

from . import _core
from .arguments import checked
from .tables import Table, record


def formats() -> Table:
    """Every number format with its facts; block formats stand at the end (`block_size` is set, `bits` are those of an element
    with its share of the scales)."""
    found = record(json.loads(_core.formats()))
    for block_format in found.block_formats:
        block_format["bits"] = block_format.bits_per_element
    return Table(found.formats + found.block_formats, ("name", "bits", "largest", "standard"))


def machines() -> Table:
    """The names that `arch=` takes."""
    return Table(record(json.loads(_core.machines())), ("arch", "title", "alias_of"))


@checked
def instructions(arch: str | None = None) -> Table:
    """The catalogue of instructions, of one machine or of all, with what each computes and how that is known."""
    table = Table(record(json.loads(_core.instructions())), ("arch", "name", "a", "b", "c", "d", "basis"))
    if arch is None:
        return table
    return table.where(arch=_core.page_of(arch))


def plans() -> Table:
    """Plans seen in libraries: what `like=` takes as LIBRARY:ARCH[:KERNEL]."""
    return Table(record(json.loads(_core.library_plans())), ("library", "arch", "kernel", "plan", "varies"))


def engines() -> list[str]:
    """Engines, the preferred first; those of other CPUs execute nothing here. All give the same bits; "host" multiplies as a GPU's cores do."""
    return [*_core.engines(), "host"]
