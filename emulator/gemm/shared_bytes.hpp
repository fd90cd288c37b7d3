#pragma once

#include <cstddef>
#include <memory>
#include <span>

// The memory behind views of matrices.
namespace guardbit::emulator {

/// Bytes that copies share: those of a mapped file, of a tensor, or memory of their own. Writing to
/// bytes that somebody else may see takes a copy first.
class SharedBytes {
 public:
  SharedBytes() = default;
  /// Zeros.
  explicit SharedBytes(std::size_t size);
  /// Bytes that `owner` keeps alive; without an owner, a copy of them.
  SharedBytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::byte* begin() const { return data_; }
  const std::byte* end() const { return data_ + size_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  /// The same bytes from that place on.
  SharedBytes from(std::size_t offset) const;
  std::byte* writable();

  /// The same content.
  friend bool operator==(const SharedBytes& x, const SharedBytes& y);

 private:
  const std::byte* data_ = nullptr;
  /// null where the memory is not to be written
  std::byte* own_ = nullptr;
  std::size_t size_ = 0;
  std::shared_ptr<const void> owner_;
};

}  // namespace guardbit::emulator
