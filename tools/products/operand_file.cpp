#include "tools/products/operand_file.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "formats/files/array_file.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/catalogue/format_facts.hpp"

namespace guardbit::tools {

namespace {

/// FILE, or FILE:TENSOR where no file has the whole text as its name.
std::pair<std::string, std::string> split_place(const std::string& place) {
  const std::size_t colon = place.rfind(':');
  std::error_code ignored;
  if (colon == std::string::npos || std::filesystem::exists(place, ignored)) return {place, ""};
  return {place.substr(0, colon), place.substr(colon + 1)};
}

/// A file whose element types do not say the format is read as the instruction's. Where that fails,
/// too, the error is the first one: it speaks of the file as it is.
formats::TensorFile read_file(const std::string& path, const formats::Format& format,
                              const std::string& from) {
  if (!from.empty()) {
    const formats::Format codes = require_element_format(from, "--from");
    try {
      formats::TensorFile plain = formats::read_tensors(path);
      if (std::ranges::all_of(plain.tensors, [](const formats::Tensor& t) {
            return t.format.encoding == formats::Encoding::floating;
          }))
        return plain;
    } catch (const formats::Error&) {  // it has no format of its own
    }
    return formats::read_tensors(path, {codes, {}});
  }
  try {
    return formats::read_tensors(path);
  } catch (const formats::Error&) {
    try {
      return formats::read_tensors(path, {format, {}});
    } catch (const formats::Error&) {
    }
    throw;
  }
}

}  // namespace

formats::Tensor read_operand(const std::string& option, const std::string& operand,
                             const std::string& place, const formats::Format& format,
                             const std::string& from) {
  const auto [path, name] = split_place(place);
  const formats::TensorFile file = read_file(path, format, from);
  const formats::Tensor* tensor = file.find(name.empty() ? operand : name);
  if (tensor == nullptr && name.empty() && file.tensors.size() == 1) tensor = &file.tensors.front();
  if (tensor == nullptr) {
    std::string names;
    for (const formats::Tensor& t : file.tensors)
      names += (names.empty() ? "" : ", ") + formats::printable(t.name, 40);
    throw formats::Error((option.empty() ? "" : option + " ") + formats::printable(path),
                         "no tensor " + formats::in_quotes(name.empty() ? operand : name),
                         names.empty() ? "none" : names);
  }
  formats::Tensor found = *tensor;
  found.name = operand;
  return found;
}

}  // namespace guardbit::tools
