#pragma once

#include <map>
#include <string>

#include "gpu/operands/tensor_core_instruction.hpp"

// The machine code of generated wrappers: which instructions of SASS each of them became.
namespace guardbit::gpu {

/// Machine code of the wrappers: struct name -> mnemonics.
using SassTable = std::map<std::string, std::string>;

/// Lines "wrapper <tab> mnemonics", as list_sass.py prints them; no path gives an empty table.
/// formats::Error when the file cannot be read.
SassTable read_sass(const std::string& path);

/// The mnemonics of an instruction; empty when the table does not say.
std::string sass_of(const SassTable& table, const TensorCoreInstruction& instruction);

}  // namespace guardbit::gpu
