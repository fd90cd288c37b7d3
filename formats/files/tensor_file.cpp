#include "formats/files/tensor_file.hpp"

#include <algorithm>

#include "formats/files/dtype.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {

void apply_overrides(const std::string& where, const FormatOverrides& overrides,
                     std::vector<Tensor>& tensors) {
  const auto fits = [](const Tensor& tensor, const Format& format) {
    return can_be_read_as(tensor.format, tensor.packing, format);
  };
  if (overrides.any) {
    bool used = false;
    for (Tensor& tensor : tensors) {
      if (!fits(tensor, *overrides.any)) continue;
      tensor.format = *overrides.any;
      used = true;
    }
    if (!used) throw Error(where, "no tensor can be read as " + name_of(*overrides.any));
  }
  for (const auto& [name, format] : overrides.named) {
    const auto tensor = std::ranges::find(tensors, name, &Tensor::name);
    if (tensor == tensors.end()) throw Error(where, "no tensor " + in_quotes(name));
    if (!fits(*tensor, format)) {
      throw Error(where + ": tensor " + in_quotes(name),
                  std::to_string(storage_bits(tensor->format, tensor->packing)) +
                      " bits per element cannot be read as " + name_of(format));
    }
    tensor->format = format;
  }
}

std::size_t checked_size(const std::string& where, const Tensor& tensor) {
  const auto count = checked_element_count(tensor.shape);
  if (!count || byte_size(tensor.format, tensor.packing, static_cast<std::uint64_t>(*count)) !=
                    tensor.bytes.size()) {
    throw Error(where + ": tensor " + in_quotes(tensor.name),
                "its shape does not need the " + std::to_string(tensor.bytes.size()) +
                    " bytes that it has");
  }
  return static_cast<std::size_t>(*count);
}

}  // namespace guardbit::formats
