#include "emulator/probe/probe.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "emulator/engine/engines.hpp"
#include "formats/support/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/mutation/mutants.hpp"
#include "tests/mutation/unobservable.hpp"
#include "tests/mutation/vectors.hpp"

namespace {

using namespace guardbit;
using namespace guardbit::tests;
using emulator::ProbeReport;
using emulator::Step;

bool is_nan(const formats::Format& f, std::uint64_t code) {
  return formats::decode(f, code).kind == formats::Kind::nan;
}

/// Vectors that notice every observable change of the instruction by one step: what each field must
/// pass.
std::string contradicted_by_vectors(const MatrixInstruction& instruction, const ProbeReport& report,
                                    std::size_t& used) {
  static const std::vector<InstructionVectors> all = read_vectors(vectors_file());
  for (const InstructionVectors& vectors : all) {
    if (!same_arithmetic(vectors.instruction, instruction)) continue;
    MatrixInstruction probed = vectors.instruction;
    probed.steps = report.instruction.steps;
    for (const TestVector& v : vectors.list) {
      ++used;
      const auto d = computed(probed, v);
      if (!d) return v.purpose + ": not computable";
      if (*d != v.d && !(is_nan(instruction.d, *d) && is_nan(instruction.d, v.d))) return v.purpose;
    }
  }
  return {};
}

/// Fields of a step that differ from the instruction's, though the instruction's value was excluded
/// or no proof says that it cannot be seen.
std::vector<std::string> wrong_fields(const MatrixInstruction& instruction,
                                      const ProbeReport& report) {
  std::vector<std::string> wrong;
  if (report.instruction.steps.count != instruction.steps.count)
    return wrong;  // judged by what it computes
  for (int i = 0; i < instruction.steps.count; ++i) {
    const Step& step = instruction.steps.list[static_cast<std::size_t>(i)];
    const Step& probed = report.instruction.steps.list[static_cast<std::size_t>(i)];
    for (const SpecField& field : spec_fields()) {
      if (!field.read(instruction, step)) continue;
      const long value = field.get(probed.spec);
      if (value == field.get(step.spec)) continue;
      // The values that no answer told apart, as the report gives them.
      const std::string prefix = step.operation == emulator::Operation::dot ? "" : "addition.";
      const bool admitted = std::any_of(
          report.findings.begin(), report.findings.end(), [&](const emulator::Finding& f) {
            return f.field == prefix + std::string(field.name) && !f.others.empty();
          });
      Mutant mutant{instruction, Place::spec, i, std::string(field.name), {}, {}};
      if (instruction.steps.count > 1)
        mutant.field = "step " + std::to_string(i) + " " + std::string(field.name);
      mutant.from = field.text(field.get(step.spec));
      mutant.to = field.text(value);
      field.set(mutant.instruction.steps.list[static_cast<std::size_t>(i)].spec, value);
      if (!admitted && !unobservable(instruction, mutant))
        wrong.push_back(mutant.field + ": " + mutant.from + ", probed " + mutant.to);
    }
  }
  return wrong;
}

/// Probes arithmetics first, first + step, ...; at most `incomplete` of them may end with a field
/// that the questions left open though a committed vector sees it, or with answers unexplained.
void check_arithmetics(std::size_t first, std::size_t step, std::size_t incomplete) {
  std::vector<const MatrixInstruction*> instructions;
  for (std::size_t i = first; i < arithmetics().size(); i += step)
    instructions.push_back(&arithmetics()[i].instruction);
  std::vector<std::string> complaints(instructions.size());
  std::vector<std::size_t> used(instructions.size());
  formats::parallel_for(instructions.size(), 1, 0, [&](std::size_t i, std::size_t) {
    const MatrixInstruction& instruction = *instructions[i];
    const ProbeReport report =
        emulator::probe(emulator::black_box(emulator::engines().back(), instruction, 1));
    if (!report.explained) {
      complaints[i] = std::to_string(report.mismatches) + " answers are not explained";
      return;
    }
    const auto named = std::any_of(
        report.catalogue.begin(), report.catalogue.end(), [&](const emulator::CatalogueMatch& m) {
          return std::any_of(m.instructions.begin(), m.instructions.end(),
                             [&](const auto* x) { return same_arithmetic(*x, instruction); });
        });
    if (!named) complaints[i] += "the catalogue's instruction is not named; ";
    const std::string vector = contradicted_by_vectors(instruction, report, used[i]);
    if (!vector.empty()) complaints[i] += "a committed vector differs: " + vector + "; ";
    for (const std::string& field : wrong_fields(instruction, report))
      complaints[i] += field + "; ";
  });
  std::size_t vectors = 0, wrong = 0;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    vectors += used[i];
    if (complaints[i].empty()) continue;
    WARN(types_of(*instructions[i])
         << ", " << std::string_view(instructions[i]->name) << ": " << complaints[i]);
    ++wrong;
  }
  CHECK(wrong <= incomplete);
  CHECK(vectors > instructions.size());
}

TEST_CASE("probe: an arithmetic of the catalogue from its answers alone", "[long]") {
  check_arithmetics(119, 400, 0);
}

TEST_CASE("probe: the arithmetics of the catalogue from their answers alone", "[sweep]") {
  // Three of RDNA are left open at times: BF16 results of RDNA3, which every second product cuts
  // anew, and V_DOT2 of RDNA4 into FP16 and BF16, where one block says little of C's grid.
  check_arithmetics(0, 1, 3);
}

}  // namespace
