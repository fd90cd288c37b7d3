#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

// Matrix products of any size by chains of one instruction. An engine with a kernel for whole
// products uses it; the others execute the instruction again and again.
namespace guardbit::emulator {

struct Engine;

/// A matrix of codes in memory: element (i, j) is codes[i * row_stride + j * column_stride].
struct ConstMatrix {
  ConstCodes codes;
  std::int64_t row_stride = 0, column_stride = 1;

  std::uint64_t operator()(std::int64_t i, std::int64_t j) const {
    return codes[i * row_stride + j * column_stride];
  }
  /// The matrix that begins at element (i, j).
  ConstMatrix from(std::int64_t i, std::int64_t j) const {
    ConstMatrix part = *this;
    if (part.codes.data != nullptr)
      part.codes.data += (i * row_stride + j * column_stride) * codes.container_bytes;
    return part;
  }
};

struct Matrix {
  Codes codes;
  std::int64_t row_stride = 0, column_stride = 1;

  void set(std::int64_t i, std::int64_t j, std::uint64_t code) const {
    codes.set(i * row_stride + j * column_stride, code);
  }
  Matrix from(std::int64_t i, std::int64_t j) const {
    Matrix part = *this;
    part.codes.data += (i * row_stride + j * column_stride) * codes.container_bytes;
    return part;
  }
};

/// D = A * B + C of any size: each element of D is one ascending chain over K of executions of an
/// instruction, D of one being C of the next; the last execution, where shorter, is padded with +0
/// products.
struct MatrixProduct {
  std::int64_t m = 0, n = 0, k = 0;
  /// [m, stored k]
  ConstMatrix a;
  /// [k, n]
  ConstMatrix b;
  /// [m, n]; not read with modifiers.zero_addend
  ConstMatrix c;
  /// [m, n]; may be the very matrix c
  Matrix d;
  /// like a: metadata of sparse instructions
  ConstMatrix e{};
  /// [m, scales], [scales, n]: `scale.count` for each execution
  ConstMatrix a_scale, b_scale;
  Modifiers modifiers{};
  /// Asked now and then, from any thread; once it says true, what is left of D is not computed.
  const std::function<bool()>* stop = nullptr;

  bool is_stopped() const { return stop != nullptr && (*stop)(); }

  /// Rows [i, i + rows) and columns [j, j + columns) of D.
  MatrixProduct part(std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t columns) const;
};

/// The instruction's scales along a K of that length.
std::int64_t scales_along(const MatrixInstruction& instruction, std::int64_t k);

/// formats::Error, beginning with `where`, unless K is at least 1 and whole groups of a sparse
/// instruction.
void require_k(const MatrixInstruction& instruction, std::int64_t k, std::string_view where);

/// formats::Error, beginning with `where`, unless the instruction can form a product of that K:
/// executions that can be chained where one is not enough (continuation.hpp), whole groups of a
/// sparse instruction.
void require_product(const MatrixInstruction& instruction, std::int64_t k, std::string_view where);

/// Computes the product on `threads` threads (0: all the machine has); the result does not depend
/// on their number. `engine` must accept the instruction, and the product must be one that
/// `require_product` allows; formats::Error where executions cannot be chained. An instruction that
/// takes no addend begins with the constant of its own step, or goes on from C without
/// `modifiers.zero_addend`, where it is known how (continuation.hpp); the last execution then ends
/// with the last block.
void multiply(const Engine& engine, const MatrixInstruction& instruction,
              const MatrixProduct& product, int threads = 0);

}  // namespace guardbit::emulator
