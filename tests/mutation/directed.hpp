#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tests/mutation/vectors.hpp"

namespace guardbit::tests {

/// Inputs made for one question about a unit (NUMERICS 7.1): few terms at exponents that matter,
/// everything else zero. These are constructions from an instruction's fields and no families of
/// emulator/inputs/: each tells two values of a field apart. They share no code with the probe's
/// own (emulator/probe/aimed_questions.hpp), which the vectors found with them judge.
enum class Probe {
  /// terms around the last bit kept below a large term, which cancels or not
  ladder,
  /// terms around half an ulp of the result
  tie,
  /// terms of one sign that sum past the next power of two
  carry,
  /// zero addend, products around the zero exponent's grid and the least result
  smallest_grid,
  /// a large term and its negative in different blocks, small ones between
  block_boundary,
  /// every product a zero of either sign
  addend_alone,
  /// one to five terms anywhere
  few_terms,
  /// equal terms around the smallest result, and small ones
  crowd,
  /// terms around the largest number
  overflow,
  /// the smallest normal number, and terms that take about half an ulp off it
  underflow,
  /// every product and the addend -0, but for a few that underflow
  negative_zeros,
  /// integers: operands and addend at their limits
  limits,
  /// results that are the upper part of a wider number: about half of its last bit below the
  /// smallest result, and terms at the end of a zero's grid
  cut,
};
inline constexpr std::array<std::string_view, 13> probe_names = {
    "ladder",         "tie",       "carry", "smallest-grid", "block-boundary",
    "addend-alone",   "few-terms", "crowd", "overflow",      "underflow",
    "negative-zeros", "limits",    "cut"};

/// A seeded probe of an instruction; `limits` is for integers, all others for floating operands.
/// `d` is not filled in.
TestVector probe(const MatrixInstruction& instruction, Probe kind, std::uint64_t seed);

}  // namespace guardbit::tests
