#include "formats/files/npz.hpp"

#include <zip.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <new>
#include <string_view>

#include "formats/files/atomic_output.hpp"
#include "formats/files/dtype.hpp"
#include "formats/files/npy.hpp"
#include "formats/files/zip_archive.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {
namespace {

constexpr std::string_view suffix = ".npy";
constexpr std::string_view comment_key = "format=";

struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, DiscardArchive>;

[[noreturn]] void refuse_to_write(const std::string& where, zip_error_t* error) {
  throw Error(where, "cannot be written: " + printable(zip_error_strerror(error)));
}

/// The format that write_npz left as the entry's comment.
std::optional<Format> commented_format(std::string_view comment) {
  return comment.starts_with(comment_key) ? find_format(comment.substr(comment_key.size()))
                                          : std::nullopt;
}

/// An array whose .npy header has been read and checked against the entry's size.
struct Described {
  NpyArray array;
  /// of the data in the entry
  std::size_t offset = 0;
  NpyHeader header;
};

Described describe(const ZipArchive& archive, const ZipEntry& entry) {
  if (!entry.name.ends_with(suffix)) throw Error(entry.place, "not an .npy array");
  ZipReader reader(archive, entry);
  std::vector<std::byte> head(std::min<std::uint64_t>(npy_prefix_bytes, entry.size));
  reader.read(head);
  Described described;
  described.offset = npy_data_offset(entry.place, head);
  if (described.offset > entry.size) throw Error(entry.place, "the .npy header is cut short");
  const std::size_t have = head.size();
  head.resize(std::max(described.offset, have));
  reader.read(std::span(head).subspan(have));
  described.header = parse_npy_header(entry.place, head);
  const std::size_t size = npy_data_size(entry.place, described.header);
  if (size != entry.size - described.offset) {
    throw Error(entry.place, "its shape needs " + std::to_string(size) +
                                 " bytes of data, the entry holds " +
                                 std::to_string(entry.size - described.offset));
  }
  const std::string name = entry.name.substr(0, entry.name.size() - suffix.size());
  described.array = npy_description(entry.place, name, described.header,
                                    commented_format(archive.comment(entry)));
  return described;
}

void read_windows(const ZipArchive& archive, const ZipEntry& entry, const Described& described,
                  const WindowVisitor& visit) {
  ZipReader reader(archive, entry);
  std::vector<std::byte> head(described.offset);  // read, for the checksum
  reader.read(head);
  const std::size_t size = entry.size - described.offset;
  if (npy_needs_whole(described.header)) {
    // Column by column: a row needs all of it.
    std::vector<std::byte> data;
    try {
      data.resize(size);
    } catch (const std::bad_alloc&) {
      throw Error(entry.place, "no memory for its " + std::to_string(size) + " bytes");
    }
    reader.read(data);
    reader.expect_end();
    const Tensor tensor = npy_array(entry.place, "", described.header, data, nullptr).tensor;
    if (size != 0) visit(tensor.bytes, 0);
    return;
  }
  const Tensor& tensor = described.array.tensor;
  const auto width = static_cast<std::size_t>(container_bits(tensor.format)) / 8;
  std::vector<std::byte> window(std::min(size, window_bytes));
  for (std::size_t at = 0; at < size; at += window.size()) {
    window.resize(std::min(window.size(), size - at));
    reader.read(window);
    npy_to_little_endian(described.header, window);
    visit(window, at / width);
  }
  reader.expect_end();
}

/// Adds an entry; `header` and `content` must outlive the archive.
void add_entry(const std::string& where, zip_t* archive, ZipMethod method,
               const std::string& header, const Tensor& content) {
  const std::string place = where + ": array " + in_quotes(content.name);
  const auto fragment = [](const void* data, std::size_t size) {
    return zip_buffer_fragment_t{static_cast<zip_uint8_t*>(const_cast<void*>(data)), size};
  };
  const zip_buffer_fragment_t fragments[] = {fragment(header.data(), header.size()),
                                             fragment(content.bytes.data(), content.bytes.size())};
  zip_source_t* source = zip_source_buffer_fragment(archive, fragments, 2, 0);
  if (source == nullptr) refuse_to_write(place, zip_get_error(archive));
  const std::string name = content.name + std::string(suffix);
  const zip_int64_t added = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (added < 0) {
    zip_source_free(source);
    refuse_to_write(place, zip_get_error(archive));
  }
  const auto index = static_cast<zip_uint64_t>(added);
  std::string comment;
  const Dtype& dtype = container_dtype(content.format);
  if (dtype.format != content.format || dtype.numpy.empty()) {
    comment = std::string(comment_key) + name_of(content.format);
  }
  // The oldest time that the archive can say, as numpy.savez does: the same arrays give the same
  // file.
  constexpr zip_uint16_t first_of_january_1980 = 1U << 5U | 1U;
  if (zip_set_file_compression(
          archive, index, method == ZipMethod::stored ? ZIP_CM_STORE : ZIP_CM_DEFLATE, 0) != 0 ||
      zip_file_set_dostime(archive, index, 0, first_of_january_1980, 0) != 0 ||
      zip_file_set_comment(archive, index, comment.data(),
                           static_cast<zip_uint16_t>(comment.size()), ZIP_FL_ENC_UTF_8) != 0) {
    refuse_to_write(place, zip_get_error(archive));
  }
}

}  // namespace

TensorStreams open_npz(const MappedFile& file, const FormatOverrides& overrides) {
  const auto archive = std::make_shared<const ZipArchive>(file, "an .npz archive");
  std::vector<NpyArray> arrays;
  TensorStreams streams;
  for (const ZipEntry& entry : archive->entries()) {
    const auto described = std::make_shared<const Described>(describe(*archive, entry));
    arrays.push_back(described->array);
    streams.tensors.push_back({{}, [archive, &entry, described](const WindowVisitor& visit) {
                                 read_windows(*archive, entry, *described, visit);
                               }});
  }
  std::vector<Tensor> tensors = with_formats(archive->where(), overrides, arrays);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    streams.tensors[i].tensor = std::move(tensors[i]);
  return streams;
}

TensorFile read_npz(const std::string& path, const FormatOverrides& overrides) {
  return read_npz(map_file(path), overrides);
}

TensorFile read_npz(const MappedFile& file, const FormatOverrides& overrides) {
  return whole_tensors(printable(file.path), open_npz(file, overrides));
}

void write_npz(const std::string& path, std::span<const Tensor> tensors, ZipMethod method) {
  const std::string where = printable(path);
  if (tensors.empty()) throw Error(where, "an .npz archive needs at least one array");
  AtomicOutput output(path);
  std::deque<std::pair<std::string, Tensor>> contents;
  int code = 0;
  Archive archive(zip_open(output.temporary_path().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    refuse_to_write(where, &error);
  }
  for (const Tensor& tensor : tensors) {
    const auto& [header, content] = contents.emplace_back(npy_content(where, tensor));
    add_entry(where, archive.get(), method, header, content);
  }
  if (zip_close(archive.get()) != 0) {
    refuse_to_write(where, zip_get_error(archive.get()));
  }
  static_cast<void>(archive.release());
  output.commit();
}

}  // namespace guardbit::formats
