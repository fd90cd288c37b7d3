#include "formats/support/instruction_sets.hpp"

#include <cstdlib>
#include <string_view>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::formats {

namespace {

InstructionSets parse(std::string_view word) {
  if (word.empty()) return InstructionSets::all;
  if (word == "baseline") return InstructionSets::baseline;
  if (word == "avx2") return InstructionSets::avx2;
  if (word == "avx512") return InstructionSets::avx512;
  throw Error("GUARDBIT_CPU", "unknown value " + in_quotes(word), "baseline, avx2, avx512");
}

}  // namespace

InstructionSets allowed_instruction_sets() {
  static const InstructionSets allowed = [] {
    const char* const word = std::getenv("GUARDBIT_CPU");
    return parse(word == nullptr ? "" : word);
  }();
  return allowed;
}

}  // namespace guardbit::formats
