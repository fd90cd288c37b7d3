#include "emulator/gemm/shared_bytes.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace guardbit::emulator {

namespace {

/// Large memory comes in pages of zeros that are not touched here, in huge pages where the system
/// has them.
std::shared_ptr<std::byte> zeros(std::size_t size) {
  constexpr std::size_t huge_page = std::size_t{1} << 21;
  if (size < 2 * huge_page) {
    auto* const data = static_cast<std::byte*>(std::calloc(size, 1));
    if (data == nullptr) throw std::bad_alloc();
    return {data, [](std::byte* memory) { std::free(memory); }};
  }
  const std::size_t length = size + huge_page;
  void* const mapped =
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  void* aligned = mapped;
  std::size_t space = length;
  std::align(huge_page, size, aligned, space);
#ifdef MADV_HUGEPAGE
  ::madvise(aligned, size, MADV_HUGEPAGE);
#endif
  return {static_cast<std::byte*>(aligned),
          [mapped, length](std::byte*) { ::munmap(mapped, length); }};
}

}  // namespace

SharedBytes::SharedBytes(std::size_t size) : size_(size) {
  if (size == 0) return;
  std::shared_ptr<std::byte> memory = zeros(size);
  data_ = own_ = memory.get();
  owner_ = std::move(memory);
}

SharedBytes::SharedBytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (owner == nullptr) {
    *this = SharedBytes(bytes.size());
    if (!bytes.empty()) std::memcpy(own_, bytes.data(), bytes.size());
    return;
  }
  data_ = bytes.data();
  size_ = bytes.size();
  owner_ = std::move(owner);
}

SharedBytes SharedBytes::from(std::size_t offset) const {
  assert(offset <= size_);
  SharedBytes rest = *this;
  rest.data_ += offset;
  rest.size_ -= offset;
  if (own_ != nullptr) rest.own_ += offset;
  return rest;
}

std::byte* SharedBytes::writable() {
  if (own_ == nullptr || owner_.use_count() != 1) *this = SharedBytes(*this, nullptr);
  return own_;
}

bool operator==(const SharedBytes& x, const SharedBytes& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

}  // namespace guardbit::emulator
