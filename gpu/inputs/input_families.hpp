#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "gpu/inputs/input_shape.hpp"

// The families of inputs by name, and the rule of the arithmetic that each exercises.
namespace guardbit::gpu {

/// A kind of inputs, made to exercise some rule of the arithmetic.
enum class InputFamily : std::uint8_t {
  // floating operands
  raw_bits,
  finite_bits,
  narrow_exponents,
  wide_exponents,
  staggered_terms,
  sum_cancellation,
  pair_cancellation,
  ladder,
  ties,
  carries,
  dominant_term,
  subnormal_operands,
  subnormal_results,
  tiny_terms,
  near_overflow,
  huge_products,
  sparse_zeros,
  exact_zeros,
  addend_alone,
  one_special,
  many_specials,
  infinities,
  nan_payloads,
  small_integers,
  // integers and single bits, which also have raw_bits and small_integers
  extreme_integers,
  near_saturation,
  alternating_saturation,
  few_bits,
  wrapping_bits,
};

struct InputFamilyEntry {
  InputFamily family;
  std::string_view name;
  std::string_view what;
};

inline constexpr std::array floating_input_families = {
    InputFamilyEntry{InputFamily::raw_bits, "raw_bits", "any bits"},
    InputFamilyEntry{InputFamily::finite_bits, "finite_bits", "any finite numbers"},
    InputFamilyEntry{InputFamily::narrow_exponents, "narrow_exponents",
                     "numbers near one: every term matters"},
    InputFamilyEntry{InputFamily::wide_exponents, "wide_exponents",
                     "products spread over up to 64 powers of two, anywhere in D's range"},
    InputFamilyEntry{InputFamily::staggered_terms, "staggered_terms",
                     "terms from the largest down to a dozen bits past the last kept one"},
    InputFamilyEntry{InputFamily::sum_cancellation, "sum_cancellation",
                     "c is minus the sum of the products, a few units off"},
    InputFamilyEntry{InputFamily::pair_cancellation, "pair_cancellation",
                     "products cancel in pairs, a few units off, within and across blocks"},
    InputFamilyEntry{InputFamily::ladder, "ladder",
                     "small terms walk past the last kept bit below a large term that cancels"},
    InputFamilyEntry{InputFamily::ties, "ties",
                     "half units of the result beside a large term, and tails that break the tie"},
    InputFamilyEntry{InputFamily::carries, "carries",
                     "terms of one sign that sum past the next powers of two"},
    InputFamilyEntry{InputFamily::dominant_term, "dominant_term",
                     "one product far above the others"},
    InputFamilyEntry{InputFamily::subnormal_operands, "subnormal_operands",
                     "subnormal a, b or c beside large partners"},
    InputFamilyEntry{InputFamily::subnormal_results, "subnormal_results",
                     "sums around the smallest normal and subnormal results"},
    InputFamilyEntry{InputFamily::tiny_terms, "tiny_terms",
                     "a zero addend and products at the end of its grid and below all results"},
    InputFamilyEntry{InputFamily::near_overflow, "near_overflow", "sums around the largest result"},
    InputFamilyEntry{InputFamily::huge_products, "huge_products",
                     "products past the largest result that cancel"},
    InputFamilyEntry{InputFamily::sparse_zeros, "sparse_zeros", "mostly zeros of both signs"},
    InputFamilyEntry{InputFamily::exact_zeros, "exact_zeros",
                     "zeros and powers of two whose sums are exactly zero"},
    InputFamilyEntry{InputFamily::addend_alone, "addend_alone",
                     "every product is a zero: c of any exponent alone"},
    InputFamilyEntry{InputFamily::one_special, "one_special",
                     "at most one infinity, NaN or extreme in a row of A, a column of B and c"},
    InputFamilyEntry{InputFamily::many_specials, "many_specials",
                     "infinities and NaNs of every kind anywhere, overflow beside them"},
    InputFamilyEntry{InputFamily::infinities, "infinities",
                     "infinities that meet zeros and each other"},
    InputFamilyEntry{InputFamily::nan_payloads, "nan_payloads",
                     "quiet and signalling NaNs with payloads in every position"},
    InputFamilyEntry{InputFamily::small_integers, "small_integers",
                     "small whole numbers: exact results"},
};

inline constexpr std::array integer_input_families = {
    InputFamilyEntry{InputFamily::raw_bits, "raw_bits", "any bits"},
    InputFamilyEntry{InputFamily::small_integers, "small_integers", "numbers up to three"},
    InputFamilyEntry{InputFamily::extreme_integers, "extreme_integers",
                     "the ends of the operands' ranges, zero and one"},
    InputFamilyEntry{InputFamily::near_saturation, "near_saturation",
                     "c within the products' reach of the ends of its range"},
    InputFamilyEntry{InputFamily::alternating_saturation, "alternating_saturation",
                     "c at an end and large products of alternating sign: only the total counts"},
};

inline constexpr std::array bit_input_families = {
    InputFamilyEntry{InputFamily::raw_bits, "raw_bits", "any bits"},
    InputFamilyEntry{InputFamily::few_bits, "few_bits", "few or nearly all bits set"},
    InputFamilyEntry{InputFamily::wrapping_bits, "wrapping_bits",
                     "c near the end of its range, where the count wraps"},
};

constexpr std::span<const InputFamilyEntry> input_families(InputKind kind) {
  switch (kind) {
    case InputKind::floating: return floating_input_families;
    case InputKind::integer: return integer_input_families;
    case InputKind::bits: return bit_input_families;
  }
  return {};
}

}  // namespace guardbit::gpu
