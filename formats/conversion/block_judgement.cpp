#include "formats/conversion/block_judgement.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/conversion/conversion.hpp"
#include "formats/support/first_code.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {

namespace {

double number(const Value& x) {
  if (x.kind == Kind::nan) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude = x.kind == Kind::infinity
                               ? std::numeric_limits<double>::infinity()
                               : std::ldexp(static_cast<double>(x.significand), x.exponent);
  return x.negative ? -magnitude : magnitude;
}

}  // namespace

BlockJudgement::BlockJudgement(const BlockFormat& format, const BlockQuantisationOptions& options,
                               const kernels::Kernels* kernels)
    : format_(format),
      options_(options),
      kernels_(kernels != nullptr ? kernels : kernels::available().front()) {
  for (std::uint64_t code = 0; code < numbers_.size(); ++code)
    numbers_[code] = number(decode(format.element, code & code_mask(format.element)));
  largest_ =
      number(decode(format.element, is_integer(format.element) ? magnitude_mask(format.element)
                                                               : max_finite_code(format.element)));
}

/// The unit of blocks of that scale, and from which magnitudes on a number is out of range there:
/// surely, and with the most or any random bits.
const BlockJudgement::Scale& BlockJudgement::scale_of(std::uint64_t code) const {
  Scale& scale = scales_[code & 0xFF];
  std::call_once(scale.made, [&] {
    scale.unit = decode(format_.scale, code);
    scale.unit.exponent += format_.element_exponent;
    if (options_.tensor_scale) {
      const Unrounded product = multiply(scale.unit, *options_.tensor_scale);
      scale.unit = {product.kind, product.negative, product.exponent,
                    static_cast<std::uint64_t>(product.significand)};
    }
    scale.limits.unit = number(scale.unit);
    if (scale.unit.kind != Kind::finite) return;
    const RandomBits most = {low_bits(options_.random_bits), options_.random_bits};
    for (const bool negative : {false, true}) {
      const std::uint32_t sign = negative ? 0x80000000 : 0;
      const auto first_past = [&](RandomBits random) {
        return first_word(
            [&](std::uint32_t word) { return is_out_of_range(word | sign, scale.unit, random); });
      };
      scale.limits.past[negative] = first_past({0, options_.random_bits});
      scale.limits.may_be_past[negative] = first_past(most);
    }
  });
  return scale;
}

void BlockJudgement::add(const std::byte* words, const std::byte* codes, std::size_t count,
                         std::uint64_t scale_code, std::uint64_t first,
                         BlockSummary& summary) const {
  constexpr std::size_t most = 32;
  std::array<double, most> squares;  // written before read
  std::array<double, most> noise;
  std::array<double, most> errors;
  const Scale& scale = scale_of(scale_code);
  const bool has_unit =
      scale.unit.kind == Kind::finite && options_.overflow.finite != Overflow::Finite::wrap;
  ++summary.blocks;
  for (std::size_t done = 0; done < count; done += most) {
    const std::size_t n = std::min(most, count - done);
    const auto word = [&](std::size_t i) {
      return load_word<std::uint32_t>(words + (done + i) * kernels::word_bytes);
    };
    kernels::BlockErrors found;
    if (has_unit) {
      found =
          kernels_->block_errors(scale.limits, numbers_.data(), words + done * kernels::word_bytes,
                                 codes + done, n, squares.data(), noise.data(), errors.data());
    }
    if (!has_unit || found.others != 0) {
      for (std::size_t i = 0; i < n; ++i)
        describe(word(i), numbers_[std::to_integer<std::size_t>(codes[done + i])], scale,
                 first + done + i, summary);
      continue;
    }
    summary.elements += n;
    summary.compared += n;
    summary.measured += n;
    summary.zeros_made += found.zeros_made;
    summary.inexact += found.inexact;
    summary.saturated += found.past;
    double signal = summary.signal;
    double noise_sum = summary.noise;
    double error_sum = summary.error_sum;
    double max_error = summary.max_error;
    for (std::size_t i = 0; i < n; ++i) {
      signal += squares[i];
      noise_sum += noise[i];
      error_sum += errors[i];
      max_error = std::max(max_error, errors[i]);
    }
    summary.signal = signal;
    summary.noise = noise_sum;
    summary.error_sum = error_sum;
    summary.max_error = max_error;
    for (std::size_t i = 0; i < n && found.uncertain != 0; ++i) {
      const std::size_t sign = word(i) >> 31;
      const std::uint32_t magnitude = word(i) & 0x7FFFFFFF;
      if (magnitude >= scale.limits.past[sign] || magnitude < scale.limits.may_be_past[sign])
        continue;
      --found.uncertain;
      summary.saturated += is_out_of_range(word(i), scale.unit, random(first + done + i)) ? 1U : 0U;
    }
  }
}

/// One element, whatever it and its unit are.
void BlockJudgement::describe(std::uint32_t word, double element, const Scale& scale,
                              std::uint64_t index, BlockSummary& summary) const {
  const double unit = scale.limits.unit;
  const double x = static_cast<double>(std::bit_cast<float>(word));
  const double y = element * unit;
  ++summary.elements;
  summary.nans_in += std::isnan(x) ? 1U : 0U;
  summary.infinities_in += std::isinf(x) ? 1U : 0U;
  summary.nans_made += std::isnan(y) && !std::isnan(x) ? 1U : 0U;
  summary.infinities_made += std::isinf(y) && std::isfinite(x) ? 1U : 0U;
  summary.saturated += std::isinf(x) && std::isfinite(y) ? 1U : 0U;
  const bool is_zero_made = y == 0 && x != 0 && std::isfinite(x);
  summary.zeros_made += is_zero_made ? 1U : 0U;
  summary.under_no_scale += is_zero_made && unit == 0 ? 1U : 0U;
  summary.inexact += !std::isnan(x) && x != y ? 1U : 0U;
  if (std::isfinite(x) && std::isfinite(y)) {
    const double error = std::abs(x - y);
    ++summary.compared;
    summary.signal += x * x;
    summary.noise += error * error;
    if (unit != 0) {
      ++summary.measured;
      summary.max_error = std::max(summary.max_error, error / unit);
      summary.error_sum += error / unit;
    }
  }
  if (std::abs(element) >= largest_ && std::isfinite(element) && std::isfinite(x))
    summary.saturated += is_out_of_range(word, scale.unit, random(index)) ? 1U : 0U;
}

RandomBits BlockJudgement::random(std::uint64_t index) const {
  return options_.rounding == Rounding::stochastic
             ? random_bits(options_.seed, index, options_.random_bits)
             : RandomBits{};
}

bool BlockJudgement::is_out_of_range(std::uint32_t word, const Value& unit,
                                     RandomBits random) const {
  return !is_in_range(format_.element, divide(decode(fp32, word), unit), options_.rounding, random);
}

}  // namespace guardbit::formats
