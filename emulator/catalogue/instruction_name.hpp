#pragma once

#include <string>
#include <string_view>

#include "emulator/model/instruction.hpp"

// The names of instructions, as PTX and the makers of other machines spell them.
namespace guardbit::emulator {

/// An instruction's name taken apart. ptxas accepts the qualifiers of a name in any order; only the
/// order of the types and of the layouts carries meaning.
struct ParsedName {
  /// equal for names that mean the same instruction: qualifiers sorted, types in order,
  /// free geometry open
  std::string key;
  /// "row.col", or empty when the name has none
  std::string layouts;
  /// from the mMnNkK token; 0 where it is open (n written as N) or absent
  Shape shape{};
};

ParsedName parse_name(std::string_view name);

/// May the instruction be executed with this name's layouts and M and N?
bool accepts_geometry(const MatrixInstruction& instruction, const ParsedName& name);

}  // namespace guardbit::emulator
