"""wgmma.mma_async: A in registers or shared memory, B in shared memory, one warpgroup."""
from instructions import BITS, Instruction, bind, slots

SEVERAL_N = ("f32.f16.f16", "f16.f16.f16", "f32.bf16.bf16", "f32.tf32.tf32", "f32.e4m3.e4m3", "s32.s8.s8")
ORDINARY_N = (8, 24, 32, 256)  # of some dense forms; the others come as 8 and 256
SIZES = {"f": range(8, 257, 8), "s": [8, 16, 24] + list(range(32, 257, 16))}  # by the first letter of D (PTX ISA)


def wgmma(name, n=8, **flags):
    """`name` leaves N open."""
    return Instruction(name.replace("nNk", f"n{n}k"), plain=name.replace("nNk", "n8k") if n != 8 else "", **flags)


def ordinary_sizes(of):
    return ORDINARY_N if not of.sparse and not of.saturates and of.types in SEVERAL_N else (8, ORDINARY_N[-1])


def instructions(architecture):
    """Every form with N = 8, the largest N, and variants."""
    for name in architecture.names_of("wgmma"):
        of = wgmma(name)
        for n in ordinary_sizes(of):
            yield wgmma(name, n=n)
        if not of.saturates:
            yield from variants(name, of)


def variants(name, of):
    floating, transposable = of.d != "s32", of.a in ("f16", "bf16")
    typical = of.types in SEVERAL_N
    if typical or of.a == "b1":
        yield wgmma(name, variant="a_regs", a_regs=True)
    if typical or of.a == "b1" or of.types == "f16.e5m2.e5m2":
        yield wgmma(name, variant="scale_d0", scale_d=0)
    if floating and (typical or of.types == "f16.e5m2.e5m2"):
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
        if not of.sparse:
            yield wgmma(name, n=24, variant="b_row_major", layout="row.row")
    if of.sparse and (transposable or of.a == "tf32"):
        yield wgmma(name, variant="selector1", selector=1)
    yield from swizzled(name, of, transposable)


def swizzled(name, of, transposable):
    """Shared memory in swizzled layouts. B of a sparse form takes 64 bytes of K, which atoms of 32 bytes do not hold: the matrix
    descriptor has no stride from one K-major atom to the next along K."""
    for width in (32, 64, 128):
        if of.types in SEVERAL_N and of.types != "f16.f16.f16":
            b_swizzle = {} if of.sparse and width == 32 else dict(b_swizzle=width)
            variant = f"swizzle{width}" if b_swizzle else f"a_swizzle{width}"
            yield wgmma(name, n=32, variant=variant, a_swizzle=width, **b_swizzle)
        if transposable:  # two atoms along N
            yield wgmma(name, n=width, variant=f"swizzle{width}_both_transposed", layout="col.row", a_swizzle=width, b_swizzle=width)
    if of.types == "f32.f16.f16":
        yield wgmma(name, n=32, variant="a_swizzle128", a_swizzle=128)
        yield wgmma(name, n=32, variant="b_swizzle64", b_swizzle=64)
        yield wgmma(name, n=32, variant="a_regs_b_swizzle128", a_regs=True, b_swizzle=128)


def size_instructions(architecture, d, sparse):
    """The sizes of N that `instructions` leaves out, with results of one type."""
    for name in architecture.names_of("wgmma", sparse=sparse):
        of = wgmma(name)
        for n in SIZES[d[0]]:
            if of.d == d and n not in ordinary_sizes(of):
                yield wgmma(name, n=n, size_sweep=True)


def shared_operand(of, operand):
    rows, k, element = (of.m, of.stored_k, of.a) if operand == "a" else (of.n, of.k, of.b)
    strided = of.layouts[0] == "col" if operand == "a" else of.layouts[1] == "row"
    return (f"{{.rows = {rows}, .k = {k}, .bits = {BITS[element]}, .k_strided = {str(strided).lower()}, "
            f".swizzle = {of.flags.get(operand + '_swizzle', 0)}}}")


def struct(of):
    nd = of.words(of.d, of.m * of.n, 128)
    a_regs = bool(of.flags.get("a_regs"))
    scale_d, scale_a, scale_b = (of.flags.get(x, 1) for x in ("scale_d", "scale_a", "scale_b"))
    a_text = slots(nd, 4) if a_regs else f"%{nd}"
    next_slot = nd + (4 if a_regs else 1)
    inputs = [bind("r.a", 4, "r")] if a_regs else ['"l"(r.a_descriptor)']
    inputs.append('"l"(r.b_descriptor)')
    operands = [slots(0, nd), a_text, f"%{next_slot}"]
    if of.sparse:
        operands += [f"%{next_slot + 1}", str(of.flags.get("selector", 0))]
        inputs.append('"r"(r.e)')
    operands.append("p")
    if of.d in ("f32", "f16"):
        operands += [str(scale_a), str(scale_b)]
    if of.a in ("f16", "bf16"):
        la, lb = of.layouts
        operands += ([] if a_regs else [str(int(la == "col"))]) + [str(int(lb == "row"))]
    return f"""  static constexpr bool a_from_registers = {str(a_regs).lower()};
  static constexpr SharedOperand a = {shared_operand(of, 'a')}, b = {shared_operand(of, 'b')};
  static constexpr int d = {nd};
  __device__ static void run(WarpgroupRegisters<{of.id}>& r) {{
    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, {scale_d}, 0;\\n"
                 "{of.name} {', '.join(operands)};\\n}}\\n"
                 : {bind("r.d", nd, "+r")}
                 : {", ".join(inputs)});
  }}"""
