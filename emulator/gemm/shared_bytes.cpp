#include "emulator/gemm/shared_bytes.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace guardbit::emulator {

namespace {

/// Pages of zeros that the system makes when they are first touched.
std::shared_ptr<std::byte> zeros(std::size_t size) {
  auto* const data = static_cast<std::byte*>(std::calloc(size, 1));
  if (data == nullptr) throw std::bad_alloc();
  return {data, [](std::byte* memory) { std::free(memory); }};
}

}  // namespace

SharedBytes::SharedBytes(std::size_t size) : size_(size) {
  if (size == 0) return;
  std::shared_ptr<std::byte> memory = zeros(size);
  data_ = own_ = memory.get();
  owner_ = std::move(memory);
}

SharedBytes::SharedBytes(std::span<std::byte> memory)
    : data_(memory.data()),
      own_(memory.data()),
      size_(memory.size()),
      owner_(memory.data(), [](const void*) {}) {}

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
