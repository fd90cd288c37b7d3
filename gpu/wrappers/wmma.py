"""wmma.mma: the wrapper loads and stores its own fragments, whose layout PTX does not say."""
import itertools

from instructions import BITS, INT4, INT8, Instruction, layouts, shape_text

TILES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
OTHER_LAYOUTS = ("row.row", "col.row", "col.col")


def wmma(shape, a, c, d, types="", qualifier="", tail="", layout="row.col", op=""):
    name = lambda layout: (f"wmma.mma{op}.sync.aligned.{layout}.{shape_text(*shape)}{qualifier}"
                           f".{types or f'{d}.{a}.{a}.{c}'}{tail}")
    return Instruction("wmma", name(layout), shape, a, a, c, d, layout=layout, plain="" if layout == "row.col" else name("row.col"))


def instructions(architecture):
    def of_halves(shape, **flags):
        for d, c in itertools.product(("f32", "f16"), ("f32", "f16")):
            yield wmma(shape, "f16", c, d, types=f"{d}.{c}", **flags)

    for shape in TILES:
        yield from of_halves(shape)
    for shape in TILES:
        yield wmma(shape, "bf16", "f32", "f32")
    yield wmma((16, 16, 8), "tf32", "f32", "f32")
    for rounding in ("", ".rz", ".rm", ".rp"):
        yield wmma((8, 8, 4), "f64", "f64", "f64", qualifier=rounding)
    for shape, a, saturate in itertools.product(TILES, INT8, ("", ".satfinite")):
        yield wmma(shape, a, "s32", "s32", tail=saturate)
    for a, saturate in itertools.product(INT4, ("", ".satfinite")):
        yield wmma((8, 8, 32), a, "s32", "s32", tail=saturate)
    for op in ("xor", "and"):
        yield wmma((8, 8, 128), "b1", "s32", "s32", op=f".{op}.popc")
    for layout in OTHER_LAYOUTS:
        for shape in TILES:
            yield from of_halves(shape, layout=layout)
            yield wmma(shape, "bf16", "f32", "f32", layout=layout)
        yield wmma((16, 16, 8), "tf32", "f32", "f32", layout=layout)
        for rounding in ("", ".rz", ".rm", ".rp"):
            yield wmma((8, 8, 4), "f64", "f64", "f64", qualifier=rounding, layout=layout)
        for shape, a, saturate in itertools.product(TILES, INT8, ("", ".satfinite")):
            yield wmma(shape, a, "s32", "s32", tail=saturate, layout=layout)


def struct(of):
    def fragment(element, count, operand):
        if element == "f16" and operand:
            return 8
        return count * BITS[element] // 32 // (64 if element == "f64" else 32)
    na, nb = fragment(of.a, of.m * of.k, True), fragment(of.b, of.k * of.n, True)
    nc, nd = fragment(of.c, of.m * of.n, False), fragment(of.d, of.m * of.n, False)
    shape = shape_text(*of.shape)
    kind = "b64" if of.a == "f64" else "b32"
    regs = lambda p, n: "{" + ", ".join(f"{p}{i}" for i in range(n)) + "}"
    la, lb = layouts(of)
    lines = [f".reg .{kind} a<{na}>, b<{nb}>, c<{nc}>, d<{nd}>;",
             f"wmma.load.a.sync.aligned.{la}.{shape}.{of.a} {regs('a', na)}, [%0], {of.m if la == 'col' else of.k};",
             f"wmma.load.b.sync.aligned.{lb}.{shape}.{of.b} {regs('b', nb)}, [%1], {of.n if lb == 'row' else of.k};",
             f"wmma.load.c.sync.aligned.row.{shape}.{of.c} {regs('c', nc)}, [%2], {of.n};",
             f"{of.name} {regs('d', nd)}, {regs('a', na)}, {regs('b', nb)}, {regs('c', nc)};",
             f"wmma.store.d.sync.aligned.row.{shape}.{of.d} [%3], {regs('d', nd)}, {of.n};"]
    text = "\n                 ".join(f'"{line}\\n"' for line in ["{"] + lines + ["}"])
    return f"""  __device__ static void run(const void* a, const void* b, const void* c, void* d) {{
    asm volatile({text}
                 :
                 : "l"(a), "l"(b), "l"(c), "l"(d)
                 : "memory");
  }}"""
