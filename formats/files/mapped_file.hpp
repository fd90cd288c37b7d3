#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace guardbit::formats {

/// The content of a file; `owner` keeps it alive.
struct MappedFile {
  std::string path;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// The path to be opened where the user wrote this one: "-" is standard input, which is read to its
/// end once and kept for all that ask.
std::string openable_path(const std::string& path);

/// Maps a regular file, or all of standard input, read-only. Error when it cannot be opened or is a
/// directory, a pipe or a device. The file must not be shortened by others while it is mapped.
MappedFile map_file(const std::string& path);

}  // namespace guardbit::formats
