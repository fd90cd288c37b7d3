#!/usr/bin/env python3
"""Writes the tensor-core wrappers: one struct per instruction that ptxas 13.0 accepts for an architecture.

A wrapper holds registers and one asm string, nothing else (wrappers_<group>.cu, for nvcc); everything about shapes and formats
stands in the table of instructions, which needs no CUDA.

usage: wrappers TARGET FOLDER     writes FOLDER/instructions.cpp (the table), kernel_groups.cpp and wrappers_<group>.cu
       wrappers --list TARGET     prints the names of the groups
TARGET is what nvcc calls compute_<TARGET>: 80, 86, 89, 90a, 100a, 120a.
"""
import pathlib
import sys

import mma
import tcgen05
import wgmma
import wmma
from instructions import FORMATS, Architecture, layouts

STRUCTS = dict(mma=mma.struct, wmma=wmma.struct, wgmma=wgmma.struct, tcgen05=tcgen05.struct)
LAUNCH = dict(mma="launch_warp_registers", wmma="launch_warp_memory", wgmma="launch_warpgroup", tcgen05="launch_tcgen05")
HEADERS = dict(tcgen05="launch_tcgen05.cuh")  # launch.cuh for the others
FLAGS = dict(a_regs=".a_from_registers = true", scale_d=".ignore_c = true", unordered=".unordered = true",
             byte_containers=".byte_containers = true", size_sweep=".size_sweep = true", a_tensor_memory=".a_from_tensor_memory = true")
NUMBERS = ("selector", "a_swizzle", "b_swizzle")


def groups_of(architecture):
    """Generated file -> its instructions. The sizes of wgmma come in files of similar cost, which two cores share."""
    groups = dict(mma=mma.instructions, mma_sp=mma.sparse_instructions, wmma=wmma.instructions)
    if architecture.number >= 100:
        groups["mma_kind"] = mma.kind_instructions
    if architecture.number == 100:
        groups.update(tcgen05=tcgen05.instructions, tcgen05_sp=tcgen05.sparse_instructions)
        if tcgen05.has_integers(architecture):
            groups.update(tcgen05_integer=tcgen05.integer_instructions, tcgen05_integer_sp=tcgen05.sparse_integer_instructions)
    if architecture.number == 90:
        groups["wgmma"] = wgmma.instructions
        for d, name in dict(f32="single", f16="half", s32="integer").items():
            for sparse, suffix in ((False, ""), (True, "_sp")):
                groups[f"wgmma_{name}_sizes{suffix}"] = lambda _, d=d, sparse=sparse: wgmma.size_instructions(d, sparse)
    return groups


def named_instructions(group, make_instructions, architecture):
    instructions = list(make_instructions(architecture))
    for index, instruction in enumerate(instructions):
        instruction.id = f"{group.title().replace('_', '')}{index}"
    return instructions


def table_entry(of, page, group, index):
    la, lb = layouts(of)
    fields = [f'.arch = "{page}", .name = "{of.name}", .variant = "{of.variant}", .wrapper = "{of.id}", .plain = "{of.plain}"',
              f'.group = "{group}", .index = {index}, .unit = Unit::{of.unit}, .m = {of.m}, .n = {of.n}, .k = {of.k}']
    fields += [f".{operand} = formats::{FORMATS.get(x, x)}" for operand, x in zip("abcd", (of.a, of.b, of.c, of.d))]
    fields += [".sparse = true"] if of.sparse else []
    fields += [".a_column_major = true"] if la == "col" else []
    fields += [".b_row_major = true"] if lb == "row" else []
    fields += [f".negate_{x} = true" for x in "ab" if of.flags.get(f"scale_{x}") == -1]
    fields += [text for flag, text in FLAGS.items() if flag in of.flags]
    fields += [f".{number} = {of.flags[number]}" for number in NUMBERS if number in of.flags]
    if "scale" in of.flags:
        stype, count = of.flags["scale"]
        ids = ", ".join(str(x) for x in of.flags.get("scale_ids", (0, 0, 0, 0)))
        fields.append(f".scale = {{.format = formats::{FORMATS.get(stype, stype)}, .count = {count}, .ids = {{{ids}}}}}")
    return "    {" + ", ".join(fields) + "},"


def table_text(architecture, groups):
    entries = [table_entry(instruction, architecture.page, group, index)
               for group, instructions in groups.items() for index, instruction in enumerate(instructions)]
    return "\n".join([
        '#include "formats/format_catalogue.hpp"\n#include "gpu/operands/tensor_core_instruction.hpp"\n\nnamespace guardbit::gpu {\n\nnamespace {\n',
        "constexpr TensorCoreInstruction table[] = {", *entries, "};\n\n}  // namespace\n",
        f"std::span<const TensorCoreInstruction> {architecture.page}_instructions() {{ return table; }}\n",
        "}  // namespace guardbit::gpu\n"])


def kernels_text(group, instructions):
    header = HEADERS.get(instructions[0].unit, "launch.cuh")
    text = [f'#include "gpu/cuda/tensor_core/{header}"\n\nnamespace guardbit::gpu {{\nnamespace {{\n']
    for instruction in instructions:
        text.append(f"struct {instruction.id} {{\n{STRUCTS[instruction.unit](instruction)}\n}};\n")
    text.append("const Kernel kernels[] = {")
    text += [f"    {LAUNCH[instruction.unit]}<{instruction.id}>," for instruction in instructions]
    text.append(f"}};\n\n}}  // namespace\n\nstd::span<const Kernel> {group}_kernels() {{ return kernels; }}\n")
    text.append("}  // namespace guardbit::gpu\n")
    return "\n".join(text)


def groups_text(groups):
    declarations = "\n".join(f"std::span<const Kernel> {group}_kernels();" for group in groups)
    entries = "\n".join(f'    {{"{group}", {group}_kernels}},' for group in groups)
    return (f'#include "gpu/cuda/tensor_core/tensor_core_kernels.hpp"\n\nnamespace guardbit::gpu {{\n\n{declarations}\n\n'
            f"std::span<const KernelGroup> kernel_groups() {{\n  static const KernelGroup groups[] = {{\n{entries}\n  }};\n"
            "  return groups;\n}\n\n}  // namespace guardbit::gpu\n")


def main():
    if sys.argv[1] == "--list":
        print(";".join(groups_of(Architecture(sys.argv[2]))))
        return
    architecture, folder = Architecture(sys.argv[1]), pathlib.Path(sys.argv[2])
    groups = {group: named_instructions(group, make, architecture) for group, make in groups_of(architecture).items()}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "instructions.cpp").write_text(table_text(architecture, groups))
    (folder / "kernel_groups.cpp").write_text(groups_text(groups))
    for group, instructions in groups.items():
        (folder / f"wrappers_{group}.cu").write_text(kernels_text(group, instructions))


main()
