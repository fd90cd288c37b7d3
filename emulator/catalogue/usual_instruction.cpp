#include "emulator/catalogue/usual_instruction.hpp"

#include <tuple>

namespace guardbit::emulator {

namespace {

/// Volta's m8n8k4, which later machines compute on CUDA cores (NUMERICS 1.5).
bool is_scalar(const MatrixInstruction& instruction) {
  return instruction.shape == Shape{8, 8, 4} && instruction.steps.count > 1;
}

}  // namespace

int usual_rank(Family family) {
  switch (family) {
    case Family::tcgen05:
    case Family::tcgen05_sp: return 0;
    case Family::wgmma:
    case Family::wgmma_sp: return 1;
    case Family::mma:
    case Family::mma_sp: return 2;
    case Family::wmma: return 3;
    case Family::mfma: return 4;
    case Family::tpu: return 5;
    case Family::amx: return 6;
    case Family::vector_dot: return 7;
    case Family::avx: break;
  }
  return 8;
}

std::optional<MatrixInstruction> usual_instruction(
    std::string_view page, const ProductFormats& formats, int toolkit,
    const std::function<bool(const MatrixInstruction&)>& suits) {
  const MatrixInstruction* best = nullptr;
  const auto place = [](const MatrixInstruction& instruction) {
    return std::tuple(usual_rank(instruction.family), -instruction.shape.k);
  };
  for (const MatrixInstruction& instruction : catalogue()) {
    const bool fits = instruction.arch == page && instruction.a == formats.a &&
                      instruction.b == formats.b && instruction.c == formats.result &&
                      instruction.d == formats.result && instruction.sparsity.group_elements == 0 &&
                      instruction.toolkit.includes(toolkit);
    if (!fits || is_scalar(instruction) ||
        !(suits ? suits(instruction) : instruction.scale.count == 0))
      continue;
    if (best == nullptr || place(instruction) < place(*best)) best = &instruction;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

}  // namespace guardbit::emulator
