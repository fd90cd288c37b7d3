#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "formats/catalogue.hpp"
#include "formats/storage.hpp"

namespace guardbit::tests {

/// FP32 numbers in one dimension, to be written to a file.
inline formats::Tensor tensor_of(const std::string& name, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return formats::owning_tensor(name, formats::fp32, formats::Packing::container,
                                {static_cast<std::int64_t>(values.size())}, std::move(bytes));
}

}  // namespace guardbit::tests
