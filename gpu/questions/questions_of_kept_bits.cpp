// How many bits a block keeps (F), how it cuts the rest, and how many its result has.

#include <string>

#include "emulator/catalogue/compositions.hpp"
#include "formats/format_catalogue.hpp"
#include "gpu/questions/questions.hpp"

namespace guardbit::gpu {

namespace {

using emulator::AccumulatorSpec;
using emulator::Source;
using formats::Rounding;

bool is_fp8_wgmma(const TensorCoreInstruction& row) { return is_fused(row) && is_fp8(row.a); }
bool is_fp8_wgmma_to_f32(const TensorCoreInstruction& row) {
  return is_fp8_wgmma(row) && row.d == formats::fp32;
}
bool is_fp8_wgmma_to_f16(const TensorCoreInstruction& row) {
  return is_fp8_wgmma(row) && row.d == formats::fp16;
}
bool is_f16_like_to_f32(const TensorCoreInstruction& row) {
  return is_fused_to_f32(row) && !is_fp8(row.a);
}
bool is_f16_input(const TensorCoreInstruction& row) { return row.a == formats::fp16; }

auto kept_bits(int count) {
  return [count](AccumulatorSpec& spec) { spec.kept_fraction_bits = count; };
}

std::string kept_bits_text(int count, int lowest, int highest) {
  return "F = " + std::to_string(count) +
         (count == lowest    ? " or less"
          : count == highest ? " or more"
                             : "");
}

/// The addend alone, with bits beyond F.
void put_addend_alone(Inquiry& x) {
  for (const long double c : {1 + two(-23), 1 + two(-13), 1 + two(-13) + two(-14)})
    x.probe_value(c);
  x.outcome("C is cut like a product, to 13 bits", {0x3F800000, 0x3F800400, 0x3F800400});
  x.outcome("14 bits are kept", {0x3F800000, 0x3F800400, 0x3F800600},
            x.if_spec([](AccumulatorSpec& spec) {
              spec.kept_fraction_bits = spec.result_fraction_bits = 14;
            }));
  x.outcome("C comes back whole", {0x3F800001, 0x3F800400, 0x3F800600},
            x.if_spec([](AccumulatorSpec& spec) {
              spec.kept_fraction_bits = 25;
              spec.result_fraction_bits = 0;
            }));
}

void put_carry(Inquiry& x) {
  x.probe_value(1).power(0, -14, true);
  x.probe().term(0, 1, 1).term(1, 1, 1).power(2, -13);
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
    x.outcome(c.meaning, {c.down, c.carry}, x.if_spec([&c](AccumulatorSpec& spec) {
      spec.alignment = c.alignment;
      spec.result_fraction_bits = c.result_bits;
    }));
}

/// Registers that hold NaN and infinity where the instruction is told to ignore C.
void put_ignored_addend(Inquiry& x) {
  const bool integer = is_integer(x.row.d);
  const std::uint64_t largest = formats::low_bits(word_bits(x.row.c) - 1);
  x.probe(largest).term(0, 1, 1).term(1, 1, 1);
  x.probe(integer ? sign_bit(x.row.c) : infinity_word(x.row.c));
  x.keep_together(2);
  const std::uint64_t nan = largest;
  x.outcome("C is a true zero, whatever the registers hold", {x.d(2), 0});
  if (integer) {
    x.outcome("C is read", {0x80000001, 0x80000000});
  } else {
    x.outcome("C is multiplied by zero", {nan, nan});
    x.outcome("C is read", {nan, infinity_word(x.row.d)});
  }
}

/// A tie of f16 beside ever smaller products.
void put_kept_bits_of_f16(Inquiry& x, int first, int last) {
  for (int e = first; e <= last; ++e)
    (is_fp8(x.row.a) ? x.probe().term(2, 1, 1) : x.probe_value(1)).power(0, -11).power(1, -e);
  x.keep_together(4);
  for (int f = first - 1; f <= last; ++f) {
    std::vector<std::uint64_t> words;
    for (int e = first; e <= last; ++e) words.push_back(e <= f ? 0x3C01 : 0x3C00);
    x.outcome(kept_bits_text(f, first - 1, last), words, x.if_spec(kept_bits(f)));
  }
}

void put_kept_bits_of_fp8_to_f16(Inquiry& x) { put_kept_bits_of_f16(x, 12, 16); }

/// C and a product cancel; what remains is the bit under test.
void put_kept_bits(Inquiry& x) {
  if (x.row.d == formats::fp16) return put_kept_bits_of_f16(x, 20, 28);
  const int first = is_fp8(x.row.a) ? 9 : 20, last = is_fp8(x.row.a) ? 16 : 28;
  for (int e = first; e <= last; ++e) x.probe_value(1).term(0, -1, 1).power(1, -e);
  x.keep_together(2);
  for (int f = first - 1; f <= last; ++f) {
    std::vector<std::uint64_t> words;
    for (int e = first; e <= last; ++e) words.push_back(e <= f ? x.d(two(-e)) : 0);
    x.outcome(kept_bits_text(f, first - 1, last), words, x.if_spec(kept_bits(f)));
  }
}

/// 1 + half a unit of f16 + half a unit of f32: the order of roundings decides.
void put_stages(Inquiry& x) {
  x.probe().term(0, .5L, 1).term(1, .5L, 1).term(2, .5L, two(-10)).term(3, .5L, two(-23));
  if (!is_quad(x.row)) x.keep_together(4);
  AccumulatorSpec narrow, wide;
  narrow.terms = wide.terms = 16;
  narrow.kept_fraction_bits = wide.kept_fraction_bits = 25;
  narrow.min_exponent = -21, wide.min_exponent = -133;
  narrow.result = Rounding::nearest_even;
  x.outcome("no: the exact sum on the grid is rounded once", {0x3C01},
            x.if_steps({emulator::dot_step(narrow, emulator::every_k, Source::c, formats::fp16)}));
  x.outcome("yes", {0x3C00},
            x.if_steps({emulator::dot_step(wide, emulator::every_k, Source::c, formats::fp32),
                        emulator::convert_step(Source::step_0, formats::fp16)}));
}

/// A large subnormal factor: normalising its product would lower the exponent of the block.
void put_normalisation(Inquiry& x) {
  const int bottom = min_exponent(x.row.a) - x.row.a.fraction_bits, top = max_exponent(x.row.b);
  const int aligned = min_exponent(x.row.a) + top;  // of the product, not normalised
  const int kept = is_fp8(x.row.a) ? 13 : 25;
  x.probe().term(0, two(bottom), two(top)).power(1, aligned - kept - 1);
  x.keep_together(2);
  const long double large = two(bottom + top), small = two(aligned - kept - 1);
  std::vector<std::uint64_t> plain = {x.d(large)}, normalised = {x.d(large + small)};
  if (!is_fp8(x.row.a) && x.row.stored_k() >= 16) {
    // The same sum twice, once with a factor product in [2, 4): 2.25 as 1.5 * 1.5 and as 1 * 2.25.
    for (const auto& [a, b] : {std::pair(1.5L, 1.5L), std::pair(1.0L, 2.25L)}) {
      x.probe().term(0, a, b);
      for (int k = 1; k <= 8; ++k) x.power(k, -25);
    }
    plain.insert(plain.end(), {0x40100001, 0x40100000});
    normalised.insert(normalised.end(), {0x40100000, 0x40100000});
  }
  x.outcome("not normalised: the exponents of the factors decide", plain);
  x.outcome("normalised first", normalised);
}

/// Half and three quarters of the grid's unit, taken from 1.
void put_cut(Inquiry& x) {
  x.probe_value(1).power(0, -26, true);
  x.probe_value(1).term(0, -1.5L * two(-13), two(-13));
  x.keep_together(2);
  const auto cut = [](Rounding rounding) {
    return [rounding](AccumulatorSpec& spec) { spec.alignment = rounding; };
  };
  constexpr std::uint64_t one = 0x3F800000, below = 0x3F7FFFFF;
  x.outcome("toward zero", {one, one}, x.if_spec(cut(Rounding::toward_zero)));
  x.outcome("downward", {below, below}, x.if_spec(cut(Rounding::downward)));
  x.outcome("to nearest", {one, below}, x.if_spec(cut(Rounding::nearest_even)));
}

}  // namespace

std::vector<Question> questions_of_kept_bits() {
  return {
      {"Q4", "FP8 wgmma to f32: is C cut as products are?", is_fp8_wgmma_to_f32, put_addend_alone},
      {"Q4b", "FP8 wgmma to f32: how are bits cut, and how many does the result have?",
       is_fp8_wgmma_to_f32, put_carry},
      {"Q4c", "wgmma with scale-d = 0: what does the unit take for C?",
       [](const TensorCoreInstruction& row) { return row.ignore_c; }, put_ignored_addend},
      {"Q5", "FP8 wgmma to f16: how many bits below the largest exponent are kept?",
       is_fp8_wgmma_to_f16, put_kept_bits_of_fp8_to_f16},
      {"Q6", "f16 results: is there a stage in f32?",
       [](const TensorCoreInstruction& row) {
         return is_f16_input(row) && (is_fused_to_f16(row) || is_narrowed(row) ||
                                      (is_quad(row) && row.d == formats::fp16));
       },
       put_stages},
      {"Q8", "Are products normalised before they are aligned?", is_fused_to_f32,
       put_normalisation},
      {"Q9", "How is a product cut to the grid?", is_f16_like_to_f32, put_cut},
      {"Q12", "How many bits below the largest exponent are kept (F)?",
       [](const TensorCoreInstruction& row) {
         return is_fused_to_f32(row) || (is_fused_to_f16(row) && is_f16_input(row));
       },
       put_kept_bits}};
}

}  // namespace guardbit::gpu
