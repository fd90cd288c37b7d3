#include "emulator/engine/kernels/portable/portable.hpp"

#include "emulator/engine/kernels/portable/portable_fused.hpp"
#include "emulator/engine/kernels/portable/portable_integer.hpp"

namespace guardbit::emulator::portable {

bool accepts(const MatrixInstruction& instruction) {
  return is_integer_instruction(instruction) || is_fused_instruction(instruction);
}

void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end) {
  if (is_integer_instruction(instruction)) {
    run_integer(instruction, batch, begin, end);
  } else {
    run_fused(instruction, batch, begin, end);
  }
}

}  // namespace guardbit::emulator::portable
