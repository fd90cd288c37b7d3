#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "emulator/batch.hpp"
#include "emulator/dot.hpp"
#include "emulator/instruction.hpp"

/// Seeded operands for any row: what a case holds depends on (row's types, family, seed, index)
/// alone.
namespace guardbit::tests {

using emulator::MatrixInstruction;
using emulator::Shape;

/// Splitmix64: element n of the stream is a hash of the seed and n. The same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next();
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  int between(int low, int high) {
    return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool one_in(int n) { return below(static_cast<std::uint64_t>(n)) == 0; }

 private:
  std::uint64_t state_;
};

enum class InputFamily {
  raw_bits,
  finite_bits,
  narrow_exponents,  ///< -2 to 0: every term overlaps every other
  wide_exponents,
  cancellation,  ///< c = -(sum of products), a few ulp apart
  subnormals,
  near_overflow,     ///< products and c in the largest binades of the result
  mostly_zero,       ///< seven of ten operands are zeros of either sign
  dominant_product,  ///< one product 2 to 2^40 times the others
  specials,          ///< every kind of NaN, infinities, zeros, extremes
  single_special,    ///< one of them among ordinary numbers
  infinity_times_zero,
  opposite_infinities,
  huge_products,     ///< products past 2^128 that cancel (where the operands reach so far)
  tiny_sum,          ///< products around the grid of a zero c of either sign
  exact_zeros,       ///< every product is a zero
  integer_extremes,  ///< totals at the limits of 32 bits
};

std::string_view family_name(InputFamily family);

/// The families that say something about the row's types, in the order of the enumeration.
std::vector<InputFamily> input_families(const MatrixInstruction& row);

/// One dot product in the order the unit takes it (sparse operands gathered).
struct DotInputs {
  std::vector<std::uint64_t> a, b, a_scale, b_scale;
  std::uint64_t c = 0;

  emulator::DotOperands view() const { return {a, b, c, a_scale, b_scale}; }
};

/// Case `index` of a family. `products` is the number of products; 0: the row's.
DotInputs dot_inputs(const MatrixInstruction& row, InputFamily family, std::uint64_t seed,
                     std::uint64_t index, int products = 0);

/// A whole batch with the memory it lies in.
struct BatchInputs {
  std::vector<std::byte> a, b, c, e, a_scale, b_scale;
  std::ptrdiff_t misalignment = 0;  ///< bytes before the first element of every tensor
  std::int64_t count = 0;
  Shape shape{};

  /// The batch with D at `d`, which has room for count * m * n containers.
  emulator::MatrixBatch batch(const MatrixInstruction& row, std::byte* d) const;
};

/// `count` executions of one family. Open dimensions of the row are taken from `shape`.
BatchInputs batch_inputs(const MatrixInstruction& row, InputFamily family, std::uint64_t seed,
                         const Shape& shape, std::int64_t count, std::ptrdiff_t misalignment = 0);

/// Code of the number (-1)^negative * 2^exponent * 1.fraction in the format: clamped to its largest
/// number, subnormal below the normal range, never zero. `fraction` gives as many low bits as the
/// format has.
std::uint64_t code_with_exponent(const formats::Format& f, bool negative, int exponent,
                                 std::uint64_t fraction);

}  // namespace guardbit::tests
