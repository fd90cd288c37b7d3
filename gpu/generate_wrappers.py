#!/usr/bin/env python3
"""Writes the tensor-core wrappers: one struct per instruction that ptxas 13.0 accepts for sm_90a.

A wrapper holds registers and one asm string, nothing else (wrappers_<group>.cu); everything about shapes and formats
stands in the table of instructions, which needs no CUDA (instruction_table.cpp).
usage: generate_wrappers.py OUTPUT_FOLDER
"""
import itertools
import pathlib
import sys

BITS = dict(f64=64, f32=32, tf32=32, f16=16, bf16=16, e4m3=8, e5m2=8, s32=32, s8=8, u8=8, s4=4, u4=4, b1=1)
FORMATS = dict(f64="fp64", f32="fp32", f16="fp16", s32="int32", s8="int8", u8="uint8", s4="int4", u4="uint4")
FP8 = ["e4m3", "e5m2"]
INT8, INT4 = ["s8", "u8"], ["s4", "u4"]


class Row:
    """One table entry: the PTX name, its shape and types, and the asm text with its operands."""

    def __init__(self, unit, name, shape, a, b, c, d, sparse=False, variant="", plain="", **flags):
        self.unit, self.name, self.shape, self.variant = unit, name, shape, variant
        self.plain = plain or (name if variant else "")
        self.a, self.b, self.c, self.d, self.sparse, self.flags = a, b, c, d, sparse, flags
        self.m, self.n, self.k = shape

    def words(self, element, count, lanes):
        """Registers per lane that hold `count` elements spread over `lanes` lanes."""
        width = 64 if element == "f64" else 32
        return count * BITS[element] // lanes // width


def shape_text(m, n, k):
    return f"m{m}n{n}k{k}"


def mma_rows():
    def mma(shape, d, a, b, c, saturate="", tail="", layout="row.col", rounding=""):
        name = f"mma.sync.aligned.{shape_text(*shape)}.{layout}{saturate}{rounding}.{d}.{a}.{b}.{c}{tail}"
        plain = "" if layout == "row.col" else name.replace(layout, "row.col")
        return Row("mma", name, shape, a, b, c, d, plain=plain, layout=layout)

    for k in (8, 16):
        yield mma((16, 8, k), "f16", "f16", "f16", "f16")
        yield mma((16, 8, k), "f32", "f16", "f16", "f32")
        yield mma((16, 8, k), "f32", "bf16", "bf16", "f32")
    for k in (4, 8):
        yield mma((16, 8, k), "f32", "tf32", "tf32", "f32")
    for k, d, a, b in itertools.product((16, 32), ("f32", "f16"), FP8, FP8):
        yield mma((16, 8, k), d, a, b, d)
    for shape, rounding in itertools.product(((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)), ("", ".rz", ".rm", ".rp")):
        yield mma(shape, "f64", "f64", "f64", "f64", rounding=rounding)
    for (d, c), la, lb in itertools.product((("f16", "f16"), ("f32", "f16"), ("f32", "f32")), ("row", "col"), ("row", "col")):
        yield mma((8, 8, 4), d, "f16", "f16", c, layout=f"{la}.{lb}")
    for shapes, types in ((((8, 8, 16), (16, 8, 16), (16, 8, 32)), INT8), (((8, 8, 32), (16, 8, 32), (16, 8, 64)), INT4)):
        for shape, a, b, saturate in itertools.product(shapes, types, types, ("", ".satfinite")):
            yield mma(shape, "s32", a, b, "s32", saturate=saturate)
    for shape, op in itertools.product(((8, 8, 128), (16, 8, 128), (16, 8, 256)), ("xor", "and")):
        yield mma(shape, "s32", "b1", "b1", "s32", tail=f".{op}.popc")


def mma_sp_rows():
    for order in ("mma.sp", "mma.sp::ordered_metadata"):
        def mma(k, d, a, b, saturate="", **flags):
            shape = (16, 8, k)
            return Row("mma", f"{order}.sync.aligned.{shape_text(*shape)}.row.col{saturate}.{d}.{a}.{b}.{d}", shape, a, b, d, d,
                       sparse=True, layout="row.col", **flags)
        floating = [(k, d, a, a) for k in (16, 32) for d, a in (("f16", "f16"), ("f32", "f16"), ("f32", "bf16"))]
        floating += [(k, "f32", "tf32", "tf32") for k in (8, 16)]
        floating += [(64, "f32", a, b) for a, b in itertools.product(FP8, FP8)]
        yield from (mma(*row) for row in floating)
        for ks, types in (((32, 64), INT8), ((64, 128), INT4)):
            for k, a, b, saturate in itertools.product(ks, types, types, ("", ".satfinite")):
                yield mma(k, "s32", a, b, saturate)
        if order == "mma.sp":
            for row in floating[:6] + floating[8:9] + [(64, "s32", "s8", "s8"), (128, "s32", "s4", "s4")]:
                yield mma(*row, variant="unordered", unordered=True)
            for row in floating[:8] + [(32, "s32", "s8", "s8"), (64, "s32", "s4", "s4")]:
                one_lane = row[0] * (2 if row[2] == "tf32" else 1) == 16
                for selector in (1, 2, 3) if one_lane else (1,):
                    yield mma(*row, variant=f"selector{selector}", selector=selector)


def wmma_rows():
    shapes = ((16, 16, 16), (32, 8, 16), (8, 32, 16))

    def wmma(shape, a, c, d, types="", qualifier="", tail="", layout="row.col", op=""):
        name = lambda layout: (f"wmma.mma{op}.sync.aligned.{layout}.{shape_text(*shape)}{qualifier}"
                               f".{types or f'{d}.{a}.{a}.{c}'}{tail}")
        return Row("wmma", name(layout), shape, a, a, c, d, layout=layout, plain="" if layout == "row.col" else name("row.col"))

    for shape, d, c in itertools.product(shapes, ("f32", "f16"), ("f32", "f16")):
        yield wmma(shape, "f16", c, d, types=f"{d}.{c}")
    for shape in shapes:
        yield wmma(shape, "bf16", "f32", "f32")
    yield wmma((16, 16, 8), "tf32", "f32", "f32")
    for rounding in ("", ".rz", ".rm", ".rp"):
        yield wmma((8, 8, 4), "f64", "f64", "f64", qualifier=rounding)
    for shape, a, saturate in itertools.product(shapes, INT8, ("", ".satfinite")):
        yield wmma(shape, a, "s32", "s32", tail=saturate)
    for a, saturate in itertools.product(INT4, ("", ".satfinite")):
        yield wmma((8, 8, 32), a, "s32", "s32", tail=saturate)
    for op in ("xor", "and"):
        yield wmma((8, 8, 128), "b1", "s32", "s32", op=f".{op}.popc")
    for layout in ("row.row", "col.row", "col.col"):
        for d, c in itertools.product(("f32", "f16"), ("f32", "f16")):
            yield wmma(shapes[0], "f16", c, d, types=f"{d}.{c}", layout=layout)
        yield wmma(shapes[0], "bf16", "f32", "f32", layout=layout)
        yield wmma((16, 16, 8), "tf32", "f32", "f32", layout=layout)
        for a in INT8:
            yield wmma(shapes[1], a, "s32", "s32", layout=layout)


def wgmma_rows():
    for sparse in (False, True):
        def wgmma(k, d, a, b, n=8, tail="", variant="", **flags):
            shape = (64, n, k * (2 if sparse else 1))
            name = f"wgmma.mma_async{'.sp' if sparse else ''}.sync.aligned.{shape_text(*shape)}.{d}.{a}.{b}{tail}"
            plain = name.replace(f"n{n}k", "n8k") if n != 8 else ""
            return Row("wgmma", name, shape, a, b, d, d, sparse=sparse, variant=variant, plain=plain, **flags)
        floating = [(16, "f32", "f16", "f16"), (16, "f16", "f16", "f16"), (16, "f32", "bf16", "bf16"), (8, "f32", "tf32", "tf32")]
        floating += [(32, d, a, b) for d, a, b in itertools.product(("f32", "f16"), FP8, FP8)]
        for row in floating:
            yield wgmma(*row)
        for a, b, tail in itertools.product(INT8, INT8, ("", ".satfinite")):
            yield wgmma(32, "s32", a, b, tail=tail)
        for row in floating[:4] + [(32, "f32", "e4m3", "e4m3")]:
            yield wgmma(*row, variant="a_regs", a_regs=True)
        yield wgmma(32, "s32", "s8", "s8", variant="a_regs", a_regs=True)
        for row in floating[:5] + [(32, "f16", "e5m2", "e5m2")]:
            yield wgmma(*row, variant="scale_d0", scale_d=0)
            if not sparse:
                yield wgmma(*row, variant="neg_a", scale_a=-1)
                yield wgmma(*row, variant="neg_b", scale_b=-1)
        if not sparse:
            yield wgmma(256, "s32", "b1", "b1", tail=".and.popc")
            yield wgmma(32, "s32", "s8", "s8", variant="scale_d0", scale_d=0)
            for row in floating[:5] + [(32, "s32", "s8", "s8")]:
                for n in (24, 32, 256):
                    yield wgmma(*row, n=n)
        for row in floating[:3]:
            yield wgmma(*row, variant="b_row_major", layout="row.row")
            yield wgmma(*row, variant="a_column_major", layout="col.col")
            if not sparse:
                yield wgmma(*row, n=24, variant="b_row_major", layout="row.row")
        for row in floating[:1] + floating[3:4] if sparse else []:
            yield wgmma(*row, variant="selector1", selector=1)


def layouts(row):
    return row.flags.get("layout", "row.col").split(".")


def bind(expression, count, constraint):
    return ", ".join(f'"{constraint}"({expression}[{i}])' for i in range(count))


def slots(first, count):
    return "{" + ", ".join(f"%{first + i}" for i in range(count)) + "}"


def mma_struct(row):
    lanes = 8 if row.shape == (8, 8, 4) and row.a == "f16" else 32
    stored_k = row.k // 2 if row.sparse else row.k
    counts = [row.words(e, n, lanes) for e, n in ((row.a, row.m * stored_k), (row.b, row.n * row.k), (row.c, row.m * row.n),
                                                  (row.d, row.m * row.n))]
    na, nb, nc, nd = counts
    letter = "l" if row.a == "f64" else "r"
    operands = [slots(0, nd), slots(nd, na), slots(nd + na, nb), slots(nd + na + nb, nc)]
    inputs = [bind("r.a", na, letter), bind("r.b", nb, letter), bind("r.c", nc, letter)]
    if row.sparse:
        operands += [f"%{nd + na + nb + nc}", str(row.flags.get("selector", 0))]
        inputs.append('"r"(r.e)')
    word = "std::uint64_t" if row.a == "f64" else "std::uint32_t"
    return f"""  using Word = {word};
  static constexpr int a = {na}, b = {nb}, c = {nc}, d = {nd};
  __device__ static void run(Registers<{row.id}>& r) {{
    asm volatile("{row.name} {', '.join(operands)};"
                 : {bind("r.d", nd, "=" + letter)}
                 : {", ".join(inputs)});
  }}"""


def wmma_struct(row):
    def fragment(element, count, operand):
        if element == "f16" and operand:
            return 8
        return count * BITS[element] // 32 // (64 if element == "f64" else 32)
    na, nb = fragment(row.a, row.m * row.k, True), fragment(row.b, row.k * row.n, True)
    nc, nd = fragment(row.c, row.m * row.n, False), fragment(row.d, row.m * row.n, False)
    shape = shape_text(*row.shape)
    kind = "b64" if row.a == "f64" else "b32"
    regs = lambda p, n: "{" + ", ".join(f"{p}{i}" for i in range(n)) + "}"
    la, lb = layouts(row)
    lines = [f".reg .{kind} a<{na}>, b<{nb}>, c<{nc}>, d<{nd}>;",
             f"wmma.load.a.sync.aligned.{la}.{shape}.{row.a} {regs('a', na)}, [%0], {row.m if la == 'col' else row.k};",
             f"wmma.load.b.sync.aligned.{lb}.{shape}.{row.b} {regs('b', nb)}, [%1], {row.n if lb == 'row' else row.k};",
             f"wmma.load.c.sync.aligned.row.{shape}.{row.c} {regs('c', nc)}, [%2], {row.n};",
             f"{row.name} {regs('d', nd)}, {regs('a', na)}, {regs('b', nb)}, {regs('c', nc)};",
             f"wmma.store.d.sync.aligned.row.{shape}.{row.d} [%3], {regs('d', nd)}, {row.n};"]
    text = "\n                 ".join(f'"{line}\\n"' for line in ["{"] + lines + ["}"])
    return f"""  __device__ static void run(const void* a, const void* b, const void* c, void* d) {{
    asm volatile({text}
                 :
                 : "l"(a), "l"(b), "l"(c), "l"(d)
                 : "memory");
  }}"""


def wgmma_struct(row):
    nd = row.words(row.d, row.m * row.n, 128)
    a_regs = bool(row.flags.get("a_regs"))
    scale_d, scale_a, scale_b = (row.flags.get(x, 1) for x in ("scale_d", "scale_a", "scale_b"))
    a_text = slots(nd, 4) if a_regs else f"%{nd}"
    next_slot = nd + (4 if a_regs else 1)
    inputs = [bind("r.a", 4, "r")] if a_regs else ['"l"(r.a_descriptor)']
    inputs.append('"l"(r.b_descriptor)')
    operands = [slots(0, nd), a_text, f"%{next_slot}"]
    if row.sparse:
        operands += [f"%{next_slot + 1}", str(row.flags.get("selector", 0))]
        inputs.append('"r"(r.e)')
    operands.append("p")
    if row.d in ("f32", "f16"):
        operands += [str(scale_a), str(scale_b)]
    if row.a in ("f16", "bf16"):
        la, lb = layouts(row)
        operands += ([] if a_regs else [str(int(la == "col"))]) + [str(int(lb == "row"))]
    return f"""  static constexpr bool a_from_registers = {str(a_regs).lower()};
  static constexpr int m = {row.m}, n = {row.n}, a_row_bytes = 32, b_row_bytes = {64 if row.sparse else 32}, d = {nd};
  __device__ static void run(WarpgroupRegisters<{row.id}>& r) {{
    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, {scale_d}, 0;\\n"
                 "{row.name} {', '.join(operands)};\\n}}\\n"
                 : {bind("r.d", nd, "+r")}
                 : {", ".join(inputs)});
  }}"""


STRUCTS = dict(mma=mma_struct, wmma=wmma_struct, wgmma=wgmma_struct)
LAUNCH = dict(mma="launch_warp_registers", wmma="launch_warp_memory", wgmma="launch_warpgroup")


FLAGS = dict(a_regs=".a_from_registers = true", scale_a=".negate_a = true", scale_b=".negate_b = true",
             scale_d=".ignore_c = true", unordered=".unordered = true")


def table_entry(row, group, index):
    la, lb = layouts(row)
    fields = [f'.name = "{row.name}", .variant = "{row.variant}", .wrapper = "{row.id}", .plain = "{row.plain}"',
              f".group = Group::{group}, .index = {index}, .unit = Unit::{row.unit}, .m = {row.m}, .n = {row.n}, .k = {row.k}"]
    fields += [f".{operand} = formats::{FORMATS.get(x, x)}" for operand, x in zip("abcd", (row.a, row.b, row.c, row.d))]
    fields += [".sparse = true"] if row.sparse else []
    fields += [".a_column_major = true"] if la == "col" else []
    fields += [".b_row_major = true"] if lb == "row" else []
    fields += [text for flag, text in FLAGS.items() if flag in row.flags]
    fields += [f".selector = {row.flags['selector']}"] if "selector" in row.flags else []
    return "    {" + ", ".join(fields) + "},"


def kernels_text(group, rows):
    text = ['#include "gpu/cuda/launch.cuh"\n\nnamespace guardbit::gpu {\nnamespace {\n']
    for row in rows:
        text.append(f"struct {row.id} {{\n{STRUCTS[row.unit](row)}\n}};\n")
    text.append("const Kernel kernels[] = {")
    text += [f"    {LAUNCH[row.unit]}<{row.id}>," for row in rows]
    text.append(f"}};\n\n}}  // namespace\n\nstd::span<const Kernel> {group}_kernels() {{ return kernels; }}\n")
    text.append("}  // namespace guardbit::gpu\n")
    return "\n".join(text)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    table = ['#include "formats/catalogue.hpp"\n#include "gpu/tensor_core_instruction.hpp"\n\nnamespace guardbit::gpu {\n\nnamespace {\n',
             "constexpr TensorCoreInstruction table[] = {"]
    for group, make_rows in dict(mma=mma_rows, mma_sp=mma_sp_rows, wmma=wmma_rows, wgmma=wgmma_rows).items():
        rows = list(make_rows())
        for index, row in enumerate(rows):
            row.id = f"{group.title().replace('_', '')}{index}"
            table.append(table_entry(row, group, index))
        (folder / f"wrappers_{group}.cu").write_text(kernels_text(group, rows))
    table.append("};\n\n}  // namespace\n\nstd::span<const TensorCoreInstruction> tensor_core_instructions() { return table; }\n")
    table.append("}  // namespace guardbit::gpu\n")
    (folder / "instruction_table.cpp").write_text("\n".join(table))


main()
