#pragma once

#include <string_view>

#include "emulator/gemm/plan.hpp"

// The plan of a product of which only the machine is known.
namespace guardbit::emulator {

/// One ascending chain over K of the instruction that libraries of that machine usually take for
/// operands of these formats (usual_instruction.hpp): FP32 operands are multiplied as such, in TF32
/// only where `tf32` asks for it. Where a GPU has no matrix unit for FP32 or FP64, the
/// multiply-adds of its cores are taken. The result is rounded to `output` in the end.
/// formats::Error, beginning with `where`, if the machine is unknown or multiplies no such formats.
GemmPlan usual_plan(std::string_view arch, const Format& a, const Format& b, const Format& output,
                    bool tf32, std::string_view where);

/// The result's format where none is named: that of the operands, of 8 bits and fewer FP32 or
/// INT32.
Format usual_result(const Format& a);

}  // namespace guardbit::emulator
