#pragma once

#include <cstddef>
#include <memory>

namespace guardbit::emulator {

/// Memory for packed panels, aligned to cache lines. Its functions are compiled once, for any CPU:
/// kernels of every instruction set use it.
class PanelMemory {
 public:
  /// What it held is lost where it has to grow. It never shrinks.
  void resize(std::size_t bytes);

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }

 private:
  struct Release {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Release> data_;
  std::size_t bytes_ = 0;
};

}  // namespace guardbit::emulator
