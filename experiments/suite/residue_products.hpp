#pragma once

#include <cstdint>
#include <vector>

namespace guardbit::experiments {

class Run;

/// Rows of FP64 numbers; of B the columns, so that both are dotted along rows.
struct NumberRows {
  std::int64_t rows = 0, k = 0;
  /// row-major
  std::vector<double> values;
  double at(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * k + j)];
  }
};

/// A B^T by residues modulo pairwise coprime numbers up to 256 (Ozaki, Uchino and Imamura's second
/// scheme, arXiv 2504.08009): every row is scaled by a power of two and cut to integers, of `bits`
/// bits such that the sums lie below half the product of the moduli; residues are multiplied
/// exactly by a Hopper tensor core in INT8; the Chinese remainder theorem gives the integers'
/// product.
struct ResidueProduct {
  /// [rows of a, rows of b]
  std::vector<double> numbers;
  /// of the integers
  int bits = 0;
  /// sums that are not those of the integers (of 128-bit arithmetic)
  std::int64_t wrong = 0;
};
/// `moduli` of them are used, 2 to most_moduli. k is at most 2^16.
ResidueProduct residue_product(Run& run, const NumberRows& a, const NumberRows& b, int moduli);

inline constexpr int most_moduli = 18;
/// 256 and the largest odd numbers below it that are coprime to all before: the first `count`.
std::vector<int> coprime_moduli(int count);

}  // namespace guardbit::experiments
