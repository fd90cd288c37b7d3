#include "emulator/catalogue/usual_instruction.hpp"

#include <tuple>

namespace guardbit::emulator {

namespace {

/// Volta's m8n8k4, which later machines compute on CUDA cores (NUMERICS 1.5).
bool is_scalar(const MatrixInstruction& row) {
  return row.shape == Shape{8, 8, 4} && row.steps.count > 1;
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
    case Family::avx: break;
  }
  return 7;
}

std::optional<MatrixInstruction> usual_instruction(
    std::string_view page, const ProductFormats& formats, int toolkit,
    const std::function<bool(const MatrixInstruction&)>& suits) {
  const MatrixInstruction* best = nullptr;
  const auto place = [](const MatrixInstruction& row) {
    return std::tuple(usual_rank(row.family), -row.shape.k);
  };
  for (const MatrixInstruction& row : catalogue()) {
    const bool fits = row.arch == page && row.a == formats.a && row.b == formats.b &&
                      row.c == formats.result && row.d == formats.result &&
                      row.sparsity.group_elements == 0 && row.toolkit.includes(toolkit);
    if (!fits || is_scalar(row) || !(suits ? suits(row) : row.scale.count == 0)) continue;
    if (best == nullptr || place(row) < place(*best)) best = &row;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

}  // namespace guardbit::emulator
