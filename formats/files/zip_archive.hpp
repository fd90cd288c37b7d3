#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/files/mapped_file.hpp"

struct zip;
struct zip_file;

namespace guardbit::formats {

struct ZipEntry {
  std::string name;
  /// the file and the entry, for errors
  std::string place;
  std::uint64_t index = 0, size = 0;
  bool deflated = false;
};

/// The directory of a zip archive, checked: entries are stored or deflated, not encrypted, of
/// distinct names; together they claim no more bytes than the file has and no more unpacked than
/// largest_unpacked() allows.
class ZipArchive {
 public:
  /// `kind` names what the file should be: "not an .npz archive".
  ZipArchive(const MappedFile& file, std::string_view kind);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  const std::string& where() const { return where_; }
  std::size_t file_bytes() const { return file_.bytes.size(); }
  const ZipEntry* find(std::string_view name) const;
  std::string_view comment(const ZipEntry& entry) const;

 private:
  friend class ZipReader;
  struct Discard {
    void operator()(zip* archive) const;
  };

  std::string where_;
  MappedFile file_;
  std::unique_ptr<zip, Discard> archive_;
  std::vector<ZipEntry> entries_;
  std::map<std::string_view, std::size_t> by_name_;
};

/// Unpacks an entry from its begin on. One thread at a time for all readers of an archive.
class ZipReader {
 public:
  ZipReader(const ZipArchive& archive, const ZipEntry& entry);

  /// Fills `bytes`; Error when the entry ends before or is damaged.
  void read(std::span<std::byte> bytes);
  void skip(std::uint64_t bytes);
  /// Error unless the entry ends here with the right checksum.
  void expect_end();

 private:
  struct Close {
    void operator()(zip_file* entry) const;
  };
  const ZipEntry& entry_;
  std::unique_ptr<zip_file, Close> file_;
};

}  // namespace guardbit::formats
