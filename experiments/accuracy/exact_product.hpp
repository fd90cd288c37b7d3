#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "emulator/gemm/problem.hpp"

// Matrix products in FP64 as if computed without rounding.
namespace guardbit::experiments {

/// A matrix of doubles, row-major.
struct Doubles {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;

  double operator()(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
};

/// A and B of one batch entry with the problem's scales multiplied in, exactly; with `least` their
/// magnitudes, of which those that are not zero count as `least` at least. formats::Error,
/// beginning with `where`, where FP64 has no room for that.
Doubles scaled_a(const emulator::GemmProblem& problem, std::int64_t g, std::string_view where,
                 std::optional<double> least = {});
Doubles scaled_b(const emulator::GemmProblem& problem, std::int64_t g, std::string_view where,
                 std::optional<double> least = {});

/// A * B in FP64, in no particular order of additions.
Doubles plain_product(const Doubles& a, const Doubles& b, int threads);

/// An element of A * B: the sum of parts[q] * 2^(exponent - q * step), each part a whole number
/// below 2^53.
struct ExactElement {
  const double* parts = nullptr;
  /// between parts
  std::int64_t stride = 0;
  int count = 0, exponent = 0, step = 0;
  /// an infinity or a NaN among its factors; then there are no parts
  bool special = false;
  /// An exponent that the element's magnitude stays below.
  int highest = 0;
};

/// Calls visit(i, j, element) for every element of A * B, on several threads in any order.
/// `progress` is told which part is done, and ends the work by answering false.
void exact_product(
    const Doubles& a, const Doubles& b, int threads,
    const std::function<void(std::int64_t, std::int64_t, const ExactElement&)>& visit,
    const std::function<bool(double)>& progress = {});

}  // namespace guardbit::experiments
