#!/usr/bin/env python3
"""Writes the table of the forms in conversions.txt that an architecture has (90a, say) and one kernel wrapper per pair of
types: generate_conversions.py ARCHITECTURE FOLDER."""
import pathlib
import re
import sys

LIST = pathlib.Path(__file__).with_name("conversions.txt")
FORMATS = dict(f16="fp16", f32="fp32", f64="fp64",
               **{f"{letter}{bits}": f"{kind}{bits}" for letter, kind in (("s", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)})
# Files of kernels by source type, so that they compile side by side.
GROUPS = dict(f16="halves", bf16="halves", f32="fp32", f64="fp64", s8="bytes", u8="bytes", s16="int16", u16="int16", s32="int32",
              u32="int32", s64="int64", u64="int64", f16x2="halves", e4m3x2="halves", e5m2x2="halves")
WORDS = {"h": "std::uint16_t", "r": "std::uint32_t", "l": "std::uint64_t"}
BITS = dict(f16=16, bf16=16, f32=32, tf32=32, f64=64, e4m3=8, e5m2=8)


def element(type_name):
    return type_name.removesuffix("x2")


def format_name(type_name):
    return "formats::" + FORMATS.get(element(type_name), element(type_name))


def letter_of(type_name):
    """The constraint of the register that holds a type; there is none of 8 bits."""
    bits = BITS.get(element(type_name)) or int(type_name[1:])
    bits *= 2 if type_name.endswith("x2") else 1
    return {8: "h", 16: "h", 32: "r", 64: "l"}[bits]


def struct_text(index, destination, source, names):
    letter, source_letter = letter_of(destination), letter_of(source)
    two_sources = destination.endswith("x2") and not source.endswith("x2")
    inputs = f'"{source_letter}"(a)' + (f', "{source_letter}"(b)' if two_sources else "")
    cases = "\n".join(f'      case {i}: asm("{name} %0, %1{", %2" if two_sources else ""};" : "={letter}"(d) : {inputs}); break;'
                      for i, name in enumerate(names))
    return f"""struct Conversion{index} {{
  static constexpr Format source = {format_name(source)}, destination = {format_name(destination)};
  static constexpr int elements = {2 if destination.endswith("x2") else 1};
  static constexpr bool two_sources = {str(two_sources).lower()};
  __device__ static std::uint64_t run(int variant, std::uint64_t first, {"std::uint64_t second" if two_sources else "std::uint64_t"}) {{
    const auto a = static_cast<{WORDS[source_letter]}>(first);
{f"    const auto b = static_cast<{WORDS[source_letter]}>(second);" if two_sources else ""}
    {WORDS[letter]} d = 0;
    switch (variant) {{
{cases}
    }}
    return d;
  }}
}};
void run_conversion_{index}(const ConversionLaunch& launch) {{ launch_conversion<Conversion{index}>(launch); }}
"""


def main():
    architecture = int(sys.argv[1].rstrip("af"))
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    first, last = LIST.read_text().split("# sm_100a only")
    hopper = [name for name, needs in re.findall(r"^(cvt\S+)(?: sm_(\d+)a?)?$", first, re.M) if int(needs or 80) <= architecture]
    blackwell = re.findall(r"^cvt\S+", last, re.M)
    pairs = {}
    for name in hopper:
        pairs.setdefault(tuple(name.split(".")[-2:]), []).append(name)
    order = list(pairs)
    rows = [f'    {{"{name}", {order.index(pair)}, {pairs[pair].index(name)}}},'
            for name in hopper for pair in [tuple(name.split(".")[-2:])]]
    (folder / "conversion_table.cpp").write_text("\n".join(
        ['#include "gpu/conversions/conversion_forms.hpp"\n\nnamespace guardbit::gpu {\n\nnamespace {\n\nconstexpr ConversionName names[] = {']
        + rows + ["};\n\nconstexpr std::string_view sm_100a_names[] = {"] + [f'    "{name}",' for name in blackwell] +
        ["};\n\n}  // namespace\n\nstd::span<const ConversionName> conversion_names() { return names; }\n",
         "std::span<const std::string_view> conversions_of_sm_100a() { return sm_100a_names; }\n\n}  // namespace guardbit::gpu\n"]))
    head = '#include "gpu/cuda/conversion/conversion_launch.cuh"\n\nnamespace guardbit::gpu {\n\nusing formats::Format;\n\n'
    for group in sorted(set(GROUPS.values())):
        text = [struct_text(i, *pair, pairs[pair]) for i, pair in enumerate(order) if GROUPS[pair[1]] == group]
        (folder / f"conversions_{group}.cu").write_text(head + "\n".join(text) + "\n}  // namespace guardbit::gpu\n")
    (folder / "conversion_kernels.cpp").write_text("\n".join(
        ['#include "gpu/cuda/conversion/device_conversions.hpp"\n\nnamespace guardbit::gpu {\n'] +
        [f"void run_conversion_{i}(const ConversionLaunch& launch);" for i in range(len(order))] +
        ["\nnamespace {\n\nconstexpr ConversionKernel kernels[] = {"] +
        [f"    run_conversion_{i}," for i in range(len(order))] +
        ["};\n\n}  // namespace\n\nstd::span<const ConversionKernel> conversion_kernels() { return kernels; }\n",
         "}  // namespace guardbit::gpu\n"]))


main()
