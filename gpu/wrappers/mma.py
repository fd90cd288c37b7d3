"""mma.sync and mma.sp: operands in the registers of one warp."""
from instructions import Instruction, bind, in_every_layout, slots

HALVES = ("f16", "bf16")
# Which byte and which of four lanes hold the scales: (byte of A, lane pair of A, byte of B, lane of B).
IDS_OF_BYTES = ((1, 1, 2, 1), (2, 0, 3, 2), (3, 1, 1, 3))
IDS_OF_PACKED = ((2, 1, 2, 1), (0, 1, 2, 2), (2, 0, 0, 3))


def instructions(architecture):
    """The dense forms without .kind. Those of Volta take every layout."""
    for name in architecture.names_of("mma", sparse=False, kind=False):
        of = Instruction(name)
        yield from in_every_layout(name) if of.shape == (8, 8, 4) and of.a == "f16" else [of]


def sparse_instructions(architecture):
    """The sparse forms without .kind: metadata with selectors, and in any order where plain mma.sp allows that."""
    for name in architecture.names_of("mma", sparse=True, kind=False):
        of = Instruction(name)
        yield of
        if of.saturates or of.a != of.b:
            continue
        if name.startswith("mma.sp.") and (of.a in HALVES or (of.k, of.a) in ((64, "e4m3"), (64, "s8"), (128, "s4"))):
            yield Instruction(name, variant="unordered", unordered=True)
        if of.a in HALVES + ("tf32",) or (of.k, of.a) in ((32, "s8"), (64, "s4")):
            one_lane = of.k * (2 if of.a == "tf32" else 1) == 16
            for selector in (1, 2, 3) if one_lane else (1,):
                yield Instruction(name, variant=f"selector{selector}", selector=selector)


def kind_instructions(architecture):
    """The forms with .kind: FP8, FP6 and FP4 in any mixture, and block-scaled ones (NUMERICS 1.6, 3.8).

    ptxas also takes kind::f8f6f4 with FP8 for m16n8k16, and for sm_100a sparse: the plain FP8 forms under another name. It takes
    block-scaled names without .scale_vec, which mean the only one there is. Four scales of ue8m0 came with PTX 9.1, which it does
    not know.
    """
    for name in architecture.names_of("mma", kind=True):
        flags = dict(byte_containers=True) if architecture.number == 120 and "::mxf4" not in name else {}
        of = Instruction(name, **flags)
        if of.scale == ("ue8m0", 4):
            continue
        yield of
        if of.scale and of.a == of.b and of.a in ("e4m3", "e2m1") and (of.a == "e4m3") == ("byte_containers" in flags):
            for ids in IDS_OF_BYTES if flags else IDS_OF_PACKED:
                ids = ids if of.scale[1] != 4 else (0, ids[1], 0, ids[3])
                yield Instruction(name, variant="scale_ids" + "".join(map(str, ids)), scale_ids=ids, **flags)


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
    if of.scale:
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
