#pragma once

// Sums of the rows or columns of D with random signs, next to what A and B give. They show which
// lines of a large product are wrong, and which hold what belongs to others, for M K + K N + M N
// multiply-adds instead of M N K.

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/faults/fault_hypotheses.hpp"

namespace guardbit::emulator {

struct SignedSums {
  /// One line's sums with so many signs of their own.
  using Sums = std::array<double, 16>;
  /// [line]: of D, of alpha * A * B, and of C and the bias
  std::vector<Sums> seen, product, addend;
  /// [line]: what honest rounding does to a sum, as a root mean square
  std::vector<double> noise;

  /// [line]: how far it is off, in units of the noise.
  std::vector<double> lines_off() const;
  /// [line]: itself, or for one of `off` the line that it is most like, whatever its size. Empty if
  /// most of these are like no other.
  std::vector<std::int64_t> sources(const std::vector<std::int64_t>& off, Moved part) const;
};

/// Of the rows, or of the columns, of batch entry g.
SignedSums signed_sums(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g,
                       bool of_rows);

/// Lines of D that hold what belongs to others, and what else is wrong then. `x` is some rows and
/// columns of D and knows which are wrong.
Faults find_moved_lines(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g,
                        const SignedSums& sums, const ProductNumbers& x, bool are_columns);

}  // namespace guardbit::emulator
