#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace guardbit::formats {

/// A file that appears, or replaces its predecessor, only when it is complete: bytes go to a
/// temporary in the same directory, commit() renames it, and destruction without commit() removes
/// it. Every failure is an Error.
class AtomicOutput {
 public:
  /// "-" is standard output, which gets the bytes when they are complete. Otherwise: Error when
  /// the directory cannot be written, or `path` exists and is not a writable regular
  /// file.
  explicit AtomicOutput(const std::string& path);
  AtomicOutput(const AtomicOutput&) = delete;
  AtomicOutput& operator=(const AtomicOutput&) = delete;
  ~AtomicOutput();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Bytes at an offset, from any thread; those of `write` go on where it ended last.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// `size` bytes of the file at an offset as memory to write to, zeros at first; it is there while
  /// this object is. The space is reserved: Error where there is none.
  std::span<std::byte> map(std::uint64_t offset, std::size_t size);
  void commit();

  /// For libraries that insist on opening files themselves: what stands at this path when commit()
  /// is called.
  const std::string& temporary_path() const { return temporary_; }

 private:
  [[noreturn]] void refuse(int error) const;
  void copy_to_standard_output();
  template <class Write>
  void write_all(std::span<const std::byte> bytes, const Write& write);

  /// as the user wrote it, for messages
  std::string path_;
  /// with symbolic links resolved, so that a link stays one
  std::string target_;
  std::string temporary_;
  bool is_standard_output_ = false;
  int descriptor_ = -1;
  /// whole pages of the file
  std::vector<std::span<std::byte>> maps_;
};

/// A whole file.
void write_file(const std::string& path, std::string_view text);

}  // namespace guardbit::formats
