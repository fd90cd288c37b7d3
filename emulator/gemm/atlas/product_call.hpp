#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

// A matrix product as a program asks for it.
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

/// The call of matrices with these strides, in elements: [rows, columns], of bmm [batch, rows,
/// columns]. formats::Error, beginning with `where`, for strides that a library's matrix cannot
/// have.
ProductCall call_of(std::string_view op, std::string_view numbers, std::int64_t m, std::int64_t n,
                    std::int64_t k, std::int64_t batch, std::span<const std::int64_t> a_stride,
                    std::span<const std::int64_t> b_stride, std::string_view where);

}  // namespace guardbit::emulator::atlas
