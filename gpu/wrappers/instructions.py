"""One entry of the table of instructions, and the text that every kind of wrapper is made of."""

BITS = dict(f64=64, f32=32, tf32=32, f16=16, bf16=16, e4m3=8, e5m2=8, e3m2=6, e2m3=6, e2m1=4, s32=32, s8=8, u8=8, s4=4, u4=4, b1=1)
FORMATS = dict(f64="fp64", f32="fp32", f16="fp16", s32="int32", s8="int8", u8="uint8", s4="int4", u4="uint4", ue8m0="e8m0")
FP8 = ["e4m3", "e5m2"]
NARROW = FP8 + ["e3m2", "e2m3", "e2m1"]
INT8, INT4 = ["s8", "u8"], ["s4", "u4"]


class Instruction:
    """The PTX name, its shape and types, and flags: everything that wrapper and table entry say."""

    def __init__(self, unit, name, shape, a, b, c, d, sparse=False, variant="", plain="", **flags):
        self.unit, self.name, self.shape, self.variant = unit, name, shape, variant
        self.plain = plain or (name if variant else "")
        self.a, self.b, self.c, self.d, self.sparse, self.flags = a, b, c, d, sparse, flags
        self.m, self.n, self.k = shape
        self.stored_k = self.k // 2 if sparse else self.k

    def bits(self, element):
        """Bits that an element takes in a register: FP6 and FP4 may lie in bytes of their own."""
        return 8 if self.flags.get("byte_containers") and BITS[element] < 8 else BITS[element]

    def words(self, element, count, lanes):
        """Registers per lane that hold `count` elements spread over `lanes` lanes."""
        width = 64 if element == "f64" else 32
        return count * self.bits(element) // lanes // width


class Architecture:
    """A compilation target, '90a', and the catalogue's name for its machines, 'sm_90'."""

    PAGES = {"87": "86", "101": "100", "103": "100", "110": "100", "121": "120"}

    def __init__(self, target):
        number = target.rstrip("af")
        self.target, self.page = target, "sm_" + self.PAGES.get(number, number)
        self.number = int(self.page[3:])


def shape_text(m, n, k):
    return f"m{m}n{n}k{k}"


def layouts(instruction):
    return instruction.flags.get("layout", "row.col").split(".")


def bind(expression, count, constraint):
    """Register operands `expression[0]`, … of an asm statement."""
    return ", ".join(f'"{constraint}"({expression}[{i}])' for i in range(count))


def slots(first, count):
    return "{" + ", ".join(f"%{first + i}" for i in range(count)) + "}"
