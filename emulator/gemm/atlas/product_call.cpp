#include "emulator/gemm/atlas/product_call.hpp"

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
  const std::int64_t of_a = call.m * call.k, of_b = call.k * call.n;
  const std::int64_t a_step = step_of(strided.a_stride, of_a);
  const std::int64_t b_step = step_of(strided.b_stride, of_b);
  call.whole_batches =
      (a_step == of_a && (b_step == of_b || b_step == 0)) || (a_step == 0 && b_step == of_b);
  return call;
}

std::int64_t tile_of_parts(bool is_fp32, std::int64_t k, bool contiguous) {
  const std::int64_t tile = is_fp32 ? 4 : 8, line = 8 * tile;
  return contiguous && k % line == 0 ? line : tile;
}

}  // namespace guardbit::emulator::atlas
