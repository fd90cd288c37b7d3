#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/mutation/functions/function_survey.hpp"
#include "tests/mutation/functions/mutant_kernels.hpp"
#include "tests/mutation/functions/mutant_programs.hpp"

/// Constants and steps of CUDA's programs are noticed by vectors of
/// tests/mutation/functions/vectors.txt (`guardbit_update_functions` searches them), or no result
/// shows them.
namespace guardbit::tests {
namespace {

using emulator::Function;
using Kind = FunctionMutant::Kind;

/// Survey and function, of all.
struct Surveyed {
  const Function* function = nullptr;
  FunctionSurvey survey;
};
std::vector<Surveyed> all_surveyed() {
  const FunctionSurvey survey = read_function_survey();
  std::vector<Surveyed> all;
  for (const Function* const function : surveyed_functions())
    all.push_back({function, part_of(survey, function->name)});
  return all;
}

ProgramParts parts_of(const Surveyed& s) {
  ProgramParts parts;
  for (const FunctionVector& v : s.survey.vectors) add_parts(*s.function, v.operands, parts);
  return parts;
}

bool is_noticed(const Surveyed& s, const FunctionMutant& mutant) {
  for (const FunctionVector& v : s.survey.vectors)
    if (results_by(*s.function, v.operands, {mutant}) != v.results) return true;
  return false;
}

FunctionMutant mutant_of(const ConstantFact& fact, std::int64_t places) {
  return {fact.is_word ? Kind::word : Kind::number, fact.constant, places};
}

TEST_CASE("every program of CUDA's catalogue that has steps is surveyed") {
  for (const Function& function : emulator::cuda_functions()) {
    emulator::OperandCodes operands = {0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000};
    for (std::size_t i = 0; i < function.operands; ++i)
      if (function.formats.operands.at(i) == formats::int32) operands.at(i) = 2;
    const bool is_of_fp32 = function.formats.operands[0] == formats::fp32 ||
                            function.formats.operands[0] == formats::int32;
    // Names of operators have blanks; they are one step, and so are forms of the unit.
    const bool is_operator = function.name.find(' ') != std::string_view::npos;
    const auto steps = function.steps(operands);
    const bool has_steps = std::ranges::any_of(steps, [](const emulator::ProgramStep& step) {
      return step.operation.find(".approx") == std::string_view::npos;
    });
    INFO(function.name);
    if (is_of_fp32 && !is_operator && has_steps && steps.size() > 1)
      CHECK(find_mutant_program(function.name) != nullptr);
  }
}

TEST_CASE("vectors of CUDA's functions have the model's results") {
  for (const Surveyed& s : all_surveyed()) {
    for (const FunctionVector& v : s.survey.vectors) {
      INFO(s.function->name << " of " << std::hex << v.operands[0] << ", " << v.operands[1]);
      CHECK(s.function->reference(v.operands) == v.results);
      CHECK(results_by(*s.function, v.operands, {}) == v.results);
    }
  }
}

TEST_CASE("changes of the constants of CUDA's functions are noticed by a vector") {
  for (const Surveyed& s : all_surveyed()) {
    std::map<std::pair<bool, std::uint32_t>, bool> listed;
    for (const ConstantFact& fact : s.survey.constants) {
      listed[{fact.is_word, fact.constant}] = true;
      INFO(s.function->name << ", " << text_of(mutant_of(fact, 0)));
      if (fact.up != 0) CHECK(is_noticed(s, mutant_of(fact, fact.up)));
      if (fact.down != 0) CHECK(is_noticed(s, mutant_of(fact, -std::int64_t{fact.down})));
      // What is unobservable is not noticed.
      for (const int direction : {1, -1}) {
        const auto mutant = mutant_of(fact, direction);
        if ((direction > 0 ? fact.up : fact.down) != 1 && constant_change(mutant))
          CHECK_FALSE(is_noticed(s, mutant));
      }
    }
    // The list has every constant that a vector meets.
    const ProgramParts parts = parts_of(s);
    for (const std::uint32_t c : parts.numbers) {
      INFO(s.function->name << ", constant " << std::hex << c);
      CHECK(listed.contains({false, c}));
    }
    for (const std::uint32_t c : parts.words) {
      INFO(s.function->name << ", word " << std::hex << c);
      CHECK(listed.contains({true, c}));
    }
  }
}

TEST_CASE("changes of the steps of CUDA's functions are noticed by a vector") {
  for (const Surveyed& s : all_surveyed()) {
    for (const FunctionMutant& mutant : step_mutants(parts_of(s))) {
      bool is_listed = false;
      for (const UnobservableStep& step : s.survey.steps)
        is_listed = is_listed || (step.place == mutant.at && step.change == mutant.change);
      INFO(s.function->name << ", " << text_of(mutant));
      CHECK(is_noticed(s, mutant) != is_listed);
    }
  }
}

void check_unobservable(const Surveyed& s) {
  for (const MutantNotice& n :
       notices_of_unobservable(*s.function, s.survey, settling_inputs(*s.function))) {
    INFO(s.function->name << ", " << text_of(n.mutant) << ", of " << std::hex << n.input[0]);
    CHECK(false);
  }
}

using LaneCodes = std::array<std::uint32_t, 16>;

std::array<LaneCodes, 2> results_by_kernel(const Function& function,
                                           const std::array<LaneCodes, 4>& operands) {
  std::array<LaneCodes, 2> results{};
  find_mutant_kernel(function.name)
      ->run({operands[0].data(), operands[1].data(), operands[2].data(), operands[3].data()},
            {results[0].data(), results[1].data()}, operands[0].size());
  return results;
}

TEST_CASE("kernels with changed constants give the results of the changed programs") {
  for (const Surveyed& s : all_surveyed()) {
    const Function& function = *s.function;
    if (find_mutant_kernel(function.name) == nullptr || s.survey.vectors.empty()) continue;
    std::array<LaneCodes, 4> operands{};
    for (std::size_t i = 0; i < operands[0].size(); ++i)
      for (std::size_t k = 0; k < function.operands; ++k)
        operands.at(k)[i] = static_cast<std::uint32_t>(
            s.survey.vectors[i % s.survey.vectors.size()].operands.at(k));
    std::vector<std::vector<FunctionMutant>> changes = {{}};
    for (const ConstantFact& fact : s.survey.constants)
      if (fact.up == 1) changes.push_back({mutant_of(fact, 1)});
    for (const auto& mutants : changes) {
      std::array<LaneCodes, 2> found{};
      {
        const Mutated mutated(mutants);
        found = results_by_kernel(function, operands);
      }
      for (std::size_t i = 0; i < operands[0].size(); ++i) {
        const auto right = results_by(
            function, {operands[0][i], operands[1][i], operands[2][i], operands[3][i]}, mutants);
        INFO(function.name << " of " << std::hex << operands[0][i]);
        for (std::size_t k = 0; k < function.results; ++k) CHECK(found.at(k)[i] == right.at(k));
      }
    }
  }
}

/// A section for each function: `-c NAME` runs one alone.
TEST_CASE("no input of CUDA's functions notices what is listed as unobservable", "[sweep]") {
  if (mutant_kernels().empty()) {
    std::cout << "SKIPPED: this CPU lacks AVX2\n";
    return;
  }
  static const std::vector<Surveyed> all = all_surveyed();
  for (const Surveyed& s : all) {
    if (find_mutant_kernel(s.function->name) == nullptr) continue;
    DYNAMIC_SECTION(s.function->name) { check_unobservable(s); }
  }
}

}  // namespace
}  // namespace guardbit::tests
