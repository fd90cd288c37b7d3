#include "emulator/gemm/few_dots.hpp"

#include <algorithm>
#include <cstdlib>

#include "emulator/gemm/scalar.hpp"
#include "emulator/model/terms.hpp"

namespace guardbit::emulator {

namespace {

bool is_plain(const MatrixInstruction& instruction) {
  if (instruction.steps.count != 1 || instruction.scale.count != 0) return false;
  const Step& step = instruction.steps.list[0];
  const AccumulatorSpec& x = step.spec;
  for (int i = 0; i < instruction.shape.k; ++i)
    if (!step.selection.contains(i)) return false;
  return step.operation == Operation::dot && !step.widened && step.addend == Source::c &&
         instruction.c == instruction.d && step.result == instruction.d &&
         x.summation == Summation::fused && x.exact_group == 1 &&
         x.alignment == Rounding::toward_zero &&
         (x.result == Rounding::toward_zero || x.result == Rounding::nearest_even) &&
         x.input == Subnormals::keep && x.output == Subnormals::keep &&
         instruction.d.specials == formats::Specials::ieee && instruction.d.has_subnormals;
}

}  // namespace

std::shared_ptr<const FewDots> FewDots::of(const MatrixInstruction& instruction,
                                           const CodeMatrix& a, const CodeMatrix& b,
                                           const CodeMatrix& e) {
  constexpr std::int64_t most_outputs = 256;
  if (a.rows != 1 || b.columns != 1 || a.batch > most_outputs || !is_plain(instruction))
    return nullptr;
  auto few = std::make_shared<FewDots>();
  return few->take_products(instruction, a, b, e) ? few : nullptr;
}

bool FewDots::take_products(const MatrixInstruction& instruction, const CodeMatrix& a,
                            const CodeMatrix& b, const CodeMatrix& e) {
  const Step& step = instruction.steps.list[0];
  spec_ = step.spec;
  result_ = AccumulatorFormat(instruction.d, spec_);
  sparsity_ = instruction.sparsity;
  outputs_ = a.batch;
  stored_k_ = a.columns;
  execution_ = stored_k(instruction, instruction.shape.k);
  block_ = spec_.terms == 0 ? execution_ : spec_.terms;
  const int fraction_bits = instruction.a.fraction_bits + instruction.b.fraction_bits;
  const int lift = std::max(0, spec_.kept_fraction_bits - fraction_bits);
  drop_ = std::max(0, fraction_bits - spec_.kept_fraction_bits);
  // A product is below 2^(fraction_bits + 2); a block's sum of 64 of them fits 64 bits.
  if (fraction_bits + 2 + lift > 30 || block_ > 64) return false;
  magnitudes_.resize(static_cast<std::size_t>(outputs_ * stored_k_));
  exponents_.resize(magnitudes_.size());
  for (std::int64_t g = 0; g < outputs_; ++g) {
    for (std::int64_t i = 0; i < stored_k_; ++i) {
      std::int64_t k = i;
      if (sparsity_.group_elements != 0)
        k = i / sparsity_.stored_per_group * sparsity_.group_elements +
            static_cast<std::int64_t>(e(g, 0, i));
      const formats::Value of_a = formats::decode(instruction.a, a(g, 0, i)),
                           of_b = formats::decode(instruction.b, b(g, k, 0));
      for (const formats::Value* v : {&of_a, &of_b})
        if (v->kind == formats::Kind::nan || v->kind == formats::Kind::infinity) return false;
      const Term t = product_term(of_a, instruction.a, of_b, instruction.b, spec_);
      const auto at = static_cast<std::size_t>(g * stored_k_ + i);
      const auto magnitude = static_cast<std::int32_t>(t.significand << lift);
      magnitudes_[at] = t.negative ? -magnitude : magnitude;
      exponents_[at] = t.exponent;
    }
  }
  return true;
}

/// dot.hpp's fused_block, of products [begin, end) of all outputs and a finite addend.
std::uint64_t FewDots::block(std::int64_t begin, std::int64_t end, std::uint64_t addend) const {
  const Addend c = decode_addend(result_, addend, spec_.min_exponent);
  int largest = c.exponent;
  for (std::int64_t i = begin; i < end; ++i)
    largest = std::max(largest, exponents_[static_cast<std::size_t>(i)]);
  std::int64_t sum = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const int shift = std::min(31, largest - exponents_[at] + drop_);
    const std::int32_t x = magnitudes_[at];
    const std::int32_t sign = x >> 31;
    sum += (((x ^ sign) - sign) >> shift ^ sign) - sign;  // the magnitude is cut
  }
  const int grid = largest - spec_.kept_fraction_bits;
  const int lift = c.exponent - result_.format.fraction_bits - grid;
  const std::uint64_t magnitude =
      lift >= 0 ? c.magnitude << lift : c.magnitude >> std::min(63, -lift);
  sum += c.negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
  return encode_sum(spec_, result_, sum, grid);
}

bool FewDots::run(const KRanges& ranges, std::vector<double>& sums) const {
  sums.resize(static_cast<std::size_t>(outputs_));
  const auto stored = [&](std::int64_t k) {
    return sparsity_.group_elements == 0
               ? k
               : k / sparsity_.group_elements * sparsity_.stored_per_group;
  };
  for (std::int64_t g = 0; g < outputs_; ++g) {
    std::uint64_t code = 0;
    const std::int64_t first = g * stored_k_;
    for (const KRange& range : ranges) {
      const std::int64_t range_end = stored(range.end);
      for (std::int64_t i = stored(range.begin); i < range_end; i += execution_) {
        const std::int64_t end = std::min(range_end, i + execution_);
        // A shorter execution is filled up with zeros, so that all of its blocks run.
        for (std::int64_t k = i; k < i + execution_; k += block_) {
          const std::int64_t begin = std::min(k, end);
          code = block(first + begin, first + std::min(k + block_, end), code);
        }
        if ((code & result_.magnitude) >= result_.infinity) return false;
      }
    }
    sums[static_cast<std::size_t>(g)] = scalar::decoded(result_.format, code);
  }
  return true;
}

}  // namespace guardbit::emulator
