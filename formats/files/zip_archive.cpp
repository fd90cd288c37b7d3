#include "formats/files/zip_archive.hpp"

#include <zip.h>

#include <algorithm>

#include "formats/files/tensor_stream.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::formats {
namespace {

// DEFLATE's best is a 258-byte match in 2 bits (RFC 1951): 1032 bytes from one, plus what the last
// byte begins.
constexpr std::uint64_t deflate_ratio = 1032;

[[noreturn]] void refuse(const std::string& where, zip_error_t* error) {
  switch (zip_error_code_zip(error)) {
    case ZIP_ER_ZLIB: throw Error(where, "its packed data are damaged");
    case ZIP_ER_EOF: throw Error(where, "its data end too early");
    default: throw Error(where, "unreadable: " + printable(zip_error_strerror(error)));
  }
}

zip_t* opened(const std::string& where, std::span<const std::byte> bytes, std::string_view kind) {
  const std::string what = "not " + std::string(kind) + ": ";
  // libzip takes an empty file for an archive yet to be written.
  if (bytes.empty()) throw Error(where, what + "empty");
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  zip_t* archive = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : nullptr;
  if (archive == nullptr) {
    if (source != nullptr) zip_source_free(source);
    const std::string reason = printable(zip_error_strerror(&error));
    zip_error_fini(&error);
    throw Error(where, what + reason);
  }
  return archive;
}

/// What the entries read so far leave for the next ones.
struct Budget {
  std::uint64_t packed, unpacked;
};

ZipEntry checked_entry(const std::string& where, zip_t* archive, zip_uint64_t index, Budget& left) {
  zip_stat_t stat;
  const std::string number = where + ": entry " + std::to_string(index);
  if (zip_stat_index(archive, index, 0, &stat) != 0) refuse(number, zip_get_error(archive));
  constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                  ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if ((stat.valid & needed) != needed) throw Error(number, "its directory record is incomplete");
  const std::string place = where + ": entry " + in_quotes(stat.name);
  if (stat.encryption_method != ZIP_EM_NONE) throw Error(place, "encrypted");
  const bool stored = stat.comp_method == ZIP_CM_STORE;
  if (!stored && stat.comp_method != ZIP_CM_DEFLATE) {
    throw Error(place, "unknown compression " + std::to_string(stat.comp_method),
                "stored, deflated");
  }
  // Entries that share bytes of the file run out of them.
  if (stat.comp_size > left.packed) throw Error(place, "it is larger than the file");
  left.packed -= stat.comp_size;
  if (stored ? stat.size != stat.comp_size : stat.size / deflate_ratio > stat.comp_size) {
    throw Error(place, "it announces " + std::to_string(stat.size) + " bytes from " +
                           std::to_string(stat.comp_size) + " in the file");
  }
  if (stat.size > left.unpacked) {
    throw Error(place, "the archive would unpack to more than " + largest_unpacked_text());
  }
  left.unpacked -= stat.size;
  return {stat.name, place, index, stat.size, !stored};
}

}  // namespace

void ZipArchive::Discard::operator()(zip* archive) const { zip_discard(archive); }
void ZipReader::Close::operator()(zip_file* entry) const { zip_fclose(entry); }

ZipArchive::ZipArchive(const MappedFile& file, std::string_view kind)
    : where_(printable(file.path)), file_(file), archive_(opened(where_, file.bytes, kind)) {
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  Budget left = {file.bytes.size(), largest_unpacked(file.bytes.size())};
  entries_.reserve(static_cast<std::size_t>(count));
  for (zip_int64_t i = 0; i < count; ++i) {
    entries_.push_back(checked_entry(where_, archive_.get(), static_cast<zip_uint64_t>(i), left));
    if (!by_name_.emplace(entries_.back().name, entries_.size() - 1).second)
      throw Error(entries_.back().place, "the name appears twice");
  }
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

std::string_view ZipArchive::comment(const ZipEntry& entry) const {
  zip_uint32_t length = 0;
  const char* text = zip_file_get_comment(archive_.get(), entry.index, &length, ZIP_FL_ENC_RAW);
  return text == nullptr ? std::string_view() : std::string_view(text, length);
}

ZipReader::ZipReader(const ZipArchive& archive, const ZipEntry& entry)
    : entry_(entry), file_(zip_fopen_index(archive.archive_.get(), entry.index, 0)) {
  if (!file_) refuse(entry.place, zip_get_error(archive.archive_.get()));
}

void ZipReader::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const zip_int64_t got = zip_fread(file_.get(), bytes.data(), bytes.size());
    if (got < 0) refuse(entry_.place, zip_file_get_error(file_.get()));
    if (got == 0) throw Error(entry_.place, "it ends before the size that it announces");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

void ZipReader::skip(std::uint64_t bytes) {
  if (bytes == 0) return;
  if (!entry_.deflated && bytes <= entry_.size &&
      zip_fseek(file_.get(), static_cast<zip_int64_t>(bytes), SEEK_CUR) == 0)
    return;
  std::vector<std::byte> passed(std::min<std::uint64_t>(bytes, window_bytes));
  for (; bytes > 0; bytes -= passed.size()) {
    passed.resize(std::min<std::uint64_t>(bytes, passed.size()));
    read(passed);
  }
}

void ZipReader::expect_end() {
  // Reading past the end makes libzip compare the checksum.
  std::byte beyond;
  const zip_int64_t got = zip_fread(file_.get(), &beyond, 1);
  if (got < 0) refuse(entry_.place, zip_file_get_error(file_.get()));
  if (got > 0) throw Error(entry_.place, "it is longer than the size that it announces");
}

}  // namespace guardbit::formats
