#include "emulator/catalogue/instruction_text.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "emulator/catalogue/accumulator_fields.hpp"
#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/input_codes.hpp"

namespace {

using namespace guardbit;
using emulator::MatrixInstruction;
using emulator::Step;

/// Everything that an instruction says.
bool equal(const MatrixInstruction& x, const MatrixInstruction& y) {
  return std::string_view(x.name) == std::string_view(y.name) && x.arch == y.arch &&
         x.family == y.family && x.shape == y.shape && x.a == y.a && x.b == y.b && x.c == y.c &&
         x.d == y.d && x.scale == y.scale && x.sparsity == y.sparsity &&
         std::equal(x.steps.begin(), x.steps.end(), y.steps.begin(), y.steps.end()) &&
         x.evidence.basis == y.evidence.basis && x.evidence.source == y.evidence.source &&
         x.toolkit.from == y.toolkit.from && x.toolkit.until == y.toolkit.until;
}

TEST_CASE("spec of an instruction: every entry of the catalogue comes back from its text") {
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    const std::string text = emulator::instruction_text(instruction);
    INFO(text);
    const MatrixInstruction again = emulator::parse_instruction(text, "test");
    CHECK(equal(again, instruction));
    CHECK(emulator::instruction_text(again) == text);
  }
}

TEST_CASE(
    "accumulator fields: the table has every member, and each one is read and written alone") {
  const emulator::AccumulatorSpec plain;
  std::set<const void*> members;
  std::set<std::string_view> names;
  for (const emulator::AccumulatorField& field : emulator::accumulator_fields()) {
    INFO(std::string(field.name));
    CHECK(members.insert(field.address(plain)).second);
    CHECK(names.insert(field.name).second);
    CHECK_FALSE(field.meaning.empty());
    REQUIRE(field.least < field.greatest);
    CHECK((field.words.empty() || field.greatest < static_cast<long>(field.words.size())));
    const long other = field.get(plain) == field.greatest ? field.least : field.greatest;
    emulator::AccumulatorSpec changed = plain;
    field.set(changed, other);
    CHECK(field.get(changed) == other);
    CHECK_FALSE(changed == plain);
    field.set(changed, field.get(plain));
    CHECK(changed == plain);
  }
  // The table cannot be shorter than the declaration (accumulator_fields.cpp asserts it), so as
  // many distinct members are all of them.
  CHECK(members.size() == emulator::accumulator_fields().size());
}

TEST_CASE(
    "accumulator fields: a change of any field changes the text, and the text brings it back") {
  for (const emulator::AccumulatorField& field : emulator::accumulator_fields()) {
    int changed = 0;
    for (const MatrixInstruction& instruction : emulator::catalogue()) {
      if (changed >= 40) break;
      MatrixInstruction other = instruction;
      Step& step = other.steps.list[0];
      if (!field.read(other, step) || step.operation != emulator::Operation::dot) continue;
      const std::string before = emulator::instruction_text(other);
      const long value = field.get(step.spec);
      for (const long near : field.neighbours(value, step)) {
        if (near < field.least || near > field.greatest) continue;
        field.set(step.spec, near);
        const std::string text = emulator::instruction_text(other);
        INFO(text);
        CHECK(text != before);
        // Some changes make an instruction that the model cannot execute, which the parser refuses.
        try {
          const MatrixInstruction again = emulator::parse_instruction(text, "test");
          CHECK(equal(again, other));
          ++changed;
        } catch (const formats::Error&) {
        }
      }
    }
    INFO(std::string(field.name));
    CHECK(changed > 0);
  }
}

TEST_CASE("spec of an instruction: every value of every field comes back") {
  tests::Random random(5);
  int changed = 0;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    if (instruction.arch != "cdna3" && instruction.arch != "sm_90") continue;
    MatrixInstruction other = instruction;
    for (int i = 0; i < other.steps.count; ++i) {
      Step& step = other.steps.list[static_cast<std::size_t>(i)];
      for (const emulator::AccumulatorField& field : emulator::accumulator_fields()) {
        const std::vector<long> values = field.values(instruction, step);
        if (values.empty()) continue;
        field.set(step.spec, values[random.below(values.size())]);
        ++changed;
      }
    }
    const std::string text = emulator::instruction_text(other);
    INFO(text);
    CHECK(equal(emulator::parse_instruction(text, "test"), other));
  }
  CHECK(changed > 500);
}

const std::string good =
    "# a unit\nname u\narch chip\nshape m0n0k16\nformats fp16 fp16 fp32 fp32\n"
    "step dot addend=c into=fp32 terms=8 kept_fraction_bits=24 min_exponent=-132\n";

TEST_CASE("spec of an instruction: a person may write one, and add_instruction gives it a name") {
  const MatrixInstruction instruction = emulator::parse_instruction(good, "test");
  CHECK(instruction.shape == emulator::Shape{0, 0, 16});
  CHECK(instruction.steps.list[0].spec.terms == 8);
  CHECK_FALSE(emulator::find_instruction("chip", "u"));
  emulator::add_instruction(instruction);
  const auto found = emulator::find_instruction("chip", "u");
  REQUIRE(found);
  CHECK(equal(*found, instruction));
  CHECK(emulator::require_page("chip", "test") == "chip");
  CHECK_FALSE(emulator::find_instruction("sm_90", "u"));
}

TEST_CASE("spec of an instruction: what is not valid is one line that names the place") {
  const auto refused = [](const std::string& from, const std::string& to, const std::string& why) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    std::string message;
    try {
      emulator::parse_instruction(text, "file");
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
