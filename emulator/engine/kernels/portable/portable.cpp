#include "emulator/engine/kernels/portable/portable.hpp"

#include "emulator/engine/kernels/portable/portable_fused.hpp"
#include "emulator/engine/kernels/portable/portable_integer.hpp"

namespace guardbit::emulator::portable {

bool accepts(const MatrixInstruction& row) { return is_integer_row(row) || is_fused_row(row); }

void run(const MatrixInstruction& row, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end) {
  if (is_integer_row(row)) {
    run_integer(row, batch, begin, end);
  } else {
    run_fused(row, batch, begin, end);
  }
}

}  // namespace guardbit::emulator::portable
