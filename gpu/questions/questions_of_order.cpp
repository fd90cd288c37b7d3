// Questions about the order of additions: which products are aligned together, and which
// instructions the compiler uses where the hardware has none.

#include <array>
#include <string>

#include "emulator/catalogue/compositions.hpp"
#include "formats/format_catalogue.hpp"
#include "gpu/questions/questions.hpp"

namespace guardbit::gpu {

namespace {

using emulator::AccumulatorSpec;
using emulator::Selection;
using emulator::Source;
using emulator::Step;
using formats::Rounding;

/// A large product and its negative absorb every product that is added while one of them is in the
/// sum, since all small products together lie below the kept bits. All others equal 2^small, so the
/// result counts the products that met neither.
struct Mask {
  int large, small;  // exponents
};

Mask mask_of(const TensorCoreInstruction& instruction) {
  return is_fp8(instruction.a) ? is_emulated_fp8(instruction) ? Mask{14, -16} : Mask{14, -4}
                               : Mask{15, -16};
}

void add_mask(HypothesisTest& x, int i, int j) {
  const Mask mask = mask_of(x.instruction);
  x.trial().power(i, mask.large).power(j, mask.large, true);
  x.fill(two(mask.small / 2), two(mask.small - mask.small / 2));
}

std::uint64_t counted(const HypothesisTest& x, int count) {
  return count == 0 ? 0 : x.d(count * two(mask_of(x.instruction).small));
}

/// Masks with both large products in one half of K, and with one in each.
void design_blocks(HypothesisTest& x) {
  const int k = x.instruction.stored_k(), half = k / 2;
  for (const auto& [i, j] : {std::pair(0, 1), std::pair(0, half), std::pair(0, k - 1),
                             std::pair(half - 1, half), std::pair(k - 2, k - 1)})
    add_mask(x, i, j);
  const std::uint64_t all = counted(x, half);
  const auto blocks_of = [](int terms) {
    return [terms](AccumulatorSpec& spec) { spec.terms = terms; };
  };
  x.add_hypothesis("all together, in one block (L >= " + std::to_string(k) + ")", {0, 0, 0, 0, 0},
                   x.with_spec(blocks_of(k)));
  x.add_hypothesis("two blocks of " + std::to_string(half) + ", lower k first", {all, 0, 0, 0, 0},
                   x.with_spec(blocks_of(half)));
  x.add_hypothesis("two blocks of " + std::to_string(half) + ", higher k first", {0, 0, 0, 0, all});
  x.add_hypothesis("two blocks of " + std::to_string(half) + " side by side, then added",
                   {all, 0, 0, 0, all});
  if (half < 4) return;
  const std::uint64_t most = counted(x, k - half / 2);
  x.add_hypothesis("four blocks of " + std::to_string(half / 2) + ", lower k first",
                   {most, counted(x, half / 2), 0, counted(x, half / 2), 0},
                   x.with_spec(blocks_of(half / 2)));
}

bool has_blocks(const TensorCoreInstruction& instruction) {
  return is_fused(instruction) && instruction.k >= 8;
}

/// Instructions of several blocks in which one product alone overflows the result.
bool can_overflow_between_blocks(const TensorCoreInstruction& instruction) {
  const bool short_blocks = instruction.unit == Unit::wmma && instruction.a == formats::tf32;
  return is_plain(instruction) &&
         (short_blocks || (is_emulated_fp8(instruction) && instruction.d == formats::fp16 &&
                           instruction.a == formats::e5m2 && instruction.b == formats::e5m2));
}

void design_overflow_between_blocks(HypothesisTest& x) {
  const bool f32 = x.instruction.d == formats::fp32;
  const int factor = f32 ? 64 : 15, second = f32 ? x.instruction.k / 2 : 2;
  x.trial().term(0, two(factor), two(factor)).term(second, -two(factor), two(factor));
  AccumulatorSpec spec;
  spec.terms = x.instruction.k;
  spec.kept_fraction_bits = 25;
  spec.min_exponent = f32 ? -133 : -21;
  x.add_hypothesis("an infinity, which a finite product of the next block does not lift",
                   {infinity_word(x.instruction.d)});
  x.add_hypothesis(
      "a sum like any other, which its opposite in the next block cancels", {0},
      x.with_steps({emulator::dot_step(spec, emulator::every_k, Source::c, x.instruction.d)}));
}

/// The scalar instructions to which ptxas compiles mma.m8n8k4, and the arithmetic of Volta's tensor
/// core.
void design_quad(HypothesisTest& x) {
  using namespace emulator;
  AccumulatorSpec volta;
  volta.terms = 4;
  volta.kept_fraction_bits = 23;
  const auto half_ulp = [&x](int k, long double factor) {  // factor * 2^-24
    x.term(k, factor * two(-12), two(-12));
  };
  if (x.instruction.d == formats::fp16) {
    x.trial_value(1), half_ulp(0, .75L), x.power(2, -11).power(3, -25);
    x.trial_value(1).power(0, -11), half_ulp(2, 1.5L);
    volta.min_exponent = -19;
    volta.result = Rounding::nearest_even;
    x.add_hypothesis("FMUL and FFMA in pairs; (C + first) + second in f32; one conversion",
                     {0x3C00, 0x3C01}, x.with_steps(quad_to_fp16({}).steps));
    Steps last = quad_to_fp32({}).steps;
    last.list.at(static_cast<std::size_t>(last.count++)) =
        convert_step(Source::step_1, formats::fp16);
    x.add_hypothesis("an FFMA chain in f32; C is added last; one conversion", {0x3C01, 0x3C01},
                     x.with_steps(last));
    x.add_hypothesis("one block with F = 23, as Volta's HMMA", {0x3C00, 0x3C00},
                     x.with_steps({dot_step(volta, every_k, Source::c, formats::fp16)}));
    return;
  }
  x.trial().term(0, 1, 1), half_ulp(1, 1.5L);
  x.trial_value(1), half_ulp(0, .75L), half_ulp(1, .5L);
  x.trial().term(0, 1, 1), half_ulp(1, .75L), half_ulp(2, .5L);
  volta.min_exponent = -131;
  constexpr std::uint64_t one = 0x3F800000, above = 0x3F800001;
  x.add_hypothesis("an FFMA chain from +0, k ascending; C is added last", {above, above, one},
                   x.with_steps(quad_to_fp32({}).steps));
  x.add_hypothesis(
      "an FFMA chain from C, k ascending", {above, one, one},
      x.with_steps({dot_step(scalar_arithmetic(), every_k, Source::c, formats::fp32)}));
  x.add_hypothesis("an FFMA chain from +0, k descending; C is added last", {above, above, above});
  x.add_hypothesis("one block with F = 23, as Volta's HMMA", {one, one, one},
                   x.with_steps({dot_step(volta, every_k, Source::c, formats::fp32)}));
}

/// Masks with both large products at equal or at different k mod 4, then sums that tell where the
/// last rounding is.
void design_emulated_fp8(HypothesisTest& x) {
  using namespace emulator;
  const int k = x.instruction.stored_k(), half = k / 2;
  static constexpr std::array<std::array<int, 2>, 7> pairs = {
      {{0, 1}, {0, 2}, {2, 3}, {0, 4}, {2, 6}, {1, 5}, {0, 8}}};
  for (const auto& [i, j] : pairs) add_mask(x, i, j);
  const bool f32 = x.instruction.d == formats::fp32;
  if (f32) {
    x.trial().power(0, 8).term(2, 1.5L * two(-8), two(-8));  // chained: cut; added: rounded
    x.trial_value(256).term(0, 1.5L * two(-8), two(-8));     // C in the block, or added after it
  } else {
    x.trial().term(0, 8, 8).power(1, -5).term(2, two(-8), two(-9));
    x.trial_value(64).power(0, -5).term(1, two(-8), two(-9));
  }
  const auto expect = [&](const std::array<bool, 7>& survive, std::uint64_t sum,
                          std::uint64_t added) {
    std::vector<std::uint64_t> words;
    for (const bool half_survives : survive) words.push_back(half_survives ? counted(x, half) : 0);
    words.push_back(sum), words.push_back(added);
    return words;
  };
  const std::uint64_t cut = f32 ? 0x43800000 : 0x5400, up = f32 ? 0x43800001 : 0x5401;
  AccumulatorSpec hmma;
  hmma.terms = 16;
  hmma.kept_fraction_bits = 25;
  hmma.min_exponent = f32 ? -133 : -21;
  hmma.result = f32 ? Rounding::toward_zero : Rounding::nearest_even;
  AccumulatorSpec native = hmma;
  native.terms = 32;
  native.kept_fraction_bits = 13;
  native.result_fraction_bits = f32 ? 13 : 0;
  const Format d = x.instruction.d;
  x.add_hypothesis(
      "k % 4 in {0, 1} in one f16 instruction from zero, the rest in a second chained to it; C is added last",
      expect({true, false, false, true, false, true, true}, cut, f32 ? up : cut),
      x.with_steps(fp8_chained(hmma, d, {}, {}).steps));
  x.add_hypothesis(
      "the same two side by side; their sum, then C",
      expect({true, false, true, true, true, true, true}, f32 ? up : cut, f32 ? up : cut),
      x.with_steps(fp8_parallel(hmma, d, {}, {}).steps));
  x.add_hypothesis("one native block with F = 13, as wgmma",
                   expect({false, false, false, false, false, false, false}, cut, cut),
                   x.with_steps({dot_step(native, every_k, Source::c, d)}));
}

}  // namespace

std::vector<Question> questions_of_order() {
  return {{"Q7b", "What is the result of a block that overflows before the last one?",
           can_overflow_between_blocks, design_overflow_between_blocks},

          {"Q13", "How many products are aligned together, and in which order do blocks follow?",
           [](const TensorCoreInstruction& instruction) {
             return has_blocks(instruction) && !instruction.sparse;
           },
           design_blocks},
          {"Q14", "2:4 sparse kinds: how many stored products are aligned together?",
           [](const TensorCoreInstruction& instruction) {
             return has_blocks(instruction) && instruction.sparse;
           },
           design_blocks},
          {"Q17", "mma.m8n8k4: which scalar instructions stand for it?", is_quad, design_quad},
          {"Q18", "FP8 mma.sync, compiled ahead of time: which f16 instructions stand for it?",
           is_emulated_fp8, design_emulated_fp8},
          {"Q18b", "FP8 mma.sync, compiled by the driver: which f16 instructions stand for it?",
           is_emulated_fp8, design_emulated_fp8, Translation::just_in_time}};
}

}  // namespace guardbit::gpu
