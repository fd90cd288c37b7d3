#include "emulator/engine/kernels/fused/fused_arithmetic.hpp"

#include <algorithm>

#include "emulator/catalogue/compositions.hpp"

namespace guardbit::emulator::fused {

namespace {

constexpr int longest_block = 64;

bool is_factor(const Format& f) {
  return f.encoding == formats::Encoding::floating && f.has_sign && f.has_subnormals &&
         f.exponent_bits <= 8 && formats::precision(f) <= 12 &&
         f.specials != formats::Specials::nan_negative_zero;
}

std::optional<Result> result_of(const Step& step) {
  const AccumulatorSpec& x = step.spec;
  if (step.result == formats::fp32 && x.result == Rounding::toward_zero) {
    if (x.result_fraction_bits == 0) return Result::fp32;
    if (x.result_fraction_bits == 13) return Result::e8m13;
  }
  const bool to_fp16 = step.result == formats::fp16 && x.result == Rounding::nearest_even &&
                       x.result_fraction_bits == 0;
  return to_fp16 ? std::optional(Result::fp16) : std::nullopt;
}

bool is_plain_fused(const Step& step) {
  const AccumulatorSpec& x = step.spec;
  return step.operation == Operation::dot && x.summation == Summation::fused &&
         x.exact_group == 1 && x.terms > 0 && x.alignment == Rounding::toward_zero &&
         x.min_exponent < formats::min_exponent(step.result) && x.min_exponent >= -140 &&
         x.input == Subnormals::keep && x.output == Subnormals::keep &&
         x.nan == NanPolicy::all_ones && x.underflowed_sum == ZeroSign::positive;
}

/// FP16 results stand on a grid of e0 at the lowest, which the tiles write as an exponent of FP32.
bool has_exponent_of_fp32(const Step& step) {
  return step.result != formats::fp16 || step.spec.min_exponent >= -127;
}

bool is_addition(const Step& step, Source addend, Source other, const Format& result) {
  return step == add_step(addend, other, result);
}

std::optional<Composition> composition_of(const MatrixInstruction& instruction) {
  const auto& s = instruction.steps.list;
  if (instruction.steps.count == 1 && s[0].selection == every_k && s[0].addend == Source::c)
    return Composition::chain;
  const bool halves = instruction.steps.count >= 3 && s[0].selection == low_half_of_four &&
                      s[1].selection == high_half_of_four && s[0].addend == Source::positive_zero &&
                      s[0].spec == s[1].spec && s[0].result == s[1].result &&
                      s[0].widened == s[1].widened && s[1].operation == Operation::dot;
  if (!halves) return std::nullopt;
  if (instruction.steps.count == 3 && s[1].addend == Source::step_0 &&
      is_addition(s[2], Source::c, Source::step_1, instruction.d))
    return Composition::chained_halves;
  if (instruction.steps.count == 4 && s[1].addend == Source::positive_zero &&
      is_addition(s[2], Source::step_0, Source::step_1, instruction.d) &&
      is_addition(s[3], Source::c, Source::step_2, instruction.d))
    return Composition::separate_halves;
  return std::nullopt;
}

int lowest_exponent(const Format& f) { return formats::min_exponent(f); }

/// True if products of all numbers of the formats stay in the normal range.
bool stays_normal(const Format& a, const Format& b) {
  const auto span = [](const Format& f) { return formats::max_exponent(f) - lowest_exponent(f); };
  return lowest_exponent(a) + lowest_exponent(b) >= lowest_product_exponent &&
         formats::max_exponent(a) + formats::max_exponent(b) <= highest_product_exponent &&
         span(a) <= widest_span && span(b) <= widest_span;
}

/// Can FP32's lanes hold the sum (see fused_tile.hpp): F + 2 bits of each of L + 1 terms, within a
/// quarter of the binade; factors of at most 4 bits, an addend of F + 1?
bool fits_fp32_lanes(const AccumulatorSpec& x, Result result, const Format& a, const Format& b) {
  const bool narrow = formats::precision(a) <= 4 && formats::precision(b) <= 4;
  const bool short_addend =
      result == Result::fp16 || (result == Result::e8m13 && x.kept_fraction_bits == 13);
  return narrow && short_addend && x.kept_fraction_bits <= 16 &&
         (std::int64_t{x.terms + 1} << (x.kept_fraction_bits + 2)) <= (std::int64_t{1} << 22);
}

std::vector<int> places(const MatrixInstruction& instruction) {
  std::vector<int> order;
  for (const Step& step : instruction.steps) {
    if (step.operation != Operation::dot) continue;
    for (int k = 0; k < instruction.shape.k; ++k)
      if (step.selection.contains(k)) order.push_back(k);
  }
  return order;
}

}  // namespace

std::optional<FusedInstruction> fused_instruction(const MatrixInstruction& instruction) {
  const Step& step = instruction.steps.list[0];
  const std::optional<Composition> composition = composition_of(instruction);
  const std::optional<Result> result = result_of(step);
  const bool scaled = instruction.scale.count != 0;
  const bool whole_scales = !scaled || (instruction.scale.format == formats::e8m0 &&
                                        instruction.shape.k % instruction.scale.count == 0);
  if (!composition || !result || !is_plain_fused(step) || !has_exponent_of_fp32(step) ||
      instruction.c != instruction.d || step.result != instruction.d || !whole_scales)
    return std::nullopt;
  const bool sparse = instruction.sparsity.group_elements != 0;
  if (sparse && *composition != Composition::chain) return std::nullopt;
  const Format a = step.widened.value_or(instruction.a), b = step.widened.value_or(instruction.b);
  if (!is_factor(instruction.a) || !is_factor(instruction.b) || !is_factor(a) || !is_factor(b))
    return std::nullopt;

  FusedInstruction fused;
  fused.composition = *composition;
  fused.result = *result;
  fused.order = places(instruction);
  fused.execution_k = instruction.shape.k;
  fused.sparsity = instruction.sparsity;
  const int selected = *composition == Composition::chain
                           ? instruction.shape.k
                           : static_cast<int>(fused.order.size()) / 2;
  // A stored value covers as many k's as its group has to one.
  const int stored = stored_k(instruction, selected);
  fused.block_k = std::min(step.spec.terms, stored) * (selected / stored);
  if (fused.block_k > longest_block || selected % fused.block_k != 0 ||
      (*composition != Composition::chain && selected != fused.block_k))
    return std::nullopt;
  if (scaled) fused.scale_k = instruction.shape.k / instruction.scale.count;
  fused.kept_fraction_bits = step.spec.kept_fraction_bits;
  fused.zero_exponent = step.spec.min_exponent;
  fused.any_exponents = scaled || !stays_normal(a, b);
  fused.a = {instruction.a, lowest_exponent(a)};
  fused.b = {instruction.b, lowest_exponent(b)};

  if (*composition == Composition::chain && !fused.any_exponents &&
      fits_fp32_lanes(step.spec, *result, instruction.a, instruction.b)) {
    fused.lane = LaneType::fp32;
    return fused;
  }
  fused.lane = LaneType::fp64;
  const int fewest = *result == Result::fp32 ? 23 : 13;
  const bool fits = *result != Result::e8m13 && fused.kept_fraction_bits >= fewest &&
                    fused.kept_fraction_bits <= 26;
  if (!fits || (fused.any_exponents && *result != Result::fp32)) return std::nullopt;
  return fused;
}

}  // namespace guardbit::emulator::fused
