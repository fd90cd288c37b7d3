#pragma once

#include <span>
#include <string>
#include <string_view>

#include "emulator/gemm/plan.hpp"

// The table of plans: what the kernels of libraries were measured to do.
namespace guardbit::emulator {

/// A plan seen in the wild: what kernels of that name were measured to do. Where a kernel divides
/// K, the plan shows one division; the number of parts follows the shape.
struct LibraryPlan {
  /// cublas-13, cudnn-9, ...
  std::string_view library;
  std::string_view arch;
  /// pattern of kernel names; '*' stands for anything
  std::string_view kernel;
  /// as parse_plan reads it
  std::string_view plan;
  /// what varies with the call
  std::string_view note;
};

/// The table, likely rows before others.
std::span<const LibraryPlan> library_plans();

/// Does the kernel's name match the pattern? Anything may stand before and behind it.
bool matches_kernel(std::string_view pattern, std::string_view kernel);

/// The row that "LIBRARY:ARCH" or "LIBRARY:ARCH:KERNEL" means for these operands; formats::Error
/// that begins with `where` when there is none.
const LibraryPlan& require_library_plan(std::string_view name, const Format& a, const Format& b,
                                        std::string_view where);

}  // namespace guardbit::emulator
