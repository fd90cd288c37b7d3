#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/rounded_instruction.hpp"
#include "formats/codec.hpp"
#include "formats/support/words.hpp"
#include "formats/text.hpp"
#include "tests/places.hpp"
#include "tests/recorders/largest_error_search.hpp"

namespace guardbit::tests {
namespace {

using emulator::CompileMode;
using emulator::ErrorInputs;
using emulator::Function;
using emulator::LargestError;

/// Which inputs of a function can be asked; nothing where FP64 is no judge of its results.
std::optional<ErrorInputs> inputs_to_ask(const Function& function, bool quick) {
  const int bits = formats::bits(function.formats.operands[0]);
  const bool rounds_once =
      std::ranges::any_of(emulator::rounded_instructions(),
                          [&](const auto& named) { return named.name == function.name; });
  if (bits == 64 && rounds_once) return ErrorInputs::definition;
  if (function.name == "rsqrt.approx.f64") return std::nullopt;
  if (function.operands > 1) return ErrorInputs::drawn;
  if (bits == 64) return quick ? std::nullopt : std::optional(ErrorInputs::all);
  return bits == 32 && quick ? ErrorInputs::every_1009th : ErrorInputs::all;
}

std::string text_of(const LargestError& error, const Function& function) {
  char ulp[32];
  std::snprintf(ulp, sizeof ulp, "%.9g", error.ulp);
  std::string text =
      "    {\"" + std::string(error.function) + "\", " +
      (error.compile == CompileMode::standard ? "standard"
                                              : std::string(formats::word_of(error.compile))) +
      ", " + ulp + ", " + std::string(formats::word_of(error.asked));
  if (!error.has_place()) return text + "},\n";
  text += ", {";
  for (std::size_t i = 0; i < function.operands; ++i)
    text.append(i == 0 ? "" : ", ")
        .append(formats::hex_text(function.formats.operands.at(i), error.at.at(i)));
  return text + "}},\n";
}

struct Row {
  const Function* function;
  std::optional<LargestError> error;
};

void write_table(const std::vector<Row>& rows) {
  std::string lines;
  std::size_t count = 0;
  for (const Row& row : rows) {
    if (!row.error) continue;
    lines += text_of(*row.error, *row.function);
    ++count;
  }
  std::ofstream file(in_source("emulator/functions/largest_errors_table.cpp"));
  file << "#include \"emulator/functions/largest_errors.hpp\"\n\n"
          "// Written by guardbit_update_function_errors.\n"
          "namespace guardbit::emulator {\n\n"
          "namespace {\n\n"
          "using enum CompileMode;\n"
          "using enum ErrorInputs;\n\n"
          "// clang-format off\n"
          "constexpr std::array<LargestError, "
       << count << "> table = {{\n"
       << lines
       << "}};\n"
          "// clang-format on\n\n"
          "}  // namespace\n\n"
          "std::span<const LargestError> largest_errors() { return table; }\n\n"
          "}  // namespace guardbit::emulator\n";
}

}  // namespace
}  // namespace guardbit::tests

/// Writes emulator/functions/largest_errors_table.cpp anew: all of it, or what it says of the
/// functions that are named. -missing leaves what it has, -all asks all inputs of functions of one
/// number, which takes up to some minutes each; else those of 32 bits are asked every 1009th code.
/// Compile modes that are named first, as in -default, are the only ones.
int main(int count, char** arguments) {
  using namespace guardbit::tests;
  std::vector<std::string> names(arguments + 1, arguments + count);
  const auto takes = [&](const std::string& option) { return std::erase(names, option) > 0; };
  const bool only_missing = takes("-missing"), all_inputs = takes("-all");
  std::vector<CompileMode> modes;
  for (const CompileMode mode : guardbit::formats::enumerators_of<CompileMode>)
    if (takes("-" + std::string(guardbit::formats::word_of(mode)))) modes.push_back(mode);
  std::vector<Row> rows;
  for (const CompileMode mode : guardbit::formats::enumerators_of<CompileMode>) {
    for (const Function& function : guardbit::emulator::function_catalogue(mode)) {
      Row row = {&function, {}};
      const auto* const known = guardbit::emulator::find_largest_error(function);
      if (known != nullptr) row.error = *known;
      rows.push_back(row);
    }
  }
  for (Row& row : rows) {
    const Function& function = *row.function;
    if (only_missing && row.error) continue;
    if (!modes.empty() && std::ranges::find(modes, function.compile) == modes.end()) continue;
    if (!names.empty() && std::ranges::find(names, function.name) == names.end()) continue;
    const auto asked = inputs_to_ask(function, !all_inputs);
    if (!asked) continue;
    row.error = search_largest_error(function, *asked);
    std::printf("%s", text_of(*row.error, function).c_str());
    std::fflush(stdout);
    write_table(rows);
  }
}
