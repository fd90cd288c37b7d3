#include "formats/files/safetensors.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "formats/files/atomic_output.hpp"
#include "formats/files/dtype.hpp"
#include "formats/files/safetensors_header.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {
namespace {

constexpr std::size_t length_bytes = 8;
// The limit of the format's reference implementation.
constexpr std::uint64_t largest_header = 100'000'000;

std::string at_tensor(const std::string& where, const std::string& name) {
  return where + ": tensor " + in_quotes(name);
}

std::string_view header_text(const std::string& where, std::span<const std::byte> bytes) {
  const std::string_view begin(reinterpret_cast<const char*>(bytes.data()),
                               std::min(bytes.size(), length_bytes));
  for (const auto& [magic, kind] :
       {std::pair<std::string_view, const char*>{"\x93NUMPY", ".npy file"},
        {"PK\x03\x04", "zip archive, as .npz and .pt are"},
        {"\x89HDF", "HDF5 file"}})
    if (begin.starts_with(magic))
      throw Error(where, "a safetensors file is needed here, and this is a " + std::string(kind));
  if (bytes.size() < length_bytes) {
    throw Error(where, "too short for a safetensors file: " + std::to_string(bytes.size()) +
                           " bytes, the header length alone takes 8");
  }
  const auto length = load_word<std::uint64_t>(bytes.data());
  if (length > largest_header) {
    throw Error(where + ": byte 0", "the header length " + std::to_string(length) +
                                        " is above the limit of " + std::to_string(largest_header));
  }
  if (length > bytes.size() - length_bytes) {
    throw Error(where + ": byte 0", "the header length " + std::to_string(length) +
                                        " reaches beyond the file's " +
                                        std::to_string(bytes.size()) + " bytes");
  }
  return {reinterpret_cast<const char*>(bytes.data()) + length_bytes,
          static_cast<std::size_t>(length)};
}

/// What the entry's dtype and shape say, without its bytes.
Tensor described(const std::string& where, const SafetensorsEntry& entry) {
  const std::string place = at_tensor(where, entry.name);
  const Dtype* dtype = find_safetensors_dtype(entry.dtype);
  if (dtype == nullptr) {
    throw Error(place, "unknown dtype " + in_quotes(entry.dtype), safetensors_dtype_names());
  }
  const auto count = checked_element_count(entry.shape);
  const auto size =
      count ? byte_size(dtype->format, dtype->packing, static_cast<std::uint64_t>(*count))
            : std::nullopt;
  if (!size) throw Error(place, "its shape has too many elements");
  if (dtype->packing == Packing::dense && *count % 8 * bits(dtype->format) % 8 != 0) {
    throw Error(
        place, std::to_string(*count) + " elements of " + entry.dtype + " do not fill whole bytes");
  }
  if (entry.begin > entry.end || entry.end - entry.begin != *size) {
    throw Error(place, "its shape needs " + std::to_string(*size) + " bytes, data_offsets are [" +
                           std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]");
  }
  return {entry.name, dtype->format, dtype->packing, entry.shape, {}, nullptr};
}

/// The entries must cover the data without holes or overlaps.
void check_coverage(const std::string& where, const std::vector<SafetensorsEntry>& entries,
                    std::uint64_t data_size) {
  std::vector<const SafetensorsEntry*> order;
  order.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) order.push_back(&entry);
  std::ranges::sort(
      order, {}, [](const SafetensorsEntry* entry) { return std::pair(entry->begin, entry->end); });
  std::uint64_t covered = 0;
  for (const SafetensorsEntry* entry : order) {
    const std::string begins = "it begins at data byte " + std::to_string(entry->begin);
    if (entry->begin < covered) {
      throw Error(at_tensor(where, entry->name),
                  begins + " and overlaps another that ends at " + std::to_string(covered));
    }
    if (entry->begin > covered) {
      throw Error(at_tensor(where, entry->name),
                  begins + " and leaves a hole from " + std::to_string(covered));
    }
    if (entry->end > data_size) {
      throw Error(at_tensor(where, entry->name),
                  "it ends at data byte " + std::to_string(entry->end) + ", the file holds " +
                      std::to_string(data_size));
    }
    covered = entry->end;
  }
  if (covered != data_size) {
    throw Error(where, std::to_string(data_size - covered) + " bytes after the last tensor");
  }
}

/// Moves the metadata values `format.<tensor>` into their tensors.
void apply_format_keys(const std::string& where, TensorFile& file) {
  if (file.metadata.lower_bound("format.") == file.metadata.end()) return;
  for (Tensor& tensor : file.tensors) {
    const auto entry = file.metadata.find("format." + tensor.name);
    if (entry == file.metadata.end()) continue;
    const std::string place = where + ": __metadata__: " + in_quotes(entry->first);
    const Format format = require_format(entry->second, place);
    if (!can_be_read_as(tensor.format, tensor.packing, format)) {
      throw Error(place, std::to_string(storage_bits(tensor.format, tensor.packing)) +
                             " bits per element cannot be read as " + name_of(format));
    }
    tensor.format = format;
    file.metadata.erase(entry);
  }
}

/// The dtype that says how a tensor lies in a file.
const Dtype& written_dtype(const Tensor& tensor) {
  const auto count = static_cast<std::size_t>(element_count(tensor.shape));
  const bool whole_bytes =
      count % 8 * static_cast<std::size_t>(storage_bits(tensor.format, tensor.packing)) % 8 == 0;
  const Dtype* dtype = find_dtype(tensor.format, tensor.packing);
  return dtype != nullptr && whole_bytes ? *dtype : container_dtype(tensor.format);
}

/// Offsets in order of falling element size, so that every tensor is aligned; the entries stay in
/// the caller's order.
void assign_offsets(std::span<const Tensor> tensors, std::span<const Dtype* const> written,
                    std::vector<SafetensorsEntry>& entries) {
  const auto width = [&](std::size_t i) {
    return storage_bits(written[i]->format, written[i]->packing);
  };
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, width);
  std::uint64_t offset = 0;
  for (const std::size_t i : order) {
    const auto count = static_cast<std::uint64_t>(element_count(tensors[i].shape));
    entries[i].begin = offset;
    entries[i].end = offset += byte_size(written[i]->format, written[i]->packing, count).value();
  }
}

}  // namespace

TensorFile read_safetensors(const std::string& path, const FormatOverrides& overrides) {
  return read_safetensors(map_file(path), overrides);
}

TensorFile read_safetensors(const MappedFile& file, const FormatOverrides& overrides) {
  const std::string where = printable(file.path);
  const std::string_view text = header_text(where, file.bytes);
  SafetensorsHeader header = parse_safetensors_header(where, text);
  const auto data = file.bytes.subspan(length_bytes + text.size());
  TensorFile result;
  for (const SafetensorsEntry& entry : header.entries) {
    result.tensors.push_back(described(where, entry));
  }
  check_coverage(where, header.entries, data.size());
  for (std::size_t i = 0; i < result.tensors.size(); ++i) {
    const SafetensorsEntry& entry = header.entries[i];
    result.tensors[i].bytes = data.subspan(static_cast<std::size_t>(entry.begin),
                                           static_cast<std::size_t>(entry.end - entry.begin));
    result.tensors[i].owner = file.owner;
  }
  result.metadata = std::move(header.metadata);
  apply_format_keys(where, result);
  apply_overrides(where, overrides, result.tensors);
  return result;
}

SafetensorsLayout layout_safetensors(const std::string& where,
                                     const std::map<std::string, std::string>& metadata,
                                     std::span<const Tensor> tensors) {
  SafetensorsLayout layout;
  SafetensorsHeader header{metadata, {}};
  std::vector<const Dtype*> written;
  std::set<std::string_view> names = {"__metadata__"};
  for (const Tensor& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      throw Error(at_tensor(where, tensor.name), "the name is taken");
    }
    const Dtype& dtype = written_dtype(tensor);
    written.push_back(&dtype);
    layout.packings.push_back(dtype.packing);
    header.entries.push_back({tensor.name, std::string(dtype.safetensors), tensor.shape});
    header.metadata.erase("format." + tensor.name);
    if (dtype.format != tensor.format) {
      header.metadata["format." + tensor.name] = name_of(tensor.format);
    }
  }
  assign_offsets(tensors, written, header.entries);
  std::string text = safetensors_header_text(where, header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > largest_header) throw Error(where, "the header would exceed 100 MB");
  layout.head.resize(length_bytes);
  store_word(std::as_writable_bytes(std::span(layout.head)).data(),
             static_cast<std::uint64_t>(text.size()));
  layout.head += text;
  for (const SafetensorsEntry& entry : header.entries)
    layout.offsets.push_back(layout.head.size() + entry.begin);
  return layout;
}

void write_safetensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                       std::span<const Tensor> tensors) {
  const std::string where = printable(path);
  for (const Tensor& tensor : tensors) static_cast<void>(checked_size(where, tensor));
  const SafetensorsLayout layout = layout_safetensors(where, metadata, tensors);
  AtomicOutput output(path);
  output.write(layout.head);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    output.write_at(layout.offsets[i], with_packing(tensors[i], layout.packings[i]).bytes);
  output.commit();
}

}  // namespace guardbit::formats
