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
#if defined(__aarch64__)
  if (word == "neon") return InstructionSets::neon;
  constexpr std::string_view valid = "baseline, neon";
#else
  if (word == "avx2") return InstructionSets::avx2;
  if (word == "avx512") return InstructionSets::avx512;
  constexpr std::string_view valid = "baseline, avx2, avx512";
#endif
  throw Error("GUARDBIT_CPU", "unknown value " + in_quotes(word), std::string(valid));
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
