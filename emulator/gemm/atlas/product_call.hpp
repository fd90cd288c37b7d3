#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A matrix product as a program asks for it.
namespace guardbit::emulator::atlas {

/// What a program asks PyTorch for. addmm: a bias of [N], alpha and beta 1.
enum class Operator : std::uint8_t { mm, addmm, bmm };
constexpr auto words(Operator) { return std::array{"mm", "addmm", "bmm"}; }

/// What is multiplied and what D is; tf32: FP32 tensors with TF32 allowed.
enum class Numbers : std::uint8_t { f16, bf16, tf32, f32 };
constexpr auto words(Numbers) { return std::array{"fp16", "bf16", "tf32", "fp32"}; }

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
  /// whether each entry of the batch begins where the one before ends, in A and in B, or all are
  /// one in A or in B: 265,000 of 265,000 such calls launched what was recorded without gaps; or
  /// their rows lie beside each other, as those of heads do
  bool whole_batches = true;

  std::int64_t leading_of_a() const { return a_leading != 0 ? a_leading : a_transposed ? m : k; }
  std::int64_t leading_of_b() const { return b_leading != 0 ? b_leading : b_transposed ? k : n; }
};

/// The same in words and strides, as files and command lines have it.
struct StridedCall {
  /// of Operator; aten. may stand before it
  std::string op;
  /// of Numbers; f16 and f32 are read, too
  std::string numbers;
  std::int64_t m = 1, n = 1, k = 1, batch = 1;
  /// in elements: of rows and columns, of bmm also of entries of the batch, before them
  std::vector<std::int64_t> a_stride, b_stride;
};

/// How a library takes a matrix: as `a_transposed` and `a_leading` of ProductCall say.
struct Layout {
  bool transposed = false;
  std::int64_t leading = 0;
};
/// Nothing: neither its rows nor its columns are without gaps; PyTorch copies such a matrix first.
std::optional<Layout> layout_of(std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                                std::int64_t column_stride);

/// The strides of A and B without gaps: row-major (N) or column-major (T), as in "NT".
/// formats::Error, beginning with `where`, for other words.
void set_layout(StridedCall& call, std::string_view layout, std::string_view where);

/// formats::Error, beginning with `where`, for words that the atlas does not know, and for strides
/// that a library's matrix cannot have.
ProductCall call_of(const StridedCall& call, std::string_view where);

/// Elements of K that a CUTLASS kernel's parts are multiples of: 16 bytes; or 128, a line of the
/// cache, where they divide K and a row of A or a column of B is contiguous.
std::int64_t tile_of_parts(bool is_fp32, std::int64_t k, bool contiguous);

}  // namespace guardbit::emulator::atlas
