#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "emulator/model/instruction.hpp"

namespace guardbit::emulator {

/// Does D depend on C? A row found by a probe without an addend has no step that reads it.
bool takes_addend(const MatrixInstruction& row);

/// How a row that takes no addend goes on beyond its K. Its one step is a chain of several blocks,
/// each block's result being the next one's addend: so is the last block's to the block that
/// follows. Or it is a sum of integers that wraps, which has no order.
struct Continuation {
  MatrixInstruction row;    ///< the same arithmetic; the addend of the first block is C
  std::uint64_t begin = 0;  ///< that addend where a sum begins, in C's format
  int shortest = 1;         ///< elements of K of whole blocks, sparse groups and scales

  /// The row with a K of at least `k` elements, rounded up to whole blocks: what the chain needs,
  /// and no zero products after it.
  MatrixInstruction shortened(std::int64_t k) const;
};

/// Nothing where the row takes an addend, and where its steps do not show how it goes on: one block
/// over the whole K, or several steps.
std::optional<Continuation> continuation_of(const MatrixInstruction& row);

/// Can executions of the row follow one another, each taking the sum of those before it?
bool can_be_chained(const MatrixInstruction& row);

/// formats::Error, beginning with `where`, for a sum over k elements of K that is longer than one
/// execution of a row that cannot be chained.
void require_chain(const MatrixInstruction& row, std::int64_t k, std::string_view where);

}  // namespace guardbit::emulator
