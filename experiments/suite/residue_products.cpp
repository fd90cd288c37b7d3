#include "experiments/suite/residue_products.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

#include "emulator/gemm/scalar.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "experiments/harness/run.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/value.hpp"

namespace guardbit::experiments {

namespace {

/// Rows as integers below 2^bits: value = integer * 2^(exponent - bits).
struct IntegerRows {
  std::vector<std::int64_t> values;
  std::vector<int> exponents;
};

IntegerRows integers_of(const NumberRows& x, int bits) {
  IntegerRows result;
  for (std::int64_t i = 0; i < x.rows; ++i) {
    double largest = 0;
    for (std::int64_t j = 0; j < x.k; ++j) largest = std::max(largest, std::abs(x.at(i, j)));
    int exponent = 0;
    std::frexp(largest, &exponent);
    result.exponents.push_back(exponent);
    for (std::int64_t j = 0; j < x.k; ++j)
      result.values.push_back(
          static_cast<std::int64_t>(std::trunc(std::ldexp(x.at(i, j), bits - exponent))));
  }
  return result;
}

/// In [-m / 2, m / 2).
std::int64_t residue(std::int64_t x, int m) {
  const std::int64_t r = ((x % m) + m) % m;
  return 2 * r >= m ? r - m : r;
}

emulator::CodeMatrix residues(const IntegerRows& x, std::int64_t rows, std::int64_t k, int modulus,
                              bool transposed) {
  emulator::CodeMatrix matrix = transposed ? emulator::make_matrix(formats::int8, 1, k, rows)
                                           : emulator::make_matrix(formats::int8, 1, rows, k);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < k; ++j) {
      const std::int64_t r = residue(x.values[static_cast<std::size_t>(i * k + j)], modulus);
      matrix.set(transposed ? matrix.index(0, j, i) : matrix.index(0, i, j),
                 static_cast<std::uint64_t>(r) & 0xFFU);
    }
  return matrix;
}

/// x with x * of = 1 modulo m.
std::int64_t inverse(std::int64_t of, int m) {
  std::int64_t a = residue(of, m), b = m, x = 1, y = 0;
  while (b != 0) {
    const std::int64_t q = a / b;
    a = std::exchange(b, a - q * b);
    x = std::exchange(y, x - q * y);
  }
  return residue(a == 1 ? x : -x, m);
}

/// The integer of least magnitude with these residues as digits of mixed radix,
/// x = d0 + m0 (d1 + m1 (d2 + ...)) with d in [-m / 2, m / 2) (Garner's algorithm). Such digits
/// represent every integer of magnitude below half the product of the moduli, less a part that the
/// even modulus leaves out at one end, and each once.
std::vector<std::int64_t> mixed_radix(const std::vector<std::int64_t>& remainders,
                                      const std::vector<int>& moduli) {
  std::vector<std::int64_t> digits(remainders.size());
  for (std::size_t i = 0; i < digits.size(); ++i) {
    // What the digits so far stand for, and their weight, modulo m.
    std::int64_t so_far = 0, weight = 1;
    for (std::size_t j = 0; j < i; ++j) {
      so_far = residue(so_far + weight * digits[j], moduli[i]);
      weight = residue(weight * moduli[j], moduli[i]);
    }
    digits[i] = residue((remainders[i] - so_far) * inverse(weight, moduli[i]), moduli[i]);
  }
  return digits;
}

/// As an integer modulo 2^128, which is exact where the sums lie below 2^127.
formats::uint128 integer_of(const std::vector<std::int64_t>& digits,
                            const std::vector<int>& moduli) {
  formats::uint128 x = 0;
  for (std::size_t i = digits.size(); i-- > 0;)
    x = x * static_cast<formats::uint128>(moduli[i]) +
        static_cast<formats::uint128>(static_cast<formats::int128>(digits[i]));
  return x;
}

}  // namespace

std::vector<int> coprime_moduli(int count) {
  std::vector<int> moduli = {256};
  for (int m = 255; m > 1 && static_cast<int>(moduli.size()) < count; m -= 2)
    if (std::ranges::all_of(moduli, [&](int other) { return std::gcd(m, other) == 1; }))
      moduli.push_back(m);
  return moduli;
}

ResidueProduct residue_product(Run& run, const NumberRows& a, const NumberRows& b, int count) {
  const std::vector<int> moduli = coprime_moduli(count);
  assert(count >= 2 && count <= most_moduli && a.k <= (1 << 16));
  double log2_product = 0;
  for (const int m : moduli) log2_product += std::log2(m);
  // Sums lie below k 2^(2 bits). A quarter of the product leaves room for the even modulus, and
  // they are compared with sums of 128 bits.
  ResidueProduct result;
  const double sums = std::min(log2_product - 2, 126.0);
  const double room = sums - std::ceil(std::log2(static_cast<double>(a.k)));
  result.bits = static_cast<int>(std::floor(room / 2));
  const IntegerRows x = integers_of(a, result.bits), y = integers_of(b, result.bits);
  emulator::GemmPlan plan;
  plan.unit = {"sm_90", "wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8"};
  plan.epilogue.compute = plan.epilogue.output = formats::int32;
  std::vector<std::vector<double>> products;
  for (const int m : moduli) {
    emulator::GemmProblem problem;
    problem.a = residues(x, a.rows, a.k, m, false);
    problem.b = residues(y, b.rows, a.k, m, true);
    products.push_back(values_of(run.multiply(plan, problem)));  // up to 2^16 * 2^14
  }
  std::vector<std::int64_t> remainders(moduli.size());
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < b.rows; ++j) {
      const auto at = static_cast<std::size_t>(i * b.rows + j);
      for (std::size_t m = 0; m < moduli.size(); ++m)
        remainders[m] = residue(static_cast<std::int64_t>(products[m][at]), moduli[m]);
      const formats::uint128 found = integer_of(mixed_radix(remainders, moduli), moduli);
      formats::int128 sum = 0;
      for (std::int64_t n = 0; n < a.k; ++n)
        sum += static_cast<formats::int128>(x.values[static_cast<std::size_t>(i * a.k + n)]) *
               y.values[static_cast<std::size_t>(j * a.k + n)];
      if (found != static_cast<formats::uint128>(sum)) ++result.wrong;
      const int exponent =
          x.exponents[static_cast<std::size_t>(i)] + y.exponents[static_cast<std::size_t>(j)];
      result.numbers.push_back(std::ldexp(static_cast<double>(static_cast<formats::int128>(found)),
                                          exponent - 2 * result.bits));
    }
  }
  return result;
}

}  // namespace guardbit::experiments
