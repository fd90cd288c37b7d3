#pragma once

#include <string_view>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"
#include "emulator/model/instruction.hpp"

namespace guardbit::emulator {

/// A unit with what becomes of its operands.
struct UnitChoice {
  GemmUnit unit;
  InputConversion input;
  LoadOrder loads = {};
  Epilogue::AlphaOn alpha_on = Epilogue::AlphaOn::sum;
  double alpha = 1;  ///< where it is an operand's
};

/// Gives the plan the unit and what belongs to it.
void choose(const UnitChoice& choice, GemmPlan& plan);

/// Rows of the machine that multiply these formats, one of each arithmetic, the likely first.
std::vector<const MatrixInstruction*> rows_for(std::string_view arch, const Format& a,
                                               const Format& b, bool sparse,
                                               const Format* d = nullptr);

/// What may have multiplied a capture's operands, the likely units first.
std::vector<UnitChoice> units_for(const GemmCapture& capture, std::string_view arch);

}  // namespace guardbit::emulator
