#pragma once

// The table of AccumulatorSpec's fields: the one place that knows their names and values. Words of
// its enumerations stand beside them in accumulator.hpp.
// The text of an instruction, the probe, the mutation survey and docs/CATALOGUE.md read it. A new
// field touches accumulator.hpp, this table, and the code of emulator/model that computes with it.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/model/instruction.hpp"

namespace guardbit::emulator {

/// What a field decides, and therefore which operands make it visible.
enum class FieldConcern : std::uint8_t {
  /// which products are added together, and how
  structure,
  /// which bits are kept below a large term, and how results are rounded
  precision,
  /// zeros and subnormal numbers
  small_numbers,
  /// infinities, NaNs and overflow
  specials,
};

struct AccumulatorField {
  std::string_view name;
  /// one line of documentation
  std::string_view meaning;
  FieldConcern concern;
  long (*get)(const AccumulatorSpec&);
  void (*set)(AccumulatorSpec&, long);
  /// The address of the member, for its place in the declaration.
  const void* (*address)(const AccumulatorSpec&);
  /// of the values 0, 1, ...; empty for a number
  std::span<const std::string_view> words;
  /// values that the text of an instruction may give
  long least, greatest;
  /// Does the model read the field in this step?
  bool (*read)(const MatrixInstruction&, const Step&);
  /// Values that a probe tries in this step; null: every value from least to greatest if it is
  /// read.
  std::vector<long> (*candidates)(const MatrixInstruction&, const Step&);
  /// Values one step away from a number; null: value - 1 and value + 1.
  std::vector<long> (*number_neighbours)(long value, const Step&);

  /// The word or decimal number of a value.
  std::string text(long value) const {
    return words.empty() ? std::to_string(value)
                         : std::string(words[static_cast<std::size_t>(value)]);
  }
  /// The words that the text of an instruction may give; empty for a number.
  std::span<const std::string_view> accepted_words() const {
    return words.first(words.empty() ? 0 : static_cast<std::size_t>(greatest) + 1);
  }
  /// The values that a probe tries in this step; empty where the step does not read the field.
  std::vector<long> values(const MatrixInstruction& instruction, const Step& step) const;
  /// Values one step away: every other word, or the neighbours of a number.
  std::vector<long> neighbours(long value, const Step& step) const;
};

/// Every field of AccumulatorSpec, in the order in which texts give them and probes look for them.
std::span<const AccumulatorField> accumulator_fields();

/// The field of that name, which must exist.
const AccumulatorField& accumulator_field(std::string_view name);

}  // namespace guardbit::emulator
