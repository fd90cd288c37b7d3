#pragma once

// Ways to read one matrix of a product from other addresses that kernels are known to make.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/faults/fault_hypotheses.hpp"

namespace guardbit::emulator {

struct Misreading {
  /// Row and column that are read instead of others; negative: outside.
  using Place = std::pair<std::int64_t, std::int64_t>;
  using Map = std::function<Place(std::int64_t, std::int64_t)>;

  enum class Operand : std::uint8_t { a, b, c, d, bias };

  /// How one matrix is read.
  struct Reading {
    Operand operand;
    Map map;
    /// the matrix that is read in its place, if it is not itself
    std::optional<Operand> source = {};
  };

  FaultKind kind;
  std::string text;
  Reading reading;
  /// of another matrix
  std::optional<Reading> second = {};
  /// elements lose their sign
  bool is_positive = false;
  /// what lies outside is zero; else it is unknown
  bool reads_zeros = false;

  const Reading* of(Operand operand) const {
    if (reading.operand == operand) return &reading;
    return second && second->operand == operand ? &*second : nullptr;
  }
};

struct MatrixShape {
  std::int64_t rows, columns;
};
MatrixShape shape_of(const WholeProduct& x, Misreading::Operand operand);

/// All that fit the product's shape.
std::vector<Misreading> misreadings(const WholeProduct& x);

}  // namespace guardbit::emulator
