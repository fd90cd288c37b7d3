#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"
#include "formats/tensors/tensor.hpp"

namespace guardbit::formats {

/// What a file of tensors holds; the tensors in the file's order.
struct TensorFile {
  std::map<std::string, std::string> metadata;
  std::vector<Tensor> tensors;

  /// The tensor of that name; null when there is none.
  const Tensor* find(std::string_view name) const {
    for (const Tensor& tensor : tensors) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }
};

/// Formats that the caller knows better than the file. Both need the bits per element that the file
/// stores.
struct FormatOverrides {
  /// for every tensor that can be read so; Error when none can
  std::optional<Format> any;
  /// for one tensor; wins over `any`; Error when it is absent or cannot
  std::map<std::string, Format> named;
};

/// Applies the overrides to tensors as the file says them; `where` names the file in errors.
void apply_overrides(const std::string& where, const FormatOverrides& overrides,
                     std::vector<Tensor>& tensors);

/// Number of elements, after checking that the tensor's bytes are what its shape needs; else an
/// Error.
std::size_t checked_size(const std::string& where, const Tensor& tensor);

}  // namespace guardbit::formats
