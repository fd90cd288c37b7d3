#pragma once

#include <span>
#include <string_view>

#include "emulator/model/instruction.hpp"

namespace guardbit::tools {

/// An instruction whose speed the project keeps.
struct Case {
  std::string_view name;
  std::string_view arch, instruction;
  /// rate of a product on one thread over Eigen's; 0: none is set
  double goal = 0, moonshot = 0;
  /// of engine avx2, over Eigen compiled for AVX2
  double avx2_goal = 0, avx2_moonshot = 0;
};

std::span<const Case> cases();

/// Eigen multiplies in FP64 beside instructions of FP64, else in FP32.
bool is_double_precision(const emulator::MatrixInstruction& instruction);

}  // namespace guardbit::tools
