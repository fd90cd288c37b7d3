#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tests/mutation/vectors.hpp"

namespace guardbit::tests {

/// Inputs made for one question about a unit (NUMERICS 7.1): few terms at exponents that matter,
/// everything else zero.
enum class Probe {
  ladder,          ///< terms around the last bit kept below a large term, which cancels or not
  tie,             ///< terms around half an ulp of the result
  carry,           ///< terms of one sign that sum past the next power of two
  smallest_grid,   ///< zero addend, products around the zero exponent's grid and the least result
  block_boundary,  ///< a large term and its negative in different blocks, small ones between
  addend_alone,    ///< every product a zero of either sign
  few_terms,       ///< one to five terms anywhere
  crowd,           ///< equal terms around the smallest result, and small ones
  overflow,        ///< terms around the largest number
  underflow,       ///< the smallest normal number, and terms that take about half an ulp off it
  negative_zeros,  ///< every product and the addend -0, but for a few that underflow
  limits,          ///< integers: operands and addend at their limits
};
inline constexpr std::array<std::string_view, 12> probe_names = {
    "ladder",    "tie",   "carry",    "smallest-grid", "block-boundary", "addend-alone",
    "few-terms", "crowd", "overflow", "underflow",     "negative-zeros", "limits"};

/// A seeded probe of a row; `limits` is for integers, all others for floating operands. `d` is not
/// filled in.
TestVector probe(const MatrixInstruction& instruction, Probe kind, std::uint64_t seed);

}  // namespace guardbit::tests
