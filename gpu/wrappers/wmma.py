"""wmma.mma: the wrapper loads and stores its own fragments, whose layout PTX does not say."""
from instructions import BITS, Instruction, in_every_layout, shape_text


def instructions(architecture):
    """Operands of fewer than eight bits have one layout."""
    for name in architecture.names_of("wmma"):
        of = Instruction(name)
        yield from in_every_layout(name) if BITS[of.a] >= 8 else [of]


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
    la, lb = of.layouts
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
