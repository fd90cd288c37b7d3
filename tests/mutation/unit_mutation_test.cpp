#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/mutation/unit_mutants.hpp"

/// Every fact of the special function unit is noticed by a vector of
/// tests/mutation/unit_vectors.txt
/// (`guardbit_update_functions` searches them).
namespace guardbit::tests {
namespace {

namespace mufu = emulator::mufu;
using mufu::SpecialFunctionForm;

std::vector<UnitVector> vectors_of(const SpecialFunctionForm& form) {
  std::vector<UnitVector> vectors = read_unit_vectors();
  std::erase_if(vectors, [&](const UnitVector& v) { return v.form != form.name; });
  return vectors;
}

TEST_CASE("vectors of the special function unit have the model's results") {
  for (const SpecialFunctionForm* const form : asked_forms()) {
    const std::vector<UnitVector> vectors = vectors_of(*form);
    CHECK(vectors.size() > 50);
    for (const UnitVector& v : vectors) {
      INFO(v.form << " of " << std::hex << v.argument);
      CHECK(result_by(*form, *form->function, v.argument) == v.result);
    }
  }
}

TEST_CASE("every coefficient of the special function unit is noticed by a vector") {
  for (const SpecialFunctionForm* const form : asked_forms()) {
    const std::vector<UnitVector> vectors = vectors_of(*form);
    std::vector<ReadSegment> reads;
    for (const UnitVector& v : vectors) reads.push_back(segment_read(*form, v.argument));
    for (const CoefficientMutant& mutant : coefficient_mutants(*form)) {
      INFO(text_of(mutant));
      bool is_noticed = false;
      for (std::size_t i = 0; i < vectors.size() && !is_noticed; ++i)
        is_noticed = reads[i].is_read && reads[i].binade == mutant.binade &&
                     reads[i].segment == mutant.segment &&
                     notices(*form, mutant, vectors[i].argument);
      CHECK(is_noticed);
    }
  }
}

/// Facts that no result shows, and why.
struct Unobservable {
  std::string_view reason;
  std::vector<std::string_view> facts;
};
const std::vector<Unobservable>& unobservable_facts() {
  static const std::vector<Unobservable> all = {
      {"only turns have quadrants",
       {"ex2 quadrant", "lg2 quadrant", "rcp quadrant", "rsqrt quadrant", "sqrt quadrant",
        "tanh quadrant"}},
      {"turns have no exponent; all exponents share a table",
       {"sin first_exponent", "cos first_exponent", "sin exponent_factor", "cos exponent_factor"}},
      {"the exponent is added; all exponents share a table",
       {"lg2 first_exponent", "lg2 exponent_factor"}},
      {"tables do not repeat", {"tanh exponent_factor"}},
      {"the sign is part of a number in fixed point", {"ex2 is_odd"}},
      {"negative arguments are NaNs", {"lg2 is_odd", "rsqrt is_odd", "sqrt is_odd"}},
      {"the table gives 1 there", {"ex2 exact_one", "rcp exact_one", "sqrt exact_one"}},
      {"what is computed is the same",
       {"rcp infinite = none", "sin zero = zero", "tanh zero = itself", "tanh infinite = one"}},
      {"only the positive one gets there", {"lg2 infinite = itself", "sqrt infinite = itself"}}};
  return all;
}
bool is_unobservable(const std::string& fact) {
  return std::ranges::any_of(unobservable_facts(), [&](const Unobservable& u) {
    return std::ranges::any_of(u.facts,
                               [&](std::string_view start) { return fact.starts_with(start); });
  });
}

TEST_CASE("every fact of the special function unit is noticed by a vector") {
  for (const SpecialFunctionForm* const form : asked_forms()) {
    const std::vector<UnitVector> vectors = vectors_of(*form);
    for (const FactMutant& mutant : fact_mutants(*form->function)) {
      INFO(mutant.fact);
      const bool is_noticed = std::ranges::any_of(vectors, [&](const UnitVector& v) {
        return result_by(*form, mutant.function, v.argument) != v.result;
      });
      CHECK(is_noticed != is_unobservable(mutant.fact));
    }
  }
}

}  // namespace
}  // namespace guardbit::tests
