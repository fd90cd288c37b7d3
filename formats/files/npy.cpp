#include "formats/files/npy.hpp"

#include <algorithm>
#include <filesystem>

#include "formats/files/atomic_output.hpp"
#include "formats/files/dtype.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {
namespace {

/// What a type string says about one element.
struct Element {
  /// of unsigned words when `known` is false
  Format format;
  bool known;
  bool big_endian;
};

Element parse_descr(const std::string& where, std::string_view descr) {
  const std::string_view type = descr.substr(std::min<std::size_t>(1, descr.size()));
  if (type.starts_with('O')) throw Error(where, "arrays of Python objects are not supported");
  const char order = descr.empty() ? '\0' : descr.front();
  if (order == '<' || order == '>' || order == '|') {
    if (const Dtype* row = find_numpy_dtype(type)) {
      if (order != '|' || bits(row->format) <= 8) return {row->format, true, order == '>'};
    }
    // What ml_dtypes arrays become: raw words, or one-byte floating numbers.
    for (const std::string_view raw : {"f1", "V1", "V2", "V4", "V8"}) {
      if (type == raw) return {integer(8 * (raw[1] - '0'), false), false, order == '>'};
    }
  }
  throw Error(where, "unsupported .npy dtype " + in_quotes(descr), numpy_dtype_names());
}

/// Whether NumPy leaves such numbers as raw words of that width.
bool is_raw_format(const Format& format, int width) {
  const Dtype* row = find_dtype(format, Packing::container);
  return container_bits(format) == width && (row == nullptr || row->numpy.empty());
}

/// The one format, unknown to NumPy and of that container width, that a dotted or underscored name
/// contains. Some names of formats have an underscore themselves, so that a part is tried together
/// with the next one, too.
std::optional<Format> format_in_name(std::string_view name, int width) {
  std::optional<Format> result;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of("._-"), name.size());
    const std::size_t next = std::min(name.find_first_of("._-", end + 1), name.size());
    std::optional<Format> found = find_format(name.substr(0, next));
    if (!found) found = find_format(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
    if (!found || !is_raw_format(*found, width)) continue;
    if (result && *result != *found) return std::nullopt;
    result = found;
  }
  return result;
}

std::size_t dimensions_above_one(const std::vector<std::int64_t>& shape) {
  return static_cast<std::size_t>(std::ranges::count_if(shape, [](auto n) { return n > 1; }));
}

/// Copies column-major elements of `width` bytes into row-major order.
std::vector<std::byte> transposed(std::span<const std::byte> data, std::size_t width,
                                  const std::vector<std::int64_t>& shape) {
  std::vector<std::byte> result(data.size());
  std::vector<std::size_t> strides;
  std::size_t stride = width;
  for (const std::int64_t dimension : shape) {
    strides.push_back(stride);
    stride *= static_cast<std::size_t>(dimension);
  }
  std::vector<std::int64_t> index(shape.size(), 0);
  std::size_t from = 0;
  for (std::size_t to = 0; to < result.size(); to += width) {
    std::memcpy(result.data() + to, data.data() + from, width);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < shape[axis]) break;
      from -= strides[axis] * static_cast<std::size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  return result;
}

void reverse_each(std::span<std::byte> data, std::size_t width) {
  for (std::size_t at = 0; at < data.size(); at += width) {
    std::ranges::reverse(data.subspan(at, width));
  }
}

}  // namespace

std::size_t npy_data_size(const std::string& where, const NpyHeader& header) {
  const Element element = parse_descr(where, header.descr);
  const auto count = checked_element_count(header.shape);
  const auto size =
      count ? byte_size(element.format, Packing::container, static_cast<std::uint64_t>(*count))
            : std::nullopt;
  if (!size) throw Error(where, "its shape has too many elements");
  return static_cast<std::size_t>(*size);
}

NpyArray npy_description(const std::string& where, const std::string& name, const NpyHeader& header,
                         const std::optional<Format>& noted) {
  Element element = parse_descr(where, header.descr);
  const int bits_each = container_bits(element.format);
  std::optional<Format> better = noted;
  if (!better && !element.known) better = format_in_name(name, bits_each);
  if (better && container_bits(*better) == bits_each) {
    element.format = *better;
    element.known = true;
  }
  return {{name, element.format, Packing::container, header.shape, {}, nullptr}, element.known};
}

bool npy_needs_whole(const NpyHeader& header) {
  return header.fortran_order && dimensions_above_one(header.shape) > 1;
}

void npy_to_little_endian(const NpyHeader& header, std::span<std::byte> data) {
  const Element element = parse_descr("", header.descr);
  const auto width = static_cast<std::size_t>(container_bits(element.format)) / 8;
  if (element.big_endian && width > 1) reverse_each(data, width);
}

NpyArray npy_array(const std::string& where, const std::string& name, const NpyHeader& header,
                   std::span<const std::byte> data, std::shared_ptr<const void> owner,
                   const std::optional<Format>& noted) {
  const std::size_t size = npy_data_size(where, header);
  if (data.size() != size) {
    throw Error(where, "its shape needs " + std::to_string(size) +
                           " bytes of data, the file holds " + std::to_string(data.size()));
  }
  NpyArray array = npy_description(where, name, header, noted);
  const auto width = static_cast<std::size_t>(container_bits(array.tensor.format)) / 8;
  const bool columns_first = npy_needs_whole(header);
  if (columns_first || (parse_descr(where, header.descr).big_endian && width > 1)) {
    std::vector<std::byte> copy = columns_first ? transposed(data, width, header.shape)
                                                : std::vector<std::byte>(data.begin(), data.end());
    npy_to_little_endian(header, copy);
    array.tensor =
        owning_tensor(name, array.tensor.format, Packing::container, header.shape, std::move(copy));
  } else {
    array.tensor.bytes = data;
    array.tensor.owner = std::move(owner);
  }
  return array;
}

std::vector<Tensor> with_formats(const std::string& where, const FormatOverrides& overrides,
                                 const std::vector<NpyArray>& arrays) {
  std::vector<Tensor> tensors;
  tensors.reserve(arrays.size());
  for (const NpyArray& array : arrays) tensors.push_back(array.tensor);
  apply_overrides(where, overrides, tensors);
  for (const auto& [tensor, known] : arrays) {
    const bool given =
        overrides.named.contains(tensor.name) ||
        (overrides.any && can_be_read_as(tensor.format, tensor.packing, *overrides.any));
    if (known || given) continue;
    throw Error(
        where,
        "array " + in_quotes(tensor.name) + " holds words of " +
            std::to_string(container_bits(tensor.format)) +
            " bits of unknown format: give the format, or put it into the name (as in x.bf16.npy)");
  }
  return tensors;
}

std::string npy_head(const Tensor& tensor) {
  const Dtype& dtype = container_dtype(tensor.format);
  const Format& written = dtype.format;
  const bool said = !dtype.numpy.empty() && (written == tensor.format || written == fp32);
  const int width = container_bits(tensor.format);
  const std::string descr =
      said ? (width == 8 ? "|" : "<") + std::string(dtype.numpy) : "|V" + std::to_string(width / 8);
  return npy_header_text({descr, false, tensor.shape});
}

std::pair<std::string, Tensor> npy_content(const std::string& where, const Tensor& tensor) {
  static_cast<void>(checked_size(where, tensor));
  return {npy_head(tensor), with_packing(tensor, Packing::container)};
}

Tensor read_npy(const std::string& path, const FormatOverrides& overrides) {
  return read_npy(map_file(path), overrides);
}

Tensor read_npy(const MappedFile& file, const FormatOverrides& overrides) {
  const std::string where = printable(file.path);
  const NpyHeader header = parse_npy_header(where, file.bytes);
  const std::size_t offset = npy_data_offset(where, file.bytes);
  const std::string name = std::filesystem::path(file.path).stem().string();
  const NpyArray array = npy_array(where, name, header, file.bytes.subspan(offset), file.owner);
  return with_formats(where, overrides, {array}).front();
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const auto [header, content] = npy_content(printable(path), tensor);
  AtomicOutput output(path);
  output.write(header);
  output.write(content.bytes);
  output.commit();
}

}  // namespace guardbit::formats
