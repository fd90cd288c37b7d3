#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "emulator/gemm/atlas/leaf.hpp"
#include "emulator/gemm/atlas/product_call.hpp"
#include "emulator/gemm/atlas/scope.hpp"
#include "emulator/gemm/plan.hpp"

// The atlas: which plan a library takes for a call, from the call alone. It was made from recorded
// launches (docs/ATLAS.md).
namespace guardbit::emulator::atlas {

/// How the answer is known: recorded of this very call (a plan book, a usual shape); by a rule that
/// at least `rule_agrees` of 1000 recorded calls of its kind follow; by the recorded calls that are
/// most like it (nearest), which is right for most calls and wrong for some (docs/ATLAS.md); or not
/// (unknown), then the plan means nothing.
enum class Known : std::uint8_t { recorded, rule, nearest, unknown };
constexpr auto words(Known) { return std::array{"recorded", "rule", "nearest", "unknown"}; }

struct Answer {
  GemmPlan plan;
  Known known = Known::unknown;
  /// Of 1000 recorded calls of its kind at least so many agree; 1000 of a recorded one.
  int agree = 0;
  /// one line for the user
  std::string why;
};

/// The plan of a call. formats::Error for sizes below 1 or above 2^31 - 1, or strides that overlap.
Answer plan_of(const ProductCall& call);

/// torch.dot of K elements of FP32, FP16 or BF16, `contiguous`: both without gaps. cuBLAS'
/// dot_kernel with a block for each 128 elements: 41 results of an H200 of 34,443 FP32 elements,
/// one of 5,000 and one of 513 in FP16 have these bits.
GemmPlan plan_of_dot(const Format& type, std::int64_t k, bool contiguous);

}  // namespace guardbit::emulator::atlas
