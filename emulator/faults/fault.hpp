#pragma once

// What a wrong kernel did, in words that can be counted on: the closed list of kinds, which
// docs/GEMM.md explains.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace guardbit::emulator {

enum class FaultKind : std::uint8_t {
  missing_k,
  repeated_k,
  negated_k,
  weighted_k,
  stale_k,
  permuted_k,
  unmasked_tail,
  permuted_rows,
  permuted_columns,
  transposed,
  moved_tile,
  permuted_fragment,
  stale_accumulator,
  wrong_tile,
  wrong_operand,
  wrong_sign,
  dropout,
  wrong_stride,
  misread_format,
  wrong_scale,
  misplaced_c,
  not_written,
  not_a_number,
  wrong_element,
  alpha,
  beta,
  missing_c,
  constant,
  bias,
  line_factor,
  activation,
  clamped,
  wrapped,
  converted_input,
  converted_output,
  narrow_accumulator,
  unknown,
};
constexpr auto words(FaultKind) {
  return std::array{"missing_k",
                    "repeated_k",
                    "negated_k",
                    "weighted_k",
                    "stale_k",
                    "permuted_k",
                    "unmasked_tail",
                    "permuted_rows",
                    "permuted_columns",
                    "transposed",
                    "moved_tile",
                    "permuted_fragment",
                    "stale_accumulator",
                    "wrong_tile",
                    "wrong_operand",
                    "wrong_sign",
                    "dropout",
                    "wrong_stride",
                    "misread_format",
                    "wrong_scale",
                    "misplaced_c",
                    "not_written",
                    "not_a_number",
                    "wrong_element",
                    "alpha",
                    "beta",
                    "missing_c",
                    "constant",
                    "bias",
                    "line_factor",
                    "activation",
                    "clamped",
                    "wrapped",
                    "converted_input",
                    "converted_output",
                    "narrow_accumulator",
                    "unknown"};
}

/// Numbers [begin, end) of rows, columns or elements of K.
struct Places {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const Places&, const Places&) = default;
};

/// Sorted numbers as ranges, and back.
std::vector<Places> places_of(const std::vector<std::int64_t>& numbers);
std::vector<std::int64_t> numbers_in(const std::vector<Places>& places);
/// "3, 7 to 9", "3 and every 4th further one up to 63"
std::string text_of(const std::vector<Places>& places);
/// "row 3", "rows 7 to 9"
std::string lines_of(const std::string& noun, const std::vector<Places>& places);
/// "64 to 79 (tile 4 of 20 tiles of 16)", of `k` elements of K
std::string k_text(const std::vector<Places>& ranges, std::int64_t k);
/// Exactly one number.
bool is_one(const std::vector<Places>& places);
/// "0.75", with so many digits
std::string text_of(double number, int digits = 6);

struct Fault {
  FaultKind kind = FaultKind::unknown;
  /// elements of K that are concerned; for stale_k those that hold other products than theirs
  std::vector<Places> k = {};
  /// of D, or of the operand for wrong_element; empty: all
  std::vector<Places> rows = {}, columns = {};
  /// the weight, factor, constant or element that was used
  std::optional<double> value = {};
  /// "a", "b", "c", "d", "both"; empty where none is meant
  std::string operand = {};
  /// of an activation or a format: "relu", "bf16"
  std::string name = {};
  /// one plain English sentence
  std::string text = {};
};

/// An element of D that is wrong for no reason that its neighbours show.
Fault wrong_element(std::int64_t row, std::int64_t column, double value);

/// What the kind says, for the documents.
std::string_view meaning_of(FaultKind kind);
/// True of conversions: the arithmetic is narrower than the formats ask for, and otherwise right.
bool is_conversion(FaultKind kind);

}  // namespace guardbit::emulator
