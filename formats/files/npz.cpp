#include "formats/files/npz.hpp"

#include <zip.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <new>
#include <set>
#include <string_view>

#include "formats/catalogue.hpp"
#include "formats/error.hpp"
#include "formats/files/atomic_output.hpp"
#include "formats/files/dtype.hpp"
#include "formats/files/npy.hpp"
#include "formats/files/printable.hpp"
#include "formats/storage.hpp"

namespace guardbit::formats {
namespace {

constexpr std::string_view suffix = ".npy";
constexpr std::string_view comment_key = "format=";
constexpr std::uint64_t largest_archive = std::uint64_t{64} << 30;
// DEFLATE's best is a 258-byte match in 2 bits (RFC 1951): 1032 bytes from one, plus what the last
// byte begins.
constexpr std::uint64_t deflate_ratio = 1032;

struct CloseEntry {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};
struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Entry = std::unique_ptr<zip_file_t, CloseEntry>;
using Archive = std::unique_ptr<zip_t, DiscardArchive>;

[[noreturn]] void refuse(const std::string& where, const std::string& what, zip_error_t* error) {
  throw Error(where, what + ": " + printable(zip_error_strerror(error)));
}

Archive open_archive(const std::string& where, std::span<const std::byte> bytes) {
  // libzip takes an empty file for an archive yet to be written.
  if (bytes.empty()) throw Error(where, "not an .npz archive: empty");
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  zip_t* archive = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : nullptr;
  if (archive == nullptr) {
    if (source != nullptr) zip_source_free(source);
    const std::string reason = printable(zip_error_strerror(&error));
    zip_error_fini(&error);
    throw Error(where, "not an .npz archive: " + reason);
  }
  return Archive(archive);
}

/// Size, method and name of an entry, after refusing what cannot be an array. `compressed_left` is
/// what remains of the file for this entry and the next ones: entries that share bytes (a bomb) run
/// out of it.
zip_stat_t checked_stat(const std::string& where, zip_t* archive, zip_uint64_t index,
                        std::uint64_t& compressed_left, std::uint64_t& inflated_left) {
  zip_stat_t stat;
  if (zip_stat_index(archive, index, 0, &stat) != 0) {
    refuse(where + ": entry " + std::to_string(index), "unreadable", zip_get_error(archive));
  }
  constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                  ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if ((stat.valid & needed) != needed) {
    throw Error(where + ": entry " + std::to_string(index), "its directory record is incomplete");
  }
  const std::string place = where + ": entry " + in_quotes(stat.name);
  if (!std::string_view(stat.name).ends_with(suffix)) throw Error(place, "not an .npy array");
  if (stat.encryption_method != ZIP_EM_NONE) throw Error(place, "encrypted");
  const bool stored = stat.comp_method == ZIP_CM_STORE;
  if (!stored && stat.comp_method != ZIP_CM_DEFLATE) {
    throw Error(place, "unknown compression " + std::to_string(stat.comp_method),
                "stored, deflated");
  }
  if (stat.comp_size > compressed_left) throw Error(place, "it is larger than the file");
  compressed_left -= stat.comp_size;
  if (stored ? stat.size != stat.comp_size : stat.size / deflate_ratio > stat.comp_size) {
    throw Error(place, "it announces " + std::to_string(stat.size) + " bytes from " +
                           std::to_string(stat.comp_size) + " in the file");
  }
  if (stat.size > inflated_left) throw Error(place, "the archive holds more than 64 GiB");
  inflated_left -= stat.size;
  return stat;
}

void read_exactly(const std::string& place, zip_file_t* entry, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const zip_int64_t got = zip_fread(entry, bytes.data(), bytes.size());
    if (got < 0) refuse(place, "unreadable", zip_file_get_error(entry));
    if (got == 0) throw Error(place, "it ends before the size that it announces");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

/// Reading past the end makes libzip compare the checksum.
void expect_end(const std::string& place, zip_file_t* entry) {
  std::byte beyond;
  const zip_int64_t got = zip_fread(entry, &beyond, 1);
  if (got < 0) refuse(place, "unreadable", zip_file_get_error(entry));
  if (got > 0) throw Error(place, "it is longer than the size that it announces");
}

/// The format that write_npz left as the entry's comment.
std::optional<Format> commented_format(zip_t* archive, zip_uint64_t index) {
  zip_uint32_t length = 0;
  const char* comment = zip_file_get_comment(archive, index, &length, ZIP_FL_ENC_RAW);
  if (comment == nullptr) return std::nullopt;
  const std::string_view text(comment, length);
  return text.starts_with(comment_key) ? find_format(text.substr(comment_key.size()))
                                       : std::nullopt;
}

/// The bytes of a whole entry whose .npy header has been checked against its size.
NpyArray read_entry(const std::string& place, zip_t* archive, const zip_stat_t& stat) {
  const Entry entry(zip_fopen_index(archive, stat.index, 0));
  if (!entry) refuse(place, "unreadable", zip_get_error(archive));
  // The header comes first, so that memory is only taken for an entry whose array has the announced
  // size.
  std::vector<std::byte> head(std::min<std::uint64_t>(npy_prefix_bytes, stat.size));
  read_exactly(place, entry.get(), head);
  const std::size_t offset = npy_data_offset(place, head);
  if (offset > stat.size) throw Error(place, "the .npy header is cut short");
  const std::size_t have = head.size();
  head.resize(std::max(offset, have));
  read_exactly(place, entry.get(), std::span(head).subspan(have));
  const NpyHeader header = parse_npy_header(place, head);
  const std::size_t size = npy_data_size(place, header);
  if (size != stat.size - offset) {
    throw Error(place, "its shape needs " + std::to_string(size) +
                           " bytes of data, the entry holds " + std::to_string(stat.size - offset));
  }
  const std::shared_ptr<std::byte[]> data = std::make_shared_for_overwrite<std::byte[]>(size);
  const std::span bytes(data.get(), size);
  const std::span<const std::byte> early = std::span(head).subspan(offset);
  std::ranges::copy(early, bytes.begin());
  read_exactly(place, entry.get(), bytes.subspan(early.size()));
  expect_end(place, entry.get());
  std::string name(stat.name);
  name.resize(name.size() - suffix.size());
  return npy_array(place, name, header, bytes, data, commented_format(archive, stat.index));
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
  if (source == nullptr) refuse(place, "cannot be written", zip_get_error(archive));
  const std::string name = content.name + std::string(suffix);
  const zip_int64_t added = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (added < 0) {
    zip_source_free(source);
    refuse(place, "cannot be written", zip_get_error(archive));
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
    refuse(place, "cannot be written", zip_get_error(archive));
  }
}

}  // namespace

TensorFile read_npz(const std::string& path, const FormatOverrides& overrides) {
  return read_npz(map_file(path), overrides);
}

TensorFile read_npz(const MappedFile& file, const FormatOverrides& overrides) {
  const std::string where = printable(file.path);
  const Archive archive = open_archive(where, file.bytes);
  const zip_int64_t entries = zip_get_num_entries(archive.get(), 0);
  std::uint64_t compressed_left = file.bytes.size();
  std::uint64_t inflated_left = largest_archive;
  std::set<std::string> names;
  std::vector<NpyArray> arrays;
  for (zip_int64_t index = 0; index < entries; ++index) {
    const zip_stat_t stat = checked_stat(where, archive.get(), static_cast<zip_uint64_t>(index),
                                         compressed_left, inflated_left);
    const std::string place = where + ": entry " + in_quotes(stat.name);
    if (!names.insert(stat.name).second) throw Error(place, "the name appears twice");
    try {
      arrays.push_back(read_entry(place, archive.get(), stat));
    } catch (const std::bad_alloc&) {
      throw Error(place, "no memory for its " + std::to_string(stat.size) + " bytes");
    }
  }
  return {{}, with_formats(where, overrides, arrays)};
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
    refuse(where, "cannot be written", &error);
  }
  for (const Tensor& tensor : tensors) {
    const auto& [header, content] = contents.emplace_back(npy_content(where, tensor));
    add_entry(where, archive.get(), method, header, content);
  }
  if (zip_close(archive.get()) != 0) {
    refuse(where, "cannot be written", zip_get_error(archive.get()));
  }
  static_cast<void>(archive.release());
  output.commit();
}

}  // namespace guardbit::formats
