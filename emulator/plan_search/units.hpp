#pragma once

// The units that may have computed a capture. Input: the operands' formats and the machine. Output:
// instructions or CUDA cores' multiply-adds, each with a conversion of the operands, likely ones
// first. candidates.cpp combines them with partitions of K.

#include <string_view>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"
#include "emulator/model/instruction.hpp"

namespace guardbit::emulator {

/// K as Triton brings operands of 16 bits that it widens to TF32 to the unit: a lane holds pairs of
/// neighbours and gives one of them to each instruction.
inline constexpr LoadOrder widened_pairs = {8, 2, 1};

/// A unit and how operands and the addend reach it.
struct UnitChoice {
  GemmUnit unit;
  InputConversion input;
  LoadOrder loads = {};
  Epilogue::AlphaOn alpha_on = Epilogue::AlphaOn::sum;
  /// used if `alpha_on` is an operand
  double alpha = 1;
  /// initial: its first chain begins with the addend; else the epilogue adds it in one of the ways
  Epilogue::Addition addition = Epilogue::Addition::fma_product;
  /// used if `addition` is initial
  double beta = 0;

  /// Does it take a tile of K pair by pair of pieces?
  bool is_tiled() const { return input.run != 0; }
  /// Is it one that Triton's compiler makes of the operands, and libraries do not?
  bool is_of_compilers() const { return is_tiled() || loads == widened_pairs; }
};

/// Sets the plan's unit, conversion, loads, alpha and what the first chain begins with.
void apply(const UnitChoice& choice, GemmPlan& plan);

/// The machine's instructions for operands of formats a and b, with D in `d` if that is given.
/// Instructions with the same arithmetic are given once; likely ones first.
std::vector<const MatrixInstruction*> instructions_for(std::string_view arch, const Format& a,
                                                       const Format& b, bool sparse,
                                                       const Format* d = nullptr);

/// Is C or a bias added to the capture's product?
bool has_addend(const GemmCapture& capture);

/// The units that may have multiplied the capture's operands, likely ones first.
std::vector<UnitChoice> units_for(const GemmCapture& capture, std::string_view arch);

}  // namespace guardbit::emulator
