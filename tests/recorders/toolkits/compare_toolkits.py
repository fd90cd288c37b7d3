#!/usr/bin/env python3
"""Which of CUDA's functions do two toolkits compute otherwise? Compiles each function by both compilers (NVRTC, as the wheels
nvidia-cuda-nvrtc-cu12 of PyPI have it), compares the PTX, and where that differs the results of 2^N inputs, of steps that
C++ takes as a GPU takes them; multiplications that ptxas may fuse with additions are not fused.
Needs x86 with AVX2, g++ and a built release folder:
python3 compare_toolkits.py libnvrtc.so.12 libnvrtc.so.13 [--inputs N] [--only NAME ...]"""

import argparse
import ctypes
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

ONE = """expf exp2f exp10f expm1f logf log2f log10f log1pf tanhf sinhf coshf asinhf acoshf atanhf sinf cosf tanf asinf acosf
atanf erff erfcf erfinvf normcdff lgammaf sqrtf rsqrtf cbrtf __expf __logf __sinf __cosf __tanf __exp10f __log2f __log10f
sinpif cospif erfcxf erfcinvf normcdfinvf tgammaf rcbrtf j0f j1f y0f y1f cyl_bessel_i0f cyl_bessel_i1f __frsqrt_rn
__saturatef roundf floorf ceilf truncf rintf nearbyintf logbf fabsf __frcp_rn __frcp_rz __frcp_rd __frcp_ru __fsqrt_rn
__fsqrt_rz __fsqrt_rd __fsqrt_ru""".split()
TWO = """powf atan2f hypotf rhypotf fmodf remainderf fdimf fmaxf fminf nextafterf copysignf __powf __fdividef fdividef
__fdiv_rn __fdiv_rz __fdiv_rd __fdiv_ru __fadd_rn __fadd_rz __fadd_rd __fadd_ru __fsub_rn __fsub_rz __fsub_rd __fsub_ru
__fmul_rn __fmul_rz __fmul_rd __fmul_ru""".split()
THREE = """norm3df rnorm3df fmaf __fmaf_rn __fmaf_rz __fmaf_rd __fmaf_ru __fmaf_ieee_rn __fmaf_ieee_rz __fmaf_ieee_rd
__fmaf_ieee_ru""".split()
# Operands are at x, y, z and n, results go to d[0], d[1] and m[0].
OTHERS = {
    "norm4df": "d[0] = norm4df(*x, *y, *z, z[1]);",
    "rnorm4df": "d[0] = rnorm4df(*x, *y, *z, z[1]);",
    "sincosf": "sincosf(*x, d, d + 1);",
    "sincospif": "sincospif(*x, d, d + 1);",
    "__sincosf": "__sincosf(*x, d, d + 1);",
    "modff": "d[0] = modff(*x, d + 1);",
    "frexpf": "d[0] = frexpf(*x, m);",
    "ilogbf": "m[0] = ilogbf(*x);",
    "ldexpf": "d[0] = ldexpf(*x, m[0]);",
    "scalbnf": "d[0] = scalbnf(*x, m[0]);",
    "remquof": "d[0] = remquof(*x, *y, m);",
    "jnf": "d[0] = jnf(m[0], *x);",
    "ynf": "d[0] = ynf(m[0], *x);",
}


def kernels():
    statements = {name: f"d[0] = {name}(*x);" for name in ONE}
    statements |= {name: f"d[0] = {name}(*x, *y);" for name in TWO}
    statements |= {name: f"d[0] = {name}(*x, *y, *z);" for name in THREE}
    return statements | OTHERS


def ptx_of(library, architecture="compute_90"):
    """PTX of all kernels."""
    nvrtc = ctypes.CDLL(library)
    source = "".join(
        f'extern "C" __global__ void {name}_kernel(float* d, const float* x, const float* y, const float* z, int* m) {{ {statement} }}\n'
        for name, statement in kernels().items()
    )
    program = ctypes.c_void_p()

    def text(kind):
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{kind}")(program, buffer)
        return buffer.value.decode()

    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), None, 0, None, None)
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
    if nvrtc.nvrtcCompileProgram(program, 1, options) != 0:
        raise SystemExit(f"{library}: {text('ProgramLog')}")
    return text("PTX")


def bodies(ptx):
    """Lines of each kernel."""
    found = {}
    for match in re.finditer(r"\.entry (\w+)_kernel\((.*?)\)\s*\{(.*?)\n\}\n", ptx, re.DOTALL):
        lines = [line.strip() for line in match[3].split("\n")]
        found[match[1]] = [line for line in lines if line and not line.startswith((".reg", ".pragma", "//"))]
    return found


def without_names(lines):
    """The text with registers and labels numbered in the order of their appearance."""
    numbers = {}
    return re.sub(
        r"%[a-z]+\d+|\$L__BB\d+_\d+", lambda name: numbers.setdefault(name[0], f"#{len(numbers)}"), "\n".join(lines)
    )


WORDS = {"s32": "Signed", "u32": "Word", "b32": "Word", "s64": "WideSigned", "u64": "Wide", "b64": "Wide"}
SIGNS = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "mul": "*"}
RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def operand(word):
    if word == "%tid.x":
        return "Wide{0}"
    if word.startswith("%"):
        return word.replace("%", "r_")
    if word.startswith(("0f", "0d")):
        return f"Wide{{0x{word[2:]}}}"
    if re.fullmatch(r"-?\d+", word):
        return f"static_cast<Wide>({word}LL)"
    return f"reinterpret_cast<Wide>({word})"


def address(word):
    base, offset = re.fullmatch(r"\[([%\w$]+)(?:\+(-?\d+))?\]", word).groups()
    return f"{operand(base)} + Wide({offset or 0})"


def integer(parts, operands):
    """An operation on words, as an expression."""
    operation, word = parts[0], WORDS[parts[-1]]
    plain = word.replace("WideSigned", "Wide").replace("Signed", "Word")
    values = [f"static_cast<{word}>({x})" for x in operands]
    codes = [f"static_cast<{plain}>({x})" for x in operands]
    if parts[1] == "wide":
        wide = "Wide" if word == "Word" else "WideSigned"
        product = f"static_cast<Wide>({wide}{{{values[0]}}} * {wide}{{{values[1]}}})"
        return product if operation == "mul" else f"{product} + {operands[2]}"
    if parts[1] == "lo" and operation == "mad":
        return f"{codes[0]} * {codes[1]} + {codes[2]}"
    if operation in SIGNS:
        return f"{codes[0]} {SIGNS[operation]} {codes[1]}"
    if operation in ("min", "max"):
        return f"static_cast<{plain}>(std::{operation}({values[0]}, {values[1]}))"
    if operation == "neg":
        return f"0 - {codes[0]}"
    if operation == "not":
        return f"~{codes[0]}"
    if operation == "abs":
        return f"{values[0]} < 0 ? 0 - {codes[0]} : {codes[0]}"
    return f"{'_'.join(parts)}({', '.join(operands)})"


def statement(line):
    """A line of PTX in C++."""
    if label := re.fullmatch(r"\$(\w+):", line):
        return f"{label[1]}:;"
    if array := re.match(r"\.local .align \d+ \.b8\s+(\w+)\[(\d+)\]", line):
        return f"alignas(16) char {array[1]}[{array[2]}];"
    condition = ""
    if guard := re.match(r"@(!?)(%p\d+)\s+(.*)", line):
        condition, line = f"if ({guard[1]}{operand(guard[2])}) ", guard[3]
    name, _, rest = re.sub(r"\s+", " ", line.rstrip(";").strip()).partition(" ")
    words = [word.strip() for word in rest.split(",")] if rest else []
    parts = name.split(".")
    if parts[0] == "bra":
        return f"{condition}goto {words[0].lstrip('$')};"
    if parts[0] == "ret":
        return f"{condition}return;"
    if parts[0] == "st":
        return f"{condition}store({address(words[0])}, {operand(words[1])});"
    operands = [operand(word) for word in words[1:]] if parts[0] != "ld" else []
    if parts[:2] == ["ld", "param"]:
        value = f"reinterpret_cast<Wide>(a.at[{words[1].rstrip(']').rpartition('_')[2]}])"
    elif parts[0] == "ld":
        value = f"loaded({address(words[1])})"
    elif parts[0] in ("mov", "cvta"):
        value = operands[0]
    elif parts[0] == "setp" and parts[-1] == "f32":
        value = f"{parts[1]}_f32({operands[0]}, {operands[1]})"
    elif parts[0] == "setp":
        word = WORDS[parts[-1]]
        value = f"static_cast<{word}>({operands[0]}) {RELATIONS[parts[1]]} static_cast<{word}>({operands[1]})"
    elif parts[0] == "selp":
        value = f"{operands[2]} ? Wide{{{operands[0]}}} : Wide{{{operands[1]}}}"
    elif parts[-1] == "pred":
        value = f"!{operands[0]}" if parts[0] == "not" else f"{operands[0]} {'&&' if parts[0] == 'and' else '||'} {operands[1]}"
    elif parts[-1] in WORDS and parts[0] != "cvt":
        value = integer(parts, operands)
    else:
        value = f"{'_'.join(parts)}({', '.join(operands)})"
    kind = "bool" if words[0].startswith("%p") else "Wide" if re.match(r"%(rd|fd|SP)", words[0]) else "Word"
    return f"{condition}{operand(words[0])} = static_cast<{kind}>({value});"


def function(name, lines):
    registers = sorted(set(re.findall(r"%[a-zA-Z]+\d*\b", "\n".join(lines))) - {"%tid"})
    kinds = {"%p": "bool", "%r": "Word", "%f": "Word"}
    declared = [f"{kinds.get(re.match(r'%[a-zA-Z]+', r)[0], 'Wide')} {operand(r)}{{}};" for r in registers]
    return "\n".join([f"void {name}(const Arguments& a) {{", *declared, *map(statement, lines), "}"])


def program(first, second, names):
    """C++ that compares the kernels of those names."""
    text = ['#include "tests/recorders/toolkits/ptx_steps.hpp"', "namespace ptx { namespace {"]
    text.append("constexpr Word __cudart_i2opi_f[] = {0x3c439041, 0xdb629599, 0xf534ddc0, 0xfc2757d1, 0x4e441529, 0xa2f9836e};")
    for space, kernels_of in (("first", first), ("second", second)):
        text += [f"namespace {space} {{", *(function(name, kernels_of[name]) for name in names), "}"]
    text.append("}}  // namespaces\n#define COMPARED_FUNCTIONS \\")
    text.append(" ".join(f'{{"{name}", ptx::first::{name}, ptx::second::{name}}},' for name in names))
    text.append('#include "tests/recorders/toolkits/compare_results.inc"')
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--inputs", type=int, default=20, metavar="N", help="2^N inputs of each function (default 20)")
    parser.add_argument("--only", nargs="*", default=list(kernels()), metavar="NAME")
    arguments = parser.parse_args()
    first, second = bodies(ptx_of(arguments.first)), bodies(ptx_of(arguments.second))
    names = [name for name in arguments.only if without_names(first[name]) != without_names(second[name])]
    print(f"{len(arguments.only) - len(names)} of {len(arguments.only)} functions have the same PTX", flush=True)
    if not names:
        return
    libraries = [str(ROOT / "build" / "release" / part / f"libguardbit_{part}.a") for part in ("emulator", "formats")]
    flags = ["-std=c++20", "-O1", "-mavx2", "-mfma", "-ffp-contract=off", "-w", "-I", str(ROOT)]
    with tempfile.TemporaryDirectory() as folder:
        command = Path(folder) / "compare"
        source = program(first, second, names)
        subprocess.run(
            ["g++", *flags, "-x", "c++", "-", "-x", "none", *libraries, "-o", str(command)], input=source, text=True, check=True
        )
        subprocess.run([str(command), str(arguments.inputs)], check=True)


if __name__ == "__main__":
    main()
