#pragma once

// Operands of fused instructions as the portable kernel multiplies them: decoded once per
// execution, in the order of the instruction's steps, padded to whole vectors.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/engine/kernels/shared/block_sum.hpp"
#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"
#include "emulator/model/result.hpp"

namespace guardbit::emulator::portable {

/// Blocks are padded with zeros to whole groups of lanes, so that the compiler can keep the inner
/// loops in vectors.
constexpr std::size_t lanes = 8;
constexpr int widest_block = 32;

/// The exponent of a zero factor: below every sum of two real ones, so that it never wins the
/// maximum. A zero product then does not contribute e0 to E as the model says it does, which
/// changes nothing: e0 lies below the exponent of every nonzero addend (checked in
/// `is_fused_step`), so it can only win when the addend is zero, and then the addend contributes
/// it.
constexpr std::int16_t zero_exponent = -8000;
/// The exponent of an infinity or a NaN: it wins the maximum even beside a zero.
constexpr std::int16_t special_exponent = 16000;
constexpr int largest_finite_exponent = 4000;

/// A factor of a product: its value, and the exponent that the unit aligns by.
struct Factor {
  float value = 0;
  std::int16_t exponent = zero_exponent;
};

/// Where the factors of a dot step sit in a decoded line: blocks of `length` products, each padded
/// to `stride` positions.
struct Segment {
  std::size_t begin = 0;
  std::size_t blocks = 0;
  std::size_t stride = lanes;
  AccumulatorFormat addend, result;
};

constexpr int padding = -1;

struct Layout {
  /// per step; empty for scalar steps
  std::vector<Segment> segments;
  /// stored element at each position, or padding
  std::vector<int> order;
  const Step* first_dot = nullptr;
};

/// The order in which a row of A of `stored` elements is laid out.
Layout layout_of(const MatrixInstruction& instruction, int stored);

/// Decoded lines: rows of A, columns of B.
struct Panel {
  std::size_t width = 0;
  std::vector<float> values;
  std::vector<std::int16_t> exponents;

  Panel(int lines, std::size_t line_width) : width(line_width) {
    values.resize(static_cast<std::size_t>(lines) * width);
    exponents.resize(values.size(), zero_exponent);
  }
  std::size_t start(int line) const { return static_cast<std::size_t>(line) * width; }
  void set(int line, std::size_t position, const Factor& factor) {
    values[start(line) + position] = factor.value;
    exponents[start(line) + position] = factor.exponent;
  }
  Factor get(int line, std::size_t position) const {
    return {values[start(line) + position], exponents[start(line) + position]};
  }
};

/// One line of a panel, from some position on.
struct Line {
  const float* values;
  const std::int16_t* exponents;

  Line from(std::size_t position) const { return {values + position, exponents + position}; }
};

inline Line line_of(const Panel& panel, int line) {
  return {panel.values.data() + panel.start(line), panel.exponents.data() + panel.start(line)};
}

/// Decodes the rows of A of execution `t`.
void decode_a_lines(const MatrixInstruction& instruction, const Layout& layout,
                    const MatrixBatch& batch, std::int64_t t, Panel& a);

/// Decodes B's columns; position i of a line takes the k in `order`.
void decode_b_lines(const MatrixInstruction& instruction, const Layout& layout,
                    const MatrixBatch& batch, std::int64_t t, std::span<const int> order, Panel& b);

/// Copies the factors of B that a sparse line of A meets, in the layout's order.
void pick_b_lines(const MatrixInstruction& instruction, const Layout& layout,
                  const MatrixBatch& batch, std::int64_t a_row, const Panel& dense, Panel& picked);

}  // namespace guardbit::emulator::portable
