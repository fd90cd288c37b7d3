#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <string>
#include <vector>

#include "tests/mutation/functions/function_survey.hpp"
#include "tests/mutation/unit_mutants.hpp"
#include "tests/places.hpp"

/// Writes tests/mutation/unit_vectors.txt anew, and tests/mutation/functions/vectors.txt: all of
/// it, or what it says of the functions that are named. Over all inputs that takes minutes for each
/// function; a first argument -N takes only the first 2^N. With `listed` before it, only what the
/// file calls unobservable is asked, and vectors of what is noticed are added.
int main(int count, char** arguments) {
  using namespace guardbit::tests;
  std::vector<std::string> names(arguments + 1, arguments + count);
  const bool is_of_listed = !names.empty() && names.front() == "listed";
  if (is_of_listed) names.erase(names.begin());
  std::uint64_t inputs = std::uint64_t{1} << 32;
  if (!names.empty() && names.front().starts_with('-')) {
    inputs = std::uint64_t{1} << std::stoi(names.front().substr(1));
    names.erase(names.begin());
  }
  if (names.empty() && !is_of_listed) {
    std::ofstream file(in_source("tests/mutation/unit_vectors.txt"));
    file << "# Forms of the special function unit: argument and result, which notice every mutant "
            "that unit_mutants.hpp has.\n"
         << std::hex << std::setfill('0');
    for (const UnitVector& v : search_unit_vectors())
      file << v.form << ' ' << std::setw(8) << v.argument << ' ' << std::setw(8) << v.result
           << '\n';
  }
  for (const auto* const function : surveyed_functions()) {
    if (!names.empty() && std::ranges::find(names, function->name) == names.end()) continue;
    const FunctionSurvey found =
        is_of_listed ? settled(*function, part_of(read_function_survey(), function->name),
                               std::min(inputs, settling_inputs(*function)))
                     : search_function_survey(*function, inputs);
    const FunctionSurvey before = read_function_survey();
    FunctionSurvey all;
    const auto add = [&](const FunctionSurvey& part) {
      std::ranges::copy(part.vectors, std::back_inserter(all.vectors));
      std::ranges::copy(part.constants, std::back_inserter(all.constants));
      std::ranges::copy(part.steps, std::back_inserter(all.steps));
    };
    for (const auto* const each : surveyed_functions())
      add(tidied(*each, each == function ? found : part_of(before, each->name)));
    write_function_survey(all);
  }
}
