#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "formats/files/array_file.hpp"
#include "formats/tensors/storage.hpp"
#include "tools/python/array_view.hpp"
#include "tools/python/bindings.hpp"
#include "tools/python/interruptible.hpp"

namespace guardbit::python {

namespace {

formats::TensorFile read(const std::string& path, const std::optional<std::string>& format) {
  formats::FormatOverrides overrides;
  if (format) overrides.any = formats::require_format(*format, "dtype");
  return interruptibly([&](const Stop&) { return formats::read_tensors(path, overrides); });
}

/// One code in each word of `out`.
void copy(const formats::Tensor& tensor, const Array& out) {
  const std::span<std::byte> memory = out.output(tensor.format, tensor.shape);
  run_interruptibly([&](const Stop&) {
    const formats::Tensor words = formats::with_packing(tensor, formats::Packing::container);
    std::ranges::copy(words.bytes, memory.begin());
  });
}

}  // namespace

void bind_files(nb::module_& module) {
  nb::class_<formats::Tensor>(module, "Tensor")
      .def_ro("name", &formats::Tensor::name)
      .def_prop_ro("format", [](const formats::Tensor& x) { return formats::name_of(x.format); })
      .def_ro("shape", &formats::Tensor::shape)
      .def("copy", copy, nb::arg("out"));
  nb::class_<formats::TensorFile>(module, "TensorFile")
      .def_ro("metadata", &formats::TensorFile::metadata)
      .def_ro("tensors", &formats::TensorFile::tensors, nb::rv_policy::copy);
  module.def("read", read, nb::arg("path"), nb::arg("format").none());
}

}  // namespace guardbit::python
