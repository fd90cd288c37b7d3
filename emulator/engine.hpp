#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "emulator/batch.hpp"
#include "emulator/instruction.hpp"
#include "emulator/matrix_product.hpp"

namespace guardbit::emulator {

/// Anything that executes a row. Engines agree bit for bit; tests compare them. Most are models;
/// one that asks the hardware itself is there to judge them, so "auto" never takes it.
struct Engine {
  std::string_view name;
  std::string_view description;
  bool (*accepts)(const MatrixInstruction& row);
  /// Executes [begin, end) of the batch on the calling thread; `row` must be accepted.
  void (*run)(const MatrixInstruction& row, const MatrixBatch& batch, std::int64_t begin,
              std::int64_t end);
  /// A whole product at once, for engines that have a better way than execution after execution;
  /// as emulator::multiply (matrix_product.hpp), which calls it.
  void (*multiply)(const MatrixInstruction& row, const MatrixProduct& product,
                   int threads) = nullptr;
  /// The machine whose own units answer, as a recording names it; null for a model.
  std::string (*device)() = nullptr;
};

/// Every engine of this machine, the preferred first; the last is the reference, which accepts
/// every row.
std::span<const Engine> engines();

/// The engine of that name; "auto" is the first model that accepts the row. formats::Error when the
/// name is unknown or the engine does not take the row.
const Engine& require_engine(std::string_view name, const MatrixInstruction& row);

/// Executes a whole batch on `threads` threads (0: all the machine has). The result does not depend
/// on their number.
void run_batch(const Engine& engine, const MatrixInstruction& row, const MatrixBatch& batch,
               int threads = 0);

}  // namespace guardbit::emulator
