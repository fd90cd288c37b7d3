#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/engine/engine.hpp"
#include "emulator/model/instruction.hpp"
#include "formats/format.hpp"

// Products of attention kernels on the matrix unit: operands in a tensor's type, sums in FP32.
namespace guardbit::emulator::attention {

/// Which operand of a product lines are.
enum class Side : std::uint8_t { a, b };

/// Numbers in the order in which a kernel reads them. A line that is absent is zero.
struct Numbers {
  const float* data = nullptr;
  std::int64_t line_stride = 0, k_stride = 1;
};

/// Lines of an operand, as codes of the unit.
struct Lines {
  std::vector<std::byte> codes;
  /// elements of K in a line
  std::int64_t k = 0;
  std::int64_t line_bytes = 0;
};

/// Some lines, from an element of K on.
struct Part {
  const Lines& lines;
  std::int64_t first = 0, k = 0;
};

/// The unit. FP16 and BF16 operands are multiplied in blocks of 8 or 16 products. FP32 operands are
/// cut into two TF32 numbers (3xTF32): in each step of 8 the three products of pieces with the
/// small ones first, and the sum of some steps is added to the accumulator by an FP32 addition.
class Unit {
 public:
  Unit(const formats::Format& type, int products);

  /// `residue_first`: where K is no multiple of the kernel's tile of 32, the first tile is the
  /// short one. It only matters for FP32, whose sums are added tile by tile.
  Lines pack(Side side, const Numbers& numbers, std::int64_t lines, std::int64_t k,
             bool residue_first = false) const;
  /// d[i, j] = the chain over `k` elements of A's line i and B's line j, which begins with d[i, j],
  /// or with 0 if `is_fresh`.
  void multiply(const Part& a, const Part& b, std::int64_t m, std::int64_t n, std::int64_t k,
                float* d, std::int64_t d_stride, bool is_fresh) const;

 private:
  bool is_cut() const { return type_ == formats::fp32; }
  void run(const Part& a, const Part& b, std::int64_t m, std::int64_t n, std::int64_t k, float* d,
           std::int64_t d_stride, bool is_fresh) const;

  formats::Format type_;
  MatrixInstruction instruction_;
  const Engine* engine_;
};

}  // namespace guardbit::emulator::attention
