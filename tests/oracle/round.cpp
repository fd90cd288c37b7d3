#include "tests/oracle/round.hpp"

#include <algorithm>
#include <list>
#include <vector>

namespace guardbit::oracle {
namespace {

using Kind = FormatParameters::Kind;
using Mode = Rounding::Mode;

/// All finite magnitudes of a format in ascending order, counted in the spacing of the smallest
/// ones, and the one that would follow.
struct Table {
  FormatParameters format;
  int exponent = 0;  // magnitudes[i] * 2^exponent
  std::vector<Integer> magnitudes;
  std::vector<std::uint64_t> codes;
};

Table build_table(const FormatParameters& format) {
  Table table{format, spacing_exponent(format), {}, {}};
  for (std::uint64_t code = 0; code <= maximum_code(format); ++code) {
    const Integer magnitude = floor_at(decode(format, code).magnitude, table.exponent).quotient;
    if (!table.magnitudes.empty() && magnitude == table.magnitudes.back()) continue;
    table.magnitudes.push_back(magnitude);
    table.codes.push_back(code);
  }
  // The number after the largest: the same format without specials and with one more exponent bit
  // gives every code below its old meaning and the next code the value asked for.
  FormatParameters wider = format;
  wider.specials = FormatParameters::Specials::none;
  wider.exponent_bits += 1;
  wider.bits += 1;
  const std::uint64_t next = maximum_code(format) + 1;
  table.magnitudes.push_back(floor_at(decode(wider, next).magnitude, table.exponent).quotient);
  table.codes.push_back(next);
  return table;
}

/// One table per format and thread, built when first asked for.
const Table& table_of(const FormatParameters& format) {
  thread_local std::list<Table> tables;
  const auto known = std::find_if(tables.begin(), tables.end(),
                                  [&](const Table& table) { return table.format == format; });
  if (known == tables.end()) return tables.emplace_front(build_table(format));
  tables.splice(tables.begin(), tables, known);
  return tables.front();
}

/// Whether a code without sign has an odd significand.
bool is_odd(const FormatParameters& format, std::uint64_t code) {
  if (format.fraction_bits > 0) return (code & 1) != 0;
  return format.kind == Kind::exponent_only || code != 0;
}

/// Whether the magnitude, strictly between two neighbours, becomes the higher one.
bool takes_high(const Dyadic& magnitude, const Dyadic& low, const Dyadic& high, bool low_is_odd,
                bool negative, const Rounding& rounding) {
  const int exponent = std::min({magnitude.exponent, low.exponent, high.exponent});
  const Integer at = floor_at(magnitude, exponent).quotient;
  const Integer from = floor_at(low, exponent).quotient;
  const Integer to = floor_at(high, exponent).quotient;
  const Integer discarded = at - from;
  const Integer gap = to - from;
  const int against_half = Integer(discarded * 2).compare(gap);
  switch (rounding.mode) {
    case Mode::nearest_even: return against_half > 0 || (against_half == 0 && low_is_odd);
    case Mode::nearest_away: return against_half >= 0;
    case Mode::toward_zero: return false;
    case Mode::upward: return !negative;
    case Mode::downward: return negative;
    case Mode::to_odd: return !low_is_odd;
    case Mode::stochastic: break;
  }
  const Integer one = Integer(1) << static_cast<unsigned>(rounding.random_width);
  const Integer fraction = discarded * one / gap;
  return fraction + rounding.random_bits >= one;
}

std::uint64_t encode_integer(const FormatParameters& format, const Number& number,
                             const Rounding& rounding) {
  if (number.is_nan()) return 0;
  const Integer positive_end = (Integer(1) << (format.bits - (format.has_sign ? 1 : 0))) - 1;
  const Integer negative_end = format.has_sign ? positive_end + 1 : Integer(0);
  const Integer& end = number.negative ? negative_end : positive_end;
  Integer magnitude = end;
  if (number.is_finite()) {
    const Floor floor = floor_at(number.magnitude, 0);
    magnitude = floor.quotient;
    const Integer above = magnitude + 1;
    if (!floor.exact && takes_high(number.magnitude, {magnitude, 0}, {above, 0},
                                   bit_test(magnitude, 0), number.negative, rounding))
      magnitude = above;
    magnitude = std::min(magnitude, end);
  }
  const Integer modulus = Integer(1) << format.bits;
  const Integer code = number.negative && !magnitude.is_zero() ? modulus - magnitude : magnitude;
  return static_cast<std::uint64_t>(code);
}

std::uint64_t with_sign(const FormatParameters& format, std::uint64_t code, bool negative) {
  if (!negative || !format.has_sign) return code;
  const bool no_negative_zero = format.specials == FormatParameters::Specials::nan_negative_zero;
  if (code == 0 && no_negative_zero) return 0;
  return code | std::uint64_t{1} << (format.bits - 1);
}

std::uint64_t encode_infinity(const FormatParameters& format, bool negative, bool saturates) {
  const auto magnitude_bits = format.exponent_bits + format.fraction_bits;
  if (!saturates && has_infinity(format)) {
    const std::uint64_t all_ones = (std::uint64_t{1} << magnitude_bits) - 1;
    const std::uint64_t code = all_ones >> format.fraction_bits << format.fraction_bits;
    return with_sign(format, code, negative);
  }
  if (!saturates && has_nan(format)) return nan_code(format);
  return with_sign(format, maximum_code(format), negative);
}

/// Overflow by a mode that goes no further than the largest finite number.
bool stops_at_maximum(Mode mode, bool negative) {
  return mode == Mode::toward_zero || mode == Mode::to_odd || (mode == Mode::upward && negative) ||
         (mode == Mode::downward && !negative);
}

}  // namespace

Neighbours neighbours_by_table(const FormatParameters& format, const Dyadic& magnitude) {
  const Table& table = table_of(format);
  const Floor floor = floor_at(magnitude, table.exponent);
  const auto above =
      std::upper_bound(table.magnitudes.begin(), table.magnitudes.end(), floor.quotient);
  Neighbours result;
  if (above == table.magnitudes.end()) {
    result.beyond = true;
    return result;
  }
  const auto high = static_cast<std::size_t>(above - table.magnitudes.begin());
  // Below the smallest number of a format without zero, both neighbours are that number.
  const std::size_t low = high == 0 ? 0 : high - 1;
  result.low = {table.magnitudes[low], table.exponent};
  result.high = {table.magnitudes[high], table.exponent};
  result.low_code = table.codes[low];
  result.high_code = table.codes[high];
  result.exact = low == high || (floor.exact && floor.quotient == table.magnitudes[low]);
  return result;
}

Neighbours neighbours_by_exponent(const FormatParameters& format, const Dyadic& magnitude) {
  const int emin = minimum_exponent(format);
  const std::uint64_t smallest_normal = std::uint64_t{1} << format.fraction_bits;
  Neighbours result;
  const bool tiny = is_zero(magnitude) || floor_log2(magnitude) < emin;
  if (tiny && format.kind == Kind::exponent_only) {
    result.low = result.high = {1, emin};
    result.exact = true;
    return result;
  }
  if (tiny && !format.has_subnormals) {
    result.high = {1, emin};
    result.high_code = smallest_normal;
    result.exact = is_zero(magnitude);
    return result;
  }
  const int exponent = tiny ? emin : floor_log2(magnitude);
  const int spacing = exponent - format.fraction_bits;
  const Floor floor = floor_at(magnitude, spacing);
  result.low = {floor.quotient, spacing};
  result.high = {floor.quotient + 1, spacing};
  result.exact = floor.exact;
  const Integer field = exponent - emin + (format.kind == Kind::exponent_only ? 0 : 1);
  const Integer code = tiny ? floor.quotient
                            : (field << static_cast<unsigned>(format.fraction_bits)) +
                                  floor.quotient - smallest_normal;
  result.beyond = code > maximum_code(format);
  if (result.beyond) return result;
  result.low_code = static_cast<std::uint64_t>(code);
  result.high_code = result.low_code + 1;
  return result;
}

std::uint64_t encode(const FormatParameters& format, const Number& number, const Rounding& rounding,
                     const Overflow& overflow) {
  if (format.kind == Kind::integer) return encode_integer(format, number, rounding);
  if (number.is_nan()) return has_nan(format) ? nan_code(format) : maximum_code(format);
  const bool saturates_infinity = overflow.infinity == Overflow::Infinity::saturate;
  const bool saturates_finite = overflow.finite == Overflow::Finite::saturate;
  if (number.negative && !format.has_sign && !number.is_zero()) {
    const bool saturates = number.is_infinity() ? saturates_infinity : saturates_finite;
    return saturates || !has_nan(format) ? 0 : nan_code(format);
  }
  if (number.is_infinity()) return encode_infinity(format, number.negative, saturates_infinity);

  const Neighbours around = format.bits <= 16 ? neighbours_by_table(format, number.magnitude)
                                              : neighbours_by_exponent(format, number.magnitude);
  bool too_large = around.beyond;
  std::uint64_t code = around.low_code;
  if (!around.beyond && !around.exact &&
      takes_high(number.magnitude, around.low, around.high, is_odd(format, around.low_code),
                 number.negative, rounding)) {
    code = around.high_code;
    too_large = code > maximum_code(format);
  }
  if (!too_large) return with_sign(format, code, number.negative);
  const bool keeps_maximum = saturates_finite || stops_at_maximum(rounding.mode, number.negative);
  return encode_infinity(format, number.negative, keeps_maximum);
}

}  // namespace guardbit::oracle
