#include "emulator/gemm/atlas/product_call.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"

namespace guardbit::emulator::atlas {

namespace {

using formats::Error;

template <class Enum>
Enum require_word(std::string_view word, std::string_view what, std::string_view where) {
  if (const auto found = formats::find_word<Enum>(word)) return *found;
  throw Error(std::string(where),
              "the atlas does not know " + std::string(what) + " " + formats::in_quotes(word),
              formats::list_of_words<Enum>());
}

Layout require_layout(const std::vector<std::int64_t>& stride, std::int64_t rows,
                      std::int64_t columns, const char* what, std::string_view where) {
  if (stride.size() != 2 && stride.size() != 3)
    throw Error(std::string(where), std::string(what) + " needs 2 or 3 strides");
  const std::int64_t row = stride[stride.size() - 2], column = stride[stride.size() - 1];
  if (const auto layout = layout_of(rows, columns, row, column)) return *layout;
  throw Error(std::string(where),
              std::string(what) + " has strides " + std::to_string(row) + " and " +
                  std::to_string(column) + ": such a matrix is copied before it is multiplied",
              "one stride of 1 and the other no less than the size beside it");
}

std::vector<std::int64_t> strides_of(char layout, const StridedCall& call, std::int64_t rows,
                                     std::int64_t columns) {
  std::vector<std::int64_t> stride = {columns, 1};
  if (layout == 'T') stride = {1, rows};
  if (call.op.ends_with("bmm")) stride.insert(stride.begin(), rows * columns);
  return stride;
}

/// Do a matrix's entries lie beside each other, as heads of one sequence do: rows (transposed:
/// columns) of all entries, one after the other?
bool lies_beside(const ProductCall& call, std::int64_t step, std::int64_t length,
                 std::int64_t leading) {
  return step == length && leading >= call.batch * length && leading % length == 0;
}

/// With heads beside each other in A and B 137,000 of 137,000 scores, and in B alone all but two of
/// 138,000 products with them, launched what those without gaps did, of up to so many positions.
constexpr std::int64_t most_positions = 512;

void set_batches(ProductCall& call, std::int64_t a_step, std::int64_t b_step) {
  const std::int64_t of_a = call.m * call.k, of_b = call.k * call.n;
  const bool a_beside =
      lies_beside(call, a_step, call.a_transposed ? call.m : call.k, call.a_leading);
  const bool b_beside =
      lies_beside(call, b_step, call.b_transposed ? call.k : call.n, call.b_leading);
  if (std::max({call.m, call.n, call.k}) <= most_positions && b_beside &&
      (a_beside || a_step == of_a)) {
    call.a_leading = call.b_leading = 0;
    return;
  }
  call.whole_batches =
      (a_step == of_a && (b_step == of_b || b_step == 0)) || (a_step == 0 && b_step == of_b);
}

/// Of rows of A that lie apart, as the last tokens of sequences do: 258,000 calls with rows at
/// multiples of their length, 4,200 of FP32 at any distance and 1,000 others at distances that as
/// large powers of two divide launched what those without gaps did, all but one. They had 2 to 256
/// rows of 8 elements or more, and several columns in B.
bool launches_as_without_gaps(const ProductCall& call) {
  constexpr std::int64_t most_rows = 256, least = 8;
  if (call.op == Operator::bmm || call.a_transposed || call.a_leading <= call.k) return false;
  if (call.m > most_rows || call.k < least || call.n == 1) return false;
  if (call.leading_of_b() != (call.b_transposed ? call.k : call.n)) return false;
  if (call.numbers == Numbers::f32) return true;
  const std::int64_t at_once = call.numbers == Numbers::tf32 ? 4 : 8;  // elements of 16 bytes
  return std::gcd(call.a_leading, at_once) >= std::gcd(call.k, at_once);
}

}  // namespace

std::optional<Layout> layout_of(std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                                std::int64_t column_stride) {
  // A dimension of one element has no stride that counts.
  if ((column_stride == 1 || columns == 1) && (row_stride >= columns || rows == 1))
    return Layout{false, rows == 1 ? 0 : row_stride};
  if ((row_stride == 1 || rows == 1) && (column_stride >= rows || columns == 1))
    return Layout{true, columns == 1 ? 0 : column_stride};
  return std::nullopt;
}

void set_layout(StridedCall& call, std::string_view layout, std::string_view where) {
  if (layout != "NN" && layout != "NT" && layout != "TN" && layout != "TT")
    throw Error(std::string(where), "unknown layout " + formats::in_quotes(layout),
                "NN, NT, TN, TT: A and B row-major (N) or column-major (T)");
  call.a_stride = strides_of(layout[0], call, call.m, call.k);
  call.b_stride = strides_of(layout[1], call, call.k, call.n);
}

ProductCall call_of(const StridedCall& strided, std::string_view where) {
  std::string_view op = strided.op, numbers = strided.numbers;
  if (op.starts_with("aten.")) op.remove_prefix(5);
  if (numbers == "f16") numbers = "fp16";
  if (numbers == "f32") numbers = "fp32";
  ProductCall call;
  call.op = require_word<Operator>(op, "the operator", where);
  call.numbers = require_word<Numbers>(numbers, "numbers", where);
  call.m = strided.m;
  call.n = strided.n;
  call.k = strided.k;
  call.batch = strided.batch;
  const Layout a = require_layout(strided.a_stride, call.m, call.k, "A", where);
  const Layout b = require_layout(strided.b_stride, call.k, call.n, "B", where);
  call.a_transposed = a.transposed;
  call.b_transposed = b.transposed;
  call.a_leading = a.leading;
  call.b_leading = b.leading;
  const auto step_of = [&](const std::vector<std::int64_t>& stride, std::int64_t elements) {
    return call.batch == 1 || stride.size() < 3 ? elements : stride[0];
  };
  set_batches(call, step_of(strided.a_stride, call.m * call.k),
              step_of(strided.b_stride, call.k * call.n));
  if (launches_as_without_gaps(call)) call.a_leading = 0;
  return call;
}

std::int64_t tile_of_parts(bool is_fp32, std::int64_t k, bool contiguous) {
  const std::int64_t tile = is_fp32 ? 4 : 8, line = 8 * tile;
  return contiguous && k % line == 0 ? line : tile;
}

}  // namespace guardbit::emulator::atlas
