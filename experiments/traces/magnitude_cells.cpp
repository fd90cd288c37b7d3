#include "experiments/traces/magnitude_cells.hpp"

#include <algorithm>
#include <array>

#include "formats/codec.hpp"
#include "formats/conversion/conversion.hpp"
#include "formats/support/error.hpp"
#include "formats/support/first_code.hpp"

namespace guardbit::experiments {

using formats::Format;
using formats::Kind;
using formats::Value;

namespace {

/// What the destination rounds.
Value scaled(const Storing& storing, const Format& word, std::uint64_t magnitude) {
  Value x = formats::decode(word, magnitude);
  if (x.kind != Kind::finite) return x;
  x.exponent += storing.scale_exponent;
  return storing.exact_product ? x : formats::decode(formats::fp32, encode(formats::fp32, x));
}

struct Thresholds {
  std::uint64_t nonzero, normal, out;
};

Thresholds thresholds_of(const Storing& storing, const Format& word) {
  const Format& to = storing.to;
  const auto is_out = [&](std::uint64_t magnitude) {
    const Value x = scaled(storing, word, magnitude);
    return x.kind == Kind::infinity ||
           !is_in_range(to, formats::exactly(x), formats::Rounding::nearest_even);
  };
  const std::uint64_t out = formats::first_of(infinity_code(word), is_out);
  // What is out of range may have any code, so it is left out of the other searches.
  const auto first_stored_from = [&](std::uint64_t least) {
    return formats::first_of(out, [&](std::uint64_t magnitude) {
      return encode(to, scaled(storing, word, magnitude), formats::Rounding::nearest_even,
                    storing.overflow) >= least;
    });
  };
  return {first_stored_from(1), first_stored_from(min_normal_code(to)), out};
}

/// Is every number of the format one of `word`?
bool fits(const Format& word, const Format& f) {
  return f.fraction_bits <= word.fraction_bits && max_exponent(f) <= max_exponent(word) &&
         min_exponent(f) - f.fraction_bits >= min_exponent(word) - word.fraction_bits;
}

}  // namespace

MagnitudeCells::MagnitudeCells(const Format& from, std::span<const Storing> storings)
    : from_(from), word_(fits(formats::fp32, from) ? formats::fp32 : formats::fp64) {
  if (from.encoding != formats::Encoding::floating)
    throw formats::Error("trace", name_of(from) + " is not a floating-point format");
  if (!fits(formats::fp64, from))
    throw formats::Error("trace", "FP64 does not hold every " + name_of(from));
  std::vector<Thresholds> thresholds;
  for (const Storing& storing : storings) {
    if (storing.to.encoding != formats::Encoding::floating || !storing.to.has_sign)
      throw formats::Error("trace", name_of(storing.to) + " is no format for gradients");
    thresholds.push_back(thresholds_of(storing, word_));
  }

  const std::uint64_t infinity = infinity_code(word_);
  const std::uint64_t normal =
      encode(word_, formats::decode(from, min_normal_code(from)));  // exact: `word_` holds `from`
  for (std::uint64_t start = 0; start <= infinity; start += min_normal_code(word_))
    starts_.push_back(start);
  for (int bit = 0; bit < word_.fraction_bits; ++bit) starts_.push_back(std::uint64_t{1} << bit);
  starts_.push_back(infinity + 1);
  starts_.push_back(normal);
  for (const Thresholds& t : thresholds)
    starts_.insert(starts_.end(), {t.nonzero, t.normal, t.out});
  std::sort(starts_.begin(), starts_.end());
  starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());

  const auto index = [&](std::uint64_t start) {
    return static_cast<std::size_t>(std::lower_bound(starts_.begin(), starts_.end(), start) -
                                    starts_.begin());
  };
  infinity_ = index(infinity);
  first_normal_ = index(normal);
  for (const Thresholds& t : thresholds)
    fates_.push_back({index(t.nonzero), index(t.normal), index(t.out)});
  for (std::uint64_t start = 0; start <= infinity; start += min_normal_code(word_))
    first_of_exponent_.push_back(index(start));
  first_of_exponent_.push_back(starts_.size());
}

std::size_t MagnitudeCells::cell_of(std::uint64_t magnitude) const {
  const auto exponent = static_cast<std::size_t>(magnitude >> word_.fraction_bits);
  const auto at = [&](std::size_t i) { return starts_.begin() + static_cast<std::ptrdiff_t>(i); };
  const auto above = std::upper_bound(at(first_of_exponent_[exponent]),
                                      at(first_of_exponent_[exponent + 1]), magnitude);
  return static_cast<std::size_t>(above - starts_.begin()) - 1;
}

int MagnitudeCells::unit_exponent(std::size_t cell) const {
  const auto exponent = static_cast<int>(starts_[cell] >> word_.fraction_bits);
  return std::max(exponent, 1) - word_.bias - word_.fraction_bits;
}

int MagnitudeCells::binade(std::size_t cell) const {
  const Value x = formats::decode(word_, starts_[cell]);
  return x.exponent + formats::leading_bit(x.significand);
}

}  // namespace guardbit::experiments
