// Questions about the smallest products: which exponent a zero contributes to the alignment (e0),
// and with which exponent a subnormal addend is aligned.

#include <string>

#include "formats/format_catalogue.hpp"
#include "gpu/questions/questions.hpp"

namespace guardbit::gpu {

namespace {

using emulator::AccumulatorSpec;

bool is_f16_sum(const TensorCoreInstruction& instruction) {
  return is_fused_to_f16(instruction) && instruction.a == formats::fp16;
}
bool is_wide_sum(const TensorCoreInstruction& instruction) {
  return is_fused_to_f32(instruction) && has_fp32_exponents(instruction);
}
/// The wgmma form whose addend does not exist (scale-d = 0).
bool ignores_c(const TensorCoreInstruction& instruction) {
  return instruction.ignore_c && !is_integer(instruction.a);
}

auto zero_exponent(int e0) {
  return [e0](AccumulatorSpec& spec) { spec.min_exponent = e0; };
}

/// 2^-25, half of the smallest f16, and a smaller product: the result is rounded up if that product
/// is kept.
void design_f16_ties(HypothesisTest& x, std::uint64_t c) {
  constexpr int first = 43, last = 48;
  for (int e = first; e <= last; ++e) x.trial(c).power(0, -25).power(1, -e);
  x.keep_together(2);
  // The last kept bit is 2^(e0 - 25) as long as e0 exceeds the exponent of the tie.
  for (int e0 = -17; e0 >= -23; --e0) {
    std::vector<std::uint64_t> words;
    for (int e = first; e <= last; ++e) words.push_back(-e >= e0 - 25 ? 1 : 0);
    const std::string more = e0 == -17 ? " or more" : e0 == -23 ? " or less" : "";
    x.add_hypothesis("e0 = " + std::to_string(e0) + more, words, x.with_spec(zero_exponent(e0)));
  }
}

void design_f16_ties_beside_positive_zero(HypothesisTest& x) { design_f16_ties(x, 0); }
void design_f16_ties_beside_negative_zero(HypothesisTest& x) {
  design_f16_ties(x, sign_bit(x.instruction.c));
}

/// u * v = 2^j - 1, with u and v that short significands hold.
struct Factors {
  int j, u, v;
};
constexpr Factors factors[] = {{5, 31, 1}, {6, 63, 1},   {7, 127, 1},  {8, 15, 17},
                               {9, 7, 73}, {10, 33, 31}, {11, 23, 89}, {12, 45, 91}};
constexpr Factors few_factors[] = {{1, 1, 1}, {2, 3, 1}, {3, 7, 1}, {5, 31, 1}};

/// Two products, (2^j - 1) * 2^(-149-j) and 2^(-149-j): together the smallest f32, but only if bits
/// down to 2^(-149-j) are kept.
HypothesisTest& add_split_smallest(HypothesisTest& x, const Factors& f) {
  return x.term(0, f.u * two(-78), f.v * two(-71 - f.j)).term(1, two(-78), two(-71 - f.j));
}

/// The text for "2^(-149-j) is the last kept bit": F - e0 = 149 + j.
std::string reach(int j) {
  return "F - e0 = " + std::to_string(149 + j) + " (e0 = " + std::to_string(25 - 149 - j) +
         " with F = 25)" +
         (j == 4    ? " or less"
          : j == 12 ? " or more"
                    : "");
}

void design_smallest_f32(HypothesisTest& x, std::uint64_t c) {
  for (const Factors& f : factors) add_split_smallest(x.trial(c), f);
  x.keep_together(2);
  for (int j = 4; j <= 12; ++j) {
    std::vector<std::uint64_t> words;
    for (const Factors& f : factors) words.push_back(f.j <= j ? 1 : 0);
    x.add_hypothesis(reach(j), words, x.with_spec(zero_exponent(25 - 149 - j)));
  }
}

void design_smallest_f32_beside_positive_zero(HypothesisTest& x) { design_smallest_f32(x, 0); }
void design_smallest_f32_beside_negative_zero(HypothesisTest& x) {
  design_smallest_f32(x, sign_bit(x.instruction.c));
}

void design_subnormal_f32_addend(HypothesisTest& x) {
  for (const Factors& f : few_factors) add_split_smallest(x.trial(1), f);
  x.keep_together(2);
  x.add_hypothesis("the exponent of the smallest normal number, not normalised", {2, 2, 1, 1});
  x.add_hypothesis("its own exponent, normalised", {2, 2, 2, 2});
}

void design_subnormal_f16_addend(HypothesisTest& x) {
  using emulator::Source;
  if (x.instruction.d == formats::fp32) {
    x.trial_value(two(-23)).power(0, -40);
    x.keep_together(2);
    emulator::Step direct = x.assumed.steps.list[1];
    direct.addend = Source::c;
    x.add_hypothesis("the exponent of the smallest normal f16, not normalised", {x.d(two(-23))},
                     x.with_steps({direct}));
    x.add_hypothesis("its own exponent: C is widened to f32 first", {x.d(two(-23) + two(-40))});
    return;
  }
  x.trial_value(two(-23)).power(0, -25).power(1, -40);
  x.keep_together(2);
  x.add_hypothesis("the exponent of the smallest normal number, not normalised", {2});
  x.add_hypothesis("its own exponent, normalised", {3});
}

bool has_f16_addend(const TensorCoreInstruction& instruction) {
  return is_fused(instruction) && instruction.a == formats::fp16 && instruction.c == formats::fp16;
}

/// First a normal addend and zero products, then a zero addend and no zero product.
void design_presence_of_zeros(HypothesisTest& x) {
  std::vector<std::uint64_t> with_c, zero_of_c, zero_of_products;
  const auto expect = [&](std::uint64_t normal, std::uint64_t by_c, std::uint64_t by_products) {
    with_c.push_back(normal), zero_of_c.push_back(by_c), zero_of_products.push_back(by_products);
  };
  if (x.instruction.d == formats::fp16) {
    for (const int e : {38, 39, 40})
      x.trial_value(two(-14)).power(0, -25).power(1, -e), expect(e <= 39, e <= 39, e <= 39);
    for (const int e : {45, 46, 47, 48})
      x.trial().power(0, -25).power(1, -e).fill(two(-24), two(-24)), expect(0, e <= 46, 1);
    for (std::size_t i = 0; i < 3; ++i) zero_of_c[i] += 0x400, zero_of_products[i] += 0x400;
  } else {
    for (const Factors& f : few_factors)
      add_split_smallest(x.trial_value(two(-126)), f), expect(f.j <= 2, f.j <= 2, f.j <= 2);
    for (const Factors& f : factors)
      add_split_smallest(x.trial(), f).fill(two(-90), two(-96)), expect(0, f.j <= 9, 1);
    for (std::size_t i = 0; i < 4; ++i) zero_of_c[i] += 0x800000, zero_of_products[i] += 0x800000;
  }
  x.keep_together(2);
  x.add_hypothesis("a zero C alone supplies e0; a normal C stands at its own exponent", zero_of_c);
  x.add_hypothesis("zero products supply e0, a zero C does not", zero_of_products);
  x.add_hypothesis(
      "as the first, with e0 lower by one",
      [&] {
        std::vector<std::uint64_t> words = zero_of_c;
        words[x.instruction.d == formats::fp16 ? 5 : 4 + 5] = 1;  // 2^-47, j = 10
        return words;
      }(),
      x.with_spec([](AccumulatorSpec& spec) { --spec.min_exponent; }));
}

}  // namespace

std::vector<Question> questions_of_zero_exponent() {
  return {{"Q1", "f16 results: which exponent e0 does a zero contribute?",
           [](const TensorCoreInstruction& instruction) {
             return is_f16_sum(instruction) && instruction.unit != Unit::wgmma;
           },
           design_f16_ties_beside_positive_zero},
          {"Q1b", "The same for wgmma, with C = 0 in registers and with C ignored",
           [](const TensorCoreInstruction& instruction) {
             return instruction.unit == Unit::wgmma && instruction.a == formats::fp16 &&
                    instruction.d == formats::fp16 &&
                    (is_plain(instruction) || instruction.ignore_c);
           },
           design_f16_ties_beside_positive_zero},
          {"Q1c", "Does C = -0 contribute the same exponent as C = +0?", is_f16_sum,
           design_f16_ties_beside_negative_zero},
          {"Q3", "f32 results of bf16 and tf32: which exponent e0 does a zero contribute?",
           [](const TensorCoreInstruction& instruction) {
             return is_wide_sum(instruction) ||
                    (ignores_c(instruction) && has_fp32_exponents(instruction));
           },
           design_smallest_f32_beside_positive_zero},
          {"Q3b", "At which exponent does a subnormal f32 addend stand?", is_wide_sum,
           design_subnormal_f32_addend},
          {"Q3c", "At which exponent does a subnormal f16 addend stand?", has_f16_addend,
           design_subnormal_f16_addend},
          {"Q3d", "f32 results: does C = -0 contribute the same exponent as C = +0?", is_wide_sum,
           design_smallest_f32_beside_negative_zero},
          {"Q22", "Is it the zero addend that contributes e0, or are it zero products too?",
           [](const TensorCoreInstruction& instruction) {
             return is_wide_sum(instruction) || is_f16_sum(instruction);
           },
           design_presence_of_zeros}};
}

}  // namespace guardbit::gpu
