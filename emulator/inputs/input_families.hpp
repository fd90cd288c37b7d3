#pragma once

// The vocabulary of operands: every kind of inputs that a test, a recorder, a validation of a
// device or a benchmark draws at random, by name. Who draws a family:
//
//   executions   gpu/inputs/generated_inputs.hpp, on the device and the host, those `generated`
//   mixed rows   gpu/inputs/mixed_rows_*.cpp, one family for each row of A, in recordings
//   catalogue    tests/emulator/inputs/catalogue_inputs.cpp, for every instruction, and x86's
//   matrices     matrix_families.hpp, element by element, on the device and the host
//
// Recordings hold the operands of the second and the third, so each of these keeps its own stream
// of random numbers. Questions that are built to tell two arithmetics apart (emulator/probe/,
// tests/mutation/directed.hpp) are no families.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace guardbit::emulator::inputs {

/// A kind of inputs, made to exercise some rule of the arithmetic. Streams of random numbers depend
/// on the place in this list: new families go to its end.
enum class InputFamily : std::uint8_t {
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
  extreme_integers,
  near_saturation,
  alternating_saturation,
  few_bits,
  wrapping_bits,
  trailing_terms,
  wide_addend,
  split_cancellation,
  negative_zeros,
  infinity_times_zero,
  infinity_minus_infinity,
  special_addend,
  overflow_and_special_addend,
  last_kept_term,
  first_lost_term,
  last_term_beside_zero,
  lost_term_beside_zero,
  short_fractions,
  saturating_products,
  sparse_bits,
  all_ones,
  normal_numbers,
  rectified_numbers,
};

/// Which operands an instruction has, and so which families it takes.
enum class InputKind : std::uint8_t { floating, integer, bits };

/// The kinds of operands that a family is for.
struct InputKinds {
  bool floating = false, integer = false, bits = false;

  constexpr bool has(InputKind kind) const {
    return kind == InputKind::floating ? floating : kind == InputKind::integer ? integer : bits;
  }
};

struct InputFamilyEntry {
  InputFamily family;
  std::string_view name;
  std::string_view what;
  InputKinds kinds;
  /// those of which gpu/inputs/generated_inputs.hpp draws executions
  InputKinds generated{};
};

/// In the order of the enumeration.
inline constexpr auto input_family_table = [] {
  using enum InputFamily;
  constexpr InputKinds floats = {.floating = true}, integers = {.integer = true},
                       bits = {.bits = true}, numbers = {true, true}, any = {true, true, true};
  return std::to_array<InputFamilyEntry>({
      {raw_bits, "raw_bits", "any bits", any, any},
      {finite_bits, "finite_bits", "any finite numbers", floats, floats},
      {narrow_exponents, "narrow_exponents", "numbers near one: every term matters", floats,
       floats},
      {wide_exponents, "wide_exponents", "products over many powers of two, anywhere in D's range",
       floats, floats},
      {staggered_terms, "staggered_terms", "terms down to a dozen bits past the last kept one",
       floats, floats},
      {sum_cancellation, "sum_cancellation", "c is minus the sum of the products, a few units off",
       numbers, floats},
      {pair_cancellation, "pair_cancellation", "products cancel in pairs, a few units off", floats,
       floats},
      {ladder, "ladder", "terms walk past the last kept bit below a large one that cancels", floats,
       floats},
      {ties, "ties", "half units of the result beside a large term, and tails", floats, floats},
      {carries, "carries", "terms of one sign that sum past the next powers of two", floats,
       floats},
      {dominant_term, "dominant_term", "one product far above the others", floats, floats},
      {subnormal_operands, "subnormal_operands", "subnormal a, b or c beside large partners",
       floats, floats},
      {subnormal_results, "subnormal_results",
       "sums around the smallest normal and subnormal results", floats, floats},
      {tiny_terms, "tiny_terms", "a zero addend, products at the end of its grid", floats, floats},
      {near_overflow, "near_overflow", "sums around the largest result", floats, floats},
      {huge_products, "huge_products", "products past the largest result that cancel", floats,
       floats},
      {sparse_zeros, "sparse_zeros", "mostly zeros of both signs", numbers, floats},
      {exact_zeros, "exact_zeros", "zeros and powers of two whose sums are exactly zero", floats,
       floats},
      {addend_alone, "addend_alone", "every product is a zero: c of any exponent alone", floats,
       floats},
      {one_special, "one_special", "at most one infinity, NaN or extreme in each sum", floats,
       floats},
      {many_specials, "many_specials", "infinities and NaNs anywhere, overflow beside them", floats,
       floats},
      {infinities, "infinities", "infinities that meet zeros and each other", floats, floats},
      {nan_payloads, "nan_payloads", "quiet and signalling NaNs with payloads everywhere", floats,
       floats},
      {small_integers, "small_integers", "small whole numbers: exact results", numbers, numbers},
      {extreme_integers, "extreme_integers", "the ends of the operands' ranges, zero and one",
       integers, integers},
      {near_saturation, "near_saturation", "c within the products' reach of the ends of its range",
       integers, integers},
      {alternating_saturation, "alternating_saturation",
       "c at an end, large products of alternating sign", integers, integers},
      {few_bits, "few_bits", "few or nearly all bits set", bits, bits},
      {wrapping_bits, "wrapping_bits", "c near the end of its range, where the count wraps", bits,
       bits},
      {trailing_terms, "trailing_terms", "one product near one, many around the last kept bits",
       floats},
      {wide_addend, "wide_addend", "products near one, c far above and far below them", floats},
      {split_cancellation, "split_cancellation",
       "large terms of two blocks that cancel only together", floats},
      {negative_zeros, "negative_zeros", "every a is -0, and c is a zero", floats},
      {infinity_times_zero, "infinity_times_zero", "an infinity that meets a zero", floats},
      {infinity_minus_infinity, "infinity_minus_infinity",
       "infinities of both signs among the terms", floats},
      {special_addend, "special_addend", "products near one, c an infinity, a NaN or an extreme",
       floats},
      {overflow_and_special_addend, "overflow_and_special_addend",
       "sums around the largest result, c special", floats},
      {last_kept_term, "last_kept_term", "large terms cancel, the last kept bit is left", floats},
      {first_lost_term, "first_lost_term", "the same with the first bit that is lost", floats},
      {last_term_beside_zero, "last_term_beside_zero",
       "the smallest result and the last bit beside a zero c", floats},
      {lost_term_beside_zero, "lost_term_beside_zero", "the same with the first bit that is lost",
       floats},
      {short_fractions, "short_fractions", "numbers near one with two fraction bits", floats},
      {saturating_products, "saturating_products", "the largest a, c at an end of its range",
       integers},
      {sparse_bits, "sparse_bits", "one bit of five set", bits},
      {all_ones, "all_ones", "every bit of A set", bits},
      {normal_numbers, "normal_numbers", "a normal distribution around zero", floats},
      {rectified_numbers, "rectified_numbers", "a normal distribution, half of it zeros", floats},
  });
}();

constexpr const InputFamilyEntry& entry_of(InputFamily family) {
  return input_family_table[static_cast<std::size_t>(family)];
}
constexpr std::string_view name_of(InputFamily family) { return entry_of(family).name; }

static_assert([] {
  for (std::size_t i = 0; i < input_family_table.size(); ++i)
    if (input_family_table[i].family != static_cast<InputFamily>(i)) return false;
  return input_family_table.back().family == InputFamily::rectified_numbers;
}());

/// The families of which executions are generated for operands of a kind, in the order of the
/// table.
inline std::vector<InputFamilyEntry> generated_families(InputKind kind) {
  std::vector<InputFamilyEntry> list;
  for (const InputFamilyEntry& entry : input_family_table)
    if (entry.generated.has(kind)) list.push_back(entry);
  return list;
}

}  // namespace guardbit::emulator::inputs
