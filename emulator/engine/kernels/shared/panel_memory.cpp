#include "emulator/engine/kernels/shared/panel_memory.hpp"

#include <new>

namespace guardbit::emulator {

namespace {

constexpr std::align_val_t cache_line{64};

}  // namespace

void PanelMemory::Release::operator()(std::byte* data) const {
  ::operator delete(data, cache_line);
}

void PanelMemory::resize(std::size_t bytes) {
  if (bytes <= bytes_) return;
  data_.reset();
  bytes_ = 0;
  data_.reset(static_cast<std::byte*>(::operator new(bytes, cache_line)));
  bytes_ = bytes;
}

}  // namespace guardbit::emulator
