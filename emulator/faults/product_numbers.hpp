#pragma once

// One product as numbers: what was asked, what was computed, and how far honest rounding may take
// the one from the other.

#include <cstdint>
#include <functional>

#include "emulator/capture/product_capture.hpp"
#include "emulator/faults/real_matrix.hpp"
#include "formats/format.hpp"

namespace guardbit::emulator {

/// Nearly exact results and, for each, the sum of the magnitudes of its terms.
struct Expected {
  RealMatrix result, magnitude;
};

/// D = alpha * A * B + beta * C + bias of one batch entry. FP64 numbers: products of FP32 operands
/// are exact, sums are off by less than K * 2^-53 of their magnitude.
struct ProductNumbers {
  RealMatrix a, b, c, bias, d;
  double alpha = 1, beta = 0;
  formats::Format input, output;
  /// A * B, and |A| * |B|
  RealMatrix product, product_magnitude;

  std::int64_t m() const { return a.rows; }
  std::int64_t n() const { return b.columns; }
  std::int64_t k() const { return a.columns; }

  /// What was asked.
  Expected asked() const;
  /// The same with other factors.
  Expected with_factors(double product_factor, double c_factor) const;
  /// Rows [i, i + rows) and columns [j, j + columns) of D.
  ProductNumbers part(std::int64_t i, std::int64_t rows, std::int64_t j,
                      std::int64_t columns) const;

  /// Of the sum of magnitudes: the error that any order of sums in the accumulators of a GPU stays
  /// below.
  double rounding_unit() const;
};

/// With scales applied to A and B. `g` is a batch entry.
ProductNumbers numbers_of(const GemmCapture& capture, std::int64_t g);

/// Half the distance of neighbours of the format at x.
double half_spacing(const formats::Format& format, double x);

/// Outputs that differ from what is expected by more than rounding, and how many there are. `extra`
/// is allowed besides.
struct Disagreement {
  std::int64_t count = 0;
  std::vector<bool> at;
};
Disagreement disagreement(const ProductNumbers& x, const Expected& expected,
                          const RealMatrix* extra = nullptr);
bool agrees(const ProductNumbers& x, const Expected& expected, const RealMatrix* extra = nullptr);

/// Every output lies within half a spacing of D's format of the exact result, as far as FP64
/// numbers tell.
bool is_rounded_once(const ProductNumbers& x);

}  // namespace guardbit::emulator
