#include "tools/python/array_view.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/capture/bound_operands.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::python {

namespace {

using formats::Error;

std::size_t bytes_of(const formats::Format& format) {
  return static_cast<std::size_t>(formats::container_bits(format)) / 8;
}

/// Copies the elements row by row.
void gather(const Array& array, std::byte* to) {
  const std::size_t width = bytes_of(array.format);
  const std::size_t dimensions = array.shape.size();
  std::vector<std::int64_t> index(dimensions, 0);
  const std::int64_t count = array.size();
  for (std::int64_t i = 0; i < count; ++i, to += width) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < dimensions; ++d) place += index[d] * array.strides[d];
    std::memcpy(to, array.data + place * static_cast<std::int64_t>(width), width);
    for (std::size_t d = dimensions; d-- > 0;) {
      if (++index[d] < array.shape[d]) break;
      index[d] = 0;
    }
  }
}

template <class Memory>
Array array_of(const Memory& memory, const std::string& format, std::string name) {
  Array array;
  array.format = formats::require_format(format, name);
  array.name = std::move(name);
  if (memory.itemsize() != bytes_of(array.format))
    throw Error(array.name, "elements of " + std::to_string(memory.itemsize()) +
                                " bytes are no codes of " + format + ", which take " +
                                std::to_string(bytes_of(array.format)));
  for (std::size_t d = 0; d < memory.ndim(); ++d) {
    array.shape.push_back(static_cast<std::int64_t>(memory.shape(d)));
    array.strides.push_back(memory.stride(d));
  }
  array.data = static_cast<const std::byte*>(static_cast<const void*>(memory.data()));
  array.owner = std::make_shared<Memory>(memory);
  return array;
}

}  // namespace

bool Array::is_contiguous() const {
  // Strides of an empty array say nothing.
  if (size() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

formats::Tensor Array::tensor() const {
  const std::size_t size_in_bytes = static_cast<std::size_t>(size()) * bytes_of(format);
  if (is_contiguous())
    return {name, format, formats::Packing::container, shape, {data, size_in_bytes}, owner};
  std::vector<std::byte> bytes(size_in_bytes);
  gather(*this, bytes.data());
  return formats::owning_tensor(name, format, formats::Packing::container, shape, std::move(bytes));
}

emulator::CodeMatrix Array::matrix() const {
  if (shape.size() != 2 && shape.size() != 3)
    throw Error(name, "shape " + emulator::shape_text(shape) + " has not 2 or 3 dimensions");
  if (size() == 0) throw Error(name, "the array is empty");
  const bool forward =
      std::ranges::none_of(strides, [](std::int64_t stride) { return stride < 0; });
  if (is_contiguous() || !forward) return emulator::matrix_of(tensor());
  std::int64_t last = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) last += (shape[d] - 1) * strides[d];
  const std::size_t rows = shape.size() - 2;
  emulator::CodeMatrix matrix;
  matrix.format = format;
  matrix.batch = shape.size() == 3 ? shape[0] : 1;
  matrix.rows = shape[rows];
  matrix.columns = shape[rows + 1];
  matrix.bytes = {std::span(data, static_cast<std::size_t>(last + 1) * bytes_of(format)), owner};
  matrix.strides =
      emulator::Strides{shape.size() == 3 ? strides[0] : 0, strides[rows], strides[rows + 1]};
  return matrix;
}

emulator::CodeMatrix Array::vector_or_matrix(bool as_column) const {
  if (shape.size() > 1) return matrix();
  Array wide = *this;
  const std::int64_t step = strides.empty() ? 1 : strides[0];
  wide.shape =
      as_column ? std::vector<std::int64_t>{size(), 1} : std::vector{std::int64_t{1}, size()};
  wide.strides = {step, step};
  return wide.matrix();
}

std::span<std::byte> Array::output(const formats::Format& of,
                                   const std::vector<std::int64_t>& expected) const {
  if (writable == nullptr) throw Error(name, "is read only");
  if (!is_contiguous()) throw Error(name, "does not lie row by row in memory");
  if (format != of)
    throw Error(name,
                "is " + formats::name_of(format) + " where the result is " + formats::name_of(of));
  if (shape != expected)
    throw Error(name, "has shape " + emulator::shape_text(shape) + " where the result has " +
                          emulator::shape_text(expected));
  return {writable, static_cast<std::size_t>(size()) * bytes_of(format)};
}

void bind_arrays(nb::module_& module) {
  using Input = nb::ndarray<nb::ro, nb::device::cpu>;
  using Output = nb::ndarray<nb::device::cpu>;
  nb::class_<Array>(module, "Array")
      .def_static(
          "view",
          [](const Input& memory, const std::string& format, const std::string& name) {
            return array_of(memory, format, name);
          },
          nb::arg("memory"), nb::arg("format"), nb::arg("name"))
      .def_static(
          "output",
          [](const Output& memory, const std::string& format, const std::string& name) {
            Array array = array_of(memory, format, name);
            array.writable = static_cast<std::byte*>(memory.data());
            return array;
          },
          nb::arg("memory"), nb::arg("format"), nb::arg("name"))
      .def_prop_ro("format", [](const Array& x) { return formats::name_of(x.format); })
      .def_ro("shape", &Array::shape)
      .def_ro("name", &Array::name);
}

}  // namespace guardbit::python
