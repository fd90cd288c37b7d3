#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "emulator/gemm/plan.hpp"

// The atlas: which plan a library takes for a call, from the call alone. It was made from recorded
// launches (docs/ATLAS.md).
namespace guardbit::emulator::atlas {

/// What a program asks PyTorch for. addmm: a bias of [N], alpha and beta 1.
enum class Operator : std::uint8_t { mm, addmm, bmm };
constexpr auto words(Operator) { return std::array{"mm", "addmm", "bmm"}; }

/// What is multiplied and what D is; tf32: FP32 tensors with TF32 allowed.
enum class Numbers : std::uint8_t { f16, bf16, tf32, f32 };
constexpr auto words(Numbers) { return std::array{"f16", "bf16", "tf32", "f32"}; }

/// One call: D [M, N] = A [M, K] * B [K, N], for each of `batch` entries. Tensors begin at
/// multiples of 512 bytes.
struct ProductCall {
  Operator op = Operator::mm;
  Numbers numbers = Numbers::f32;
  std::int64_t m = 1, n = 1, k = 1, batch = 1;
  /// Column-major: the stride of rows is 1, that of columns `leading`.
  bool a_transposed = false, b_transposed = false;
  /// elements from one row (transposed: column) to the next; 0: as many as it has, none between
  std::int64_t a_leading = 0, b_leading = 0;
};

/// For what the atlas holds.
struct Scope {
  std::string_view library = "cublas-13", arch = "sm_90", framework = "PyTorch 2.11.0, CUDA 13.0";
  int multiprocessors = 132;
};
inline constexpr Scope scope = {};

/// How the answer is known: the kind of call was recorded and every recorded call like it has this
/// plan (rule); most have it (nearest); or nothing like it was recorded (unknown), then the plan is
/// empty.
enum class Known : std::uint8_t { rule, nearest, unknown };
constexpr auto words(Known) { return std::array{"rule", "nearest", "unknown"}; }

struct Answer {
  GemmPlan plan;
  Known known = Known::unknown;
  /// one line for the user
  std::string why;
};

/// The plan of a call. formats::Error for sizes below 1 or above 2^31 - 1, or strides that overlap.
Answer plan_of(const ProductCall& call);

/// The call of matrices with these strides, in elements: [rows, columns], of bmm [batch, rows,
/// columns]. formats::Error, beginning with `where`, for strides that a library's matrix cannot
/// have.
ProductCall call_of(std::string_view op, std::string_view numbers, std::int64_t m, std::int64_t n,
                    std::int64_t k, std::int64_t batch, std::span<const std::int64_t> a_stride,
                    std::span<const std::int64_t> b_stride, std::string_view where);

}  // namespace guardbit::emulator::atlas
