#include "tests/mutation/constant_mutants.hpp"

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "emulator/functions/argument_pairs.hpp"
#include "emulator/functions/function_catalogue.hpp"
#include "tests/places.hpp"

namespace guardbit::tests {

namespace {

using emulator::Function;
using emulator::OperandCodes;
using emulator::ResultCodes;

constexpr const char* survey_file = "tests/mutation/function_vectors.txt";
/// Changes of constants that are tried go up to 2^this places.
constexpr int largest_change = 20;

/// Operands that programs may treat apart, then drawn ones; constants stand for thresholds.
std::vector<OperandCodes> candidates(const Function& function,
                                     const std::set<std::uint32_t>& constants,
                                     std::uint64_t count) {
  std::vector<OperandCodes> all;
  const auto add_with = [&](std::uint32_t x) {
    for (const std::uint32_t sign : {0U, 0x80000000U}) {
      const emulator::ArgumentTuple t = emulator::argument_tuple(all.size());
      all.push_back({x ^ sign, t.y, t.z, t.w});
      if (function.operands > 1) all.push_back({t.x, x ^ sign, t.z, t.w});
    }
  };
  for (std::uint64_t i = 0; i < emulator::special_argument_count; ++i)
    add_with(emulator::special_argument(i));
  for (const std::uint32_t c : constants)
    for (std::uint32_t near = 0; near < 5; ++near) add_with(c + near - 2);
  for (std::uint64_t i = 0; all.size() < count; ++i) {
    const emulator::ArgumentTuple t = emulator::argument_tuple(i);
    const std::uint64_t random = emulator::inputs::mixed(i);
    const std::uint32_t about_1 = emulator::argument_of_exponents(random, -12, 4);
    all.push_back({i % 2 == 0 && function.operands == 1 ? about_1 : t.x, t.y, t.z, t.w});
  }
  return all;
}

std::set<std::uint32_t> constants_of_all(const Function& function,
                                         const std::vector<OperandCodes>& operands) {
  std::set<std::uint32_t> all;
  for (const OperandCodes& codes : operands) all.merge(constants_of(function, codes));
  return all;
}

/// The first candidate that notices a change, tried from 1 place on.
struct Notice {
  std::uint32_t change = 0;
  std::size_t candidate = 0;
};
Notice notice_of(const Function& function, std::uint32_t constant, int direction,
                 const std::vector<OperandCodes>& operands,
                 const std::vector<ResultCodes>& results) {
  std::vector<std::size_t> users;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (constants_of(function, operands[i]).contains(constant)) users.push_back(i);
  for (int power = 0; power <= largest_change; ++power) {
    for (const std::size_t i : users) {
      if (results_by(function, operands[i], constant, direction * (1 << power)) != results[i])
        return {1U << power, i};
    }
  }
  return {};
}

void search(const Function& function, FunctionSurvey& survey) {
  constexpr std::uint64_t count = 3000;
  const std::set<std::uint32_t> first =
      constants_of_all(function, candidates(function, {}, count / 4));
  const std::vector<OperandCodes> operands = candidates(function, first, count);
  std::vector<ResultCodes> results;
  for (const OperandCodes& codes : operands) results.push_back(function.reference(codes));
  std::set<std::size_t> chosen;
  for (const std::uint32_t constant : constants_of_all(function, operands)) {
    const Notice up = notice_of(function, constant, 1, operands, results),
                 down = notice_of(function, constant, -1, operands, results);
    for (const Notice& notice : {up, down})
      if (notice.change != 0) chosen.insert(notice.candidate);
    survey.constants.push_back({std::string(function.name), constant, up.change, down.change});
  }
  for (const std::size_t i : chosen) {
    FunctionVector v = {std::string(function.name), {}, results[i]};
    std::copy_n(operands[i].begin(), function.operands, v.operands.begin());
    survey.vectors.push_back(v);
  }
}

}  // namespace

std::vector<const Function*> surveyed_functions() {
  std::vector<const Function*> all;
  for (const Function& function : emulator::cuda_functions()) {
    const bool is_of_numbers = std::ranges::all_of(
        function.formats.operands, [](const auto& format) { return format == formats::fp32; });
    // Names of operators have blanks, which the file divides words by.
    if (is_of_numbers && function.name.find(' ') == std::string_view::npos)
      all.push_back(&function);
  }
  return all;
}

std::set<std::uint32_t> constants_of(const Function& function, const OperandCodes& operands) {
  emulator::ConstantSurvey survey;
  emulator::surveyed_constants = &survey;
  function.reference(operands);
  emulator::surveyed_constants = nullptr;
  return survey.seen;
}

ResultCodes results_by(const Function& function, const OperandCodes& operands,
                       std::uint32_t constant, std::int32_t change) {
  emulator::ConstantSurvey survey;
  survey.changed = constant;
  survey.replacement = constant + static_cast<std::uint32_t>(change);
  emulator::surveyed_constants = &survey;
  const ResultCodes results = function.reference(operands);
  emulator::surveyed_constants = nullptr;
  return results;
}

FunctionSurvey search_function_survey() {
  FunctionSurvey survey;
  for (const Function* const function : surveyed_functions()) search(*function, survey);
  return survey;
}

FunctionSurvey read_function_survey() {
  std::ifstream file(in_source(survey_file));
  FunctionSurvey survey;
  std::string line, kind;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    words >> kind;
    if (kind == "c") {
      ConstantFact fact;
      words >> fact.function >> std::hex >> fact.constant >> std::dec >> fact.up >> fact.down;
      survey.constants.push_back(fact);
      continue;
    }
    FunctionVector v;
    words >> v.function >> std::hex;
    const Function& function = emulator::require_function("sm_90", v.function, survey_file);
    for (std::size_t i = 0; i < function.operands; ++i) words >> v.operands.at(i);
    for (std::size_t i = 0; i < function.results; ++i) words >> v.results.at(i);
    survey.vectors.push_back(v);
  }
  return survey;
}

void write_function_survey(const FunctionSurvey& survey) {
  std::ofstream file(in_source(survey_file));
  file << "# CUDA's functions: vectors (v: operands and results) that notice changes of constants "
          "(c: code, and how many places up and down are noticed, 0: none).\n"
       << std::setfill('0');
  for (const FunctionVector& v : survey.vectors) {
    const Function& function = emulator::require_function("sm_90", v.function, survey_file);
    file << "v " << v.function << std::hex;
    for (std::size_t i = 0; i < function.operands; ++i)
      file << ' ' << std::setw(8) << v.operands.at(i);
    for (std::size_t i = 0; i < function.results; ++i)
      file << ' ' << std::setw(8) << v.results.at(i);
    file << '\n';
  }
  for (const ConstantFact& c : survey.constants) {
    file << "c " << c.function << ' ' << std::hex << std::setw(8) << c.constant << std::dec << ' '
         << c.up << ' ' << c.down << '\n';
  }
}

}  // namespace guardbit::tests
