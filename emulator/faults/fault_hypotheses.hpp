#pragma once

// Hypotheses about what a wrong kernel did. Each looks at one product that does not agree with what
// was asked, and names faults only if with them every output agrees up to rounding; otherwise it
// returns nothing.

#include <functional>
#include <optional>
#include <vector>

#include "emulator/faults/fault.hpp"
#include "emulator/faults/product_numbers.hpp"
#include "emulator/faults/regions.hpp"

namespace guardbit::emulator {

using Faults = std::vector<Fault>;

/// Another alpha or beta, no C, a constant.
Faults find_factors(const ProductNumbers& x);
/// A function of each output, with a factor; a range to which D is limited.
Faults find_activation(const ProductNumbers& x);
Faults find_softmax(const ProductNumbers& x);
/// Any function of each output, without a name.
Faults find_some_function(const ProductNumbers& x);
/// Integers modulo a power of two.
Faults find_wrapping(const ProductNumbers& x);
/// Results below the smallest normal number that are zero.
Faults find_flushed_results(const ProductNumbers& x);
/// Results too large for D's format that are its largest number, though it has infinities.
Faults find_saturation(const ProductNumbers& x);
/// A constant that hides in the bound of honest rounding.
Faults find_small_constant(const ProductNumbers& x);
/// D truncated to its format, or rounded to any of two neighbours.
Faults find_other_rounding(const ProductNumbers& x);
/// D rounded to multiples of a number.
Faults find_multiples(const ProductNumbers& x);
/// A narrower format that D before its last rounding, or the product before C was added, went
/// through.
Faults find_output_conversion(const ProductNumbers& x);
/// A narrower format that A or B went through.
Faults find_input_conversion(const ProductNumbers& x);
/// A or B that is multiplied by alpha and rounded before the product, as compilers do that fuse a
/// factor into what loads an operand; and what both are converted to then.
Faults find_scaled_operand(const ProductNumbers& x);
/// Missing, repeated, negated, weighted and stale elements of K, by least squares over all outputs.
Faults find_k_weights(const ProductNumbers& x);
/// A range of K that is missing, repeated or negated, for fewer outputs than elements of K.
Faults find_k_range(const ProductNumbers& x);
/// The same in some outputs, scattered over D.
Faults find_scattered_range(const ProductNumbers& x);
/// A tile of K of one operand that is another of its tiles.
Faults find_stale_tile(const ProductNumbers& x);
/// Products behind the end of K that are added, as the last tile of K is not masked.
Faults find_unmasked_tail(const ProductNumbers& x);
/// Elements of K of one operand in the places of others.
Faults find_k_sources(const ProductNumbers& x);
/// Rows or columns of D, of the product or of C in the places of others.
Faults find_permuted_lines(const ProductNumbers& x);
/// Elements of A, B, the product, C or D in other places of their fragments of 16 x 16.
Faults find_shuffled_fragments(const ProductNumbers& x);
/// Numbers added to rows or columns, factors of rows or columns.
Faults find_line_changes(const ProductNumbers& x);
/// One wrong element of A or B; a few of one operand.
Faults find_wrong_elements(const ProductNumbers& x);
/// Elements of A or B that are other numbers in a range of K, in some rows or columns: zero here
/// and there, transposed, of another sign, of another place.
Faults find_wrong_tile(const ProductNumbers& x);
/// Elements of D that are zero here and there, the others with one factor.
Faults find_dropped_outputs(const ProductNumbers& x);
/// Sums kept in FP16 or BF16.
Faults find_narrow_accumulator(const ProductNumbers& x);
/// Sums kept in FP16 that overflow on their way: infinite outputs, or sums that are limited.
Faults find_overflow(const ProductNumbers& x);
/// Products that are rounded to the operands' format before they are added.
Faults find_rounded_products(const ProductNumbers& x);

/// An area of D that is zero or no number, or one element.
Faults find_blank(const ProductNumbers& x, const Region& area);
/// What else an area of D holds: itself transposed, another place, more than its sum.
Faults find_misplaced(const ProductNumbers& x, const Region& area);

/// A whole product, element by element.
struct WholeProduct {
  using Matrix = std::function<double(std::int64_t, std::int64_t)>;
  std::int64_t m = 0, n = 0, k = 0;
  /// `c` and `bias` may be empty
  Matrix a, b, c, bias, d;
  double alpha = 1, beta = 0;
  formats::Format input, output;
  double spacings = 0.5, parts_unit = 0;
  /// what D went through, or ReLU undone
  Activation activation = Activation::none;

  double rounding_unit() const { return emulator::rounding_unit(input, k) + parts_unit; }
};
/// A, B, C or D stored the other way round, wholly or in tiles; read with another leading dimension
/// or start, without signs, or from another matrix.
Faults find_misread_matrix(const WholeProduct& x);
/// Sums that were not set to zero from one tile of D to the next.
Faults find_running_sums(const WholeProduct& x);
/// An area of D that holds what belongs to a place of which `x`, a part of the product, knows
/// nothing.
Faults find_far_tile(const WholeProduct& whole, const ProductNumbers& x, const Region& area);

/// The narrowest format that holds all of D though D's own is wider and the exact results are not
/// in it.
std::optional<formats::Format> held_format(const ProductNumbers& x);
Fault held_fault(const formats::Format& format, bool is_truncated);

/// Which part of D belongs to other lines.
enum class Moved : std::uint8_t { all, product, addend };
/// Of the lines whose sources are others.
Fault moved_fault(const ProductNumbers& x, const std::vector<std::int64_t>& sources,
                  bool are_columns, Moved part);

/// The number of at most six bits near x, if there is one; else x.
double simple_near(double x);
/// What a fitted number stands for: zero below the noise, a simple one, itself.
double settled(double x, double noise);
/// alpha * product + beta * c + bias + constant.
Expected changed(const ProductNumbers& x, double alpha, double beta, double constant);
Fault alpha_fault(const ProductNumbers& x, double factor);
Fault missing_c_fault();
Fault range_fault(double least, double most);
/// Those of alpha, beta and an added constant that are not what was asked for.
Faults changed_factors(const ProductNumbers& x, double alpha, double beta, double constant);
/// D went through the function of this name.
Fault activation_fault(std::string_view name);

}  // namespace guardbit::emulator
