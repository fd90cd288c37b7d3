#include "tests/mutation/unobservable.hpp"

#include <algorithm>

#include "formats/format_catalogue.hpp"
#include "tests/emulator/inputs/oracle_rules.hpp"
#include "tests/mutation/instruction_numbers.hpp"

namespace guardbit::tests {

namespace {

using emulator::AccumulatorSpec;
using emulator::Operation;
using emulator::Summation;
using formats::Rounding;

bool is_chain(Summation s) { return s == Summation::fma_chain || s == Summation::pairwise; }
/// Do the operands decide the sign and payload of a NaN?
bool keeps_payload(const AccumulatorSpec& spec) {
  return spec.nan == emulator::NanPolicy::operand_abc ||
         spec.nan == emulator::NanPolicy::operand_bca;
}
bool to_nearest(Rounding r) { return r == Rounding::nearest_even || r == Rounding::nearest_away; }

int selected_products(const MatrixInstruction& instruction, const Step& step) {
  int count = 0;
  for (int k = 0; k < instruction.shape.k; ++k) count += step.selection.contains(k) ? 1 : 0;
  return count;
}

bool same_selection(const MatrixInstruction& instruction, const Step& x, const Step& y) {
  for (int k = 0; k < instruction.shape.k; ++k) {
    if (x.selection.contains(k) != y.selection.contains(k)) return false;
  }
  return true;
}

// ---- The proofs --------------------------------------------------------------------------------

/// One mutated step, before and after.
struct Case {
  const MatrixInstruction& instruction;
  const Mutant& mutant;
  const Step& before;
  const Step& after;
  /// of the spec
  std::string_view field;

  bool is_last() const { return mutant.step == instruction.steps.count - 1; }
  std::size_t last() const { return static_cast<std::size_t>(instruction.steps.count) - 1; }
  bool dot() const { return before.operation == Operation::dot; }
  bool summation_is(Summation s) const { return dot() && before.spec.summation == s; }
  bool adds_products_apart() const {
    return summation_is(Summation::two_stage) || summation_is(Summation::two_grids);
  }
  bool aligns() const { return summation_is(Summation::fused) || adds_products_apart(); }
  bool both(Rounding AccumulatorSpec::*member, Rounding x, Rounding y) const {
    return before.spec.*member == x && after.spec.*member == y;
  }
};

/// Is a result the upper part of a wider number?
bool is_cut(const Step& step) { return step.spec.result_fraction_bits > step.result.fraction_bits; }

std::string about_rounding(const Case& x) {
  // In a chain the rounding also decides what overflows to infinity.
  if (x.both(&AccumulatorSpec::alignment, Rounding::toward_zero, Rounding::stochastic) ||
      (x.both(&AccumulatorSpec::result, Rounding::toward_zero, Rounding::stochastic) &&
       !is_chain(x.before.spec.summation))) {
    return "without random bits stochastic rounding truncates";
  }
  if (x.adds_products_apart() && is_cut(x.before) &&
      x.both(&AccumulatorSpec::result, Rounding::nearest_even, Rounding::nearest_away) &&
      (x.before.spec.output != emulator::Subnormals::keep || !x.is_last())) {
    // Of a sum that rounds to the smallest negative number only the sign would be left.
    return "a tie passes the end of what is kept only from an odd number, which both round up";
  }
  const bool fits = x.before.operation == Operation::convert &&
                    sum_unit(x.instruction, x.mutant.step) >= unit_of(x.before.result) &&
                    x.after.result.fraction_bits >= x.instruction.c.fraction_bits &&
                    x.before.addend == Source::c &&
                    x.after.spec.result_fraction_bits != x.instruction.c.fraction_bits - 1;
  if (fits && (x.field == "result" || x.field == "result_fraction_bits" ||
               x.mutant.place == Place::result_format)) {
    return "the conversion is exact: its result holds every C";
  }
  return "";
}

std::string about_kept_bits(const Case& x) {
  if (!x.summation_is(Summation::fused) || x.instruction.scale.count != 0) return "";
  const bool exact_sum = x.field == "summation" && x.after.spec.summation == Summation::exact;
  if (x.field != "kept_fraction_bits" && x.field != "alignment" && !exact_sum) return "";
  const int kept = std::min(x.before.spec.kept_fraction_bits, x.after.spec.kept_fraction_bits);
  return never_cuts(x.instruction, x.mutant.step, kept) ? "no bit of any term lies below the grid"
                                                        : "";
}

/// A sum on one grid as one on two, of which the addend's is that of a zero.
std::string about_two_grids(const Case& x) {
  const AccumulatorSpec& after = x.after.spec;
  if (x.field != "summation" || !x.summation_is(Summation::fused) ||
      after.summation != Summation::two_grids || x.instruction.scale.count != 0 ||
      source_unit(x.instruction, x.before.addend) != never) {
    return "";
  }
  const int of_zeros = std::max(after.zero_product_exponent - after.kept_fraction_bits,
                                after.min_exponent - after.addend_kept_fraction_bits);
  return of_zeros <= product_unit(x.instruction)
             ? "the addend is zero, and no product has a bit below the grids of zeros"
             : "";
}

std::string about_zero_exponent(const Case& x) {
  if (x.field != "min_exponent" || !x.aligns()) return "";
  const int zero = std::max(x.before.spec.min_exponent, x.after.spec.min_exponent);
  const int kept = x.summation_is(Summation::fused)       ? x.before.spec.kept_fraction_bits
                   : x.summation_is(Summation::two_grids) ? x.before.spec.addend_kept_fraction_bits
                                                          : x.before.spec.sum_kept_fraction_bits;
  // Two inverted terms take half an ulp, a tie that goes back to the even power of two.
  if (x.summation_is(Summation::two_grids) &&
      x.before.spec.output == emulator::Subnormals::daz_ftz &&
      zero - kept <= formats::min_exponent(x.before.result) - 25) {
    return "results that a zero's grid could change are flushed";
  }
  return zero - kept <= product_unit(x.instruction)
             ? "no product has a bit below the grid of a zero (NUMERICS 1.3)"
             : "";
}

/// Blocks of one pair.
std::string about_pairs(const Case& x) {
  if (x.field != "interleave" || !x.summation_is(Summation::two_stage)) return "";
  const int count = selected_products(x.instruction, x.before);
  const int products = x.before.spec.terms == 0 ? count : std::min(x.before.spec.terms, count);
  if (products > 2) return "";
  const auto is_one_set = [](emulator::Interleave i) {
    return i == emulator::Interleave::none || i == emulator::Interleave::pairs;
  };
  if (is_one_set(x.before.spec.interleave) && is_one_set(x.after.spec.interleave))
    return "two products are one pair";
  const bool whole = x.instruction.a.fraction_bits + x.instruction.b.fraction_bits <=
                     x.before.spec.kept_fraction_bits;
  return whole && x.before.spec.alignment == Rounding::downward
             ? "each of the two products has all its bits on a grid of its own"
             : "";
}

std::string about_two_stages(const Case& x) {
  if (!x.adds_products_apart()) return "";
  const AccumulatorSpec &before = x.before.spec, &after = x.after.spec;
  if (x.field == "product_overflow_exponent") {
    const auto reached = [&](int threshold) {
      return threshold != 0 && highest_product(x.instruction) + 1 >= threshold;
    };
    if (!reached(before.product_overflow_exponent) && !reached(after.product_overflow_exponent)) {
      return "no product is as large as that";
    }
  }
  if (x.field == "zero_product_exponent") {
    const int zero = std::max(before.zero_product_exponent, after.zero_product_exponent);
    const int lowest =
        formats::min_exponent(x.instruction.a) + formats::min_exponent(x.instruction.b);
    if (zero < std::min(lowest, before.min_exponent)) return "every other exponent is larger";
  }
  if (x.field == "sum_kept_fraction_bits" && after.sum_kept_fraction_bits == 33 &&
      before.total_kept_fraction_bits == 31 && before.kept_fraction_bits == 24) {
    // A bit of the product sum 33 below C's exponent belongs to products 9 below it, which cannot
    // cancel C past the next binade; there the last floor cuts 32 below. C must be normal: for a
    // smaller one no product has such a bit.
    if (formats::min_exponent(x.instruction.c) - 33 < product_unit(x.instruction) - 1) {
      return "the floor of the total cuts all that the floor of the product sum would";
    }
  }
  return "";
}

std::string about_terms(const Case& x) {
  if (x.field != "terms") return "";
  const int count = selected_products(x.instruction, x.before);
  const auto whole = [count](int terms) { return terms == 0 || terms >= count; };
  if (whole(x.before.spec.terms) && whole(x.after.spec.terms)) {
    return "the instruction has no more products than one block";
  }
  if (x.summation_is(Summation::fma_chain)) return "a chain of chains is the same chain";
  if (!x.summation_is(Summation::integer)) return "";
  if (x.before.spec.integer_overflow == emulator::IntegerOverflow::wrap) {
    return "addition modulo 2^32 is associative";
  }
  return !x.instruction.a.has_sign && !x.instruction.b.has_sign
             ? "a sum of nonnegative products that has saturated stays saturated"
             : "";
}

Unobservable about_nan(const Case& x) {
  if (x.field != "nan") return {};
  const AccumulatorSpec& spec = x.before.spec;
  const AccumulatorSpec& last = x.instruction.steps.list.at(x.last()).spec;
  if (!x.is_last() && !keeps_payload(last) && !emulator::has_chosen_nan(last)) {
    return {"a later step makes its own NaN"};
  }
  if (x.dot() && emulator::has_chosen_nan(spec)) {
    const bool finite =
        !formats::has_infinity(x.instruction.a) && !formats::has_infinity(x.instruction.b);
    return {finite && emulator::has_chosen_nan(x.after.spec)
                ? "without infinite factors no operation is invalid"
                : ""};
  }
  if (!x.dot() && keeps_payload(spec) && keeps_payload(x.after.spec)) {
    return {"an addition's NaN is the first operand's under both"};
  }
  if (judge_of(x.instruction).nan_is_any_nan) {
    if (spec.nan == emulator::NanPolicy::operand_bca) {
      return {"no source but a recording gives sign and payload of this NaN", true};
    }
    return {"no source gives sign and payload of this NaN (NUMERICS, Q15b)"};
  }
  const int from = static_cast<int>(x.before.addend);
  if (x.before.operation == Operation::convert && from >= 0 &&
      step_of(x.instruction, from).spec.nan == emulator::NanPolicy::all_ones) {
    return {"the NaN that is converted is all ones already"};
  }
  if (!is_chain(spec.summation) && spec.result_fraction_bits == 0) {
    return {"the unit's conversion makes every NaN all ones already"};
  }
  // Additions: without a payload to keep, the quiet NaN would show.
  return {};
}

std::string about_zero_signs(const Case& x) {
  const int sum = sum_unit(x.instruction, x.mutant.step);
  const Format kept = kept_format(x.before);
  if (x.field == "underflowed_sum" && sum >= unit_of(kept)) {
    return "every sum is a multiple of the smallest result: nothing underflows";
  }
  if (x.field == "underflowed_sum" && !x.is_last()) {
    const Step& next = step_of(x.instruction, x.mutant.step + 1);
    if (static_cast<int>(next.addend) == x.mutant.step && next.operation == Operation::dot &&
        !is_chain(next.spec.summation)) {
      return "an aligned sum loses the sign of a zero addend";
    }
  }
  if (x.field == "output") {
    if (sum >= formats::min_exponent(kept)) return "no result is subnormal";
    if (x.before.spec.input != emulator::Subnormals::keep && x.dot() &&
        product_unit(x.instruction) - x.instruction.c.fraction_bits - 2 >
            formats::min_exponent(kept)) {
      return "a subnormal C is flushed before, and no product is small enough to leave one";
    }
    const bool last = x.is_last();
    const Step* const next = last ? nullptr : &step_of(x.instruction, x.mutant.step + 1);
    const bool keeps_sign = is_chain(x.before.spec.summation) ||
                            x.before.spec.underflowed_sum == emulator::ZeroSign::of_sum;
    if (next != nullptr && keeps_sign && next->operation == Operation::convert &&
        unit_of(next->result) - 1 > formats::min_exponent(kept)) {
      return "the next step rounds this step's subnormals to zero";
    }
  }
  const bool zeros =
      static_cast<int>(x.before.addend) < -1 && static_cast<int>(x.after.addend) < -1;
  if (x.mutant.place == Place::addend && zeros && x.before.addend == Source::positive_zero) {
    for (const Step& step : x.instruction.steps) {
      const bool first = static_cast<int>(step.addend) == x.mutant.step;
      const bool second = static_cast<int>(step.other) == x.mutant.step;
      if (step.operation == Operation::add && first != second &&
          zero_is_positive(x.instruction, first ? step.other : step.addend)) {
        return "the other summand is never -0, so the sign of this zero is lost";
      }
    }
  }
  if (x.mutant.place == Place::addend && zeros && x.dot() && !is_chain(x.before.spec.summation)) {
    return "an aligned sum loses the sign of a zero addend";
  }
  return "";
}

std::string about_subnormal_operands(const Case& x) {
  if (x.field != "input" || x.dot()) return "";
  const bool addition = x.before.operation == Operation::add;
  const auto sources = [&](auto predicate) {
    return predicate(x.instruction, x.before.addend) ||
           (addition && predicate(x.instruction, x.before.other));
  };
  if (!sources(gives_subnormals)) return "no operand of the step is subnormal";
  using emulator::Subnormals;
  const bool only_sign =
      x.before.spec.input != Subnormals::keep && x.after.spec.input != Subnormals::keep;
  if (addition && only_sign && sources(zero_is_positive)) {
    return "the other operand is never -0, so the sign of this zero is lost";
  }
  const Format from = source_format(x.instruction, x.before.addend, x.before.result);
  if (!addition && x.after.spec.input == Subnormals::daz_ftz &&
      unit_of(x.before.result) - 1 > formats::min_exponent(from)) {
    return "the conversion rounds subnormal numbers to zeros of their sign";
  }
  return "";
}

std::string about_flushed_results(const Case& x) {
  if (x.field != "output") return "";
  using emulator::Subnormals;
  const Format kept = kept_format(x.before);
  const bool only_rounded_up =
      x.before.spec.output != Subnormals::keep && x.after.spec.output != Subnormals::keep;
  if (only_rounded_up) {
    if (x.summation_is(Summation::two_grids) &&
        product_unit(x.instruction) > formats::min_exponent(kept)) {
      return "below the smallest normal number lie only C and a unit for each zero product";
    }
    if (!x.dot() && sum_unit(x.instruction, x.mutant.step) >= unit_of(kept)) {
      return "below the smallest normal number every sum is exact";
    }
    // Sums of flushed numbers are exact there, and a product has too few bits to be rounded up.
    if (x.summation_is(Summation::pairwise) &&
        formats::precision(x.instruction.a) + formats::precision(x.instruction.b) <=
            kept.fraction_bits) {
      return "below the smallest normal number every product and sum is exact";
    }
  }
  if (!x.is_last()) {
    const Step& next = step_of(x.instruction, x.mutant.step + 1);
    const bool reads = static_cast<int>(next.other) == x.mutant.step;
    if (next.operation == Operation::add && reads && next.spec.input == Subnormals::daz_ftz &&
        sum_unit(x.instruction, x.mutant.step) >= unit_of(kept)) {
      return "the next step takes subnormal operands as zeros";
    }
  }
  if (x.before.operation == Operation::add && x.before.spec.input != Subnormals::keep &&
      x.before.addend == Source::c &&
      source_unit(x.instruction, x.before.other) - x.instruction.c.fraction_bits - 2 >
          formats::min_exponent(kept)) {
    return "C is normal or zero, and no sum of products is small enough to leave a subnormal";
  }
  return "";
}

/// The sign of a zero C or of a zero sum, which an addition of +0 would change and a conversion
/// keeps.
std::string about_operation(const Case& x) {
  if (x.mutant.place == Place::swapped_operands && !keeps_payload(x.before.spec)) {
    return "addition is commutative";
  }
  if (x.mutant.place == Place::operation && x.before.operation == Operation::convert &&
      x.after.operation == Operation::add) {
    const int from = static_cast<int>(x.before.addend);
    if (from >= 0 && !is_chain(step_of(x.instruction, from).spec.summation)) {
      return "an accumulation gives no -0, whose sign adding +0 would lose";
    }
    if (!x.is_last() && !is_chain(step_of(x.instruction, x.mutant.step + 1).spec.summation)) {
      return "an aligned sum loses the sign of a zero addend";
    }
  }
  const bool exact_products = x.instruction.a.fraction_bits + x.instruction.b.fraction_bits + 2 <=
                              x.before.result.fraction_bits + 1;
  if (x.field == "summation" && x.dot() && is_chain(x.before.spec.summation) &&
      is_chain(x.after.spec.summation) && exact_products &&
      source_unit(x.instruction, x.before.addend) == never &&
      selected_products(x.instruction, x.before) <= 2) {
    return "the sum of two exact products is rounded once either way";
  }
  if (x.field == "summation" && !x.dot()) {
    if (is_chain(x.before.spec.summation) && is_chain(x.after.spec.summation)) {
      return "additions and conversions are the same in every chain";
    }
    if (sum_unit(x.instruction, x.mutant.step) >= unit_of(kept_format(x.before)) &&
        to_nearest(x.before.spec.result) && !keeps_payload(x.before.spec)) {
      return "an addition that cannot underflow is the same in every unit";
    }
  }
  if ((x.mutant.place == Place::residues || x.mutant.place == Place::modulus) &&
      same_selection(x.instruction, x.before, x.after)) {
    return "the same products are selected";
  }
  return "";
}

/// Exponents by which the factors below the normal range of `f` are aligned differ between the
/// formats of a step before and after; everything else is aligned alike.
struct AffectedFactors {
  bool any = false;
  /// exponent by which one of them is aligned at most
  int highest = 0;
};
AffectedFactors affected_factors(const Format& stored, const Format& before, const Format& after) {
  const int lowest = unit_of(stored);
  const int x = std::max(lowest, formats::min_exponent(before));
  const int y = std::max(lowest, formats::min_exponent(after));
  return {x != y, std::max(x, y)};
}

std::string about_widening(const Case& x) {
  if (x.mutant.place != Place::widened) return "";
  if (!x.aligns()) return "widening keeps the values, and nothing is aligned";
  const Format& a0 = x.before.widened ? *x.before.widened : x.instruction.a;
  const Format& b0 = x.before.widened ? *x.before.widened : x.instruction.b;
  const Format& a1 = x.after.widened ? *x.after.widened : x.instruction.a;
  const Format& b1 = x.after.widened ? *x.after.widened : x.instruction.b;
  const AffectedFactors a = affected_factors(x.instruction.a, a0, a1);
  const AffectedFactors b = affected_factors(x.instruction.b, b0, b1);
  if (!a.any && !b.any) return "both formats give every operand the same exponent";
  const int highest = std::max(a.any ? a.highest + formats::max_exponent(x.instruction.b) : -never,
                               b.any ? b.highest + formats::max_exponent(x.instruction.a) : -never);
  const int terms =
      std::min(product_unit(x.instruction), source_unit(x.instruction, x.before.addend));
  if (x.summation_is(Summation::fused) && x.instruction.scale.count == 0 &&
      highest - x.before.spec.kept_fraction_bits <= terms) {
    return "a product with a subnormal factor never sets a grid that cuts";
  }
  return "";
}

std::string about_integers(const Case& x) {
  if (!x.summation_is(Summation::integer)) return "";
  const bool saturates = x.before.spec.integer_overflow == emulator::IntegerOverflow::saturate;
  if (x.field == "summation" && saturates) {
    const int product_bits = formats::bits(x.instruction.a) + formats::bits(x.instruction.b);
    const auto largest = std::int64_t{selected_products(x.instruction, x.before)} << product_bits;
    if (x.after.spec.summation == Summation::pairwise && largest <= INT32_MAX) {
      return "32 bits hold every sum of products: only the last addition saturates";
    }
    if (x.after.spec.summation == Summation::fma_chain && !x.instruction.a.has_sign &&
        !x.instruction.b.has_sign) {
      return "a sum of nonnegative products that has saturated stays saturated";
    }
  }
  if (x.field == "product" && x.instruction.a == formats::b1 &&
      x.before.spec.product == emulator::Product::bit_and &&
      x.after.spec.product == emulator::Product::multiply) {
    return "on single bits a product is an AND";
  }
  return "";
}

std::string about_formats(const MatrixInstruction& instruction, const Mutant& mutant) {
  if (mutant.place == Place::swapped_selections) {
    const Step& last = step_of(instruction, instruction.steps.count - 1);
    const Step& sum = last.operation == Operation::add && static_cast<int>(last.addend) < 0
                          ? step_of(instruction, static_cast<int>(last.other))
                          : last;
    const bool parallel = sum.operation == Operation::add && sum.addend == Source::step_0 &&
                          sum.other == Source::step_1 && !keeps_payload(sum.spec);
    return parallel ? "the two accumulations are added, and addition is commutative" : "";
  }
  if (mutant.place != Place::operand_format || !formats::is_integer(instruction.a)) return "";
  const AccumulatorSpec& spec = instruction.steps.begin()->spec;
  if (mutant.field == "c" && spec.integer_overflow == emulator::IntegerOverflow::wrap) {
    return "modulo 2^32 the sign bit of C weighs the same";
  }
  if (instruction.a == formats::b1 && spec.product == emulator::Product::bit_and) {
    return "the AND of a bit with all ones is the bit";
  }
  return "";
}

}  // namespace

Unobservable unobservable(const MatrixInstruction& instruction, const Mutant& mutant) {
  if (mutant.step < 0) return {about_formats(instruction, mutant)};
  const std::string_view name = mutant.field;
  const std::size_t space = name.rfind(' ');
  const Case x{instruction, mutant, step_of(instruction, mutant.step),
               step_of(mutant.instruction, mutant.step),
               mutant.place != Place::spec       ? std::string_view{}
               : space == std::string_view::npos ? name
                                                 : name.substr(space + 1)};
  if (const Unobservable nan = about_nan(x)) return nan;
  for (const auto proof :
       {about_rounding, about_kept_bits, about_two_grids, about_zero_exponent, about_two_stages,
        about_pairs, about_terms, about_zero_signs, about_subnormal_operands, about_flushed_results,
        about_operation, about_widening, about_integers}) {
    if (std::string reason = proof(x); !reason.empty()) return {std::move(reason)};
  }
  return {};
}

}  // namespace guardbit::tests
