#pragma once

// What a wrong kernel did, in words that can be counted on: the closed list of kinds stands in
// fault.cpp and docs/GEMM.md.

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
  permuted_rows,
  permuted_columns,
  transposed,
  moved_tile,
  not_written,
  not_a_number,
  wrong_element,
  alpha,
  beta,
  missing_c,
  constant,
  bias,
  activation,
  clamped,
  converted_input,
  converted_output,
  narrow_accumulator,
  unknown,
};

/// Numbers [begin, end) of rows, columns or elements of K.
struct Places {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const Places&, const Places&) = default;
};

/// Sorted numbers as ranges.
std::vector<Places> places_of(const std::vector<std::int64_t>& numbers);

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

/// missing_k, repeated_k, ...
std::string_view name_of(FaultKind kind);
/// What the kind says, for the documents.
std::string_view meaning_of(FaultKind kind);

}  // namespace guardbit::emulator
