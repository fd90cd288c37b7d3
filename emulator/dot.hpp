#pragma once

// How a matrix unit computes one output element. This page is the model: plain integer code that
// reads an AccumulatorSpec. Everything faster is tested against it.

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/accumulator.hpp"
#include "emulator/instruction.hpp"
#include "emulator/wide.hpp"
#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"

namespace guardbit::emulator {

using formats::Kind;
using formats::Unrounded;
using formats::Value;

/// The operands of one dot product as codes: K of a and b, one addend, and scale factors spread
/// evenly over K.
struct DotOperands {
  std::span<const std::uint64_t> a, b;
  std::uint64_t c = 0;
  std::span<const std::uint64_t> a_scale{}, b_scale{};
};

/// The largest K of one dot product (mma.m16n8k256 on single bits).
inline constexpr int max_k = 256;

// ---- Terms
// ------------------------------------------------------------------------------------------------------------

/// One summand of a fused block: (-1)^negative * significand * 2^(exponent - fraction_bits). The
/// exponent is the one the unit aligns by: a product's is the sum of its factors' exponents, its
/// significand is not normalised.
struct Term {
  bool negative = false;
  int exponent = 0;
  std::uint64_t significand = 0;
  int fraction_bits = 0;
};

/// The exponent of a code as the unit sees it, given its decoded value.
constexpr int aligned_exponent(const Value& v, const Format& f) {
  return v.exponent + f.fraction_bits;
}

constexpr Term addend_term(const Value& c, const Format& f, const AccumulatorSpec& spec) {
  if (c.kind == Kind::zero) return {c.negative, spec.min_exponent, 0, f.fraction_bits};
  return {c.negative, aligned_exponent(c, f), c.significand, f.fraction_bits};
}

constexpr Term product_term(const Value& a, const Format& fa, const Value& b, const Format& fb,
                            const AccumulatorSpec& spec) {
  const bool negative = a.negative != b.negative;
  const int fraction_bits = fa.fraction_bits + fb.fraction_bits;
  if (a.kind == Kind::zero || b.kind == Kind::zero)
    return {negative, spec.min_exponent, 0, fraction_bits};
  return {negative, aligned_exponent(a, fa) + aligned_exponent(b, fb),
          a.significand * b.significand, fraction_bits};
}

/// A term as a signed multiple of 2^unit, cut to it.
constexpr std::int64_t align(const Term& t, int unit, Rounding rounding) {
  const auto magnitude = static_cast<std::int64_t>(
      formats::shift_right_and_round(t.significand, unit - (t.exponent - t.fraction_bits), false,
                                     t.negative, rounding)
          .significand);
  return t.negative ? -magnitude : magnitude;
}

/// An integer multiple of 2^unit as a number ready to be rounded.
constexpr Unrounded fixed_point(std::int64_t sum, int unit) {
  if (sum == 0) return {};
  const bool negative = sum < 0;
  const auto magnitude =
      negative ? -static_cast<std::uint64_t>(sum) : static_cast<std::uint64_t>(sum);
  return {Kind::finite, negative, unit, magnitude, false};
}

// ---- Results and specials
// ---------------------------------------------------------------------------------------------

/// Overflow becomes infinity whatever the rounding (NUMERICS 1.4); a NaN is canonical.
inline constexpr formats::Overflow unit_overflow = {
    formats::Overflow::Finite::infinity_always, formats::Overflow::Infinity::keep,
    formats::Overflow::Nan::all_ones, formats::Overflow::NoNan::maximum};

/// IEEE arithmetic of the FMA chains: overflow obeys the rounding, NaN payloads are kept.
inline constexpr formats::Overflow chain_overflow = formats::overflow_ieee;

/// The final conversion of a block into the result format.
constexpr std::uint64_t encode_result(const AccumulatorSpec& spec, const Format& format,
                                      const Unrounded& sum) {
  if (sum.kind == Kind::nan && spec.nan == NanPolicy::all_ones)
    return formats::all_ones_nan_code(format);
  const bool is_chain =
      spec.summation == Summation::fma_chain || spec.summation == Summation::pairwise;
  const formats::Overflow overflow = is_chain ? chain_overflow : unit_overflow;
  Format kept = format;
  if (spec.result_fraction_bits != 0) kept.fraction_bits = spec.result_fraction_bits;
  std::uint64_t code = formats::encode(kept, sum, spec.result, overflow)
                       << (format.fraction_bits - kept.fraction_bits);
  const bool flushed = spec.output == Subnormals::flush &&
                       (code & formats::magnitude_mask(format)) < formats::min_normal_code(format);
  if (flushed) code &= formats::sign_mask(format);
  if (sum.kind == Kind::finite && code == formats::sign_mask(format) &&
      spec.underflowed_sum == ZeroSign::positive && !is_chain) {
    code = 0;
  }
  return code;
}

/// What specials make of a sum: kind `finite` when there are none among the summands seen.
struct SpecialSum {
  bool nan = false, positive_infinity = false, negative_infinity = false;

  constexpr void include(const Unrounded& x) {
    nan = nan || x.kind == Kind::nan;
    positive_infinity = positive_infinity || (x.kind == Kind::infinity && !x.negative);
    negative_infinity = negative_infinity || (x.kind == Kind::infinity && x.negative);
  }
  constexpr bool any() const { return nan || positive_infinity || negative_infinity; }
  constexpr Unrounded value() const {
    if (nan || (positive_infinity && negative_infinity))
      return formats::exactly(formats::nan_value());
    return formats::exactly(formats::infinity_value(negative_infinity));
  }
};

/// Decodes an input operand; a unit that flushes takes subnormals as +0.
constexpr Value decode_input(const AccumulatorSpec& spec, const Format& f, std::uint64_t code) {
  const Value v = formats::decode(f, code);
  const bool subnormal = v.kind == Kind::finite && (v.significand >> f.fraction_bits) == 0;
  return subnormal && spec.input == Subnormals::flush ? formats::zero_value(false) : v;
}

// ---- One block, by kind of summation
// -----------------------------------------------------------------------------------

/// The operands of a block: `count` decoded pairs with their scales, and the addend in its own
/// format.
struct Block {
  const AccumulatorSpec& spec;
  const Format& a_format;
  const Format& b_format;
  std::span<const Value> a, b;
  std::span<const Value> a_scale, b_scale;  ///< per element; empty when unscaled
  const Format& scale_format;
  Value addend;
  const Format& addend_format;
  const Format& result_format;
};

constexpr SpecialSum special_sum(const Block& block) {
  SpecialSum specials;
  for (std::size_t i = 0; i < block.a.size(); ++i) {
    specials.include(formats::multiply(block.a[i], block.b[i]));
    if (!block.a_scale.empty()) {
      specials.nan =
          specials.nan || block.a_scale[i].kind == Kind::nan || block.b_scale[i].kind == Kind::nan;
    }
  }
  specials.include(formats::exactly(block.addend));
  return specials;
}

/// A group of scaled products, summed exactly before it is aligned: the significand takes the
/// products of the elements and of the scales' significands, the exponent is that of the scales
/// alone (NUMERICS 1.6).
constexpr Term group_term(const Block& block, std::size_t begin, std::size_t end) {
  const Format& fs = block.scale_format;
  const int unit = formats::min_exponent(block.a_format) - block.a_format.fraction_bits +
                   formats::min_exponent(block.b_format) - block.b_format.fraction_bits;
  std::int64_t sum = 0;
  bool all_zero = true;
  for (std::size_t i = begin; i < end; ++i) {
    const Unrounded product = formats::multiply(block.a[i], block.b[i]);
    if (product.kind == Kind::zero) continue;
    all_zero = false;
    const auto magnitude =
        static_cast<std::int64_t>(product.significand << (product.exponent - unit));
    sum += product.negative ? -magnitude : magnitude;
  }
  const Value& sa = block.a_scale[begin];
  const Value& sb = block.b_scale[begin];
  const int fraction_bits = 2 * fs.fraction_bits - unit;
  if (all_zero || sa.kind == Kind::zero || sb.kind == Kind::zero) {
    return {false, block.spec.min_exponent, 0, fraction_bits};
  }
  const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  return {sum < 0, aligned_exponent(sa, fs) + aligned_exponent(sb, fs),
          magnitude * sa.significand * sb.significand, fraction_bits};
}

/// The summands of a fused block: products (or groups of them) first, the addend last.
struct Terms {
  std::array<Term, max_k + 1> list{};
  std::size_t count = 0;

  constexpr void push(const Term& t) { list[count++] = t; }
  constexpr std::span<const Term> view() const { return {list.data(), count}; }
};

constexpr Terms block_terms(const Block& block) {
  const AccumulatorSpec& spec = block.spec;
  const auto group = static_cast<std::size_t>(spec.exact_group);
  Terms terms;
  for (std::size_t i = 0; i < block.a.size(); i += group) {
    if (group > 1) {
      terms.push(group_term(block, i, i + group < block.a.size() ? i + group : block.a.size()));
      continue;
    }
    Term t = product_term(block.a[i], block.a_format, block.b[i], block.b_format, spec);
    if (!block.a_scale.empty() && t.significand != 0) {  // E8M0: the significand is 1
      t.exponent += aligned_exponent(block.a_scale[i], block.scale_format) +
                    aligned_exponent(block.b_scale[i], block.scale_format);
    }
    terms.push(t);
  }
  terms.push(addend_term(block.addend, block.addend_format, spec));
  return terms;
}

constexpr int largest_exponent(std::span<const Term> terms) {
  int largest = terms.front().exponent;
  for (const Term& t : terms) largest = t.exponent > largest ? t.exponent : largest;
  return largest;
}

/// Sum of the terms, each cut to a multiple of 2^unit.
constexpr std::int64_t aligned_sum(std::span<const Term> terms, int unit, Rounding alignment) {
  std::int64_t sum = 0;
  for (const Term& t : terms) sum += align(t, unit, alignment);
  return sum;
}

/// NVIDIA: align every product and the addend to the largest exponent, cut, add, convert once.
constexpr std::uint64_t fused_block(const Block& block) {
  if (const SpecialSum specials = special_sum(block); specials.any()) {
    return encode_result(block.spec, block.result_format, specials.value());
  }
  const Terms terms = block_terms(block);
  const int unit = largest_exponent(terms.view()) - block.spec.kept_fraction_bits;
  const std::int64_t sum = aligned_sum(terms.view(), unit, block.spec.alignment);
  return encode_result(block.spec, block.result_format, fixed_point(sum, unit));
}

/// CDNA1: nothing is lost before the one rounding. Products of BF16 reach from 2^-266 to 2^256.
constexpr std::uint64_t exact_block(const Block& block) {
  if (const SpecialSum specials = special_sum(block); specials.any()) {
    return encode_result(block.spec, block.result_format, specials.value());
  }
  WideSum<640, -320> sum;
  for (std::size_t i = 0; i < block.a.size(); ++i) {
    const Unrounded product = formats::multiply(block.a[i], block.b[i]);
    if (product.kind == Kind::finite)
      sum.add(product.negative, product.significand, product.exponent);
  }
  if (block.addend.kind == Kind::finite) {
    sum.add(block.addend.negative, block.addend.significand, block.addend.exponent);
  }
  return encode_result(block.spec, block.result_format, sum.total());
}

/// x + y or x * y of encoded intermediate results, rounded once.
constexpr std::uint64_t rounded_sum(const AccumulatorSpec& spec, const Format& f, std::uint64_t x,
                                    std::uint64_t y) {
  const bool down = spec.result == Rounding::downward;
  return encode_result(spec, f,
                       formats::add(formats::exactly(formats::decode(f, x)),
                                    formats::exactly(formats::decode(f, y)), down));
}

/// CDNA2: products rounded, added as a balanced tree, the addend last; every result is rounded (and
/// flushed).
constexpr std::uint64_t pairwise_block(const Block& block) {
  const AccumulatorSpec& spec = block.spec;
  const Format& f = block.result_format;
  std::array<std::uint64_t, max_k> sums{};
  std::size_t count = block.a.size();
  for (std::size_t i = 0; i < count; ++i) {
    sums[i] = encode_result(spec, f, formats::multiply(block.a[i], block.b[i]));
  }
  while (count > 1) {
    for (std::size_t i = 0; i < count / 2; ++i)
      sums[i] = rounded_sum(spec, f, sums[2 * i], sums[2 * i + 1]);
    if (count % 2 != 0) sums[count / 2] = sums[count - 1];
    count = (count + 1) / 2;
  }
  const std::uint64_t addend = formats::encode(f, block.addend);
  return rounded_sum(spec, f, addend, sums[0]);
}

/// Multiples of 2^unit cut toward minus infinity to multiples of 2^coarser.
constexpr std::int64_t floor_to(std::int64_t x, int unit, int coarser) {
  const int shift = coarser - unit;
  if (shift <= 0) return x << -shift;
  return shift >= 63 ? (x < 0 ? -1 : 0) : x >> shift;
}

/// CDNA3: the products are fused among themselves with magnitude truncation (in one set, or even
/// and odd k apart), then that sum and the addend are floored below the larger exponent, added,
/// floored again and rounded (NUMERICS 4.1).
constexpr std::uint64_t two_stage_block(const Block& block) {
  const AccumulatorSpec& spec = block.spec;
  SpecialSum specials = special_sum(block);
  std::array<Terms, 2> sets;
  for (std::size_t i = 0; i < block.a.size(); ++i) {
    Term t = product_term(block.a[i], block.a_format, block.b[i], block.b_format, spec);
    if (t.significand == 0) t.exponent = spec.zero_product_exponent;
    sets[spec.interleave == Interleave::even_odd ? i % 2 : 0].push(t);
    const int top = formats::leading_bit(t.significand) + t.exponent - t.fraction_bits;
    if (spec.product_overflow_exponent != 0 && t.significand != 0 &&
        top >= spec.product_overflow_exponent) {
      specials.include(formats::exactly(formats::infinity_value(t.negative)));
    }
  }
  if (specials.any()) return encode_result(spec, block.result_format, specials.value());

  const int kept = spec.kept_fraction_bits;
  const int first = largest_exponent(sets[0].view());
  const int second = sets[1].count != 0 ? largest_exponent(sets[1].view()) : first;
  const int products = first > second ? first : second;
  std::int64_t sum = floor_to(aligned_sum(sets[0].view(), first - kept, spec.alignment),
                              first - kept, products - kept);
  if (sets[1].count != 0) {
    sum += floor_to(aligned_sum(sets[1].view(), second - kept, spec.alignment), second - kept,
                    products - kept);
  }

  const Term addend = addend_term(block.addend, block.addend_format, spec);
  const int largest = products > addend.exponent ? products : addend.exponent;
  const int unit = largest - spec.sum_kept_fraction_bits;
  const bool addend_lost =
      spec.addend_cutoff != 0 && addend.exponent < largest - spec.addend_cutoff;
  const std::int64_t c = addend_lost ? 0 : align(addend, largest - kept, Rounding::downward);
  const std::int64_t total =
      floor_to(sum, products - kept, unit) + floor_to(c, largest - kept, unit);

  const Unrounded exact = fixed_point(total, unit);
  const int excess = formats::leading_bit(exact.significand) - spec.total_kept_fraction_bits;
  if (excess <= 0) return encode_result(spec, block.result_format, exact);
  return encode_result(spec, block.result_format,
                       fixed_point(floor_to(total, unit, unit + excess), unit + excess));
}

/// The NaN of one FMA of a chain under NanPolicy::operand_bca.
constexpr Unrounded operand_nan(const Value& a, const Value& b, const Value& c) {
  for (const Value* const x : {&b, &c, &a}) {
    if (x->kind == Kind::nan)
      return {Kind::nan, x->negative, 0, x->significand | formats::quiet_bit, false};
  }
  return formats::exactly(formats::nan_value(true));
}

/// One fused multiply-add per product, each rounded into the result format.
constexpr std::uint64_t fma_chain(const Block& block) {
  const bool down = block.spec.result == Rounding::downward;
  Value sum = block.addend;
  std::uint64_t code = formats::encode(block.result_format, sum);
  for (std::size_t i = 0; i < block.a.size(); ++i) {
    Unrounded next = formats::fused_multiply_add(block.a[i], block.b[i], sum, down);
    if (next.kind == Kind::nan && block.spec.nan == NanPolicy::operand_bca) {
      next = operand_nan(block.a[i], block.b[i], sum);
    }
    code = encode_result(block.spec, block.result_format, next);
    sum = formats::decode(block.result_format, code);
  }
  return code;
}

// ---- A dot product of any length
// ---------------------------------------------------------------------------------------

constexpr std::int64_t signed_integer(const Value& v) {
  return v.negative ? -static_cast<std::int64_t>(v.significand)
                    : static_cast<std::int64_t>(v.significand);
}

constexpr std::int64_t integer_product(Product product, const Value& a, const Value& b) {
  switch (product) {
    case Product::multiply: return signed_integer(a) * signed_integer(b);
    case Product::bit_and: return signed_integer(a) & signed_integer(b);
    case Product::bit_xor: return signed_integer(a) ^ signed_integer(b);
  }
  return 0;
}

/// The exact total with the addend, wrapped or saturated once.
constexpr std::uint64_t integer_dot(const AccumulatorSpec& spec, std::span<const Value> a,
                                    std::span<const Value> b, const Value& addend,
                                    const Format& result) {
  std::int64_t total = signed_integer(addend);
  for (std::size_t i = 0; i < a.size(); ++i) total += integer_product(spec.product, a[i], b[i]);
  formats::Overflow overflow = formats::overflow_saturate;
  if (spec.integer_overflow == IntegerOverflow::wrap)
    overflow.finite = formats::Overflow::Finite::wrap;
  return formats::encode(result, fixed_point(total, 0), Rounding::toward_zero, overflow);
}

constexpr std::uint64_t accumulate_block(const Block& block) {
  switch (block.spec.summation) {
    case Summation::fused: return fused_block(block);
    case Summation::exact: return exact_block(block);
    case Summation::fma_chain: return fma_chain(block);
    case Summation::pairwise: return pairwise_block(block);
    case Summation::two_stage: return two_stage_block(block);
    case Summation::integer:
      return integer_dot(block.spec, block.a, block.b, block.addend, block.result_format);
  }
  return 0;
}

/// Decodes an operand and widens it (exactly) to the format the step multiplies in.
constexpr Value decode_operand(const Step& step, const Format& f, std::uint64_t code) {
  const Value v = decode_input(step.spec, f, code);
  return step.widened ? formats::decode(*step.widened, formats::encode(*step.widened, v)) : v;
}

constexpr const Format& operand_format(const Step& step, const Format& stored) {
  return step.widened ? *step.widened : stored;
}

/// The products a step selects, decoded once.
struct SelectedOperands {
  std::array<Value, max_k> a{}, b{}, a_scale{}, b_scale{};
  std::size_t count = 0;
  bool scaled = false;
};

constexpr SelectedOperands select(const MatrixInstruction& row, const Step& step,
                                  const DotOperands& operands) {
  SelectedOperands selected;
  selected.scaled = row.scale.count != 0;
  const std::size_t k = operands.a.size();
  for (std::size_t i = 0; i < k; ++i) {
    if (!step.selection.contains(static_cast<int>(i))) continue;
    const std::size_t at = selected.count++;
    selected.a[at] = decode_operand(step, row.a, operands.a[i]);
    selected.b[at] = decode_operand(step, row.b, operands.b[i]);
    if (!selected.scaled) continue;
    const std::size_t scale = i * operands.a_scale.size() / k;
    selected.a_scale[at] = formats::decode(row.scale.format, operands.a_scale[scale]);
    selected.b_scale[at] = formats::decode(row.scale.format, operands.b_scale[scale]);
  }
  return selected;
}

/// Calls `visit(block)` for each block of a dot step in order; visit returns the block's result,
/// the next one's addend.
template <class Visit>
constexpr std::uint64_t for_each_block(const MatrixInstruction& row, const Step& step,
                                       const DotOperands& operands, std::uint64_t addend,
                                       Format addend_format, Visit visit) {
  const SelectedOperands selected = select(row, step, operands);
  const std::size_t length =
      step.spec.terms == 0 ? selected.count : static_cast<std::size_t>(step.spec.terms);
  for (std::size_t begin = 0; begin < selected.count; begin += length) {
    const std::size_t count = begin + length < selected.count ? length : selected.count - begin;
    const auto part = [&](const auto& list) {
      return std::span<const Value>(list).subspan(begin, count);
    };
    const std::span<const Value> none;
    const Block block{step.spec,
                      operand_format(step, row.a),
                      operand_format(step, row.b),
                      part(selected.a),
                      part(selected.b),
                      selected.scaled ? part(selected.a_scale) : none,
                      selected.scaled ? part(selected.b_scale) : none,
                      row.scale.format,
                      decode_input(step.spec, addend_format, addend),
                      addend_format,
                      step.result};
    addend = visit(block);
    addend_format = step.result;
  }
  return addend;
}

/// A code with the format it is in.
struct Register {
  std::uint64_t code = 0;
  Format format{};
};

using Registers = std::array<Register, std::tuple_size_v<decltype(Steps::list)>>;

constexpr Register read_source(Source source, const MatrixInstruction& row,
                               const DotOperands& operands, const Registers& registers,
                               const Format& result) {
  switch (source) {
    case Source::positive_zero: return {0, result};
    case Source::negative_zero: return {formats::sign_mask(result), result};
    case Source::c: return {operands.c, row.c};
    default: return registers[static_cast<std::size_t>(source)];
  }
}

constexpr Unrounded read_exactly(const Register& r) {
  return formats::exactly(formats::decode(r.format, r.code));
}

/// The output element of one dot product: the row's steps in order. Visit(step index, block) ->
/// code computes a block and lets an explanation look over the model's shoulder; the model itself
/// is `accumulate_block`.
template <class Visit>
constexpr std::uint64_t run_steps(const MatrixInstruction& row, const DotOperands& operands,
                                  Visit visit) {
  Registers registers{};
  std::size_t index = 0;
  for (const Step& step : row.steps) {
    const Register addend = read_source(step.addend, row, operands, registers, step.result);
    Register& result = registers[index];
    result.format = step.result;
    switch (step.operation) {
      case Operation::dot:
        result.code = for_each_block(row, step, operands, addend.code, addend.format,
                                     [&](const Block& block) { return visit(index, block); });
        break;
      case Operation::add: {
        const Register other = read_source(step.other, row, operands, registers, step.result);
        result.code = encode_result(step.spec, step.result,
                                    formats::add(read_exactly(addend), read_exactly(other)));
        break;
      }
      case Operation::convert:
        result.code = encode_result(step.spec, step.result, read_exactly(addend));
        break;
    }
    ++index;
  }
  return registers[index - 1].code;
}

/// D of one output element. `operands.a` and `.b` hold the same number of codes, at most max_k;
/// shorter dot products than the instruction's K are allowed (missing products are zero).
constexpr std::uint64_t dot(const MatrixInstruction& row, const DotOperands& operands) {
  assert(operands.a.size() == operands.b.size() &&
         operands.a.size() <= static_cast<std::size_t>(max_k));
  return run_steps(row, operands,
                   [](std::size_t, const Block& block) { return accumulate_block(block); });
}

}  // namespace guardbit::emulator
