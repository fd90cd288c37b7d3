"""mma.sync and mma.sp: operands in the registers of one warp."""
import itertools

from instructions import FP8, INT4, INT8, NARROW, Instruction, bind, shape_text, slots

ORDERED = "mma.sp::ordered_metadata"


def mma(shape, d, a, b, c, saturate="", tail="", layout="row.col", rounding=""):
    name = f"mma.sync.aligned.{shape_text(*shape)}.{layout}{saturate}{rounding}.{d}.{a}.{b}.{c}{tail}"
    plain = "" if layout == "row.col" else name.replace(layout, "row.col")
    return Instruction("mma", name, shape, a, b, c, d, plain=plain, layout=layout)


def instructions(architecture):
    """The dense forms without .kind."""
    for k in (8, 16):
        yield mma((16, 8, k), "f16", "f16", "f16", "f16")
        yield mma((16, 8, k), "f32", "f16", "f16", "f32")
        yield mma((16, 8, k), "f32", "bf16", "bf16", "f32")
    for k in (4, 8):
        yield mma((16, 8, k), "f32", "tf32", "tf32", "f32")
    if architecture.number >= 89:
        for k, d, a, b in itertools.product((16, 32), ("f32", "f16"), FP8, FP8):
            yield mma((16, 8, k), d, a, b, d)
    fp64_shapes = ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)) if architecture.number >= 90 else ((8, 8, 4),)
    for shape, rounding in itertools.product(fp64_shapes, ("", ".rz", ".rm", ".rp")):
        yield mma(shape, "f64", "f64", "f64", "f64", rounding=rounding)
    for (d, c), la, lb in itertools.product((("f16", "f16"), ("f32", "f16"), ("f32", "f32")), ("row", "col"), ("row", "col")):
        yield mma((8, 8, 4), d, "f16", "f16", c, layout=f"{la}.{lb}")
    for shapes, types in ((((8, 8, 16), (16, 8, 16), (16, 8, 32)), INT8), (((8, 8, 32), (16, 8, 32), (16, 8, 64)), INT4)):
        for shape, a, b, saturate in itertools.product(shapes, types, types, ("", ".satfinite")):
            yield mma(shape, "s32", a, b, "s32", saturate=saturate)
    for shape, op in itertools.product(((8, 8, 128), (16, 8, 128), (16, 8, 256)), ("xor", "and")):
        yield mma(shape, "s32", "b1", "b1", "s32", tail=f".{op}.popc")


def sparse_instructions(architecture):
    """The sparse forms without .kind: metadata with selectors, and in any order where plain mma.sp allows that."""
    for order in ("mma.sp", ORDERED):
        def sparse(k, d, a, b, saturate="", **flags):
            shape = (16, 8, k)
            return Instruction("mma", f"{order}.sync.aligned.{shape_text(*shape)}.row.col{saturate}.{d}.{a}.{b}.{d}", shape, a, b, d, d,
                       sparse=True, layout="row.col", **flags)
        halves = [(k, d, a, a) for k in (16, 32) for d, a in (("f16", "f16"), ("f32", "f16"), ("f32", "bf16"))]
        tf32 = [(k, "f32", "tf32", "tf32") for k in (8, 16)]
        fp8 = [(64, "f32", a, b) for a, b in itertools.product(FP8, FP8)] if architecture.number >= 89 else []
        yield from (sparse(*types) for types in halves + tf32 + fp8)
        for ks, types in (((32, 64), INT8), ((64, 128), INT4)):
            for k, a, b, saturate in itertools.product(ks, types, types, ("", ".satfinite")):
                yield sparse(k, "s32", a, b, saturate)
        if order == "mma.sp":
            for types in halves + fp8[:1] + [(64, "s32", "s8", "s8"), (128, "s32", "s4", "s4")]:
                yield sparse(*types, variant="unordered", unordered=True)
        elif architecture.number == 120:
            yield from (sparse(64, "f16", a, b) for a, b in itertools.product(FP8, FP8))
        for types in halves + tf32 + [(32, "s32", "s8", "s8"), (64, "s32", "s4", "s4")]:
            one_lane = types[0] * (2 if types[2] == "tf32" else 1) == 16
            for selector in (1, 2, 3) if one_lane else (1,):
                yield sparse(*types, variant=f"selector{selector}", selector=selector)


def kind_instructions(architecture):
    """The forms with .kind: FP8, FP6 and FP4 in any mixture, and block-scaled ones (NUMERICS 1.6, 3.8).

    ptxas also takes kind::f8f6f4 with FP8 for m16n8k16, and for sm_100a sparse: the plain FP8 forms under another name. It takes
    block-scaled names without .scale_vec, which mean the only one there is.
    """
    for sparse in (False, True):
        order, factor = (ORDERED, 2) if sparse else ("mma", 1)

        def unscaled(k, qualifiers, d, a, b, stype="", variant="", **flags):
            shape = (16, 8, k * factor)
            name = f"{order}.sync.aligned.{shape_text(*shape)}.row.col.kind::{qualifiers}.{d}.{a}.{b}.{d}{stype and '.' + stype}"
            return Instruction("mma", name, shape, a, b, d, d, sparse=sparse, variant=variant, **flags)

        def scaled(k, kind, count, a, b, stype, variant="", **flags):
            return unscaled(k, f"{kind}.block_scale.scale_vec::{count}X", "f32", a, b, stype, variant, scale=(stype, count), **flags)

        if architecture.number == 100 and not sparse:  # FP8 only, emulated
            for d, a, b in itertools.product(("f32", "f16"), FP8, FP8):
                yield unscaled(32, "f8f6f4", d, a, b)
        if architecture.number != 120:
            continue
        for d, a, b in itertools.product(("f32", "f16"), NARROW, NARROW):
            yield unscaled(32, "f8f6f4", d, a, b, byte_containers=True)
        for a, b in itertools.product(NARROW, NARROW):
            yield scaled(32, "mxf8f6f4", 1, a, b, "ue8m0", byte_containers=True)
        packed = [("mxf4", 2, "ue8m0"), ("mxf4nvf4", 2, "ue8m0"), ("mxf4nvf4", 4, "ue4m3")]
        for kind, count, stype in packed:
            yield scaled(64, kind, count, "e2m1", "e2m1", stype)
        # Which byte and which of four lanes hold the scales: (byte of A, lane pair of A, byte of B, lane of B).
        for ids in ((1, 1, 2, 1), (2, 0, 3, 2), (3, 1, 1, 3)):
            yield scaled(32, "mxf8f6f4", 1, "e4m3", "e4m3", "ue8m0", "scale_ids" + "".join(map(str, ids)), byte_containers=True,
                         scale_ids=ids)
        for (kind, count, stype), ids in itertools.product(packed, ((2, 1, 2, 1), (0, 1, 2, 2), (2, 0, 0, 3))):
            ids = ids if count == 2 else (0, ids[1], 0, ids[3])
            yield scaled(64, kind, count, "e2m1", "e2m1", stype, "scale_ids" + "".join(map(str, ids)), scale_ids=ids)


def struct(of):
    lanes = 8 if of.shape == (8, 8, 4) and of.a == "f16" else 32
    counts = [of.words(e, n, lanes) for e, n in ((of.a, of.m * of.stored_k), (of.b, of.n * of.k), (of.c, of.m * of.n),
                                                  (of.d, of.m * of.n))]
    na, nb, nc, nd = counts
    letter = "l" if of.a == "f64" else "r"
    operands = [slots(0, nd), slots(nd, na), slots(nd + na, nb), slots(nd + na + nb, nc)]
    inputs = [bind("r.a", na, letter), bind("r.b", nb, letter), bind("r.c", nc, letter)]
    next_slot = nd + na + nb + nc
    if of.sparse:
        operands += [f"%{next_slot}", str(of.flags.get("selector", 0))]
        inputs.append('"r"(r.e)')
        next_slot += 1
    if "scale" in of.flags:
        byte_a, lane_a, byte_b, lane_b = of.flags.get("scale_ids", (0, 0, 0, 0))
        operands += [f"%{next_slot}", f"{{{byte_a}, {lane_a}}}", f"%{next_slot + 1}", f"{{{byte_b}, {lane_b}}}"]
        inputs.append('"r"(r.a_scale), "r"(r.b_scale)')
    word = "std::uint64_t" if of.a == "f64" else "std::uint32_t"
    return f"""  using Word = {word};
  static constexpr int a = {na}, b = {nb}, c = {nc}, d = {nd};
  __device__ static void run(Registers<{of.id}>& r) {{
    asm volatile("{of.name} {', '.join(operands)};"
                 : {bind("r.d", nd, "=" + letter)}
                 : {", ".join(inputs)});
  }}"""
