#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/engine/matrix_product.hpp"
#include "emulator/gemm/shared_bytes.hpp"
#include "emulator/model/batch.hpp"
#include "formats/format.hpp"
#include "formats/tensors/tensor.hpp"

// Matrices of codes as products take them: views of files, of tensors and of each other.
namespace guardbit::emulator {

using formats::Format;

/// How far apart neighbours lie, in elements.
struct Strides {
  std::int64_t batch = 0, row = 0, column = 1;
};

/// `batch` matrices of codes, one per container, in memory that they share: copies, transposed
/// matrices and parts of a matrix are views of the same memory, until one of them is written to.
struct CodeMatrix {
  Format format{};
  std::int64_t batch = 1, rows = 0, columns = 0;
  /// from the first element on
  SharedBytes bytes;
  /// nothing: rows side by side, one after the other
  std::optional<Strides> strides = {};

  bool empty() const { return bytes.empty(); }
  std::int64_t size() const { return batch * rows * columns; }
  /// The number of an element, row by row, wherever it lies.
  std::int64_t index(std::int64_t g, std::int64_t i, std::int64_t j) const {
    return (g * rows + i) * columns + j;
  }
  std::uint64_t operator[](std::int64_t index) const { return at(place(index)); }
  std::uint64_t operator()(std::int64_t g, std::int64_t i, std::int64_t j) const {
    return at(place(g, i, j));
  }
  /// The code of element number `index`, at the place of its container where the format keeps it.
  void set(std::int64_t index, std::uint64_t code);
  /// One batch entry.
  ConstMatrix matrix(std::int64_t g) const;
  /// The same, to write to; the matrix must lie row by row.
  Matrix writable_matrix(std::int64_t g);

  /// Views of rows [i, i + rows_taken) and columns [j, j + columns_taken) of every entry, and of
  /// entries [g, g + count).
  CodeMatrix part(std::int64_t i, std::int64_t rows_taken, std::int64_t j,
                  std::int64_t columns_taken) const;
  CodeMatrix entries(std::int64_t g, std::int64_t count) const;
  CodeMatrix transposed() const;
  /// The matrix itself where it lies row by row without gaps, else a copy that does.
  CodeMatrix contiguous() const;

  Strides all_strides() const { return strides ? *strides : Strides{rows * columns, columns, 1}; }
  /// Where an element lies, in elements from the first.
  std::int64_t place(std::int64_t g, std::int64_t i, std::int64_t j) const {
    if (!strides) return index(g, i, j);
    return g * strides->batch + i * strides->row + j * strides->column;
  }
  std::int64_t place(std::int64_t index) const {
    if (!strides) return index;
    const std::int64_t line = index / columns;
    return place(line / rows, line % rows, index % columns);
  }

 private:
  std::uint64_t at(std::int64_t place) const { return codes_of(format, bytes.data())[place]; }
};

/// Zeros of that shape.
CodeMatrix make_matrix(const Format& format, std::int64_t batch, std::int64_t rows,
                       std::int64_t columns);
/// Copies the container of one element; both matrices have one format.
void copy_element(const CodeMatrix& from, std::int64_t source, CodeMatrix& to, std::int64_t place);
/// Copies all of `from` to the place that begins at element (g, i, j) of `to`, of the same format.
void copy_matrix(const CodeMatrix& from, CodeMatrix& to, std::int64_t g, std::int64_t i,
                 std::int64_t j);
/// A tensor of two or three dimensions, where it lies.
CodeMatrix matrix_of(const formats::Tensor& tensor);
/// The matrix as a tensor, where it lies.
formats::Tensor tensor_of(const CodeMatrix& matrix, std::string name,
                          std::vector<std::int64_t> shape);

}  // namespace guardbit::emulator
