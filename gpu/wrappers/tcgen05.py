"""tcgen05.mma of sm_100a, one CTA: kinds, dense and sparse, with their operand choices as variants.

PTX keeps shape and types in the instruction descriptor; an instruction is named as the model's catalogue names it.
These wrappers have only been compiled, never run; launch_tcgen05.cuh lists what is unconfirmed.
"""
from instructions import BITS, FORMATS, Instruction

# M = 128 with the smallest N that every form takes; M = 64 uses half the lanes of tensor memory.
FULL, HALF, WIDE = (128, 16), (64, 8), (128, 256)
TYPICAL = ("f32.f16.f16", "f16.f16.f16", "f32.bf16.bf16", "f32.tf32.tf32", "f32.e4m3.e4m3", "f16.e5m2.e4m3", "s32.s8.s8")


def make_instruction(name, size=FULL, **flags):
    """An instruction of the given (M, N), which the name leaves open. Without a variant it is its own plain form, unless N is large."""
    def sized(m, n):
        return name.replace("mMnN", f"m{m}n{n}")
    of = Instruction(sized(*FULL))
    if of.kind.endswith("f8f6f4") and min(BITS[of.a], BITS[of.b]) < 8:
        flags["byte_containers"] = True
    return Instruction(sized(*size), plain=sized(*FULL) if size == WIDE else "", **flags)


def instructions_of(name):
    of = make_instruction(name)
    yield of
    if of.scale:
        yield from scaled_variants(name, of)
    elif of.types in TYPICAL and not of.saturates:
        yield from variants(name, of)


def variants(name, of):
    for size in (HALF, WIDE):
        yield make_instruction(name, size=size)
    for size in (FULL, HALF):
        yield make_instruction(name, size=size, variant="a_tmem", a_tensor_memory=True)
    yield make_instruction(name, variant="no_input_d", scale_d=0)
    if of.kind != "i8":
        yield make_instruction(name, variant="neg_a", scale_a=-1)
        yield make_instruction(name, variant="neg_b", scale_b=-1)
        yield make_instruction(name, variant="neg_ab", scale_a=-1, scale_b=-1)
        yield make_instruction(name, variant="a_tmem_neg_a", a_tensor_memory=True, scale_a=-1)
    if of.kind != "tf32":
        yield make_instruction(name, variant="b_row_major", layout="row.row")
        yield make_instruction(name, variant="a_column_major", layout="col.col")
        yield make_instruction(name, variant="a_column_b_row_major", layout="col.row")
    if of.sparse and of.kind in ("f16", "tf32"):
        yield make_instruction(name, variant="selector1", selector=1)


def scaled_variants(name, of):
    if of.kind == "mxf8f6f4" and of.types != "f32.e4m3.e4m3":
        return
    yield make_instruction(name, size=WIDE)
    yield make_instruction(name, variant="a_tmem", a_tensor_memory=True)
    yield make_instruction(name, variant="neg_a", scale_a=-1)
    yield make_instruction(name, variant="neg_b", scale_b=-1)
    yield make_instruction(name, variant="no_input_d", scale_d=0)
    if of.kind == "mxf8f6f4":
        yield make_instruction(name, variant="b_row_major", layout="row.row")
        yield make_instruction(name, variant="a_column_major", layout="col.col")


def instructions(architecture, sparse, integer):
    """Integers apart: sm_103 lacks them, and the others keep the indices that the table of sm_100 gives them."""
    for name in architecture.names_of("tcgen05", sparse=sparse):
        if (".kind::i8." in name) == integer:
            yield from instructions_of(name)


def operation_text(of):
    """The C++ initialiser of tcgen05::Operation."""
    flags, (la, lb) = of.flags, of.layouts
    fields = [f".kind = tcgen05::Kind::{of.kind}"]
    fields += [f".{operand} = formats::{FORMATS.get(x, x)}" for operand, x in zip("abd", (of.a, of.b, of.d))]
    fields += [f".m = {of.m}, .n = {of.n}"]
    fields += [f".scale = formats::{FORMATS.get(of.scale[0], of.scale[0])}"] if of.scale else []
    chosen = dict(sparse=of.sparse, saturate=of.saturates, negate_a="scale_a" in flags, negate_b="scale_b" in flags,
                  a_m_major=la == "col", b_n_major=lb == "row")
    fields += [f".{field} = true" for field, is_set in chosen.items() if is_set]
    fields += [f".sparsity_selector = {flags['selector']}"] if "selector" in flags else []
    return ", ".join(fields)


def struct(of):
    flags = of.flags
    a_tensor_memory, scale_count = "a_tensor_memory" in flags, of.scale[1] if of.scale else 0
    qualifiers = f"{'.sp' if of.sparse else ''}.cta_group::1.kind::{of.kind}"
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
