"""wgmma.mma_async: A in registers or shared memory, B in shared memory, one warpgroup."""
from rows import BITS, Row, bind, slots

SEVERAL_N = ("f32.f16.f16", "f16.f16.f16", "f32.bf16.bf16", "f32.tf32.tf32", "f32.e4m3.e4m3", "s32.s8.s8")
ORDINARY_N = (8, 24, 32, 256)  # of some dense forms; the others come as 8 and 256
SIZES = {"f": range(8, 257, 8), "s": [8, 16, 24] + list(range(32, 257, 16))}  # by the first letter of D (PTX ISA)


def wgmma(name, n=8, **flags):
    """`name` leaves N open."""
    return Row(name.replace("nNk", f"n{n}k"), plain=name.replace("nNk", "n8k") if n != 8 else "", **flags)


def ordinary_sizes(row):
    return ORDINARY_N if not row.sparse and not row.saturates and row.types in SEVERAL_N else (8, ORDINARY_N[-1])


def rows(architecture):
    """Every form with N = 8, the largest N, and variants."""
    for name in architecture.names_of("wgmma"):
        row = wgmma(name)
        for n in ordinary_sizes(row):
            yield wgmma(name, n=n)
        if not row.saturates:
            yield from variants(name, row)


def variants(name, row):
    floating, transposable = row.d != "s32", row.a in ("f16", "bf16")
    typical = row.types in SEVERAL_N
    if typical or row.a == "b1":
        yield wgmma(name, variant="a_regs", a_regs=True)
    if typical or row.a == "b1" or row.types == "f16.e5m2.e5m2":
        yield wgmma(name, variant="scale_d0", scale_d=0)
    if floating and (typical or row.types == "f16.e5m2.e5m2"):
        yield wgmma(name, variant="neg_a", scale_a=-1)
        yield wgmma(name, variant="neg_b", scale_b=-1)
        yield wgmma(name, variant="neg_ab", scale_a=-1, scale_b=-1)
        yield wgmma(name, variant="a_regs_neg_a", a_regs=True, scale_a=-1)
        yield wgmma(name, variant="a_regs_neg_b", a_regs=True, scale_b=-1)
    if transposable:
        yield wgmma(name, variant="b_row_major", layout="row.row")
        yield wgmma(name, variant="a_column_major", layout="col.col")
        yield wgmma(name, variant="both_transposed", layout="col.row")
        yield wgmma(name, variant="a_regs_b_row_major", layout="row.row", a_regs=True)
        if not row.sparse:
            yield wgmma(name, n=24, variant="b_row_major", layout="row.row")
    if row.sparse and (transposable or row.a == "tf32"):
        yield wgmma(name, variant="selector1", selector=1)
    yield from swizzled(name, row, transposable)


def swizzled(name, row, transposable):
    """Shared memory in swizzled layouts. B of a sparse form takes 64 bytes of K, which atoms of 32 bytes do not hold: the matrix
    descriptor has no stride from one K-major atom to the next along K."""
    for width in (32, 64, 128):
        if row.types in SEVERAL_N and row.types != "f16.f16.f16":
            b_swizzle = {} if row.sparse and width == 32 else dict(b_swizzle=width)
            variant = f"swizzle{width}" if b_swizzle else f"a_swizzle{width}"
            yield wgmma(name, n=32, variant=variant, a_swizzle=width, **b_swizzle)
        if transposable:  # two atoms along N
            yield wgmma(name, n=width, variant=f"swizzle{width}_both_transposed", layout="col.row", a_swizzle=width, b_swizzle=width)
    if row.types == "f32.f16.f16":
        yield wgmma(name, n=32, variant="a_swizzle128", a_swizzle=128)
        yield wgmma(name, n=32, variant="b_swizzle64", b_swizzle=64)
        yield wgmma(name, n=32, variant="a_regs_b_swizzle128", a_regs=True, b_swizzle=128)


def size_rows(architecture, d, sparse):
    """The sizes of N that `rows` leaves out, with results of one type."""
    for name in architecture.names_of("wgmma", sparse=sparse):
        row = wgmma(name)
        for n in SIZES[d[0]]:
            if row.d == d and n not in ordinary_sizes(row):
                yield wgmma(name, n=n, size_sweep=True)


def shared_operand(row, operand):
    rows, k, element = (row.m, row.stored_k, row.a) if operand == "a" else (row.n, row.k, row.b)
    strided = row.layouts[0] == "col" if operand == "a" else row.layouts[1] == "row"
    return (f"{{.rows = {rows}, .k = {k}, .bits = {BITS[element]}, .k_strided = {str(strided).lower()}, "
            f".swizzle = {row.flags.get(operand + '_swizzle', 0)}}}")


def struct(row):
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
        la, lb = row.layouts
        operands += ([] if a_regs else [str(int(la == "col"))]) + [str(int(lb == "row"))]
    return f"""  static constexpr bool a_from_registers = {str(a_regs).lower()};
  static constexpr SharedOperand a = {shared_operand(row, 'a')}, b = {shared_operand(row, 'b')};
  static constexpr int d = {nd};
  __device__ static void run(WarpgroupRegisters<{row.id}>& r) {{
    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, {scale_d}, 0;\\n"
                 "{row.name} {', '.join(operands)};\\n}}\\n"
                 : {bind("r.d", nd, "+r")}
                 : {", ".join(inputs)});
  }}"""
