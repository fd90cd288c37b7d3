#include "formats/files/array_file.hpp"

#include <filesystem>
#include <string_view>

#include "formats/error.hpp"
#include "formats/files/mapped_file.hpp"
#include "formats/files/npy.hpp"
#include "formats/files/npz.hpp"
#include "formats/files/printable.hpp"
#include "formats/files/safetensors.hpp"

namespace guardbit::formats {
namespace {

constexpr std::string_view extensions = ".safetensors, .npy, .npz";

enum class Container { unknown, safetensors, npy, npz };

Container by_extension(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".safetensors") return Container::safetensors;
  if (extension == ".npy") return Container::npy;
  if (extension == ".npz") return Container::npz;
  return Container::unknown;
}

/// A magic number decides; without one, the extension; without that, the brace that begins a
/// safetensors header.
Container by_content(const MappedFile& file) {
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  if (text.starts_with("\x93NUMPY")) return Container::npy;
  if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return Container::npz;
  if (const Container named = by_extension(file.path); named != Container::unknown) return named;
  return text.size() > 8 && text[8] == '{' ? Container::safetensors : Container::unknown;
}

}  // namespace

TensorFile read_tensors(const std::string& path, const FormatOverrides& overrides) {
  const MappedFile file = map_file(path);
  switch (by_content(file)) {
    case Container::safetensors: return read_safetensors(file, overrides);
    case Container::npy: return {{}, {read_npy(file, overrides)}};
    case Container::npz: return read_npz(file, overrides);
    case Container::unknown: break;
  }
  throw Error(printable(path), "not a file of tensors", std::string(extensions));
}

void write_tensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                   std::span<const Tensor> tensors) {
  switch (by_extension(path)) {
    case Container::safetensors: return write_safetensors(path, metadata, tensors);
    case Container::npz: return write_npz(path, tensors);
    case Container::unknown: break;
    case Container::npy:
      if (tensors.size() == 1) return write_npy(path, tensors.front());
      throw Error(printable(path), "a .npy file holds one tensor, not " +
                                       std::to_string(tensors.size()) + ": use .npz");
  }
  throw Error(printable(path), "unknown extension", std::string(extensions));
}

}  // namespace guardbit::formats
