"""tcgen05.mma of sm_100a, one CTA: kinds, dense and sparse, with their operand choices as variants.

PTX keeps shape and types in the instruction descriptor; an instruction is named as the model's catalogue names it.
These wrappers have only been compiled, never run; launch_tcgen05.cuh lists what is unconfirmed.
"""
import itertools

from instructions import BITS, FORMATS, INT8, NARROW, Instruction, layouts, shape_text

# M = 128 with the smallest N that every form takes; M = 64 uses half the lanes of tensor memory.
FULL, HALF, WIDE = (128, 16), (64, 8), (128, 256)

# Kind, K of the dense form, D, A, B.
FLOATING = [("f16", 16, "f32", "f16", "f16"), ("f16", 16, "f16", "f16", "f16"), ("f16", 16, "f32", "bf16", "bf16"),
            ("tf32", 8, "f32", "tf32", "tf32")]
FLOATING += [("f8f6f4", 32, d, a, b) for d, a, b in itertools.product(("f32", "f16"), NARROW, NARROW)]
INTEGER = [("i8", 32, "s32", a, b) for a, b in itertools.product(INT8, INT8)]
TYPICAL = FLOATING[:5] + [("f8f6f4", 32, "f16", "e5m2", "e4m3")]
# Kind, K of the dense form, A, B, scales along K and their format.
SCALED = [("mxf8f6f4", 32, a, b, 1, "ue8m0") for a, b in itertools.product(NARROW, NARROW)]
SCALED += [("mxf4", 64, "e2m1", "e2m1", 2, "ue8m0")]
SCALED += [("mxf4nvf4", 64, "e2m1", "e2m1", count, scale) for count, scale in ((2, "ue8m0"), (4, "ue8m0"), (4, "ue4m3"))]


def make_instruction(sparse, kind, k, d, a, b, size=FULL, tail="", variant="", **flags):
    """An instruction of the given (M, N). Without a variant it is its own plain form, unless N is large."""
    def name(n):
        shape = shape_text(size[0], n, k * (2 if sparse else 1))
        return f"tcgen05.mma{'.sp' if sparse else ''}.kind::{kind}.{shape}.{d}.{a}.{b}{tail}"
    if kind.endswith("f8f6f4") and min(BITS[a], BITS[b]) < 8:
        flags["byte_containers"] = True
    return Instruction("tcgen05", name(size[1]), (*size, k * (2 if sparse else 1)), a, b, d, d, sparse=sparse, variant=variant,
               plain=name(FULL[1]) if size == WIDE else "", kind=kind, **flags)


def plain_instructions(sparse, forms, typical):
    for form in forms:
        yield make_instruction(sparse, *form)
        if form[0] == "i8":
            yield make_instruction(sparse, *form, tail=".satfinite", saturate=True)
    for size in (HALF, WIDE):
        for form in typical:
            yield make_instruction(sparse, *form, size=size)


def variant_instructions(sparse, typical):
    for form in typical:
        for size in (FULL, HALF):
            yield make_instruction(sparse, *form, size=size, variant="a_tmem", a_tensor_memory=True)
        yield make_instruction(sparse, *form, variant="no_input_d", scale_d=0)
    for form in [x for x in typical if x[0] != "i8"]:
        yield make_instruction(sparse, *form, variant="neg_a", scale_a=-1)
        yield make_instruction(sparse, *form, variant="neg_b", scale_b=-1)
        yield make_instruction(sparse, *form, variant="neg_ab", scale_a=-1, scale_b=-1)
        yield make_instruction(sparse, *form, variant="a_tmem_neg_a", a_tensor_memory=True, scale_a=-1)
    for form in [x for x in typical if x[0] != "tf32"]:
        yield make_instruction(sparse, *form, variant="b_row_major", layout="row.row")
        yield make_instruction(sparse, *form, variant="a_column_major", layout="col.col")
        yield make_instruction(sparse, *form, variant="a_column_b_row_major", layout="col.row")
    for form in [x for x in typical if sparse and x[0] in ("f16", "tf32")]:
        yield make_instruction(sparse, *form, variant="selector1", selector=1)


def scaled_instructions(sparse):
    def scaled(kind, k, a, b, count, stype, **options):
        return make_instruction(sparse, kind, k, "f32", a, b, tail=f".block_scale.scale_vec::{count}X.{stype}", scale=(stype, count), **options)
    for form in SCALED:
        yield scaled(*form)
    for form in SCALED[:1] + SCALED[-4:]:
        yield scaled(*form, size=WIDE)
        yield scaled(*form, variant="a_tmem", a_tensor_memory=True)
        yield scaled(*form, variant="neg_a", scale_a=-1)
        yield scaled(*form, variant="neg_b", scale_b=-1)
        yield scaled(*form, variant="no_input_d", scale_d=0)
    yield scaled(*SCALED[0], variant="b_row_major", layout="row.row")
    yield scaled(*SCALED[0], variant="a_column_major", layout="col.col")


def floating_instructions(sparse):
    yield from plain_instructions(sparse, FLOATING, TYPICAL)
    yield from variant_instructions(sparse, TYPICAL)
    yield from scaled_instructions(sparse)


def instructions(architecture):
    return floating_instructions(False)


def sparse_instructions(architecture):
    return floating_instructions(True)


def has_integers(architecture):
    """sm_103 lost kind::i8: groups of their own leave the indices of the other instructions as the table of sm_100 has them."""
    return not architecture.target.startswith("103")


def all_integer_instructions(sparse):
    yield from plain_instructions(sparse, INTEGER, INTEGER[:1])
    yield from variant_instructions(sparse, INTEGER[:1])


def integer_instructions(architecture):
    return all_integer_instructions(False)


def sparse_integer_instructions(architecture):
    return all_integer_instructions(True)


def operation_text(of):
    """The C++ initialiser of tcgen05::Operation."""
    flags, (la, lb) = of.flags, layouts(of)
    fields = [f".kind = tcgen05::Kind::{flags['kind']}"]
    fields += [f".{operand} = formats::{FORMATS.get(x, x)}" for operand, x in zip("abd", (of.a, of.b, of.d))]
    fields += [f".m = {of.m}, .n = {of.n}"]
    fields += [f".scale = formats::{FORMATS.get(flags['scale'][0], flags['scale'][0])}"] if "scale" in flags else []
    chosen = dict(sparse=of.sparse, saturate="saturate" in flags, negate_a="scale_a" in flags, negate_b="scale_b" in flags,
                  a_m_major=la == "col", b_n_major=lb == "row")
    fields += [f".{field} = true" for field, is_set in chosen.items() if is_set]
    fields += [f".sparsity_selector = {flags['selector']}"] if "selector" in flags else []
    return ", ".join(fields)


def struct(of):
    flags = of.flags
    a_tensor_memory, scale_count = "a_tensor_memory" in flags, flags.get("scale", ("", 0))[1]
    qualifiers = f"{'.sp' if of.sparse else ''}.cta_group::1.kind::{flags['kind']}"
    qualifiers += f".block_scale.scale_vec::{scale_count}X" if scale_count else ""
    operands = [("[{}]", "r", "x.d"), ("[{}]", "r", "x.a") if a_tensor_memory else ("{}", "l", "x.a_descriptor"),
                ("{}", "l", "x.b_descriptor")]
    operands += [("[{}]", "r", "x.metadata")] if of.sparse else []
    operands += [("{}", "r", "descriptor")]
    operands += [("[{}]", "r", "x.a_scale"), ("[{}]", "r", "x.b_scale")] if scale_count else []
    text = ", ".join(form.format(f"%{i}") for i, (form, _, _) in enumerate(operands))
    inputs = ", ".join(f'"{constraint}"({value})' for _, constraint, value in operands)
    return f"""  static constexpr tcgen05::Operation operation = {{{operation_text(of)}}};
  static constexpr std::uint32_t descriptor = tcgen05::instruction_descriptor(operation);
  static constexpr int stored_k = {of.stored_k};
  static constexpr bool a_from_tensor_memory = {str(a_tensor_memory).lower()}, is_scaled = {str(scale_count > 0).lower()};
  __device__ static void run(const Tcgen05Operands& x) {{
    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, {flags.get('scale_d', 1)}, 0;\\n"
                 "tcgen05.mma{qualifiers} {text}, p;\\n}}\\n"
                 :
                 : {inputs}
                 : "memory");
  }}"""
