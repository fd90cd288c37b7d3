// Questions about signs of zeros, overflow, infinities, NaNs, and operand bits that the hardware
// ignores.

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

bool is_wide_to_f32(const TensorCoreInstruction& instruction) {
  return is_fused_to_f32(instruction) && has_fp32_exponents(instruction);
}
/// e5m2 products reach below the smallest f16; those of e4m3 do not.
bool is_e5m2_to_f16(const TensorCoreInstruction& instruction) {
  return is_plain(instruction) && instruction.d == formats::fp16 &&
         instruction.a == formats::e5m2 && instruction.b == formats::e5m2;
}

constexpr const char* positive = "+0, whatever the sign of the sum";
constexpr const char* of_sum = "the sign of the sum, where any of it is left on the grid";

void design_underflow_of_f16(HypothesisTest& x) {
  for (const int e : {-25, -48}) x.trial().power(0, e, true);
  if (!is_quad(x.instruction)) x.keep_together(2);
  AccumulatorSpec native, wide;
  native.terms = wide.terms = 16;
  native.kept_fraction_bits = wide.kept_fraction_bits = 25;
  native.min_exponent = -21, wide.min_exponent = -133;
  native.result = formats::Rounding::nearest_even;
  const auto direct = [&] {
    return x.with_steps({emulator::dot_step(native, emulator::every_k, Source::c, formats::fp16)});
  };
  const emulator::MatrixInstruction unsigned_zero = direct();
  keep_sign(native);
  x.add_hypothesis(positive, {0, 0}, unsigned_zero);
  x.add_hypothesis(of_sum, {0x8000, 0}, direct());
  x.add_hypothesis(
      "-0: the sum is an f32 number, which an ordinary conversion rounds", {0x8000, 0x8000},
      x.with_steps({emulator::dot_step(wide, emulator::every_k, Source::c, formats::fp32),
                    emulator::convert_step(Source::step_0, formats::fp16)}));
}

/// A negative sum that becomes zero. For emulated FP8, C = -0 shows the sign that the last
/// accumulation gives, since -0 + +0 = +0.
void design_underflow(HypothesisTest& x) {
  if (x.instruction.d == formats::fp32) {
    // In the last block, where there are several: a later one would make +0 of -0.
    const bool chained = x.assumed.steps.list[0].spec.terms < x.instruction.stored_k();
    for (const int e : {-150, -155, -160})
      x.trial().power(chained ? x.instruction.stored_k() - 1 : 0, e, true);
    if (!chained) x.keep_together(2);
    x.add_hypothesis(positive, {0, 0, 0});
    x.add_hypothesis(of_sum, {0x80000000, 0x80000000, 0}, x.with_spec(keep_sign));
  } else if (is_fp8(x.instruction.a)) {
    x.trial(0x8000).term(2, -two(-12), two(-13));
    x.keep_together(4, true);
    x.add_hypothesis(positive, {0});
    x.add_hypothesis(of_sum, {0x8000}, x.with_spec(keep_sign));
  } else {
    design_underflow_of_f16(x);
  }
}

void design_exact_zeros(HypothesisTest& x) {
  const std::uint64_t minus = sign_bit(x.instruction.d);
  x.trial(sign_bit(x.instruction.c));
  for (int k = 0; k < x.instruction.stored_k(); ++k)
    x.codes(k, sign_bit(x.instruction.a), word_of(x.instruction.b, 1));
  x.trial(sign_bit(x.instruction.c)).term(0, 1, 1).term(1, -1, 1);
  const bool has_c = !x.instruction.ignore_c;
  if (has_c) x.trial_value(-1).term(0, 1, 1);
  const auto three = [has_c](std::uint64_t first, std::uint64_t second, std::uint64_t third) {
    std::vector<std::uint64_t> words = {first, second, third};
    if (!has_c) words.pop_back();
    return words;
  };
  const auto rounded = [&](formats::Rounding rounding) {
    return x.with_spec([rounding](AccumulatorSpec& spec) { spec.result = rounding; });
  };
  const bool chain = is_double(x.instruction);
  const auto hypothesis = [&](formats::Rounding rounding) {
    return chain ? std::optional(rounded(rounding)) : std::nullopt;
  };
  x.add_hypothesis("+0 always", three(0, 0, 0));
  x.add_hypothesis("as IEEE 754: -0 if every summand is -0", three(minus, 0, 0),
                   hypothesis(formats::Rounding::nearest_even));
  x.add_hypothesis("as IEEE 754 rounding downward: -0 also where summands cancel",
                   three(minus, minus, minus), hypothesis(formats::Rounding::downward));
}

void design_overflow(HypothesisTest& x) {
  for (const int e : {103, 102})
    x.trial_value(two(e)).term(0, two(64), two(64)).term(1, -two(64), two(64));
  for (const int e : {103, 102}) x.trial_value(-two(e)).term(0, two(64), two(64));
  x.keep_together(2);
  constexpr std::uint64_t infinity = 0x7F800000, largest = 0x7F7FFFFF, nan = 0x7FFFFFFF;
  const auto kept_bits = [](int count) {
    return [count](AccumulatorSpec& spec) { spec.kept_fraction_bits = count; };
  };
  x.add_hypothesis("only the final conversion: below 2^128 the largest number, from there infinity",
                   {0x73000000, 0, largest, infinity}, x.with_spec(kept_bits(25)));
  x.add_hypothesis("the same with F = 24", {0, 0, infinity, infinity}, x.with_spec(kept_bits(24)));
  x.add_hypothesis("the same with F = 26", {0x73000000, 0x72800000, largest, largest},
                   x.with_spec(kept_bits(26)));
  x.add_hypothesis("a product of 2^128 is infinite at once", {nan, nan, infinity, infinity});
}

void design_ignored_bits(HypothesisTest& x) {
  constexpr std::uint64_t one = 0x3F800000, infinity = 0x7F800000, nan = 0x7FFFFFFF;
  x.trial().codes(0, 0x3F801FFF, one);
  x.trial().codes(0, 0x7F800001, one);
  x.trial().codes(0, 0x00001FFF, infinity);
  x.trial().codes(0, one, 0x3F801FFF);
  x.trial().codes(0, one, 0x7F800001);
  x.trial().codes(0, infinity, 0x00001FFF);
  x.keep_together(2);
  const auto twice = [](std::uint64_t first, std::uint64_t second, std::uint64_t third) {
    return std::vector<std::uint64_t>{first, second, third, first, second, third};
  };
  x.add_hypothesis("the low 13 bits are ignored", twice(one, infinity, nan));
  x.add_hypothesis("operands are rounded to 10 fraction bits",
                   twice(0x3F802000, infinity, infinity));
  emulator::MatrixInstruction whole = x.assumed;
  whole.a = whole.b = formats::fp32;
  x.add_hypothesis("all 32 bits count", twice(0x3F801FFF, nan, infinity), whole);
}

/// NaN codes of a format: quiet and signalling, without and with payload, both signs.
std::vector<std::uint64_t> nan_words(const Format& f) {
  if (!has_infinity(f)) return {sign_bit(f) - 1, word_mask(f)};
  const std::uint64_t quiet = (std::uint64_t{1} << word_fraction_bits(f)) >> 1,
                      lowest_bit = std::uint64_t{1} << ignored_bits(f);
  std::vector<std::uint64_t> words;
  for (const std::uint64_t sign : {std::uint64_t{0}, sign_bit(f)})
    for (const std::uint64_t fraction : {quiet, quiet | lowest_bit, lowest_bit})
      words.push_back(sign | infinity_word(f) | fraction);
  return words;
}

/// What a NaN operand becomes if it is passed on: quiet, sign and leading payload kept.
std::uint64_t passed_on(const Format& from, std::uint64_t word, const Format& to) {
  return formats::convert(from, word >> ignored_bits(from), to, formats::Rounding::nearest_even,
                          formats::overflow_ieee);
}

void design_nan_words(HypothesisTest& x) {
  const TensorCoreInstruction& instruction = x.instruction;
  const std::uint64_t one_a = word_of(instruction.a, 1), one_b = word_of(instruction.b, 1);
  std::vector<std::uint64_t> copies;
  const std::uint64_t all_ones = formats::all_ones_nan_code(instruction.d),
                      quiet = formats::quiet_nan_code(instruction.d);
  for (const std::uint64_t word : nan_words(instruction.a))
    x.trial().codes(0, word, one_b),
        copies.push_back(passed_on(instruction.a, word, instruction.d));
  for (const std::uint64_t word : nan_words(instruction.b))
    x.trial().codes(0, one_a, word),
        copies.push_back(passed_on(instruction.b, word, instruction.d));
  for (const std::uint64_t word : nan_words(instruction.c))
    x.trial(word), copies.push_back(passed_on(instruction.c, word, instruction.d));
  if (has_infinity(instruction.a) && has_infinity(instruction.b)) {
    const std::uint64_t infinity = infinity_word(instruction.a),
                        minus = infinity | sign_bit(instruction.a);
    x.trial().codes(0, infinity, 0);
    x.trial().codes(0, 0, infinity_word(instruction.b));
    x.trial().codes(0, minus, 0);
    x.trial().codes(0, infinity, one_b).codes(1, minus, one_b);
    x.trial(infinity_word(instruction.c) | sign_bit(instruction.c)).codes(0, infinity, one_b);
    copies.insert(copies.end(), 5, quiet);
  }
  x.add_hypothesis("all ones, sign and payload dropped",
                   std::vector<std::uint64_t>(x.trials().size(), all_ones));
  x.add_hypothesis("the quiet NaN without payload",
                   std::vector<std::uint64_t>(x.trials().size(), quiet));
  x.add_hypothesis("a quieted copy of the operand", copies);
}

}  // namespace

std::vector<Question> questions_of_signs_and_specials() {
  return {{"Q2", "Which zero is a negative sum that underflows in the final conversion?",
           [](const TensorCoreInstruction& instruction) {
             const bool f16_sum = instruction.a == formats::fp16 &&
                                  instruction.d == formats::fp16 &&
                                  (is_fused(instruction) || is_quad(instruction));
             return is_wide_to_f32(instruction) || f16_sum || is_e5m2_to_f16(instruction);
           },
           design_underflow},
          {"Q2b", "Which zero is an exactly zero sum?",
           [](const TensorCoreInstruction& instruction) {
             return !is_integer(instruction.a) && (is_plain(instruction) || instruction.ignore_c);
           },
           design_exact_zeros},
          {"Q7", "What overflows, and when?", is_wide_to_f32, design_overflow},
          {"Q10", "tf32 registers: what do the low 13 bits do?",
           [](const TensorCoreInstruction& instruction) {
             return is_plain(instruction) && instruction.a == formats::tf32;
           },
           design_ignored_bits},
          {"Q11", "Which NaN comes out?",
           [](const TensorCoreInstruction& instruction) {
             return is_plain(instruction) && !is_integer(instruction.a) && !is_double(instruction);
           },
           design_nan_words}};
}

}  // namespace guardbit::gpu
