#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "emulator/model/instruction.hpp"

// Instructions without an addend: how a product longer than their K can be computed with them.
namespace guardbit::emulator {

/// True if D depends on C. An instruction found by a probe without an addend has no step that reads
/// it.
bool takes_addend(const MatrixInstruction& instruction);

/// How an instruction that takes no addend goes on beyond its K. Its one step is a chain of several
/// blocks, each block's result being the next one's addend: so is the last block's to the block
/// that follows. Or it is a sum of integers that wraps, which has no order.
struct Continuation {
  /// the same arithmetic; the addend of the first block is C
  MatrixInstruction instruction;
  /// that addend where a sum begins, in C's format
  std::uint64_t begin = 0;
  /// elements of K of whole blocks, sparse groups and scales
  int shortest = 1;

  /// The instruction with a K of at least `k` elements, rounded up to whole blocks: what the chain
  /// needs, and no zero products after it.
  MatrixInstruction shortened(std::int64_t k) const;
};

/// Nothing if the instruction takes an addend, or if its steps do not show how it goes on: one
/// block over the whole K, or several steps.
std::optional<Continuation> continuation_of(const MatrixInstruction& instruction);

/// True if executions of the instruction can follow one another, each taking the sum of those
/// before.
bool can_be_chained(const MatrixInstruction& instruction);

/// formats::Error, beginning with `where`, for a sum over k elements of K that is longer than one
/// execution of an instruction that cannot be chained.
void require_chain(const MatrixInstruction& instruction, std::int64_t k, std::string_view where);

}  // namespace guardbit::emulator
