// Signs of zeros, overflow, infinities and NaNs, and bits that the unit ignores.

#include <string>

#include "emulator/catalogue/compositions.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "gpu/questions/questions.hpp"

namespace guardbit::gpu {

namespace {

using emulator::AccumulatorSpec;
using emulator::Source;

void keep_sign(AccumulatorSpec& spec) { spec.underflowed_sum = emulator::ZeroSign::of_sum; }

bool is_wide_to_f32(const TensorCoreInstruction& row) {
  return is_fused_to_f32(row) && has_wide_exponents(row);
}
/// e5m2 products reach below the smallest f16; those of e4m3 do not.
bool is_e5m2_to_f16(const TensorCoreInstruction& row) {
  return is_plain(row) && row.d == formats::fp16 && row.a == formats::e5m2 &&
         row.b == formats::e5m2;
}

constexpr const char* positive = "+0, whatever the sign of the sum";
constexpr const char* of_sum = "the sign of the sum, where any of it is left on the grid";

void put_underflow_of_f16(Inquiry& x) {
  for (const int e : {-25, -48}) x.probe().power(0, e, true);
  if (!is_quad(x.row)) x.keep_together(2);
  AccumulatorSpec native, wide;
  native.terms = wide.terms = 16;
  native.kept_fraction_bits = wide.kept_fraction_bits = 25;
  native.min_exponent = -21, wide.min_exponent = -133;
  native.result = formats::Rounding::nearest_even;
  const auto direct = [&] {
    return x.if_steps({emulator::dot_step(native, emulator::every_k, Source::c, formats::fp16)});
  };
  const emulator::MatrixInstruction unsigned_zero = direct();
  keep_sign(native);
  x.outcome(positive, {0, 0}, unsigned_zero);
  x.outcome(of_sum, {0x8000, 0}, direct());
  x.outcome("-0: the sum is an f32 number, which an ordinary conversion rounds", {0x8000, 0x8000},
            x.if_steps({emulator::dot_step(wide, emulator::every_k, Source::c, formats::fp32),
                        emulator::convert_step(Source::step_0, formats::fp16)}));
}

/// Two products whose sum is lost; C = -0 shows the sign that an emulated form's last accumulation
/// gives, since -0 + +0 = +0.
void put_underflow(Inquiry& x) {
  if (x.row.d == formats::fp32) {
    // In the last block, where there are several: a later one would make +0 of -0.
    const bool chained = x.believed.steps.list[0].spec.terms < x.row.stored_k();
    for (const int e : {-150, -155, -160})
      x.probe().power(chained ? x.row.stored_k() - 1 : 0, e, true);
    if (!chained) x.keep_together(2);
    x.outcome(positive, {0, 0, 0});
    x.outcome(of_sum, {0x80000000, 0x80000000, 0}, x.if_spec(keep_sign));
  } else if (is_fp8(x.row.a)) {
    x.probe(0x8000).term(2, -two(-12), two(-13));
    x.keep_together(4, true);
    x.outcome(positive, {0});
    x.outcome(of_sum, {0x8000}, x.if_spec(keep_sign));
  } else {
    put_underflow_of_f16(x);
  }
}

void put_exact_zeros(Inquiry& x) {
  const std::uint64_t minus = sign_bit(x.row.d);
  x.probe(sign_bit(x.row.c));
  for (int k = 0; k < x.row.stored_k(); ++k) x.codes(k, sign_bit(x.row.a), word_of(x.row.b, 1));
  x.probe(sign_bit(x.row.c)).term(0, 1, 1).term(1, -1, 1);
  const bool has_c = !x.row.ignore_c;
  if (has_c) x.probe_value(-1).term(0, 1, 1);
  const auto three = [has_c](std::uint64_t first, std::uint64_t second, std::uint64_t third) {
    std::vector<std::uint64_t> words = {first, second, third};
    if (!has_c) words.pop_back();
    return words;
  };
  const auto rounded = [&](formats::Rounding rounding) {
    return x.if_spec([rounding](AccumulatorSpec& spec) { spec.result = rounding; });
  };
  const bool chain = is_double(x.row);
  const auto hypothesis = [&](formats::Rounding rounding) {
    return chain ? std::optional(rounded(rounding)) : std::nullopt;
  };
  x.outcome("+0 always", three(0, 0, 0));
  x.outcome("as IEEE 754: -0 if every summand is -0", three(minus, 0, 0),
            hypothesis(formats::Rounding::nearest_even));
  x.outcome("as IEEE 754 rounding downward: -0 also where summands cancel",
            three(minus, minus, minus), hypothesis(formats::Rounding::downward));
}

void put_overflow(Inquiry& x) {
  for (const int e : {103, 102})
    x.probe_value(two(e)).term(0, two(64), two(64)).term(1, -two(64), two(64));
  for (const int e : {103, 102}) x.probe_value(-two(e)).term(0, two(64), two(64));
  x.keep_together(2);
  constexpr std::uint64_t infinity = 0x7F800000, largest = 0x7F7FFFFF, nan = 0x7FFFFFFF;
  const auto kept_bits = [](int count) {
    return [count](AccumulatorSpec& spec) { spec.kept_fraction_bits = count; };
  };
  x.outcome("only the final conversion: below 2^128 the largest number, from there infinity",
            {0x73000000, 0, largest, infinity}, x.if_spec(kept_bits(25)));
  x.outcome("the same with F = 24", {0, 0, infinity, infinity}, x.if_spec(kept_bits(24)));
  x.outcome("the same with F = 26", {0x73000000, 0x72800000, largest, largest},
            x.if_spec(kept_bits(26)));
  x.outcome("a product of 2^128 is infinite at once", {nan, nan, infinity, infinity});
}

void put_ignored_bits(Inquiry& x) {
  constexpr std::uint64_t one = 0x3F800000, infinity = 0x7F800000, nan = 0x7FFFFFFF;
  x.probe().codes(0, 0x3F801FFF, one);
  x.probe().codes(0, 0x7F800001, one);
  x.probe().codes(0, 0x00001FFF, infinity);
  x.probe().codes(0, one, 0x3F801FFF);
  x.probe().codes(0, one, 0x7F800001);
  x.probe().codes(0, infinity, 0x00001FFF);
  x.keep_together(2);
  const auto twice = [](std::uint64_t first, std::uint64_t second, std::uint64_t third) {
    return std::vector<std::uint64_t>{first, second, third, first, second, third};
  };
  x.outcome("the low 13 bits are ignored", twice(one, infinity, nan));
  x.outcome("operands are rounded to 10 fraction bits", twice(0x3F802000, infinity, infinity));
  emulator::MatrixInstruction whole = x.believed;
  whole.a = whole.b = formats::fp32;
  x.outcome("all 32 bits count", twice(0x3F801FFF, nan, infinity), whole);
}

/// NaN codes of a format: quiet and signalling, without and with payload, both signs.
std::vector<std::uint64_t> nan_words(const Format& f) {
  if (!has_infinity(f)) return {sign_bit(f) - 1, word_mask(f)};
  const std::uint64_t quiet = (std::uint64_t{1} << word_fraction_bits(f)) >> 1,
                      unit = std::uint64_t{1} << ignored_bits(f);
  std::vector<std::uint64_t> words;
  for (const std::uint64_t sign : {std::uint64_t{0}, sign_bit(f)})
    for (const std::uint64_t fraction : {quiet, quiet | unit, unit})
      words.push_back(sign | infinity_word(f) | fraction);
  return words;
}

/// What a NaN operand becomes if it is passed on: quiet, sign and leading payload kept.
std::uint64_t passed_on(const Format& from, std::uint64_t word, const Format& to) {
  return formats::convert(from, word >> ignored_bits(from), to, formats::Rounding::nearest_even,
                          formats::overflow_ieee);
}

void put_nan_words(Inquiry& x) {
  const TensorCoreInstruction& row = x.row;
  const std::uint64_t one_a = word_of(row.a, 1), one_b = word_of(row.b, 1);
  std::vector<std::uint64_t> copies;
  const std::uint64_t all_ones = formats::all_ones_nan_code(row.d),
                      quiet = formats::quiet_nan_code(row.d);
  for (const std::uint64_t word : nan_words(row.a))
    x.probe().codes(0, word, one_b), copies.push_back(passed_on(row.a, word, row.d));
  for (const std::uint64_t word : nan_words(row.b))
    x.probe().codes(0, one_a, word), copies.push_back(passed_on(row.b, word, row.d));
  for (const std::uint64_t word : nan_words(row.c))
    x.probe(word), copies.push_back(passed_on(row.c, word, row.d));
  if (has_infinity(row.a) && has_infinity(row.b)) {
    const std::uint64_t infinity = infinity_word(row.a), minus = infinity | sign_bit(row.a);
    x.probe().codes(0, infinity, 0);
    x.probe().codes(0, 0, infinity_word(row.b));
    x.probe().codes(0, minus, 0);
    x.probe().codes(0, infinity, one_b).codes(1, minus, one_b);
    x.probe(infinity_word(row.c) | sign_bit(row.c)).codes(0, infinity, one_b);
    copies.insert(copies.end(), 5, quiet);
  }
  x.outcome("all ones, sign and payload dropped",
            std::vector<std::uint64_t>(x.probes().size(), all_ones));
  x.outcome("the quiet NaN without payload", std::vector<std::uint64_t>(x.probes().size(), quiet));
  x.outcome("a quieted copy of the operand", copies);
}

}  // namespace

std::vector<Question> questions_of_signs_and_specials() {
  return {{"Q2", "Which zero is a negative sum that underflows in the final conversion?",
           [](const TensorCoreInstruction& row) {
             const bool f16_sum = row.a == formats::fp16 && row.d == formats::fp16 &&
                                  (is_fused(row) || is_quad(row));
             return is_wide_to_f32(row) || f16_sum || is_e5m2_to_f16(row);
           },
           put_underflow},
          {"Q2b", "Which zero is an exactly zero sum?",
           [](const TensorCoreInstruction& row) {
             return !is_integer(row.a) && (is_plain(row) || row.ignore_c);
           },
           put_exact_zeros},
          {"Q7", "What overflows, and when?", is_wide_to_f32, put_overflow},
          {"Q10", "tf32 registers: what do the low 13 bits do?",
           [](const TensorCoreInstruction& row) { return is_plain(row) && row.a == formats::tf32; },
           put_ignored_bits},
          {"Q11", "Which NaN comes out?",
           [](const TensorCoreInstruction& row) {
             return is_plain(row) && !is_integer(row.a) && !is_double(row);
           },
           put_nan_words}};
}

}  // namespace guardbit::gpu
