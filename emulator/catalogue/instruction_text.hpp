#pragma once

#include <string>
#include <string_view>

#include "emulator/model/instruction.hpp"

// The text of an instruction, which a person can write: `--spec FILE` reads it, `probe -o` writes
// it.
namespace guardbit::emulator {

/// An instruction of the catalogue as lines of text, `key value`, and one line for each step of its
/// arithmetic; fields that have their default are left out. Lines that begin with # are comments.
///
///   name     my_unit
///   arch     my_chip
///   family   mma.sync
///   shape    m16n8k16          M and N are 0 where any are taken
///   formats  fp16 fp16 fp32 fp32    of A, B, C and D
///   step     dot addend=c into=fp32 summation=fused terms=8 kept_fraction_bits=24 ...
///
/// `scale` FORMAT COUNT, `sparsity` GROUP STORED CHUNK, `toolkit` FROM UNTIL and `evidence`
/// BASIS TEXT may follow. A step is dot, add or convert; it reads c, 0, -0 or the result of an
/// earlier step, s1, s2, ...; a dot takes all k's or those of `k=MODULUS:RESIDUE,RESIDUE...`.
std::string instruction_text(const MatrixInstruction& instruction);

/// Reads what instruction_text writes, or what a person wrote like it. formats::Error, beginning
/// with `where` and the line, for whatever is not valid or what the model could not execute.
MatrixInstruction parse_instruction(std::string_view text, std::string_view where);

}  // namespace guardbit::emulator
