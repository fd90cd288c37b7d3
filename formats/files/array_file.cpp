#include "formats/files/array_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "formats/files/hdf5_file.hpp"
#include "formats/files/mapped_file.hpp"
#include "formats/files/memory_files.hpp"
#include "formats/files/npy.hpp"
#include "formats/files/npz.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/files/torch_file.hpp"
#include "formats/files/zip_archive.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::formats {
namespace {

enum class Container { unknown, safetensors, npy, npz, torch, hdf5 };

struct Extension {
  std::string_view text;
  Container container;
  bool is_written;
};

constexpr std::array extensions = {
    Extension{".safetensors", Container::safetensors, true},
    Extension{".npy", Container::npy, true},
    Extension{".npz", Container::npz, true},
    Extension{".pt", Container::torch, false},
    Extension{".pth", Container::torch, false},
    Extension{".h5", Container::hdf5, false},
    Extension{".hdf5", Container::hdf5, false},
};

Container by_extension(const std::string& path) {
  if (path == "-") return Container::safetensors;  // the one that holds every format
  const std::string extension = std::filesystem::path(path).extension().string();
  const auto row = std::ranges::find(extensions, std::string_view(extension), &Extension::text);
  return row == extensions.end() ? Container::unknown : row->container;
}

std::string extension_names(bool written_only) {
  std::string names;
  for (const Extension& row : extensions) {
    if (row.is_written || !written_only)
      names += (names.empty() ? "" : ", ") + std::string(row.text);
  }
  return names;
}

/// Both are zip archives; torch.save puts a program beside its data.
Container of_zip(const MappedFile& file) {
  const ZipArchive archive(file, "a zip archive");
  const bool is_torch = std::ranges::any_of(
      archive.entries(), [](const ZipEntry& entry) { return entry.name.ends_with("/data.pkl"); });
  return is_torch ? Container::torch : Container::npz;
}

/// A magic number decides; without one, the extension; without that, the brace that begins a
/// safetensors header.
Container by_content(const MappedFile& file) {
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  if (text.starts_with("\x93NUMPY")) return Container::npy;
  if (text.starts_with("PK\x03\x04") && by_extension(file.path) != Container::npz)
    return of_zip(file);
  if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return Container::npz;
  if (is_hdf5(file.bytes)) return Container::hdf5;
  if (is_legacy_torch(file.bytes)) return Container::torch;
  if (const Container named = by_extension(file.path); named != Container::unknown) return named;
  return text.size() > 8 && text[8] == '{' ? Container::safetensors : Container::unknown;
}

}  // namespace

TensorStreams open_tensors(const std::string& path, const FormatOverrides& overrides) {
  const auto in_memory = [](TensorFile content) {
    TensorStreams streams{std::move(content.metadata), {}, {}};
    for (Tensor& tensor : content.tensors) streams.tensors.push_back(streamed(std::move(tensor)));
    return streams;
  };
  if (auto content = find_memory_file(path)) return in_memory(*std::move(content));
  const MappedFile file = map_file(path);
  switch (by_content(file)) {
    case Container::safetensors: return in_memory(read_safetensors(file, overrides));
    case Container::npy: return in_memory({{}, {read_npy(file, overrides)}});
    case Container::npz: return open_npz(file, overrides);
    case Container::torch: return open_torch(file, overrides);
    case Container::hdf5: return open_hdf5(file, overrides);
    case Container::unknown: break;
  }
  throw Error(printable(path), "not a file of tensors", extension_names(false));
}

TensorFile read_tensors(const std::string& path, const FormatOverrides& overrides) {
  return whole_tensors(printable(path), open_tensors(path, overrides));
}

bool has_tensor_extension(const std::string& path) {
  return by_extension(path) != Container::unknown;
}

std::string tensor_extensions() { return extension_names(false); }

void write_tensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                   std::span<const Tensor> tensors) {
  switch (by_extension(path)) {
    case Container::safetensors: return write_safetensors(path, metadata, tensors);
    case Container::npz: return write_npz(path, tensors);
    case Container::unknown:
    case Container::torch:
    case Container::hdf5: break;
    case Container::npy:
      if (tensors.size() == 1) return write_npy(path, tensors.front());
      throw Error(printable(path), "a .npy file holds one tensor, not " +
                                       std::to_string(tensors.size()) + ": use .npz");
  }
  throw Error(printable(path), "unknown extension", extension_names(true));
}

}  // namespace guardbit::formats
