#include "experiments/accuracy/exact_product.hpp"

#include <cmath>
#include <vector>

#include "formats/value.hpp"
#include "tests/catch.hpp"

// Claim (experiments/accuracy/exact_product.cpp): every part of an element is a whole number that
// FP64 adds without rounding, so the parts make up A * B exactly. It is tried where it is tightest:
// all bits of every slice set, K at and beside powers of two, several slices of both factors.
namespace guardbit::experiments {
namespace {

/// The element in units of 2^unit, from its parts.
formats::int128 total(const ExactElement& x, int unit) {
  formats::int128 sum = 0;
  for (int q = 0; q < x.count; ++q) {
    const double part = x.parts[q * x.stride];
    REQUIRE(part == std::floor(part));
    REQUIRE(std::fabs(part) < 0x1p53);
    const int shift = x.exponent - q * x.step - unit;
    // Digits below the unit would be lost here: there are none, or the part is a multiple.
    sum += shift >= 0 ? static_cast<formats::int128>(part) << shift
                      : static_cast<formats::int128>(std::ldexp(part, shift));
  }
  return sum;
}

TEST_CASE("slices of largest magnitude do not round") {
  for (const std::int64_t k : {1, 2, 3, 7, 8, 9, 255, 256, 257, 4095, 4096, 4097}) {
    for (const int bits : {1, 11, 16, 17, 20, 21, 24, 25, 26, 27, 40, 50}) {
      for (const bool alternate : {false, true}) {
        CAPTURE(k, bits, alternate);
        // All ones; K of their squares need 2 bits + log2 K places, at most 117.
        const double ones = std::ldexp(1.0, bits) - 1;
        Doubles a{1, k, std::vector<double>(static_cast<std::size_t>(k), ones)};
        Doubles b{k, 1, std::vector<double>(static_cast<std::size_t>(k), ones)};
        for (std::size_t i = 1; alternate && i < a.values.size(); i += 2) a.values[i] = -ones;
        // One factor of a few low bits makes the lines longer by slices that are zero elsewhere.
        if (alternate) a.values.back() = 1, b.values.back() = 0x1p-3;
        const auto square = static_cast<formats::int128>(ones) * static_cast<formats::int128>(ones);
        formats::int128 expected = 0;  // in units of 2^-3
        for (std::int64_t i = 0; i < k; ++i) {
          if (alternate && i + 1 == k) {
            expected += 1;
          } else {
            expected += 8 * (alternate && i % 2 == 1 ? -square : square);
          }
        }
        exact_product(a, b, 1, [&](std::int64_t, std::int64_t, const ExactElement& x) {
          CHECK_FALSE(x.special);
          const bool equal = total(x, -3) == expected;
          CHECK(equal);
          CHECK(std::fabs(static_cast<double>(expected)) < std::ldexp(1.0, x.highest + 3));
        });
      }
    }
  }
}

TEST_CASE("panels and blocks cover every element once", "[sweep]") {
  // More columns than a panel takes at this K, so that there are several of both.
  const std::int64_t m = 37, n = 70, k = 300000;
  Doubles a{m, k, std::vector<double>(static_cast<std::size_t>(m * k))};
  Doubles b{k, n, std::vector<double>(static_cast<std::size_t>(k * n))};
  for (std::int64_t i = 0; i < m; ++i) a.values[static_cast<std::size_t>(i * k + i)] = 1;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      b.values[static_cast<std::size_t>(i * n + j)] = static_cast<double>(i * n + j + 1);
  std::vector<int> visits(static_cast<std::size_t>(m * n));
  double last = 0;
  exact_product(
      a, b, 2,
      [&](std::int64_t i, std::int64_t j, const ExactElement& x) {
        const auto at = static_cast<std::size_t>(i * n + j);
        visits[at] += total(x, 0) == i * n + j + 1 ? 1 : 100;
      },
      [&](double done) {
        CHECK(done > last);
        last = done;
        return true;
      });
  CHECK(last == 1);
  for (const int count : visits) REQUIRE(count == 1);
}

}  // namespace
}  // namespace guardbit::experiments
