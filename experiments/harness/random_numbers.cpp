#include "experiments/harness/random_numbers.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include "experiments/harness/fingerprint.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/random.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments {

namespace {

std::uint64_t hash_of(std::string_view text) {
  Fingerprint fingerprint;
  fingerprint.add(std::as_bytes(std::span(text)));
  return fingerprint.value();
}

double fraction_of(std::uint64_t word) { return std::ldexp(static_cast<double>(word >> 11), -53); }

}  // namespace

Distribution distribution_of(std::string_view name) {
  if (const auto found = formats::find_word<Distribution>(name)) return *found;
  throw formats::Error("distribution", "unknown name",
                       std::string(formats::choices_of<Distribution>()));
}

double logarithm(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  // ln m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...); |s| < 0.172, so s^22 is past FP64's last bit.
  const double s = (m - 1) / (m + 1);
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * (s * s) + 1.0 / k;
  constexpr double ln2 = 0.69314718055994531;
  return 2 * s * sum + exponent * ln2;
}

double power_of_two(double x) {
  const double whole = std::floor(x + 0.5);
  const double y = (x - whole) * 0.69314718055994531;  // at most 0.347 in magnitude
  double sum = 1;
  for (int k = 15; k >= 1; --k) sum = 1 + sum * y / k;
  return std::ldexp(sum, static_cast<int>(whole));
}

Draws::Draws(std::uint64_t seed, std::string_view name) : seed_(seed), stream_(hash_of(name)) {}

std::uint64_t Draws::word(std::uint64_t index) const {
  const auto x = formats::philox4x32(
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
       static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
      {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  return std::uint64_t{x[0]} << 32 | x[1];
}

double Draws::uniform(std::uint64_t index) const { return fraction_of(word(index)); }

formats::RandomBits Draws::bits(std::uint64_t index) const { return {word(index) >> 32, 32}; }

double Draws::normal(std::uint64_t index) const {
  // Marsaglia's polar method. Attempts after the first take indices that no number has as its own.
  for (std::uint64_t attempt = 0;; ++attempt) {
    const std::uint64_t at = index | attempt << 48;
    const auto x = formats::philox4x32(
        {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32),
         static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
        {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    const double u = 2 * fraction_of(std::uint64_t{x[0]} << 32 | x[1]) - 1;
    const double v = 2 * fraction_of(std::uint64_t{x[2]} << 32 | x[3]) - 1;
    const double s = u * u + v * v;
    if (s > 0 && s < 1) return u * std::sqrt(-2 * logarithm(s) / s);
  }
}

double Draws::draw(Distribution distribution, std::uint64_t index) const {
  switch (distribution) {
    case Distribution::normal: return normal(index);
    case Distribution::uniform: return uniform(index);
    case Distribution::laplace: {
      const std::uint64_t x = word(index);
      const double magnitude = -logarithm(1 - fraction_of(x)) * 0.70710678118654752;
      return (x & 1U) != 0 ? -magnitude : magnitude;
    }
    case Distribution::outliers: {
      constexpr std::uint64_t elsewhere = std::uint64_t{1} << 47;
      return normal(index) * (uniform(index | elsewhere) < 0.01 ? 20 : 1);
    }
    case Distribution::log_uniform: {
      const std::uint64_t x = word(index);
      const double magnitude = power_of_two(32 * fraction_of(x) - 16);
      return (x & 1U) != 0 ? -magnitude : magnitude;
    }
  }
  return 0;
}

void Draws::fill(Distribution distribution, std::span<float> numbers, int threads) const {
  formats::parallel_for(numbers.size(), 1U << 14, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      numbers[i] = static_cast<float>(draw(distribution, i));
  });
}

emulator::CodeMatrix Draws::matrix(const formats::Format& format, std::int64_t rows,
                                   std::int64_t columns, Distribution distribution, int threads,
                                   float factor) const {
  emulator::CodeMatrix matrix = emulator::make_matrix(format, 1, rows, columns);
  std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
  fill(distribution, numbers, threads);
  if (factor != 1)
    for (float& x : numbers) x *= factor;
  formats::ConversionOptions options;
  options.overflow = formats::overflow_saturate;
  options.threads = threads;
  formats::convert_array(formats::fp32, formats::Packing::container,
                         std::as_bytes(std::span<const float>(numbers)), format,
                         formats::Packing::container,
                         {matrix.bytes.writable(), matrix.bytes.size()}, numbers.size(), options);
  return matrix;
}

}  // namespace guardbit::experiments
