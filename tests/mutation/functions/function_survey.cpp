#include "tests/mutation/functions/function_survey.hpp"

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <sstream>

#include "emulator/functions/argument_pairs.hpp"
#include "emulator/functions/function_catalogue.hpp"
#include "formats/support/error.hpp"
#include "tests/mutation/functions/mutant_kernels.hpp"
#include "tests/mutation/functions/mutant_number.hpp"
#include "tests/mutation/functions/mutant_programs.hpp"
#include "tests/places.hpp"

namespace guardbit::tests {

namespace {

using emulator::Function;
using emulator::OperandCodes;
using emulator::ResultCodes;
using Kind = FunctionMutant::Kind;

constexpr const char* survey_file = "tests/mutation/functions/vectors.txt";

/// This thread's table of changed steps, while some mutant has one.
StepChanges& changed_steps() {
  thread_local const auto table = std::make_unique<StepChanges>();
  return *table;
}

StepChange step_change(const std::string& name) {
  for (const StepChange change : step_changes)
    if (name_of(change) == name) return change;
  throw formats::Error(std::string(survey_file) + ": no change of a step is " + name);
}

}  // namespace

std::vector<const Function*> surveyed_functions() {
  std::vector<const Function*> all;
  for (const MutantProgram& program : mutant_programs())
    // Names of operators have blanks, which the file divides words by; these are single steps.
    if (program.name.find(' ') == std::string_view::npos)
      all.push_back(&emulator::require_function("sm_90", program.name, survey_file));
  return all;
}

std::string text_of(const FunctionMutant& mutant) {
  std::ostringstream text;
  text << std::hex << std::setfill('0');
  if (mutant.kind == Kind::step) {
    text << "step " << std::setw(4) << mutant.at << ' ' << name_of(mutant.change);
  } else {
    text << (mutant.kind == Kind::word ? "word " : "constant ") << std::setw(8) << mutant.at
         << std::dec << std::showpos << ' ' << mutant.places;
  }
  return text.str();
}

std::optional<ConstantChange> constant_change(const FunctionMutant& mutant) {
  if (mutant.kind == Kind::word)
    return ConstantChange{mutant.at, mutant.at + static_cast<std::uint32_t>(mutant.places)};
  constexpr std::uint32_t sign = 0x80000000, infinity = 0x7f800000;
  const std::int64_t magnitude = (mutant.at & ~sign) + mutant.places;
  const std::int64_t distance = magnitude < 0 ? -magnitude : magnitude;
  if (distance > infinity) return std::nullopt;
  const std::uint32_t same = mutant.at & sign, other = same ^ sign;
  return ConstantChange{mutant.at,
                        static_cast<std::uint32_t>(distance) | (magnitude < 0 ? other : same)};
}

Mutated::Mutated(const std::vector<FunctionMutant>& mutants) {
  for (const FunctionMutant& mutant : mutants) {
    if (mutant.kind == Kind::step) {
      change_place(static_cast<StepPlace>(mutant.at), mutant.change);
    } else if (mutant.places == 1 || mutant.places == -1) {
      const Operation of = mutant.kind == Kind::word ? Operation::word : Operation::constant;
      change_place(constant_place(of, mutant.at), mutant.places == 1 ? one_up : one_down);
    } else {
      const ConstantChange change = constant_change(mutant).value_or(ConstantChange{});
      (mutant.kind == Kind::word ? program_change.word : program_change.number) = change;
    }
  }
}
void Mutated::change_place(StepPlace place, std::uint8_t change) {
  changed_steps().at(place) |= change;
  places_.push_back(place);
  program_change.steps = &changed_steps();
}
Mutated::~Mutated() {
  for (const StepPlace place : places_) changed_steps().at(place) = 0;
  program_change = {};
}

ResultCodes results_by(const Function& function, const OperandCodes& operands,
                       const std::vector<FunctionMutant>& mutants) {
  const Mutated mutated(mutants);
  return find_mutant_program(function.name)->results(operands);
}

void add_parts(const Function& function, const OperandCodes& operands, ProgramParts& parts) {
  program_parts = &parts;
  find_mutant_program(function.name)->results(operands);
  program_parts = nullptr;
}

std::vector<FunctionMutant> step_mutants(const ProgramParts& parts) {
  std::vector<FunctionMutant> all;
  for (const auto& [place, step] : parts.steps)
    for (const StepChange change : step_changes)
      if ((step.changes & change) != 0) all.push_back({Kind::step, place, 0, change});
  return all;
}

OperandCodes input_of(const Function& function, std::uint64_t number) {
  // Parts of 64 codes, so that neighbours take the same branches.
  if (function.operands == 1)
    return {static_cast<std::uint32_t>((number >> 6) * 0x9E3779B1 << 6 | (number & 63))};
  const emulator::ArgumentTuple t = emulator::argument_tuple(number);
  OperandCodes codes = {t.x, t.y, t.z, t.w};
  for (std::size_t i = 0; i < function.operands; ++i) {
    if (function.formats.operands.at(i) == formats::fp32) continue;
    const auto code = static_cast<std::uint32_t>(codes.at(i));
    codes.at(i) = function.name == "jnf" || function.name == "ynf"
                      ? emulator::small_integer_argument(code)
                      : emulator::integer_argument(code);
  }
  return codes;
}

std::uint64_t settling_inputs(const Function& function) {
  if (find_mutant_kernel(function.name) == nullptr) return 1 << 18;
  return function.operands == 1 ? std::uint64_t{1} << 32 : std::uint64_t{1} << 26;
}

FunctionSurvey part_of(const FunctionSurvey& survey, std::string_view function) {
  FunctionSurvey part;
  const auto is_of_it = [&](const auto& each) { return each.function == function; };
  std::ranges::copy_if(survey.vectors, std::back_inserter(part.vectors), is_of_it);
  std::ranges::copy_if(survey.constants, std::back_inserter(part.constants), is_of_it);
  std::ranges::copy_if(survey.steps, std::back_inserter(part.steps), is_of_it);
  return part;
}

FunctionSurvey read_function_survey() {
  std::ifstream file(in_source(survey_file));
  FunctionSurvey survey;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string kind, name;
    words >> kind >> name >> std::hex;
    if (kind == "s") {
      UnobservableStep step = {name};
      std::string change;
      words >> step.place >> change;
      step.change = step_change(change);
      survey.steps.push_back(step);
    } else if (kind != "v") {
      ConstantFact fact = {name, kind == "w"};
      words >> fact.constant >> std::dec >> fact.up >> fact.down;
      survey.constants.push_back(fact);
    } else {
      FunctionVector v = {name};
      const Function& function = emulator::require_function("sm_90", name, survey_file);
      for (std::size_t i = 0; i < function.operands; ++i) words >> v.operands.at(i);
      for (std::size_t i = 0; i < function.results; ++i) words >> v.results.at(i);
      survey.vectors.push_back(v);
    }
  }
  return survey;
}

void write_function_survey(const FunctionSurvey& survey) {
  std::ofstream file(in_source(survey_file));
  file << "# Programs of CUDA's functions; function_survey.hpp says what the lines are.\n"
       << std::hex << std::setfill('0');
  for (const FunctionVector& v : survey.vectors) {
    const Function& function = emulator::require_function("sm_90", v.function, survey_file);
    file << "v " << v.function;
    for (std::size_t i = 0; i < function.operands; ++i)
      file << ' ' << std::setw(8) << v.operands.at(i);
    for (std::size_t i = 0; i < function.results; ++i)
      file << ' ' << std::setw(8) << v.results.at(i);
    file << '\n';
  }
  for (const ConstantFact& c : survey.constants) {
    file << (c.is_word ? "w " : "c ") << c.function << ' ' << std::hex << std::setw(8) << c.constant
         << std::dec << ' ' << c.up << ' ' << c.down << '\n';
  }
  for (const UnobservableStep& s : survey.steps) {
    file << "s " << s.function << ' ' << std::hex << std::setw(4) << s.place << ' '
         << name_of(s.change) << '\n';
  }
}

}  // namespace guardbit::tests
