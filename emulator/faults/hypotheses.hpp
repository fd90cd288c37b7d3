#pragma once

// Hypotheses about what a wrong kernel did. Each looks at one product that does not agree with what
// was asked, and names faults only if with them every output agrees up to rounding; otherwise it
// returns nothing.

#include <vector>

#include "emulator/faults/fault.hpp"
#include "emulator/faults/product_numbers.hpp"

namespace guardbit::emulator {

using Faults = std::vector<Fault>;

/// Another alpha or beta, no C, a constant, a number for each row or column.
Faults find_factors(const ProductNumbers& x);
/// A function of each output, with a factor; a range to which D is limited.
Faults find_activation(const ProductNumbers& x);
/// A narrower format that D, or the sum before C was added, went through.
Faults find_output_conversion(const ProductNumbers& x);
/// A narrower format that A or B went through.
Faults find_input_conversion(const ProductNumbers& x);
/// A, B, C or D stored the other way round.
Faults find_transposition(const ProductNumbers& x);
/// Missing, repeated, negated, weighted and stale elements of K, by least squares over all outputs.
Faults find_k_weights(const ProductNumbers& x);
/// Elements of K of one operand in the places of others.
Faults find_k_sources(const ProductNumbers& x);
/// Rows or columns of D in the places of others.
Faults find_permuted_lines(const ProductNumbers& x);
/// One wrong element of A, B or D; a few of one operand.
Faults find_wrong_elements(const ProductNumbers& x);
/// A tile of D that is zero, transposed or another tile.
Faults find_moved_tile(const ProductNumbers& x);
/// Sums kept in FP16 or BF16.
Faults find_narrow_accumulator(const ProductNumbers& x);

}  // namespace guardbit::emulator
