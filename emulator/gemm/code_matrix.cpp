#include "emulator/gemm/code_matrix.hpp"

#include <cassert>
#include <cstring>
#include <utility>

namespace guardbit::emulator {

namespace {

std::size_t width_of(const Format& format) {
  return static_cast<std::size_t>(formats::container_bits(format) / 8);
}

std::size_t bytes_to(const CodeMatrix& matrix, std::int64_t place) {
  return static_cast<std::size_t>(place) * width_of(matrix.format);
}

/// `count` elements of a row, one after the other.
void copy_row(const std::byte* from, std::int64_t stride, std::int64_t count, std::size_t width,
              std::byte* to) {
  if (count == 0) return;  // of no columns, and perhaps of no memory
  if (stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * width);
    return;
  }
  for (std::int64_t j = 0; j < count; ++j, to += width)
    std::memcpy(to, from + j * stride * static_cast<std::int64_t>(width), width);
}

}  // namespace

void CodeMatrix::set(std::int64_t index, std::uint64_t code) {
  if (strides) *this = contiguous();
  codes_of(format, bytes.writable()).set(index, code);
}

ConstMatrix CodeMatrix::matrix(std::int64_t g) const {
  const Strides all = all_strides();
  return {codes_of(format, bytes.data() + bytes_to(*this, g * all.batch)), all.row, all.column};
}

Matrix CodeMatrix::writable_matrix(std::int64_t g) {
  assert(!strides);
  return {codes_of(format, bytes.writable() + bytes_to(*this, g * rows * columns)), columns, 1};
}

CodeMatrix CodeMatrix::part(std::int64_t i, std::int64_t rows_taken, std::int64_t j,
                            std::int64_t columns_taken) const {
  const bool is_whole = rows_taken == rows && columns_taken == columns;
  if (is_whole) return *this;
  CodeMatrix result{format, batch, rows_taken, columns_taken, {}};
  if (empty()) return result;
  result.bytes = bytes.from(bytes_to(*this, place(0, i, j)));
  result.strides = all_strides();
  if (!strides && batch == 1 && columns_taken == columns) {
    result.strides.reset();
    result.bytes = SharedBytes(
        std::span(result.bytes.data(), bytes_to(*this, rows_taken * columns)), bytes.owner());
  }
  return result;
}

CodeMatrix CodeMatrix::entries(std::int64_t g, std::int64_t count) const {
  CodeMatrix result = *this;
  result.batch = count;
  if (empty() || count == batch) return result;
  result.bytes = bytes.from(bytes_to(*this, g * all_strides().batch));
  if (!strides)
    result.bytes = SharedBytes(
        std::span(result.bytes.data(), bytes_to(*this, count * rows * columns)), bytes.owner());
  return result;
}

CodeMatrix CodeMatrix::transposed() const {
  CodeMatrix result = *this;
  const Strides all = all_strides();
  std::swap(result.rows, result.columns);
  result.strides = {all.batch, all.column, all.row};
  return result;
}

CodeMatrix CodeMatrix::contiguous() const {
  if (!strides) return *this;
  CodeMatrix copy = make_matrix(format, batch, rows, columns);
  copy_matrix(*this, copy, 0, 0, 0);
  return copy;
}

CodeMatrix make_matrix(const Format& format, std::int64_t batch, std::int64_t rows,
                       std::int64_t columns) {
  const std::int64_t size = batch * rows * columns;
  return {format, batch, rows, columns,
          SharedBytes(static_cast<std::size_t>(size) * width_of(format))};
}

void copy_element(const CodeMatrix& from, std::int64_t source, CodeMatrix& to, std::int64_t place) {
  assert(!to.strides);
  std::memcpy(to.bytes.writable() + bytes_to(to, place),
              from.bytes.data() + bytes_to(from, from.place(source)), width_of(from.format));
}

void copy_matrix(const CodeMatrix& from, CodeMatrix& to, std::int64_t g, std::int64_t i,
                 std::int64_t j) {
  assert(!to.strides);
  const std::int64_t stride = from.all_strides().column;
  std::byte* const memory = to.bytes.writable();
  for (std::int64_t h = 0; h < from.batch; ++h)
    for (std::int64_t r = 0; r < from.rows; ++r)
      copy_row(from.bytes.data() + bytes_to(from, from.place(h, r, 0)), stride, from.columns,
               width_of(from.format), memory + bytes_to(to, to.index(g + h, i + r, j)));
}

CodeMatrix matrix_of(const formats::Tensor& tensor) {
  const std::vector<std::int64_t>& shape = tensor.shape;
  assert(shape.size() == 2 || shape.size() == 3);
  return {tensor.format, shape.size() == 3 ? shape[0] : 1, shape[shape.size() - 2], shape.back(),
          SharedBytes(tensor.bytes, tensor.owner)};
}

formats::Tensor tensor_of(const CodeMatrix& matrix, std::string name,
                          std::vector<std::int64_t> shape) {
  const CodeMatrix all = matrix.contiguous();
  return {std::move(name),  all.format, formats::Packing::container,
          std::move(shape), all.bytes,  all.bytes.owner()};
}

}  // namespace guardbit::emulator
