#pragma once

#include <cstdint>
#include <string_view>

#include "emulator/batch.hpp"
#include "emulator/engine.hpp"
#include "emulator/instruction.hpp"

namespace guardbit::emulator {

/// Products over any K: one ascending chain of executions of the row, D of one being C of the next;
/// the last one, where shorter, is padded with +0 products. `batch` is as for run_batch, except
/// that shape.k may be any positive number. The row must be dense and unscaled, and C and D of one
/// format where the chain is longer than one execution; formats::Error otherwise, beginning with
/// `where`.
void run_chain(const Engine& engine, const MatrixInstruction& row, const MatrixBatch& batch,
               int threads, std::string_view where);

/// The check alone.
void require_chain(const MatrixInstruction& row, std::int64_t k, std::string_view where);

}  // namespace guardbit::emulator
