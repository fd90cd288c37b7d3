#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

// Instructions of PTX that round a sum, a product, a quotient or a root once: as data, and one
// interpreter in integers for hosts and devices.
namespace guardbit::emulator {

enum class RoundedOperation : std::uint8_t { add, sub, mul, fma, mad, rcp, sqrt, div };
constexpr auto words(RoundedOperation) {
  return std::array{"add", "sub", "mul", "fma", "mad", "rcp", "sqrt", "div"};
}

constexpr std::size_t operands_of(RoundedOperation operation) {
  switch (operation) {
    case RoundedOperation::rcp:
    case RoundedOperation::sqrt: return 1;
    case RoundedOperation::fma:
    case RoundedOperation::mad: return 3;
    default: return 2;
  }
}

/// What becomes of a rounded result.
enum class ResultLimit : std::uint8_t {
  none,
  /// to [0, 1], and a NaN to 0
  sat,
  /// what is below 0 to 0
  relu,
};

struct RoundedInstruction {
  RoundedOperation operation = RoundedOperation::add;
  formats::Format format = formats::fp32;
  formats::Rounding rounding = formats::Rounding::nearest_even;
  /// Subnormal operands are zeros; so are results that are below the normal range.
  bool flushes = false;
  ResultLimit limit = ResultLimit::none;
  /// A factor that is the NaN which tensor copies fill with makes the result 0.
  bool takes_out_of_bounds = false;
};

namespace rounded {

using formats::Format;
using formats::Unrounded;
using formats::Value;

constexpr bool is_subnormal(const Format& format, std::uint64_t code) {
  const std::uint64_t magnitude = code & formats::magnitude_mask(format);
  return magnitude != 0 && magnitude <= formats::fraction_mask(format);
}

constexpr Unrounded exact_result(RoundedOperation operation, const Value& x, const Value& y,
                                 const Value& z, bool downward) {
  switch (operation) {
    case RoundedOperation::add:
      return formats::add(formats::exactly(x), formats::exactly(y), downward);
    case RoundedOperation::sub:
      return formats::subtract(formats::exactly(x), formats::exactly(y), downward);
    case RoundedOperation::mul: return formats::multiply(x, y);
    case RoundedOperation::fma:
    case RoundedOperation::mad: return formats::fused_multiply_add(x, y, z, downward);
    case RoundedOperation::rcp:
      return formats::divide(Value{formats::Kind::finite, false, 0, 1}, x);
    case RoundedOperation::sqrt: return formats::square_root(x);
    case RoundedOperation::div: return formats::divide(x, y);
  }
  return {};
}

/// Below the sign, which does not count, the NaN with which tensor copies fill what is out of
/// bounds: 0x7ff7 of FP16 and BF16.
constexpr std::uint64_t out_of_bounds_code(const Format& format) {
  return formats::magnitude_mask(format) - 8;
}

/// The NaN that an instruction gives: all ones, but of FP64 an operand's own, made quiet, or
/// fff8000000000000. Of several NaNs it is the second operand's, else the third's, as the unit of
/// sums and products has them; a quotient is a program of several instructions and gives the first.
constexpr std::uint64_t nan_code(const RoundedInstruction& i,
                                 std::span<const std::uint64_t> operands) {
  if (formats::bits(i.format) != 64) return formats::magnitude_mask(i.format);
  constexpr std::array<std::size_t, 3> of_unit = {1, 2, 0}, in_order = {0, 1, 2};
  for (const std::size_t k : i.operation == RoundedOperation::div ? in_order : of_unit) {
    if (k >= operands.size()) continue;
    if ((operands[k] & formats::magnitude_mask(i.format)) > formats::infinity_code(i.format))
      return operands[k] | std::uint64_t{1} << (i.format.fraction_bits - 1);
  }
  return formats::sign_mask(i.format) | formats::quiet_nan_code(i.format);
}

constexpr std::uint64_t limited(const RoundedInstruction& i, std::uint64_t code, bool is_nan) {
  if (i.limit == ResultLimit::none) return code;
  const std::uint64_t one = static_cast<std::uint64_t>(i.format.bias) << i.format.fraction_bits;
  if (is_nan) return i.limit == ResultLimit::sat ? 0 : code;
  if ((code & formats::sign_mask(i.format)) != 0) return 0;
  return i.limit == ResultLimit::sat && code > one ? one : code;
}

/// Is a result below the normal range where it is rounded to as many bits of any exponent? Scaled
/// by a power of 2 it keeps them.
constexpr bool is_tiny(const Format& format, Unrounded exact, formats::Rounding rounding) {
  const int scale = format.fraction_bits + 2;
  exact.exponent += scale;
  const std::uint64_t wide =
      formats::encode(format, exact, rounding) & formats::magnitude_mask(format);
  return wide < static_cast<std::uint64_t>(scale + 1) << format.fraction_bits;
}

}  // namespace rounded

/// The code of the result. Operands that the operation does not have do not count.
constexpr std::uint64_t evaluate(const RoundedInstruction& i,
                                 const std::array<std::uint64_t, 4>& operands) {
  using namespace rounded;
  const std::size_t count = operands_of(i.operation);
  std::array<std::uint64_t, 3> codes{};
  for (std::size_t k = 0; k < count; ++k) {
    codes[k] = operands[k] & formats::code_mask(i.format);
    if (i.takes_out_of_bounds && k < 2 &&
        (codes[k] & formats::magnitude_mask(i.format)) == out_of_bounds_code(i.format))
      return 0;
    if (i.flushes && is_subnormal(i.format, codes[k])) codes[k] &= formats::sign_mask(i.format);
  }
  const auto value = [&](std::size_t k) { return formats::decode(i.format, codes[k]); };
  const formats::Unrounded exact = exact_result(i.operation, value(0), value(1), value(2),
                                                i.rounding == formats::Rounding::downward);
  const bool is_nan = exact.kind == formats::Kind::nan;
  if (is_nan) return limited(i, nan_code(i, std::span(codes).first(count)), true);
  const std::uint64_t rounded = formats::encode(i.format, exact, i.rounding);
  if (i.flushes && is_tiny(i.format, exact, i.rounding))
    return limited(i, rounded & formats::sign_mask(i.format), false);
  return limited(i, rounded, false);
}

/// One of PTX's names, as in fma.rz.ftz.sat.f32; of a packed form the instruction of one element.
struct NamedInstruction {
  std::string name;
  RoundedInstruction instruction;
};

/// Every name of the PTX ISA 9.0 that ptxas 13.0 takes for sm_90a.
const std::vector<NamedInstruction>& rounded_instructions();

}  // namespace guardbit::emulator
