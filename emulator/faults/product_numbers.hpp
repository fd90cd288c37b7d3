#pragma once

// One product as numbers: what was asked, what was computed, and how far honest rounding may take
// the one from the other.

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/faults/fault.hpp"
#include "emulator/faults/real_matrix.hpp"
#include "formats/format.hpp"

namespace guardbit::emulator {

/// Nearly exact results and, for each, the sum of the magnitudes of its terms.
struct Expected {
  RealMatrix result, magnitude;
};
/// What is left of x without y, which is a part of its terms.
Expected operator-(Expected x, const Expected& y);

/// Which rows or columns of D are looked at.
struct LineNumbers {
  /// of D; empty: all, in their order
  std::vector<std::int64_t> numbers = {};
  /// all lines of D that are known to be wrong, whether they are looked at or not
  std::vector<std::int64_t> wrong = {};
  /// lines of D; how many of them are looked at, here and where this is a selection of
  std::int64_t count = 0, looked_at = 0;

  std::int64_t operator()(std::int64_t line) const {
    return numbers.empty() ? line : numbers[static_cast<std::size_t>(line)];
  }
  /// Lines that are looked at, in the numbers of D. If they are all of these, all of D are meant;
  /// if they are those of the wrong ones, or of some ranges of these, whole ranges.
  std::vector<Places> places(const std::vector<std::int64_t>& lines) const;
  LineNumbers selected(const std::vector<std::int64_t>& lines) const;
};

/// D = alpha * A * B + beta * C + bias of one batch entry. FP64 numbers: products of FP32 operands
/// are exact, sums are off by less than K * 2^-53 of their magnitude.
struct ProductNumbers {
  RealMatrix a, b, c, bias, d;
  double alpha = 1, beta = 0;
  /// [at]: nothing is to be said of this output, and `d` holds what was asked there; empty: all are
  /// looked at
  std::vector<bool> left_out = {};
  /// D went through it. Everything else here speaks of results before the activation, `d` too:
  /// where it made an output zero, `d` holds what was asked if that gives zero; where it is another
  /// function, the number near what was asked of which D is the function.
  Activation activation = Activation::none;
  formats::Format input, output;
  /// A * B, and |A| * |B|
  RealMatrix product, product_magnitude;
  LineNumbers rows = {}, columns = {};
  /// of D's format, by which the last rounding may miss: half of one to nearest, one truncated
  double spacings = 0.5;
  /// Of the magnitudes: how far the roundings of parts of K take an output (rounded_parts.hpp).
  double parts_unit = 0;
  /// An agreeing result has at most this root mean square error, in units of the magnitudes. It is
  /// set where all outputs stay below the bound of honest rounding, but a hypothesis may explain
  /// them far better.
  double most_error = std::numeric_limits<double>::infinity();

  std::int64_t m() const { return a.rows; }
  std::int64_t n() const { return b.columns; }
  std::int64_t k() const { return a.columns; }
  bool is_left_out(std::size_t at) const { return !left_out.empty() && left_out[at]; }
  /// It is left out, or the activation leaves too little of the result there to fit anything to.
  bool is_hidden(std::size_t at) const {
    return is_left_out(at) || (activation != Activation::none && !(d.values[at] > 0));
  }
  /// So little that `d` is a guess, or nothing.
  bool is_blurred(std::size_t at) const {
    return is_left_out(at) || (is_smooth(activation) && is_hidden(at));
  }
  /// D itself is zero there, or nearly.
  bool is_zero(std::size_t at) const {
    const double x = d.values[at];
    const bool is_lost = activation == Activation::relu
                             ? x < 0
                             : x < -1 && activated_in_doubles(activation, x) > -1e-7;
    return x == 0 || is_lost;
  }

  /// What was asked.
  Expected asked() const;
  /// The same with other factors.
  Expected with_factors(double product_factor, double c_factor) const;
  /// alpha * A * B, without C and the bias.
  Expected product_alone() const;
  /// D less the bias, row by row.
  std::vector<double> d_without_bias() const;
  /// These rows and columns of D.
  ProductNumbers selected(const std::vector<std::int64_t>& rows_taken,
                          const std::vector<std::int64_t>& columns_taken) const;
  /// The transposed product.
  ProductNumbers turned() const;
  /// Sets the product and its magnitude from A and B.
  void multiply_operands();
  /// Makes of D's own numbers what `d` is before the activation.
  void undo_activation();

  double rounding_of_d(double wanted) const;
  double rounding_unit() const;
  /// How far sums may take an output of this result and this magnitude.
  double rounding_of_sums(double result, double magnitude) const;
};

/// How far the last rounding may take an output from `wanted`.
double rounding_of(const formats::Format& output, double spacings, double wanted);
/// Of the sum of the magnitudes of K products of this format: the error that sums in the
/// accumulators of a GPU stay below, in any order, where roundings go both ways.
double rounding_unit(const formats::Format& input, std::int64_t k);
/// The same where K roundings all go one way, as those of constant data do.
double drift_unit(const formats::Format& input, std::int64_t k);

/// These rows and columns of batch entry g, with scales applied to A and B.
ProductNumbers numbers_of(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g,
                          const std::vector<std::int64_t>& rows,
                          const std::vector<std::int64_t>& columns);

/// Half the distance of neighbours of the format at x.
double half_spacing(const formats::Format& format, double x);
/// Keeps the format's precision and drops what is below.
double truncated(const formats::Format& format, double x);

/// Outputs that differ from what is expected by more than rounding, and how many there are. `extra`
/// is allowed besides.
struct Disagreement {
  std::int64_t count = 0;
  std::vector<bool> at;
};
Disagreement disagreement(const ProductNumbers& x, const Expected& expected,
                          const RealMatrix* extra = nullptr);
bool agrees(const ProductNumbers& x, const Expected& expected, const RealMatrix* extra = nullptr);
/// True if no output differs by more than roundings do that all go one way, whatever the order.
bool agrees_at_worst(const ProductNumbers& x, const Expected& expected);

/// The root mean square of what D differs from what is expected, each over its magnitude.
double error_of(const ProductNumbers& x, const Expected& expected);

/// Every output lies within half a spacing of D's format of the exact result, as far as FP64
/// numbers tell.
bool is_rounded_once(const ProductNumbers& x);

}  // namespace guardbit::emulator
