#include <map>
#include <set>
#include <string>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/mutation/constant_mutants.hpp"

/// Constants of CUDA's programs are noticed by vectors of tests/mutation/function_vectors.txt
/// (`guardbit_update_functions` searches them).
namespace guardbit::tests {
namespace {

using emulator::Function;

std::map<std::string, std::vector<FunctionVector>> vectors_by_function() {
  std::map<std::string, std::vector<FunctionVector>> vectors;
  for (const FunctionVector& v : read_function_survey().vectors) vectors[v.function].push_back(v);
  return vectors;
}

TEST_CASE("vectors of CUDA's functions have the model's results") {
  const auto vectors = vectors_by_function();
  for (const Function* const function : surveyed_functions()) {
    const std::string name(function->name);
    // What has no constant needs none.
    if (!vectors.contains(name)) continue;
    for (const FunctionVector& v : vectors.at(name)) {
      INFO(name << " of " << std::hex << v.operands[0] << ", " << v.operands[1]);
      CHECK(function->reference(v.operands) == v.results);
    }
  }
}

TEST_CASE("changes of the constants of CUDA's functions are noticed by a vector") {
  const auto vectors = vectors_by_function();
  std::map<std::string, std::set<std::uint32_t>> listed;
  for (const ConstantFact& fact : read_function_survey().constants) {
    listed[fact.function].insert(fact.constant);
    const Function& function = emulator::require_function("sm_90", fact.function, "test");
    const auto is_noticed = [&](std::int32_t change) {
      for (const FunctionVector& v : vectors.at(fact.function))
        if (results_by(function, v.operands, fact.constant, change) != v.results) return true;
      return false;
    };
    INFO(fact.function << ", constant " << std::hex << fact.constant);
    if (fact.up != 0) CHECK(is_noticed(static_cast<std::int32_t>(fact.up)));
    if (fact.down != 0) CHECK(is_noticed(-static_cast<std::int32_t>(fact.down)));
  }
  // The list has every constant that a vector meets.
  for (const auto& [name, list] : vectors) {
    const Function& function = emulator::require_function("sm_90", name, "test");
    for (const FunctionVector& v : list) {
      for (const std::uint32_t constant : constants_of(function, v.operands)) {
        INFO(name << ", constant " << std::hex << constant);
        CHECK(listed[name].contains(constant));
      }
    }
  }
}

}  // namespace
}  // namespace guardbit::tests
