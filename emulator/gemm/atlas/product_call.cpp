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

/// One operand's layout, as PyTorch hands it to the library.
struct Layout {
  bool transposed = false;
  std::int64_t leading = 0;
};

Layout layout_of(std::span<const std::int64_t> stride, std::int64_t rows, std::int64_t columns,
                 const char* what, std::string_view where) {
  if (stride.size() != 2 && stride.size() != 3)
    throw Error(std::string(where), std::string(what) + " needs 2 or 3 strides");
  const std::int64_t row = stride[stride.size() - 2], column = stride[stride.size() - 1];
  // A dimension of one element has no stride that counts.
  if ((column == 1 || columns == 1) && (row >= columns || rows == 1))
    return {false, rows == 1 ? 0 : row};
  if ((row == 1 || rows == 1) && (column >= rows || columns == 1))
    return {true, columns == 1 ? 0 : column};
  throw Error(std::string(where),
              std::string(what) + " has strides " + std::to_string(row) + " and " +
                  std::to_string(column) + ": such a matrix is copied before it is multiplied",
              "one stride of 1 and the other no less than the size beside it");
}

}  // namespace

ProductCall call_of(std::string_view op, std::string_view numbers, std::int64_t m, std::int64_t n,
                    std::int64_t k, std::int64_t batch, std::span<const std::int64_t> a_stride,
                    std::span<const std::int64_t> b_stride, std::string_view where) {
  if (op.starts_with("aten.")) op.remove_prefix(5);
  ProductCall call;
  call.op = require_word<Operator>(op, "the operator", where);
  call.numbers = require_word<Numbers>(numbers, "numbers", where);
  call.m = m;
  call.n = n;
  call.k = k;
  call.batch = batch;
  const Layout a = layout_of(a_stride, m, k, "A", where);
  const Layout b = layout_of(b_stride, k, n, "B", where);
  call.a_transposed = a.transposed;
  call.b_transposed = b.transposed;
  call.a_leading = a.leading;
  call.b_leading = b.leading;
  return call;
}

}  // namespace guardbit::emulator::atlas
