#include "gpu/validation/coverage.hpp"

#include <algorithm>

namespace guardbit::emulator {

namespace {

/// The exponents of the numbers that a source can hold.
struct Range {
  /// every number is a multiple of 2^lowest
  int lowest = 0;
  /// the least exponent with which a nonzero number is aligned
  int aligned = 0;
  /// largest exponent; below `lowest` when there is only zero
  int highest = 0;
  bool infinity = false, nan = false;
  /// of any one number
  int fraction_bits = 0;

  bool only_zero() const { return highest < lowest; }
};

Range range_of(const Format& f, const std::optional<Format>& widened = {}) {
  const int lowest = formats::min_exponent(f) - f.fraction_bits;
  const int aligned =
      widened ? std::max(lowest, formats::min_exponent(*widened)) : formats::min_exponent(f);
  return {lowest,
          aligned,
          formats::max_exponent(f),
          formats::has_infinity(f),
          formats::has_nan(f),
          f.fraction_bits};
}

Range range_of_source(Source source, const MatrixInstruction& instruction,
                      const std::array<Range, 5>& results) {
  switch (source) {
    case Source::positive_zero:
    case Source::negative_zero: return {0, 0, -1, false, false, 0};
    case Source::c: return range_of(instruction.c);
    default: return results.at(static_cast<std::size_t>(source));
  }
}

int ceil_log2(int n) { return n <= 1 ? 0 : formats::leading_bit(static_cast<unsigned>(n - 1)) + 1; }

/// The events of one rounding of numbers whose last bit is 2^lowest and whose leading bit is 2^top,
/// with `span` bits between.
EventSet possible_conversions(const Step& step, int lowest, int top, int span) {
  EventSet set;
  const Format& f = step.result;
  const AccumulatorSpec& spec = step.spec;
  const int kept = spec.result_fraction_bits != 0 ? spec.result_fraction_bits : f.fraction_bits;
  const bool nearest =
      spec.result == Rounding::nearest_even || spec.result == Rounding::nearest_away;
  const int least_normal = formats::min_exponent(f);
  const bool inexact = std::min(span, std::min(top, formats::max_exponent(f)) - lowest) > kept ||
                       lowest < least_normal - f.fraction_bits;
  set.include(Event::rounded, inexact);
  set.include(Event::tie, inexact && nearest);
  set.include(Event::rounded_up, inexact && spec.result != Rounding::toward_zero);
  set.include(Event::subnormal, lowest < least_normal);
  set.include(Event::zero_by_underflow, lowest < least_normal - f.fraction_bits);
  const bool past = top > formats::max_exponent(f);
  const bool stops = spec.summation == Summation::fma_chain && !nearest;
  const bool truncates = stops && spec.result == Rounding::toward_zero;
  set.include(Event::infinity_from_overflow, past && !truncates);
  set.include(Event::largest_instead_of_infinity, past && stops);
  return set;
}

/// The events of infinities and NaNs when numbers of the two ranges are added.
EventSet possible_specials(const Range& x, const Range& y) {
  EventSet set;
  set.include(Event::nan_from_operand, x.nan || y.nan);
  set.include(Event::infinity_from_operand, x.infinity || y.infinity);
  set.include(Event::nan_from_opposite_infinities, x.infinity && y.infinity);
  return set;
}

/// Can a product push C, at the end of its range, past the end?
bool addend_overflows(const Range& addend, const Step& step, const Format& c, int reach) {
  if (addend.highest < formats::max_exponent(step.result)) return false;
  return reach >= addend.highest - c.fraction_bits;
}

struct Products {
  Range range;
  /// in one block
  int count = 0;
};

EventSet possible_in_dot(const MatrixInstruction& instruction, const Step& step,
                         const Products& products, const Range& addend,
                         const Format& addend_format) {
  const AccumulatorSpec& spec = step.spec;
  const Range& p = products.range;
  EventSet set = possible_specials(p, addend);
  set.include(Event::nan_from_opposite_infinities, p.infinity && products.count > 1);
  set.include(Event::nan_from_infinity_times_zero,
              formats::has_infinity(instruction.a) || formats::has_infinity(instruction.b));
  set.include(Event::zero_of_zeros);
  set.include(Event::zero_by_cancellation);
  set.include(Event::sum_cancelled);

  const bool alone = addend.only_zero();
  const int lowest = alone ? p.lowest : std::min(p.lowest, addend.lowest);
  const int highest = alone ? p.highest : std::max(p.highest, addend.highest);
  // A product is below 2^(E+2), and the sum of all of them at most that times their number.
  const int reach = p.highest + 1 + ceil_log2(products.count);
  int top = std::max(reach, highest);
  if (!alone && addend_overflows(addend, step, addend_format, reach)) ++top;
  int last = lowest;
  if (spec.summation == Summation::fused) {
    const bool cuts = lowest < highest - spec.kept_fraction_bits;
    set.include(Event::term_cut, cuts);
    set.include(Event::term_lost, cuts);
    set.include(Event::zero_by_alignment, cuts);
    set.include(Event::sum_carried, products.count > 1);
    set.include(Event::zero_set_grid, p.aligned <= spec.min_exponent);
    last = std::max(lowest, std::max(spec.min_exponent, p.aligned) - spec.kept_fraction_bits);
    if (!alone && addend.lowest < last) last = addend.lowest;
  }
  set.include(possible_conversions(step, last, top, top - last));
  return set;
}

/// The range of a step's result, given the last bit and the leading bit of what it rounds.
Range rounded_range(const Step& step, int lowest, int top, bool infinity, bool nan) {
  const Format& f = step.result;
  const Range all = range_of(f);
  const int highest = std::min(top, all.highest);
  return {std::max(lowest, all.lowest),
          std::max(all.aligned, lowest),
          highest,
          infinity || top > all.highest,
          nan || infinity,
          f.fraction_bits};
}

EventSet possible_integers(const MatrixInstruction& instruction, const Step& step) {
  EventSet set;
  set.include(Event::integer_above);
  const bool is_negative =
      step.spec.product == Product::multiply && (instruction.a.has_sign || instruction.b.has_sign);
  set.include(Event::integer_below, is_negative);
  return set;
}

}  // namespace

EventSet possible_events(const MatrixInstruction& instruction) {
  EventSet all;
  std::array<Range, 5> results{};
  std::size_t index = 0;
  for (const Step& step : instruction.steps) {
    const Range addend = range_of_source(step.addend, instruction, results);
    Range& result = results.at(index++);
    if (step.operation != Operation::dot) {
      const Range other = step.operation == Operation::add
                              ? range_of_source(step.other, instruction, results)
                              : Range{0, 0, -1, false, false, 0};
      all.include(possible_specials(addend, other));
      all.include(Event::zero_of_zeros);
      const bool adds = !addend.only_zero() && !other.only_zero();
      all.include(Event::zero_by_cancellation, adds);
      all.include(Event::sum_cancelled, adds);
      const int lowest = other.only_zero() ? addend.lowest : std::min(addend.lowest, other.lowest);
      const int top = std::max(addend.highest, other.highest) +
                      (adds && addend.highest == other.highest ? 1 : 0);
      all.include(
          possible_conversions(step, lowest, top, adds ? top - lowest : addend.fraction_bits));
      result = rounded_range(step, lowest, top, addend.infinity || other.infinity,
                             addend.nan || other.nan);
      continue;
    }
    if (step.spec.summation == Summation::integer) {
      all.include(possible_integers(instruction, step));
      continue;
    }
    const bool known =
        step.spec.summation == Summation::fused || step.spec.summation == Summation::fma_chain;
    if (!known || instruction.scale.count != 0) return {};
    const Range a = range_of(instruction.a, step.widened),
                b = range_of(instruction.b, step.widened);
    Products products;
    products.range = {a.lowest + b.lowest,   a.aligned + b.aligned,
                      a.highest + b.highest, a.infinity || b.infinity,
                      a.nan || b.nan,        a.fraction_bits + b.fraction_bits};
    const int selected = stored_k(instruction, instruction.shape.k) *
                         __builtin_popcount(step.selection.residues) / step.selection.modulus;
    products.count = step.spec.terms != 0 ? std::min(step.spec.terms, selected) : selected;
    const Format addend_format = step.addend == Source::c ? instruction.c : step.result;
    all.include(possible_in_dot(instruction, step, products, addend, addend_format));
    const int top = std::max(products.range.highest + 1 + ceil_log2(selected), addend.highest);
    const int lowest =
        addend.only_zero() ? products.range.lowest : std::min(products.range.lowest, addend.lowest);
    result = rounded_range(step, lowest, top, products.range.infinity || addend.infinity,
                           products.range.nan || addend.nan);
    // Later blocks add to the results of earlier ones.
    if (products.count < selected)
      all.include(possible_in_dot(instruction, step, products, result, step.result));
  }
  return all;
}

}  // namespace guardbit::emulator
