#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "emulator/model/batch.hpp"
#include "emulator/model/dot.hpp"
#include "emulator/model/instruction.hpp"
#include "tests/emulator/inputs/input_ranges.hpp"

/// Seeded operands for any instruction: what a case holds depends on (instruction's types, family,
/// seed, index) alone.
namespace guardbit::tests {

using emulator::MatrixInstruction;
using emulator::Shape;

std::string_view family_name(InputFamily family);

/// The families that say something about the instruction's types, in the order of the enumeration.
std::vector<InputFamily> input_families(const MatrixInstruction& instruction);

/// One dot product in the order the unit takes it (sparse operands gathered).
struct DotInputs {
  std::vector<std::uint64_t> a, b, a_scale, b_scale;
  std::uint64_t c = 0;

  emulator::DotOperands view() const { return {a, b, c, a_scale, b_scale}; }
};

/// Case `index` of a family. `products` is the number of products; 0: the instruction's.
DotInputs dot_inputs(const MatrixInstruction& instruction, InputFamily family, std::uint64_t seed,
                     std::uint64_t index, int products = 0);

/// A whole batch with the memory it lies in.
struct BatchInputs {
  std::vector<std::byte> a, b, c, e, a_scale, b_scale;
  /// bytes before the first element of every tensor
  std::ptrdiff_t misalignment = 0;
  std::int64_t count = 0;
  Shape shape{};

  /// The batch with D at `d`, which has room for count * m * n containers.
  emulator::MatrixBatch batch(const MatrixInstruction& instruction, std::byte* d) const;
};

/// `count` executions of one family. Open dimensions of the instruction are taken from `shape`.
BatchInputs batch_inputs(const MatrixInstruction& instruction, InputFamily family,
                         std::uint64_t seed, const Shape& shape, std::int64_t count,
                         std::ptrdiff_t misalignment = 0);

}  // namespace guardbit::tests
