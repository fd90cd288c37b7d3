#include "emulator/catalogue/instruction_text.hpp"

#include <algorithm>
#include <string>

#include "emulator/catalogue/accumulator_fields.hpp"
#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/input_codes.hpp"

namespace {

using namespace guardbit;
using emulator::MatrixInstruction;
using emulator::Step;

/// Everything that a row says.
bool equal(const MatrixInstruction& x, const MatrixInstruction& y) {
  return std::string_view(x.name) == std::string_view(y.name) && x.arch == y.arch &&
         x.family == y.family && x.shape == y.shape && x.a == y.a && x.b == y.b && x.c == y.c &&
         x.d == y.d && x.scale == y.scale && x.sparsity == y.sparsity &&
         std::equal(x.steps.begin(), x.steps.end(), y.steps.begin(), y.steps.end()) &&
         x.evidence.basis == y.evidence.basis && x.evidence.source == y.evidence.source &&
         x.toolkit.from == y.toolkit.from && x.toolkit.until == y.toolkit.until;
}

TEST_CASE("row spec: every row of the catalogue comes back from its text") {
  for (const MatrixInstruction& row : emulator::catalogue()) {
    const std::string text = emulator::row_spec(row);
    INFO(text);
    const MatrixInstruction again = emulator::parse_row_spec(text, "test");
    CHECK(equal(again, row));
    CHECK(emulator::row_spec(again) == text);
  }
}

TEST_CASE("row spec: every value of every field comes back") {
  tests::Random random(5);
  int changed = 0;
  for (const MatrixInstruction& row : emulator::catalogue()) {
    if (row.arch != "cdna3" && row.arch != "sm_90") continue;
    MatrixInstruction other = row;
    for (int i = 0; i < other.steps.count; ++i) {
      Step& step = other.steps.list[static_cast<std::size_t>(i)];
      for (const emulator::ProbedField& field : emulator::probed_fields()) {
        const std::vector<long> values = field.values(row, step);
        if (values.empty()) continue;
        field.set(step.spec, values[random.below(values.size())]);
        ++changed;
      }
    }
    const std::string text = emulator::row_spec(other);
    INFO(text);
    CHECK(equal(emulator::parse_row_spec(text, "test"), other));
  }
  CHECK(changed > 500);
}

const std::string good =
    "# a unit\nname u\narch chip\nshape m0n0k16\nformats fp16 fp16 fp32 fp32\n"
    "step dot addend=c into=fp32 terms=8 kept_fraction_bits=24 min_exponent=-132\n";

TEST_CASE("row spec: a person may write one, and add_row gives it a name") {
  const MatrixInstruction row = emulator::parse_row_spec(good, "test");
  CHECK(row.shape == emulator::Shape{0, 0, 16});
  CHECK(row.steps.list[0].spec.terms == 8);
  CHECK_FALSE(emulator::find_instruction("chip", "u"));
  emulator::add_row(row);
  const auto found = emulator::find_instruction("chip", "u");
  REQUIRE(found);
  CHECK(equal(*found, row));
  CHECK(emulator::require_page("chip", "test") == "chip");
  CHECK_FALSE(emulator::find_instruction("sm_90", "u"));
}

TEST_CASE("row spec: what is not valid is one line that names the place") {
  const auto refused = [](const std::string& from, const std::string& to, const std::string& why) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    std::string message;
    try {
      emulator::parse_row_spec(text, "file");
    } catch (const formats::Error& error) {
      message = error.what();
    }
    INFO(text << message);
    CHECK(message.starts_with("file: "));
    CHECK(message.find(why) != std::string::npos);
  };
  refused("name u\n", "", "no line 'name'");
  refused("name u\n", "name u\nname v\n", "line 3: a second line 'name'");
  refused("name u", "nmae u", "line 2: unknown key 'nmae'");
  refused("m0n0k16", "m0n0k257", "line 4: '257' is not valid (valid: 1 to 256)");
  refused("m0n0k16", "16", "is not a shape");
  refused("fp16 fp16", "fp17 fp16", "fp17");
  refused("fp32 fp32", "fp32", "3 words where 4 belong");
  refused("fp32 fp32", "fp32 fp16", "the last step gives fp32, not D's fp16");
  refused("fp16 fp16", "fp32 fp32", "too wide for summation=fused");
  refused("fp16 fp16", "int8 int8", "must all be integers");
  refused("addend=c", "addend=s1", "'s1' is nothing to add (valid: c, 0, -0)");
  refused("terms=8", "terms=-1", "'-1' is not valid (valid: 0 to 256)");
  refused("terms=8", "term=8", "unknown field 'term'");
  refused("terms=8", "result=up", "nearest_even, nearest_away");
  refused("terms=8", "terms", "is not KEY=VALUE");
  refused("terms=8", "k=33:1", "'33' is not valid");
  refused("terms=8", "k=4:", "a selection of no k");
  refused("into=fp32 ", "", "a step needs into=FORMAT");
  refused("kept_fraction_bits=24", "kept_fraction_bits=47", "0 to 46");
  refused("step dot", "step sum", "dot, add, convert");
  refused("terms=8", "summation=integer", "integers are summed by");
}

}  // namespace
