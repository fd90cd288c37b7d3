#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace guardbit::formats {

/// Do the bytes begin as a gzip file (RFC 1952) does?
bool is_gzip(std::span<const std::byte> bytes);

/// No deflate stream (RFC 1951) unpacks to more than this many times its size: the shortest match
/// takes two bits and gives 258 bytes.
inline constexpr std::size_t greatest_deflate_ratio = 1032;

/// Unpacks a gzip file as far as it is asked for, so that a small file that would fill the memory
/// does not get there. Several members follow each other as one, as gzip has it.
class GzipReader {
 public:
  /// `packed` stays where it is; errors begin with `where`.
  GzipReader(std::span<const std::byte> packed, std::string where);

  /// Fills `to` and returns its size, or less where the file ends. Error for a stream that is
  /// damaged or cut off, checksums that are wrong, and bytes after the last member.
  std::size_t read(std::span<std::byte> to);

 private:
  struct Stream;
  std::shared_ptr<Stream> stream_;
};

}  // namespace guardbit::formats
