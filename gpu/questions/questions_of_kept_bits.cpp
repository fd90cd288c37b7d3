// Questions about precision: how many bits a block keeps (F), how it rounds them, and how many bits
// its result has.

#include <string>

#include "emulator/catalogue/compositions.hpp"
#include "formats/format_catalogue.hpp"
#include "gpu/questions/questions.hpp"

namespace guardbit::gpu {

namespace {

using emulator::AccumulatorSpec;
using emulator::Source;
using formats::Rounding;

bool is_fp8_wgmma(const TensorCoreInstruction& instruction) {
  return is_fused(instruction) && is_fp8(instruction.a);
}
bool is_fp8_wgmma_to_f32(const TensorCoreInstruction& instruction) {
  return is_fp8_wgmma(instruction) && instruction.d == formats::fp32;
}
bool is_fp8_wgmma_to_f16(const TensorCoreInstruction& instruction) {
  return is_fp8_wgmma(instruction) && instruction.d == formats::fp16;
}
bool is_f16_like_to_f32(const TensorCoreInstruction& instruction) {
  return is_fused_to_f32(instruction) && !is_fp8(instruction.a);
}
bool is_f16_input(const TensorCoreInstruction& instruction) {
  return instruction.a == formats::fp16;
}

auto kept_bits(int count) {
  return [count](AccumulatorSpec& spec) { spec.kept_fraction_bits = count; };
}

std::string kept_bits_text(int count, int lowest, int highest) {
  return "F = " + std::to_string(count) +
         (count == lowest    ? " or less"
          : count == highest ? " or more"
                             : "");
}

/// Addends with bits below the F kept bits, and no product.
void design_addend_alone(HypothesisTest& x) {
  for (const long double c : {1 + two(-23), 1 + two(-13), 1 + two(-13) + two(-14)})
    x.trial_value(c);
  x.add_hypothesis("C is cut like a product, to 13 bits", {0x3F800000, 0x3F800400, 0x3F800400});
  x.add_hypothesis("14 bits are kept", {0x3F800000, 0x3F800400, 0x3F800600},
                   x.with_spec([](AccumulatorSpec& spec) {
                     spec.kept_fraction_bits = spec.result_fraction_bits = 14;
                   }));
  x.add_hypothesis("C comes back whole", {0x3F800001, 0x3F800400, 0x3F800600},
                   x.with_spec([](AccumulatorSpec& spec) {
                     spec.kept_fraction_bits = 25;
                     spec.result_fraction_bits = 0;
                   }));
}

void design_carry(HypothesisTest& x) {
  x.trial_value(1).power(0, -14, true);
  x.trial().term(0, 1, 1).term(1, 1, 1).power(2, -13);
  x.keep_together(4);
  struct Case {
    const char* meaning;
    std::uint64_t down, carry;
    Rounding alignment;
    int result_bits;
  };
  for (const Case& c :
       {Case{"cut toward zero; 13 fraction bits, also after a carry", 0x3F800000, 0x40000000,
             Rounding::toward_zero, 13},
        Case{"cut toward zero; all bits of f32", 0x3F800000, 0x40000200, Rounding::toward_zero, 0},
        Case{"cut downward; 13 fraction bits", 0x3F7FF800, 0x40000000, Rounding::downward, 13},
        Case{"cut downward; all bits of f32", 0x3F7FF800, 0x40000200, Rounding::downward, 0}})
    x.add_hypothesis(c.meaning, {c.down, c.carry}, x.with_spec([&c](AccumulatorSpec& spec) {
      spec.alignment = c.alignment;
      spec.result_fraction_bits = c.result_bits;
    }));
}

/// C is NaN or infinity (or an extreme integer) while the instruction is told to ignore it.
void design_ignored_addend(HypothesisTest& x) {
  const bool integer = is_integer(x.instruction.d);
  const std::uint64_t largest = formats::low_bits(word_bits(x.instruction.c) - 1);
  x.trial(largest).term(0, 1, 1).term(1, 1, 1);
  x.trial(integer ? sign_bit(x.instruction.c) : infinity_word(x.instruction.c));
  x.keep_together(2);
  const std::uint64_t nan = largest;
  x.add_hypothesis("C is a true zero, whatever the registers hold", {x.d(2), 0});
  if (integer) {
    x.add_hypothesis("C is read", {0x80000001, 0x80000000});
  } else {
    x.add_hypothesis("C is multiplied by zero", {nan, nan});
    x.add_hypothesis("C is read", {nan, infinity_word(x.instruction.d)});
  }
}

/// Half an ulp of an f16 result, and a smaller product that breaks the tie if it is kept.
void design_kept_bits_of_f16(HypothesisTest& x, int first, int last) {
  for (int e = first; e <= last; ++e)
    (is_fp8(x.instruction.a) ? x.trial().term(2, 1, 1) : x.trial_value(1))
        .power(0, -11)
        .power(1, -e);
  x.keep_together(4);
  for (int f = first - 1; f <= last; ++f) {
    std::vector<std::uint64_t> words;
    for (int e = first; e <= last; ++e) words.push_back(e <= f ? 0x3C01 : 0x3C00);
    x.add_hypothesis(kept_bits_text(f, first - 1, last), words, x.with_spec(kept_bits(f)));
  }
}

void design_kept_bits_of_fp8_to_f16(HypothesisTest& x) { design_kept_bits_of_f16(x, 12, 16); }

/// C and one product cancel, so that the result is the other product if it is kept.
void design_kept_bits(HypothesisTest& x) {
  if (x.instruction.d == formats::fp16) return design_kept_bits_of_f16(x, 20, 28);
  const int first = is_fp8(x.instruction.a) ? 9 : 20, last = is_fp8(x.instruction.a) ? 16 : 28;
  for (int e = first; e <= last; ++e) x.trial_value(1).term(0, -1, 1).power(1, -e);
  x.keep_together(2);
  for (int f = first - 1; f <= last; ++f) {
    std::vector<std::uint64_t> words;
    for (int e = first; e <= last; ++e) words.push_back(e <= f ? x.d(two(-e)) : 0);
    x.add_hypothesis(kept_bits_text(f, first - 1, last), words, x.with_spec(kept_bits(f)));
  }
}

/// 1 + half an ulp of f16 + half an ulp of f32: rounding to f32 first gives another result.
void design_stages(HypothesisTest& x) {
  x.trial().term(0, .5L, 1).term(1, .5L, 1).term(2, .5L, two(-10)).term(3, .5L, two(-23));
  if (!is_quad(x.instruction)) x.keep_together(4);
  AccumulatorSpec narrow, wide;
  narrow.terms = wide.terms = 16;
  narrow.kept_fraction_bits = wide.kept_fraction_bits = 25;
  narrow.min_exponent = -21, wide.min_exponent = -133;
  narrow.result = Rounding::nearest_even;
  x.add_hypothesis(
      "no: the exact sum on the grid is rounded once", {0x3C01},
      x.with_steps({emulator::dot_step(narrow, emulator::every_k, Source::c, formats::fp16)}));
  x.add_hypothesis(
      "yes", {0x3C00},
      x.with_steps({emulator::dot_step(wide, emulator::every_k, Source::c, formats::fp32),
                    emulator::convert_step(Source::step_0, formats::fp16)}));
}

/// A product with a subnormal factor: normalising it would lower the largest exponent of the block.
void design_normalisation(HypothesisTest& x) {
  const int bottom = min_exponent(x.instruction.a) - x.instruction.a.fraction_bits,
            top = max_exponent(x.instruction.b);
  const int aligned = min_exponent(x.instruction.a) + top;  // of the product, not normalised
  const int kept = is_fp8(x.instruction.a) ? 13 : 25;
  x.trial().term(0, two(bottom), two(top)).power(1, aligned - kept - 1);
  x.keep_together(2);
  const long double large = two(bottom + top), small = two(aligned - kept - 1);
  std::vector<std::uint64_t> plain = {x.d(large)}, normalised = {x.d(large + small)};
  if (!is_fp8(x.instruction.a) && x.instruction.stored_k() >= 16) {
    // The same sum twice, once with a factor product in [2, 4): 2.25 as 1.5 * 1.5 and as 1 * 2.25.
    for (const auto& [a, b] : {std::pair(1.5L, 1.5L), std::pair(1.0L, 2.25L)}) {
      x.trial().term(0, a, b);
      for (int k = 1; k <= 8; ++k) x.power(k, -25);
    }
    plain.insert(plain.end(), {0x40100001, 0x40100000});
    normalised.insert(normalised.end(), {0x40100000, 0x40100000});
  }
  x.add_hypothesis("not normalised: the exponents of the factors decide", plain);
  x.add_hypothesis("normalised first", normalised);
}

/// 1 minus a half and minus three quarters of the last kept bit.
void design_cut(HypothesisTest& x) {
  x.trial_value(1).power(0, -26, true);
  x.trial_value(1).term(0, -1.5L * two(-13), two(-13));
  x.keep_together(2);
  const auto cut = [](Rounding rounding) {
    return [rounding](AccumulatorSpec& spec) { spec.alignment = rounding; };
  };
  constexpr std::uint64_t one = 0x3F800000, below = 0x3F7FFFFF;
  x.add_hypothesis("toward zero", {one, one}, x.with_spec(cut(Rounding::toward_zero)));
  x.add_hypothesis("downward", {below, below}, x.with_spec(cut(Rounding::downward)));
  x.add_hypothesis("to nearest", {one, below}, x.with_spec(cut(Rounding::nearest_even)));
}

}  // namespace

std::vector<Question> questions_of_kept_bits() {
  return {{"Q4", "FP8 wgmma to f32: is C cut as products are?", is_fp8_wgmma_to_f32,
           design_addend_alone},
          {"Q4b", "FP8 wgmma to f32: how are bits cut, and how many does the result have?",
           is_fp8_wgmma_to_f32, design_carry},
          {"Q4c", "wgmma with scale-d = 0: what does the unit take for C?",
           [](const TensorCoreInstruction& instruction) { return instruction.ignore_c; },
           design_ignored_addend},
          {"Q5", "FP8 wgmma to f16: how many bits below the largest exponent are kept?",
           is_fp8_wgmma_to_f16, design_kept_bits_of_fp8_to_f16},
          {"Q6", "f16 results: is there a stage in f32?",
           [](const TensorCoreInstruction& instruction) {
             return is_f16_input(instruction) &&
                    (is_fused_to_f16(instruction) || is_narrowed(instruction) ||
                     (is_quad(instruction) && instruction.d == formats::fp16));
           },
           design_stages},
          {"Q8", "Are products normalised before they are aligned?", is_fused_to_f32,
           design_normalisation},
          {"Q9", "How is a product cut to the grid?", is_f16_like_to_f32, design_cut},
          {"Q12", "How many bits below the largest exponent are kept (F)?",
           [](const TensorCoreInstruction& instruction) {
             return is_fused_to_f32(instruction) ||
                    (is_fused_to_f16(instruction) && is_f16_input(instruction));
           },
           design_kept_bits}};
}

}  // namespace guardbit::gpu
