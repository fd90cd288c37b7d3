#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::tests {

/// FP32 numbers of a shape, to be written to a file.
inline formats::Tensor tensor_of(const std::string& name, std::vector<std::int64_t> shape,
                                 const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return formats::owning_tensor(name, formats::fp32, formats::Packing::container, std::move(shape),
                                std::move(bytes));
}

/// The same in one dimension.
inline formats::Tensor tensor_of(const std::string& name, const std::vector<float>& values) {
  return tensor_of(name, {static_cast<std::int64_t>(values.size())}, values);
}

}  // namespace guardbit::tests
