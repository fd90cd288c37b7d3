#pragma once

// Faults that D shows while another one hides it: guesses, each with the product that was asked for
// with the guess put in. Where what is left is one fault, both are known.

#include <optional>
#include <vector>

#include "emulator/faults/fault_hypotheses.hpp"
#include "emulator/faults/rounded_parts.hpp"

namespace guardbit::emulator {

struct FirstFault {
  Faults faults;
  ProductNumbers mended;
  /// of no rows where it cannot be mended
  WholeProduct whole;
  /// the typical error of what is mended
  double left = 0;
  /// found apart from what else is wrong, which may be far more
  bool is_apart = false;
  /// of what is mended: the split of K that it shows
  std::optional<RoundedParts> parts = {};
};
using FirstFaults = std::vector<FirstFault>;

/// C or the bias is not added.
FirstFaults guess_missing_addend(const ProductNumbers& x, const WholeProduct& whole);
/// Another alpha or beta, or a constant: those that most outputs show.
FirstFaults guess_factors(const ProductNumbers& x, const WholeProduct& whole);
/// D went through an activation: it holds nothing below that one's least value.
FirstFaults guess_activation(const ProductNumbers& x, const WholeProduct& whole);
/// D is limited to a range. Outputs at its ends are left out of what is mended.
FirstFaults guess_range(const ProductNumbers& x, const WholeProduct& whole);
/// A and B, or one of them, went through a narrower format.
FirstFaults guess_input_conversion(const ProductNumbers& x, const WholeProduct& whole);
/// Elements of K of one operand in the places of others.
FirstFaults guess_k_sources(const ProductNumbers& x, const WholeProduct& whole);
/// A tile of K of one operand that is another of its tiles.
FirstFaults guess_stale_tile(const ProductNumbers& x, const WholeProduct& whole);
/// A, B, C or the bias read from other places, where all of the product is looked at.
FirstFaults guess_misread_matrix(const ProductNumbers& x, const WholeProduct& whole);
/// The product with one matrix read as this fault says; nothing if not all of it is looked at.
std::optional<ProductNumbers> reread_as(const ProductNumbers& x, const WholeProduct& whole,
                                        const Fault& fault);
/// A number for each column or for each row that is added.
FirstFaults guess_line_constants(const ProductNumbers& x, const WholeProduct& whole);
/// Areas of D that are all zero or no numbers. These outputs are left out of what is mended.
FirstFaults guess_blank_areas(const ProductNumbers& x, const WholeProduct& whole);
/// Tiles of D, at multiples of their size, that hold what belongs elsewhere, or more than their
/// sum. These outputs are left out, too.
FirstFaults guess_misplaced_tiles(const ProductNumbers& x, const WholeProduct& whole);
/// Missing, repeated and negated elements of K, by least squares.
FirstFaults guess_k_weights(const ProductNumbers& x, const WholeProduct& whole);
/// Rows or columns in the places of others, by what they are most like.
FirstFaults guess_permuted_lines(const ProductNumbers& x, const WholeProduct& whole);

/// The second ones are few and certain, say something else than the first, of all that these left,
/// and nothing of lines of an operand that the first ones moved.
bool may_follow(const Faults& second, const Faults& first);

/// The middle one of the distances of D from what is asked, of outputs that tell something.
double typical_error(const ProductNumbers& x);
/// With the guess, most outputs are nearer to what is asked than `typical`, or some are left out.
bool is_nearer(FirstFault& first, double typical);

}  // namespace guardbit::emulator
