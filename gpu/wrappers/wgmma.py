"""wgmma.mma_async: A in registers or shared memory, B in shared memory, one warpgroup."""
import itertools

from instructions import BITS, FP8, INT8, Instruction, bind, layouts, shape_text, slots

FLOATING = [(16, "f32", "f16", "f16"), (16, "f16", "f16", "f16"), (16, "f32", "bf16", "bf16"), (8, "f32", "tf32", "tf32")]
FLOATING += [(32, d, a, b) for d, a, b in itertools.product(("f32", "f16"), FP8, FP8)]
BYTES = (32, "s32", "s8", "s8")
TRANSPOSABLE = FLOATING[:3]
ORDINARY_N = (8, 24, 32, 256)  # of some dense forms; the others come as 8 and 256
LARGEST = 256
SIZES = {"f": range(8, 257, 8), "s": [8, 16, 24] + list(range(32, 257, 16))}  # by the first letter of D (PTX ISA)


def wgmma(sparse, k, d, a, b, n=8, tail="", variant="", **flags):
    shape = (64, n, k * (2 if sparse else 1))
    name = f"wgmma.mma_async{'.sp' if sparse else ''}.sync.aligned.{shape_text(*shape)}.{d}.{a}.{b}{tail}"
    plain = name.replace(f"n{n}k", "n8k") if n != 8 else ""
    return Instruction("wgmma", name, shape, a, b, d, d, sparse=sparse, variant=variant, plain=plain, **flags)


def integer_forms():
    return [((32, "s32", a, b), tail) for a, b, tail in itertools.product(INT8, INT8, ("", ".satfinite"))]


def several_n(sparse, types):
    return not sparse and (types in FLOATING[:5] or types == BYTES)


def instructions(architecture):
    """Every form with N = 8, the largest N, and variants."""
    for sparse in (False, True):
        def form(types, **flags):
            return wgmma(sparse, *types, **flags)
        for types in FLOATING:
            yield form(types)
        for types, tail in integer_forms():
            yield form(types, tail=tail)
        for types in FLOATING[:4] + [(32, "f32", "e4m3", "e4m3"), BYTES]:
            yield form(types, variant="a_regs", a_regs=True)
        for types in FLOATING[:5] + [(32, "f16", "e5m2", "e5m2")]:
            yield form(types, variant="scale_d0", scale_d=0)
            yield form(types, variant="neg_a", scale_a=-1)
            yield form(types, variant="neg_b", scale_b=-1)
            yield form(types, variant="neg_ab", scale_a=-1, scale_b=-1)
            yield form(types, variant="a_regs_neg_a", a_regs=True, scale_a=-1)
            yield form(types, variant="a_regs_neg_b", a_regs=True, scale_b=-1)
        yield form(BYTES, variant="scale_d0", scale_d=0)
        for types in FLOATING:
            for n in ORDINARY_N[1:] if several_n(sparse, types) else (LARGEST,):
                yield form(types, n=n)
        for types, tail in integer_forms():
            for n in ORDINARY_N[1:] if several_n(sparse, types) and not tail else (LARGEST,):
                yield form(types, n=n, tail=tail)
        for types in TRANSPOSABLE:
            yield form(types, variant="b_row_major", layout="row.row")
            yield form(types, variant="a_column_major", layout="col.col")
            yield form(types, variant="both_transposed", layout="col.row")
            yield form(types, variant="a_regs_b_row_major", layout="row.row", a_regs=True)
            if not sparse:
                yield form(types, n=24, variant="b_row_major", layout="row.row")
        for types in FLOATING[:4] if sparse else []:
            yield form(types, variant="selector1", selector=1)
        yield from swizzled(form, sparse)
    bits = (256, "s32", "b1", "b1")
    for n in (8, LARGEST):
        yield wgmma(False, *bits, n=n, tail=".and.popc")
    yield wgmma(False, *bits, tail=".and.popc", variant="a_regs", a_regs=True)
    yield wgmma(False, *bits, tail=".and.popc", variant="scale_d0", scale_d=0)


def swizzled(form, sparse):
    """Shared memory in swizzled layouts. B of a sparse form takes 64 bytes of K, which atoms of 32 bytes do not hold: the matrix
    descriptor has no stride from one K-major atom to the next along K."""
    for width in (32, 64, 128):
        for types in [FLOATING[0], FLOATING[2], FLOATING[3], FLOATING[4], BYTES]:
            b_swizzle = {} if sparse and width == 32 else dict(b_swizzle=width)
            name = f"swizzle{width}" if b_swizzle else f"a_swizzle{width}"
            yield form(types, n=32, variant=name, a_swizzle=width, **b_swizzle)
        for types in TRANSPOSABLE:  # two atoms along N
            yield form(types, n=width, variant=f"swizzle{width}_both_transposed", layout="col.row", a_swizzle=width, b_swizzle=width)
    yield form(FLOATING[0], n=32, variant="a_swizzle128", a_swizzle=128)
    yield form(FLOATING[0], n=32, variant="b_swizzle64", b_swizzle=64)
    yield form(FLOATING[0], n=32, variant="a_regs_b_swizzle128", a_regs=True, b_swizzle=128)


def size_instructions(d, sparse):
    """The sizes of N that `instructions` leaves out, with results of one type."""
    forms = [(types, "") for types in FLOATING] + integer_forms() + ([] if sparse else [((256, "s32", "b1", "b1"), ".and.popc")])
    for types, tail in forms:
        ordinary = ORDINARY_N if several_n(sparse, types) and not tail else (8, LARGEST)
        for n in SIZES[d[0]]:
            if types[1] == d and n not in ordinary:
                yield wgmma(sparse, *types, n=n, tail=tail, size_sweep=True)


def shared_operand(of, operand):
    rows, k, element = (of.m, of.stored_k, of.a) if operand == "a" else (of.n, of.k, of.b)
    strided = layouts(of)[0] == "col" if operand == "a" else layouts(of)[1] == "row"
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
        la, lb = layouts(of)
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
