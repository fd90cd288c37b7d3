#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/catalogue/instruction_text.hpp"
#include "emulator/gemm/plan.hpp"
#include "experiments/quantisation/calibrators.hpp"
#include "formats/files/mapped_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/text.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"

namespace {

using namespace guardbit;
using Parser = std::function<void(const std::string& text)>;

/// The parsers of texts, by the names of their fuzz targets.
const std::map<std::string, Parser> parsers = {
    {"format_name", [](const auto& text) { formats::require_format(text, "here"); }},
    {"value", [](const auto& text) { formats::parse_value(text, "here"); }},
    {"plan", [](const auto& text) { emulator::parse_plan(text, "here"); }},
    {"spec", [](const auto& text) { emulator::parse_instruction(text, "here"); }},
    {"quirks", [](const auto& text) { experiments::parse_quirks(text, "here"); }},
    {"architecture", [](const auto& text) { emulator::require_page(text, "here"); }},
    {"toolkit", [](const auto& text) { emulator::require_toolkit(text, "here"); }},
    {"instruction", [](const auto& text) { emulator::require_instruction("sm_90", text, "here"); }},
};

void check_refused(const Parser& parse, const std::string& text) {
  try {
    parse(text);
    FAIL_CHECK("not refused");
  } catch (const formats::Error& error) {
    INFO(error.what());
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
  }
}

TEST_CASE("Parsers refuse a text with a line break in one line") {
  for (const auto& [name, parse] : parsers) {
    INFO(name);
    check_refused(parse, "x\ny");
    check_refused(parse, std::string("\n\0\x1b", 3));
  }
}

TEST_CASE("Parsers refuse what fuzzing found") {
  int files = 0;
  for (const auto& [name, parse] : parsers) {
    const std::filesystem::path folder(tests::in_source("tests/fuzz/regressions/") + name);
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
      INFO(entry.path());
      const formats::MappedFile file = formats::map_file(entry.path().string());
      check_refused(parse, {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()});
      ++files;
    }
  }
  CHECK(files >= 4);
}

}  // namespace
