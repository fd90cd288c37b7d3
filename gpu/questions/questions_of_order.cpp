// In which order, and in which pieces, products are added.

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

/// A large product and its opposite swallow what is added between them; every other product is a
/// unit; the pair's grid cannot even hold the sum of all units. The result counts the units that
/// met neither.
struct Mask {
  int large, unit;  // exponents
};

Mask mask_of(const TensorCoreInstruction& row) {
  return is_fp8(row.a) ? is_emulated_fp8(row) ? Mask{14, -16} : Mask{14, -4} : Mask{15, -16};
}

void add_mask(Inquiry& x, int i, int j) {
  const Mask mask = mask_of(x.row);
  x.probe().power(i, mask.large).power(j, mask.large, true);
  x.fill(two(mask.unit / 2), two(mask.unit - mask.unit / 2));
}

std::uint64_t units(const Inquiry& x, int count) {
  return count == 0 ? 0 : x.d(count * two(mask_of(x.row).unit));
}

/// Pairs inside each half of K and across.
void put_blocks(Inquiry& x) {
  const int k = x.row.stored_k(), half = k / 2;
  for (const auto& [i, j] : {std::pair(0, 1), std::pair(0, half), std::pair(0, k - 1),
                             std::pair(half - 1, half), std::pair(k - 2, k - 1)})
    add_mask(x, i, j);
  const std::uint64_t all = units(x, half);
  const auto blocks_of = [](int terms) {
    return [terms](AccumulatorSpec& spec) { spec.terms = terms; };
  };
  x.outcome("all together, in one block (L >= " + std::to_string(k) + ")", {0, 0, 0, 0, 0},
            x.if_spec(blocks_of(k)));
  x.outcome("two blocks of " + std::to_string(half) + ", lower k first", {all, 0, 0, 0, 0},
            x.if_spec(blocks_of(half)));
  x.outcome("two blocks of " + std::to_string(half) + ", higher k first", {0, 0, 0, 0, all});
  x.outcome("two blocks of " + std::to_string(half) + " side by side, then added",
            {all, 0, 0, 0, all});
  if (half < 4) return;
  const std::uint64_t most = units(x, k - half / 2);
  x.outcome("four blocks of " + std::to_string(half / 2) + ", lower k first",
            {most, units(x, half / 2), 0, units(x, half / 2), 0}, x.if_spec(blocks_of(half / 2)));
}

bool has_blocks(const TensorCoreInstruction& row) { return is_fused(row) && row.k >= 8; }

/// Instructions of several blocks, and products of which one alone overflows the result.
bool can_overflow_between_blocks(const TensorCoreInstruction& row) {
  const bool short_blocks = row.unit == Unit::wmma && row.a == formats::tf32;
  return is_plain(row) && (short_blocks || (is_emulated_fp8(row) && row.d == formats::fp16 &&
                                            row.a == formats::e5m2 && row.b == formats::e5m2));
}

void put_overflow_between_blocks(Inquiry& x) {
  const bool f32 = x.row.d == formats::fp32;
  const int factor = f32 ? 64 : 15, second = f32 ? x.row.k / 2 : 2;
  x.probe().term(0, two(factor), two(factor)).term(second, -two(factor), two(factor));
  AccumulatorSpec spec;
  spec.terms = x.row.k;
  spec.kept_fraction_bits = 25;
  spec.min_exponent = f32 ? -133 : -21;
  x.outcome("an infinity, which a finite product of the next block does not lift",
            {infinity_word(x.row.d)});
  x.outcome("a sum like any other, which its opposite in the next block cancels", {0},
            x.if_steps({emulator::dot_step(spec, emulator::every_k, Source::c, x.row.d)}));
}

/// Scalar instructions, as ptxas writes them for mma.m8n8k4, and what the tensor core of Volta
/// does.
void put_quad(Inquiry& x) {
  using namespace emulator;
  AccumulatorSpec volta;
  volta.terms = 4;
  volta.kept_fraction_bits = 23;
  const auto half_unit = [&x](int k, long double factor) {  // factor * 2^-24
    x.term(k, factor * two(-12), two(-12));
  };
  if (x.row.d == formats::fp16) {
    x.probe_value(1), half_unit(0, .75L), x.power(2, -11).power(3, -25);
    x.probe_value(1).power(0, -11), half_unit(2, 1.5L);
    volta.min_exponent = -19;
    volta.result = Rounding::nearest_even;
    x.outcome("FMUL and FFMA in pairs; (C + first) + second in f32; one conversion",
              {0x3C00, 0x3C01}, x.if_steps(quad_to_fp16({}).steps));
    Steps last = quad_to_fp32({}).steps;
    last.list.at(static_cast<std::size_t>(last.count++)) =
        convert_step(Source::step_1, formats::fp16);
    x.outcome("an FFMA chain in f32; C is added last; one conversion", {0x3C01, 0x3C01},
              x.if_steps(last));
    x.outcome("one block with F = 23, as Volta's HMMA", {0x3C00, 0x3C00},
              x.if_steps({dot_step(volta, every_k, Source::c, formats::fp16)}));
    return;
  }
  x.probe().term(0, 1, 1), half_unit(1, 1.5L);
  x.probe_value(1), half_unit(0, .75L), half_unit(1, .5L);
  x.probe().term(0, 1, 1), half_unit(1, .75L), half_unit(2, .5L);
  volta.min_exponent = -131;
  constexpr std::uint64_t one = 0x3F800000, above = 0x3F800001;
  x.outcome("an FFMA chain from +0, k ascending; C is added last", {above, above, one},
            x.if_steps(quad_to_fp32({}).steps));
  x.outcome("an FFMA chain from C, k ascending", {above, one, one},
            x.if_steps({dot_step(scalar_arithmetic(), every_k, Source::c, formats::fp32)}));
  x.outcome("an FFMA chain from +0, k descending; C is added last", {above, above, above});
  x.outcome("one block with F = 23, as Volta's HMMA", {one, one, one},
            x.if_steps({dot_step(volta, every_k, Source::c, formats::fp32)}));
}

/// Masks inside and across the residues of k, then a rounding that only the last addition makes.
void put_emulated_fp8(Inquiry& x) {
  using namespace emulator;
  const int k = x.row.stored_k(), half = k / 2;
  static constexpr std::array<std::array<int, 2>, 7> pairs = {
      {{0, 1}, {0, 2}, {2, 3}, {0, 4}, {2, 6}, {1, 5}, {0, 8}}};
  for (const auto& [i, j] : pairs) add_mask(x, i, j);
  const bool f32 = x.row.d == formats::fp32;
  if (f32) {
    x.probe().power(0, 8).term(2, 1.5L * two(-8), two(-8));  // chained: cut; added: rounded
    x.probe_value(256).term(0, 1.5L * two(-8), two(-8));     // C in the block, or added after it
  } else {
    x.probe().term(0, 8, 8).power(1, -5).term(2, two(-8), two(-9));
    x.probe_value(64).power(0, -5).term(1, two(-8), two(-9));
  }
  const auto expect = [&](const std::array<bool, 7>& survive, std::uint64_t sum,
                          std::uint64_t added) {
    std::vector<std::uint64_t> words;
    for (const bool half_survives : survive) words.push_back(half_survives ? units(x, half) : 0);
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
  const Format d = x.row.d;
  x.outcome(
      "k % 4 in {0, 1} in one f16 instruction from zero, the rest in a second chained to it; "
      "C is added last",
      expect({true, false, false, true, false, true, true}, cut, f32 ? up : cut),
      x.if_steps(fp8_chained(hmma, d, {}, {}).steps));
  x.outcome("the same two side by side; their sum, then C",
            expect({true, false, true, true, true, true, true}, f32 ? up : cut, f32 ? up : cut),
            x.if_steps(fp8_parallel(hmma, d, {}, {}).steps));
  x.outcome("one native block with F = 13, as wgmma",
            expect({false, false, false, false, false, false, false}, cut, cut),
            x.if_steps({dot_step(native, every_k, Source::c, d)}));
}

}  // namespace

std::vector<Question> questions_of_order() {
  return {
      {"Q7b", "What is the result of a block that overflows before the last one?",
       can_overflow_between_blocks, put_overflow_between_blocks},

      {"Q13", "How many products are aligned together, and in which order do blocks follow?",
       [](const TensorCoreInstruction& row) { return has_blocks(row) && !row.sparse; }, put_blocks},
      {"Q14", "2:4 sparse kinds: how many stored products are aligned together?",
       [](const TensorCoreInstruction& row) { return has_blocks(row) && row.sparse; }, put_blocks},
      {"Q17", "mma.m8n8k4: which scalar instructions stand for it?", is_quad, put_quad},
      {"Q18", "FP8 mma.sync, compiled ahead of time: which f16 instructions stand for it?",
       is_emulated_fp8, put_emulated_fp8},
      {"Q18b", "FP8 mma.sync, compiled by the driver: which f16 instructions stand for it?",
       is_emulated_fp8, put_emulated_fp8, Translation::just_in_time}};
}

}  // namespace guardbit::gpu
