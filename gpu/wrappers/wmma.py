"""wmma.mma: the wrapper loads and stores its own fragments, whose layout PTX does not say."""
from rows import BITS, Row, in_every_layout, shape_text


def rows(architecture):
    """Operands of fewer than eight bits have one layout."""
    for name in architecture.names_of("wmma"):
        row = Row(name)
        yield from in_every_layout(name) if BITS[row.a] >= 8 else [row]


def struct(row):
    def fragment(element, count, operand):
        if element == "f16" and operand:
            return 8
        return count * BITS[element] // 32 // (64 if element == "f64" else 32)
    na, nb = fragment(row.a, row.m * row.k, True), fragment(row.b, row.k * row.n, True)
    nc, nd = fragment(row.c, row.m * row.n, False), fragment(row.d, row.m * row.n, False)
    shape = shape_text(*row.shape)
    kind = "b64" if row.a == "f64" else "b32"
    regs = lambda p, n: "{" + ", ".join(f"{p}{i}" for i in range(n)) + "}"
    la, lb = row.layouts
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
