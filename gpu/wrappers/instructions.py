"""One entry of the table of instructions, and the text that every kind of wrapper is made of."""
import pathlib
import re

BITS = dict(f64=64, f32=32, tf32=32, f16=16, bf16=16, e4m3=8, e5m2=8, e3m2=6, e2m3=6, e2m1=4, s32=32, s8=8, u8=8, s4=4, u4=4, b1=1)
FORMATS = dict(f64="fp64", f32="fp32", f16="fp16", s32="int32", s8="int8", u8="uint8", s4="int4", u4="uint4", ue8m0="e8m0")
LAYOUTS = ("row.col", "row.row", "col.row", "col.col")


class Instruction:
    """One entry: an instruction's PTX name, which says shape and types, and flags for what the name leaves open."""

    def __init__(self, name, variant="", plain="", **flags):
        words = name.split(".")
        qualifiers = dict(word.split("::") for word in words if "::" in word)
        self.unit, self.name, self.variant, self.flags = words[0], name, variant, flags
        self.plain = plain or (name if variant else "")
        self.shape = self.m, self.n, self.k = tuple(map(int, re.search(r"\bm(\d+)n(\d+)k(\d+)\b", name).groups()))
        self.d, *factors = [word for word in words if word in BITS]
        if len(factors) == 1:  # wmma.mma of FP16 names D and C alone
            factors = ["f16", "f16"] + factors
        self.a, self.b, self.c = factors if len(factors) == 3 else factors + [self.d]
        self.types = f"{self.d}.{self.a}.{self.b}"
        self.sparse, self.saturates = "sp" in words or "sp" in qualifiers, "satfinite" in words
        self.kind = qualifiers.get("kind", "")
        self.stored_k = self.k // 2 if self.sparse else self.k
        self.scale = (words[-1], int(qualifiers["scale_vec"].rstrip("X"))) if "scale_vec" in qualifiers else None
        layout = re.search(r"\b(row|col)\.(row|col)\b", name)
        self.layouts = layout.groups() if layout else tuple(flags.get("layout", "row.col").split("."))

    def bits(self, element):
        """Bits that an element takes in a register: FP6 and FP4 may lie in bytes of their own."""
        return 8 if self.flags.get("byte_containers") and BITS[element] < 8 else BITS[element]

    def words(self, element, count, lanes):
        """Registers per lane that hold `count` elements spread over `lanes` lanes."""
        width = 64 if element == "f64" else 32
        return count * self.bits(element) // lanes // width


class Architecture:
    """A compilation target, '90a', the catalogue's name for its machines, 'sm_90', and their instructions' names.

    `catalogue` is a file of lines 'sm_90 NAME', as main.cpp prints them.
    """

    PAGES = {"87": "86", "101": "100", "103": "100", "110": "100", "121": "120"}

    def __init__(self, target, catalogue=None):
        number = target.rstrip("af")
        self.target, self.page = target, "sm_" + self.PAGES.get(number, number)
        self.number = int(self.page[3:])
        lines = pathlib.Path(catalogue).read_text().split("\n") if catalogue else []
        self.lacks_integers = number == "103"  # which lost kind::i8 of sm_100
        self.names = [line.split()[1] for line in lines if line.startswith(self.page + " ")
                      and not (self.lacks_integers and ".kind::i8." in line)]
        self.unwrapped = set(self.names)

    def names_of(self, unit, sparse=None, kind=None):
        """Names that begin so; of sparse or dense forms, with a .kind or without, where that is said."""
        for name in self.names:
            words = name.split(".")
            is_sparse, has_kind = any(re.match("sp(::|$)", x) for x in words), ".kind::" in name
            if words[0] == unit and sparse in (None, is_sparse) and kind in (None, has_kind):
                self.unwrapped.discard(name)
                yield name


def shape_text(m, n, k):
    return f"m{m}n{n}k{k}"


def in_every_layout(name):
    for layout in LAYOUTS:
        yield Instruction(name.replace("row.col", layout), plain="" if layout == "row.col" else name)


def bind(expression, count, constraint):
    """Register operands `expression[0]`, … of an asm statement."""
    return ", ".join(f'"{constraint}"({expression}[{i}])' for i in range(count))


def slots(first, count):
    return "{" + ", ".join(f"%{first + i}" for i in range(count)) + "}"
