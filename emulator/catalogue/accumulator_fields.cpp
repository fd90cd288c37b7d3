#include "emulator/catalogue/accumulator_fields.hpp"

#include <array>
#include <numeric>
#include <type_traits>

namespace guardbit::emulator {

namespace {

using Values = std::vector<long>;

Values range(long first, long last) {
  Values list(static_cast<std::size_t>(last - first + 1));
  std::iota(list.begin(), list.end(), first);
  return list;
}
Values with(Values list, long value) {
  list.insert(list.begin(), value);
  return list;
}

bool sums_by(const Step& step, std::initializer_list<Summation> list) {
  if (step.operation != Operation::dot) return false;
  for (const Summation s : list) {
    if (step.spec.summation == s) return true;
  }
  return false;
}
bool aligns(const Step& step) { return sums_by(step, {Summation::fused, Summation::two_stage}); }
bool staged(const Step& step) { return sums_by(step, {Summation::two_stage}); }
bool whole_numbers(const Step& step) { return sums_by(step, {Summation::integer}); }
bool unchained(const Step& step) {
  return sums_by(step, {Summation::fused, Summation::exact, Summation::two_stage});
}

template <auto Member>
long get(const AccumulatorSpec& spec) {
  return static_cast<long>(spec.*Member);
}
template <auto Member>
void set(AccumulatorSpec& spec, long value) {
  spec.*Member = static_cast<std::remove_reference_t<decltype(spec.*Member)>>(value);
}

using Words = std::vector<std::string_view>;

const Words rounding_words = {"nearest_even", "nearest_away", "toward_zero",
                              "upward",       "downward",     "to_odd"};
static_assert(static_cast<int>(Rounding::nearest_even) == 0 &&
              static_cast<int>(Rounding::nearest_away) == 1 &&
              static_cast<int>(Rounding::toward_zero) == 2 &&
              static_cast<int>(Rounding::upward) == 3 &&
              static_cast<int>(Rounding::downward) == 4 && static_cast<int>(Rounding::to_odd) == 5);
const Words subnormals_words = {"keep", "flush", "daz_ftz"};
const Words nan_words = {"all_ones", "operand_bca", "operand_abc", "unspecified"};

/// Exponents that a zero or an overflow may stand for.
constexpr long least_exponent = -4000, most_exponent = 4000;

/// Values for steps that convert into a floating format.
Values floating(const Step& step, long last) {
  return whole_numbers(step) ? Values{} : range(0, last);
}

/// A zero weighs less than every number of the result's format, and not less than matters.
Values zero_exponents(const Step& step) {
  const int least = formats::min_exponent(step.result);
  return range(least - 60, least + 2);
}

}  // namespace

std::string_view summation_name(Summation summation) {
  constexpr std::array<std::string_view, 6> names = {"fused",    "exact",     "fma_chain",
                                                     "pairwise", "two_stage", "integer"};
  return names.at(static_cast<std::size_t>(summation));
}

const std::vector<ProbedField>& probed_fields() {
  using S = AccumulatorSpec;
  using Row = MatrixInstruction;
  static const std::vector<ProbedField> fields = {
      {"product",
       Topic::grid,
       get<&S::product>,
       set<&S::product>,
       {"multiply", "bit_and", "bit_xor"},
       0,
       0,
       [](const Row& row, const Step& s) {
         return whole_numbers(s) && formats::bits(row.a) == 1 ? range(0, 2) : Values{};
       }},
      {"exact_group",
       Topic::grid,
       get<&S::exact_group>,
       set<&S::exact_group>,
       {},
       1,
       256,
       [](const Row& row, const Step& s) {
         return row.scale.count != 0 && sums_by(s, {Summation::fused}) ? Values{1, 2, 4, 8, 16, 32}
                                                                       : Values{};
       }},
      {"kept_fraction_bits",
       Topic::grid,
       get<&S::kept_fraction_bits>,
       set<&S::kept_fraction_bits>,
       {},
       0,
       46,
       [](const Row&, const Step& s) { return aligns(s) ? range(1, 46) : Values{}; }},
      {"alignment", Topic::grid, get<&S::alignment>, set<&S::alignment>, rounding_words, 0, 0,
       [](const Row&, const Step& s) { return aligns(s) ? range(0, 5) : Values{}; }},
      {"result", Topic::grid, get<&S::result>, set<&S::result>, rounding_words, 0, 0,
       [](const Row&, const Step& s) { return floating(s, 5); }},
      {"result_fraction_bits",
       Topic::grid,
       get<&S::result_fraction_bits>,
       set<&S::result_fraction_bits>,
       {},
       0,
       51,
       [](const Row&, const Step& s) {
         return unchained(s) ? range(0, s.result.fraction_bits - 1) : Values{};
       }},
      {"interleave",
       Topic::grid,
       get<&S::interleave>,
       set<&S::interleave>,
       {"none", "even_odd"},
       0,
       0,
       [](const Row&, const Step& s) { return staged(s) ? range(0, 1) : Values{}; }},
      {"sum_kept_fraction_bits",
       Topic::grid,
       get<&S::sum_kept_fraction_bits>,
       set<&S::sum_kept_fraction_bits>,
       {},
       0,
       44,
       [](const Row&, const Step& s) { return staged(s) ? range(16, 44) : Values{}; }},
      {"total_kept_fraction_bits",
       Topic::grid,
       get<&S::total_kept_fraction_bits>,
       set<&S::total_kept_fraction_bits>,
       {},
       0,
       60,
       [](const Row&, const Step& s) { return staged(s) ? range(16, 60) : Values{}; }},
      {"addend_cutoff",
       Topic::grid,
       get<&S::addend_cutoff>,
       set<&S::addend_cutoff>,
       {},
       0,
       200,
       [](const Row&, const Step& s) { return staged(s) ? with(range(10, 45), 0) : Values{}; }},
      {"min_exponent",
       Topic::tiny,
       get<&S::min_exponent>,
       set<&S::min_exponent>,
       {},
       least_exponent,
       most_exponent,
       [](const Row&, const Step& s) { return aligns(s) ? zero_exponents(s) : Values{}; }},
      {"zero_product_exponent",
       Topic::tiny,
       get<&S::zero_product_exponent>,
       set<&S::zero_product_exponent>,
       {},
       least_exponent,
       most_exponent,
       [](const Row&, const Step& s) {
         return staged(s) ? with(zero_exponents(s), -999) : Values{};
       }},
      {"input", Topic::tiny, get<&S::input>, set<&S::input>, subnormals_words, 0, 0,
       [](const Row&, const Step& s) { return floating(s, 2); }},
      {"output", Topic::tiny, get<&S::output>, set<&S::output>, subnormals_words, 0, 0,
       [](const Row&, const Step& s) { return floating(s, 2); }},
      {"underflowed_sum",
       Topic::tiny,
       get<&S::underflowed_sum>,
       set<&S::underflowed_sum>,
       {"positive", "of_sum"},
       0,
       0,
       [](const Row&, const Step& s) { return unchained(s) ? range(0, 1) : Values{}; }},
      {"nan", Topic::specials, get<&S::nan>, set<&S::nan>, nan_words, 0, 0,
       [](const Row&, const Step& s) { return floating(s, 3); }},
      {"product_overflow_exponent",
       Topic::specials,
       get<&S::product_overflow_exponent>,
       set<&S::product_overflow_exponent>,
       {},
       least_exponent,
       most_exponent,
       [](const Row&, const Step& s) {
         const int top = formats::max_exponent(s.result);
         return staged(s) ? with(range(top - 3, top + 4), 0) : Values{};
       }},
      {"integer_overflow",
       Topic::specials,
       get<&S::integer_overflow>,
       set<&S::integer_overflow>,
       {"wrap", "saturate"},
       0,
       0,
       [](const Row&, const Step& s) { return whole_numbers(s) ? range(0, 1) : Values{}; }},
  };
  return fields;
}

}  // namespace guardbit::emulator
