#include "tests/mutation/unit_mutants.hpp"

#include <array>
#include <fstream>
#include <sstream>

#include "emulator/functions/numbers/reference_number.hpp"
#include "emulator/inputs/input_draw.hpp"
#include "formats/support/words.hpp"
#include "tests/places.hpp"

namespace guardbit::tests {

namespace {

namespace mufu = emulator::mufu;
using emulator::ReferenceNumber;
using mufu::SpecialFunctionForm;
using mufu::UnitFunction;

std::uint32_t unit_argument(const SpecialFunctionForm& form, std::uint32_t argument) {
  return bits(mufu::apply(mufu::scaling_of(form, argument).before, ReferenceNumber::of(argument)));
}

/// Arguments in the binades that a function's tables are read in: drawn, every fourth one negative.
std::uint32_t drawn_argument(const UnitFunction& function, emulator::inputs::Random& random) {
  const int low = function.reduction == mufu::Reduction::turns ? 0 : function.first_exponent;
  const int high = low + function.binade_count + 1;
  const auto biased = static_cast<std::uint32_t>(127 + random.between(low, high));
  const auto code = static_cast<std::uint32_t>(random.bits()) & 0x7fffff;
  return (random.one_in(4) ? mufu::sign_bit : 0) | biased << 23 | code;
}

/// Arguments at the ends of ranges and specials.
std::vector<std::uint32_t> edges() {
  std::vector<std::uint32_t> codes;
  for (const std::uint32_t magnitude :
       {0U,          1U,          0x7fffffU,   0x800000U,   0x33800000U, 0x37000000U,
        0x3b7fffffU, 0x3b800000U, 0x3e800000U, 0x3f000000U, 0x3f7fffffU, 0x3f800000U,
        0x3f800001U, 0x3fc90fdbU, 0x40000000U, 0x40490fdbU, 0x40800000U, 0x40ffffffU,
        0x41000000U, 0x42fc0000U, 0x42fe0000U, 0x43000000U, 0x4b000000U, 0x7e800000U,
        0x7f000000U, 0x7f7fffffU, 0x7f800000U, 0x7fc00000U}) {
    codes.push_back(magnitude);
    codes.push_back(magnitude | mufu::sign_bit);
  }
  return codes;
}

}  // namespace

std::vector<UnitVector> read_unit_vectors() {
  std::ifstream file(in_source("tests/mutation/unit_vectors.txt"));
  std::vector<UnitVector> vectors;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    UnitVector v;
    words >> v.form >> std::hex >> v.argument >> v.result;
    vectors.push_back(v);
  }
  return vectors;
}

std::string text_of(const CoefficientMutant& m) {
  const char* const name = m.coefficient == &mufu::Segment::c0   ? "c0"
                           : m.coefficient == &mufu::Segment::c1 ? "c1"
                                                                 : "c2";
  return std::string(m.function->name) + " table " + std::to_string(m.binade) + " segment " +
         std::to_string(m.segment) + " " + name + (m.change > 0 ? " + 1" : " - 1");
}

const std::vector<const SpecialFunctionForm*>& asked_forms() {
  static const std::vector<const SpecialFunctionForm*> forms = {
      &mufu::ex2_approx_ftz_form,   &mufu::lg2_approx_ftz_form,  &mufu::rcp_approx_ftz_form,
      &mufu::rsqrt_approx_ftz_form, &mufu::sqrt_approx_ftz_form, &mufu::sin_approx_ftz_form,
      &mufu::cos_approx_ftz_form,   &mufu::tanh_approx_form};
  return forms;
}

std::vector<CoefficientMutant> coefficient_mutants(const SpecialFunctionForm& form) {
  std::vector<CoefficientMutant> mutants;
  const UnitFunction& f = *form.function;
  for (int binade = 0; binade < f.binade_count; ++binade) {
    const auto count = f.binades[static_cast<std::size_t>(binade)].segments.size();
    for (std::uint32_t segment = 0; segment < count; ++segment)
      for (const auto coefficient : {&mufu::Segment::c0, &mufu::Segment::c1, &mufu::Segment::c2})
        for (const int change : {-1, 1})
          mutants.push_back({&f, binade, segment, coefficient, change});
  }
  return mutants;
}

std::uint32_t result_by(const SpecialFunctionForm& form, const UnitFunction& function,
                        std::uint32_t argument) {
  SpecialFunctionForm other = form;
  other.function = &function;
  return bits(evaluate(other, ReferenceNumber::of(argument)));
}

bool notices(const SpecialFunctionForm& form, const CoefficientMutant& mutant,
             std::uint32_t argument) {
  UnitFunction function = *form.function;
  mufu::Interpolator& table = function.binades[static_cast<std::size_t>(mutant.binade)];
  std::vector<mufu::Segment> segments(table.segments.begin(), table.segments.end());
  segments[mutant.segment].*mutant.coefficient += mutant.change;
  table.segments = segments;
  return result_by(form, function, argument) != result_by(form, *form.function, argument);
}

ReadSegment segment_read(const SpecialFunctionForm& form, std::uint32_t argument) {
  const UnitFunction& f = *form.function;
  const mufu::Evaluation e = mufu::evaluate(f, unit_argument(form, argument));
  if (e.special != mufu::Special::none || e.is_exact_one) return {};
  const mufu::Interpolator& table = f.binades[static_cast<std::size_t>(e.binade)];
  return {true, e.binade, mufu::place_of(table, e.reduced.fraction).segment};
}

std::vector<FactMutant> fact_mutants(const UnitFunction& function) {
  std::vector<FactMutant> mutants;
  const auto mutated = [&](const std::string& fact, const auto& change) {
    FactMutant m = {std::string(function.name) + " " + fact, function};
    change(m.function);
    mutants.push_back(m);
  };
  for (const int step : {-1, 1}) {
    const std::string sign = step < 0 ? " - 1" : " + 1";
    mutated("squarer.lowest_column" + sign,
            [&](UnitFunction& f) { f.squarer.lowest_column += step; });
    mutated("unit_exponent" + sign, [&](UnitFunction& f) { f.unit_exponent += step; });
    mutated("exponent_factor" + sign, [&](UnitFunction& f) { f.exponent_factor += step; });
    mutated("first_exponent" + sign, [&](UnitFunction& f) { f.first_exponent += step; });
    mutated("quadrant" + sign, [&](UnitFunction& f) { f.quadrant += step + 4; });
    for (std::size_t i = 0; i < static_cast<std::size_t>(function.binade_count); ++i) {
      const std::string of = " of table " + std::to_string(i) + sign;
      mutated("grid.c0" + of, [&](UnitFunction& f) { f.binades[i].grid.c0 += step; });
      mutated("grid.c1" + of, [&](UnitFunction& f) { f.binades[i].grid.c1 += step; });
      mutated("grid.c2" + of, [&](UnitFunction& f) { f.binades[i].grid.c2 += step; });
    }
  }
  mutated("adds_exponent", [](UnitFunction& f) { f.adds_exponent = !f.adds_exponent; });
  mutated("is_odd", [](UnitFunction& f) { f.is_odd = !f.is_odd; });
  for (const mufu::Special word : formats::enumerators_of<mufu::Special>) {
    const std::string is = " = " + std::string(formats::word_of(word));
    for (const auto& [name, member] :
         {std::pair("zero", &UnitFunction::zero), std::pair("negative", &UnitFunction::negative),
          std::pair("infinite", &UnitFunction::infinite), std::pair("below", &UnitFunction::below),
          std::pair("above", &UnitFunction::above)})
      if (function.*member != word)
        mutated(name + is, [word, member = member](UnitFunction& f) { f.*member = word; });
  }
  for (const mufu::ExactOne word : formats::enumerators_of<mufu::ExactOne>)
    if (function.exact_one != word)
      mutated("exact_one = " + std::string(formats::word_of(word)),
              [&](UnitFunction& f) { f.exact_one = word; });
  for (const mufu::Reduction word : formats::enumerators_of<mufu::Reduction>)
    if (function.reduction != word)
      mutated("reduction = " + std::string(formats::word_of(word)),
              [&](UnitFunction& f) { f.reduction = word; });
  return mutants;
}

std::vector<UnitVector> search_unit_vectors() {
  constexpr int most_draws = 400000;
  std::vector<UnitVector> vectors;
  for (const SpecialFunctionForm* const form : asked_forms()) {
    const auto add = [&](std::uint32_t argument) {
      vectors.push_back(
          {std::string(form->name), argument, result_by(*form, *form->function, argument)});
    };
    for (const std::uint32_t argument : edges()) add(argument);
    std::vector<CoefficientMutant> left = coefficient_mutants(*form);
    emulator::inputs::Random random(1);
    for (int draw = 0; draw < most_draws && !left.empty(); ++draw) {
      const std::uint32_t argument = drawn_argument(*form->function, random);
      const ReadSegment read = segment_read(*form, argument);
      if (!read.is_read) continue;
      const auto before = left.size();
      std::erase_if(left, [&](const CoefficientMutant& m) {
        return m.binade == read.binade && m.segment == read.segment && notices(*form, m, argument);
      });
      if (left.size() != before) add(argument);
    }
  }
  return vectors;
}

}  // namespace guardbit::tests
