#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "emulator/gemm/problem.hpp"
#include "formats/rounding.hpp"

// Random numbers that are the same on every machine.
namespace guardbit::experiments {

enum class Distribution : std::uint8_t {
  /// mean 0, deviation 1
  normal,
  /// [0, 1)
  uniform,
  /// mean 0, deviation 1
  laplace,
  /// normal, but one in a hundred numbers is 20 times as large
  outliers,
  /// 2^(uniform of [-16, 16)), of either sign
  log_uniform,
};

inline constexpr std::string_view distribution_names =
    "normal,uniform,laplace,outliers,log_uniform";
/// Of one of these names.
Distribution distribution_of(std::string_view name);

/// A stream of random numbers of its own: number i depends on the seed, the stream's name and i
/// alone (Philox4x32-10, formats/random.hpp). Logarithm and power are computed from basic
/// operations, so every machine draws the same bits.
class Draws {
 public:
  Draws(std::uint64_t seed, std::string_view name);

  /// 64 random bits.
  std::uint64_t word(std::uint64_t index) const;
  /// [0, 1), a multiple of 2^-53
  double uniform(std::uint64_t index) const;
  double draw(Distribution distribution, std::uint64_t index) const;
  /// For Rounding::stochastic, 32 bits.
  formats::RandomBits bits(std::uint64_t index) const;

  /// Numbers 0 to size - 1, rounded to FP32. threads 0: all.
  void fill(Distribution distribution, std::span<float> numbers, int threads = 0) const;

  /// A matrix of such numbers: rounded to FP32, multiplied with `factor` there, rounded to nearest
  /// even into the format, saturating.
  emulator::CodeMatrix matrix(const formats::Format& format, std::int64_t rows,
                              std::int64_t columns, Distribution distribution, int threads = 0,
                              float factor = 1) const;

 private:
  double normal(std::uint64_t index) const;

  std::uint64_t seed_, stream_;
};

/// ln x of a finite x > 0 and 2^x of a finite x, to about 1e-16.
double logarithm(double x);
double power_of_two(double x);

}  // namespace guardbit::experiments
