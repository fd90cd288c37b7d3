// Which exponent a zero contributes to the alignment (e0), and at which exponent a subnormal addend
// stands: what becomes of the smallest products.

#include <string>

#include "formats/format_catalogue.hpp"
#include "gpu/questions/questions.hpp"

namespace guardbit::gpu {

namespace {

using emulator::AccumulatorSpec;

bool is_f16_sum(const TensorCoreInstruction& row) {
  return is_fused_to_f16(row) && row.a == formats::fp16;
}
bool is_wide_sum(const TensorCoreInstruction& row) {
  return is_fused_to_f32(row) && has_wide_exponents(row);
}
/// The wgmma form whose addend does not exist (scale-d = 0).
bool ignores_c(const TensorCoreInstruction& row) { return row.ignore_c && !is_integer(row.a); }

auto zero_exponent(int e0) {
  return [e0](AccumulatorSpec& spec) { spec.min_exponent = e0; };
}

/// A tie of f16 (2^-25) beside ever smaller products: those that are kept tip it upward.
void put_f16_ties(Inquiry& x, std::uint64_t c) {
  constexpr int first = 43, last = 48;
  for (int e = first; e <= last; ++e) x.probe(c).power(0, -25).power(1, -e);
  x.keep_together(2);
  // The unit of the grid is 2^(e0 - 25) as long as e0 exceeds the exponent of the tie.
  for (int e0 = -17; e0 >= -23; --e0) {
    std::vector<std::uint64_t> words;
    for (int e = first; e <= last; ++e) words.push_back(-e >= e0 - 25 ? 1 : 0);
    const std::string more = e0 == -17 ? " or more" : e0 == -23 ? " or less" : "";
    x.outcome("e0 = " + std::to_string(e0) + more, words, x.if_spec(zero_exponent(e0)));
  }
}

void put_f16_ties_beside_positive_zero(Inquiry& x) { put_f16_ties(x, 0); }
void put_f16_ties_beside_negative_zero(Inquiry& x) { put_f16_ties(x, sign_bit(x.row.c)); }

/// Factors of 2^j - 1 that short significands hold.
struct Factors {
  int j, u, v;
};
constexpr Factors factors[] = {{5, 31, 1}, {6, 63, 1},   {7, 127, 1},  {8, 15, 17},
                               {9, 7, 73}, {10, 33, 31}, {11, 23, 89}, {12, 45, 91}};
constexpr Factors few_factors[] = {{1, 1, 1}, {2, 3, 1}, {3, 7, 1}, {5, 31, 1}};

/// (2^j - 1) + 1 units of 2^(-149-j): together the smallest f32, but only if the grid reaches down
/// to that unit.
Inquiry& add_split_unit(Inquiry& x, const Factors& f) {
  return x.term(0, f.u * two(-78), f.v * two(-71 - f.j)).term(1, two(-78), two(-71 - f.j));
}

/// F - e0 - 149 is the largest j whose unit is on the grid.
std::string reach(int j) {
  return "F - e0 = " + std::to_string(149 + j) + " (e0 = " + std::to_string(25 - 149 - j) +
         " with F = 25)" +
         (j == 4    ? " or less"
          : j == 12 ? " or more"
                    : "");
}

void put_f32_units(Inquiry& x, std::uint64_t c) {
  for (const Factors& f : factors) add_split_unit(x.probe(c), f);
  x.keep_together(2);
  for (int j = 4; j <= 12; ++j) {
    std::vector<std::uint64_t> words;
    for (const Factors& f : factors) words.push_back(f.j <= j ? 1 : 0);
    x.outcome(reach(j), words, x.if_spec(zero_exponent(25 - 149 - j)));
  }
}

void put_f32_units_beside_positive_zero(Inquiry& x) { put_f32_units(x, 0); }
void put_f32_units_beside_negative_zero(Inquiry& x) { put_f32_units(x, sign_bit(x.row.c)); }

void put_subnormal_f32_addend(Inquiry& x) {
  for (const Factors& f : few_factors) add_split_unit(x.probe(1), f);
  x.keep_together(2);
  x.outcome("the exponent of the smallest normal number, not normalised", {2, 2, 1, 1});
  x.outcome("its own exponent, normalised", {2, 2, 2, 2});
}

void put_subnormal_f16_addend(Inquiry& x) {
  using emulator::Source;
  if (x.row.d == formats::fp32) {
    x.probe_value(two(-23)).power(0, -40);
    x.keep_together(2);
    emulator::Step direct = x.believed.steps.list[1];
    direct.addend = Source::c;
    x.outcome("the exponent of the smallest normal f16, not normalised", {x.d(two(-23))},
              x.if_steps({direct}));
    x.outcome("its own exponent: C is widened to f32 first", {x.d(two(-23) + two(-40))});
    return;
  }
  x.probe_value(two(-23)).power(0, -25).power(1, -40);
  x.keep_together(2);
  x.outcome("the exponent of the smallest normal number, not normalised", {2});
  x.outcome("its own exponent, normalised", {3});
}

bool has_f16_addend(const TensorCoreInstruction& row) {
  return is_fused(row) && row.a == formats::fp16 && row.c == formats::fp16;
}

/// The grid with a normal addend, and with a zero addend but no zero product.
void put_presence_of_zeros(Inquiry& x) {
  std::vector<std::uint64_t> with_c, zero_of_c, zero_of_products;
  const auto expect = [&](std::uint64_t normal, std::uint64_t by_c, std::uint64_t by_products) {
    with_c.push_back(normal), zero_of_c.push_back(by_c), zero_of_products.push_back(by_products);
  };
  if (x.row.d == formats::fp16) {
    for (const int e : {38, 39, 40})
      x.probe_value(two(-14)).power(0, -25).power(1, -e), expect(e <= 39, e <= 39, e <= 39);
    for (const int e : {45, 46, 47, 48})
      x.probe().power(0, -25).power(1, -e).fill(two(-24), two(-24)), expect(0, e <= 46, 1);
    for (std::size_t i = 0; i < 3; ++i) zero_of_c[i] += 0x400, zero_of_products[i] += 0x400;
  } else {
    for (const Factors& f : few_factors)
      add_split_unit(x.probe_value(two(-126)), f), expect(f.j <= 2, f.j <= 2, f.j <= 2);
    for (const Factors& f : factors)
      add_split_unit(x.probe(), f).fill(two(-90), two(-96)), expect(0, f.j <= 9, 1);
    for (std::size_t i = 0; i < 4; ++i) zero_of_c[i] += 0x800000, zero_of_products[i] += 0x800000;
  }
  x.keep_together(2);
  x.outcome("a zero C alone supplies e0; a normal C stands at its own exponent", zero_of_c);
  x.outcome("zero products supply e0, a zero C does not", zero_of_products);
  x.outcome(
      "as the first, with e0 lower by one",
      [&] {
        std::vector<std::uint64_t> words = zero_of_c;
        words[x.row.d == formats::fp16 ? 5 : 4 + 5] = 1;  // 2^-47, j = 10
        return words;
      }(),
      x.if_spec([](AccumulatorSpec& spec) { --spec.min_exponent; }));
}

}  // namespace

std::vector<Question> questions_of_zero_exponent() {
  return {
      {"Q1", "f16 results: which exponent e0 does a zero contribute?",
       [](const TensorCoreInstruction& row) { return is_f16_sum(row) && row.unit != Unit::wgmma; },
       put_f16_ties_beside_positive_zero},
      {"Q1b", "The same for wgmma, with C = 0 in registers and with C ignored",
       [](const TensorCoreInstruction& row) {
         return row.unit == Unit::wgmma && row.a == formats::fp16 && row.d == formats::fp16 &&
                (is_plain(row) || row.ignore_c);
       },
       put_f16_ties_beside_positive_zero},
      {"Q1c", "Does C = -0 contribute the same exponent as C = +0?", is_f16_sum,
       put_f16_ties_beside_negative_zero},
      {"Q3", "f32 results of bf16 and tf32: which exponent e0 does a zero contribute?",
       [](const TensorCoreInstruction& row) {
         return is_wide_sum(row) || (ignores_c(row) && has_wide_exponents(row));
       },
       put_f32_units_beside_positive_zero},
      {"Q3b", "At which exponent does a subnormal f32 addend stand?", is_wide_sum,
       put_subnormal_f32_addend},
      {"Q3c", "At which exponent does a subnormal f16 addend stand?", has_f16_addend,
       put_subnormal_f16_addend},
      {"Q3d", "f32 results: does C = -0 contribute the same exponent as C = +0?", is_wide_sum,
       put_f32_units_beside_negative_zero},
      {"Q22", "Is it the zero addend that contributes e0, or are it zero products too?",
       [](const TensorCoreInstruction& row) { return is_wide_sum(row) || is_f16_sum(row); },
       put_presence_of_zeros}};
}

}  // namespace guardbit::gpu
