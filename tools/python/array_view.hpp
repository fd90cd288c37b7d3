#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emulator/gemm/code_matrix.hpp"
#include "formats/format.hpp"
#include "formats/tensors/tensor.hpp"

// Arrays of Python as the libraries take them: views of the caller's memory.
namespace guardbit::python {

namespace nb = nanobind;

/// Codes of a format, one per element, in memory that Python keeps alive.
struct Array {
  formats::Format format;
  std::vector<std::int64_t> shape;
  /// in elements
  std::vector<std::int64_t> strides;
  const std::byte* data = nullptr;
  /// null where the memory is read only
  std::byte* writable = nullptr;
  /// what errors call it
  std::string name;
  std::shared_ptr<const void> owner;

  std::int64_t size() const { return formats::element_count(shape); }
  bool is_contiguous() const;
  /// The array row by row: a view of the memory, or a copy where that lies otherwise.
  formats::Tensor tensor() const;
  /// The same of two or three dimensions, a view wherever it lies; formats::Error for others.
  emulator::CodeMatrix matrix() const;
  /// A vector or a scalar as a column, or as a row; otherwise the same.
  emulator::CodeMatrix vector_or_matrix(bool as_column) const;
  /// The memory to write a result of that format and shape to. formats::Error if it is not such
  /// memory.
  std::span<std::byte> output(const formats::Format& of,
                              const std::vector<std::int64_t>& expected) const;
};

void bind_arrays(nb::module_& module);

}  // namespace guardbit::python
