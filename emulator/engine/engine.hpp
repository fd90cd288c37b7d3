#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "emulator/engine/matrix_product.hpp"
#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

// An engine is anything that executes instructions; this page says what each of them offers.
namespace guardbit::emulator {

/// Anything that executes an instruction. Engines agree bit for bit; tests compare them. Most are
/// models; one that asks the hardware itself is there to judge them, so "auto" never takes it.
struct Engine {
  std::string_view name;
  std::string_view description;
  bool (*accepts)(const MatrixInstruction& instruction);
  /// Executes [begin, end) of the batch on the calling thread; `instruction` must be accepted.
  void (*run)(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
              std::int64_t end);
  /// A whole product at once, for engines that have a better way than execution after execution;
  /// as emulator::multiply (matrix_product.hpp), which calls it.
  void (*multiply)(const MatrixInstruction& instruction, const MatrixProduct& product,
                   int threads) = nullptr;
  /// The machine whose own units answer, as a recording names it; null for a model.
  std::string (*device)() = nullptr;
};

}  // namespace guardbit::emulator
