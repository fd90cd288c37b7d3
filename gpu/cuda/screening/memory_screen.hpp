#pragma once

#include <cstdint>
#include <vector>

#include "gpu/cuda/device/device.hpp"
#include "gpu/screening/screen_report.hpp"

// Patterns written to all free memory of the current device and read back.
namespace guardbit::gpu {

class MemoryScreen {
 public:
  /// Takes all free memory but `left` bytes, in pieces.
  explicit MemoryScreen(std::size_t left);

  /// Writes the next pattern everywhere and reads it back.
  void run();
  static constexpr int patterns = 4;

  std::uint64_t bytes() const;
  /// 32-bit words that were compared, and wrong ones
  std::uint64_t words() const { return words_; }
  std::uint64_t mismatches() const { return mismatches_; }
  /// Of the words that were wrong since the last call, the first ones; each is written and read
  /// again.
  std::vector<ScreenFault> faults(std::size_t most);

 private:
  struct WrongWord {
    std::size_t piece = 0, word = 0;
    int pattern = 0;
    std::uint32_t expected = 0, got = 0;
  };
  void fill(const DeviceBuffer& piece, int pattern) const;
  /// wrong words of a piece, the first ones of them listed
  std::uint64_t check(std::size_t piece, int pattern, std::vector<WrongWord>& wrong) const;

  std::vector<DeviceBuffer> pieces_;
  DeviceBuffer log_;
  std::vector<WrongWord> wrong_;
  int next_ = 0;
  std::uint64_t words_ = 0, mismatches_ = 0;
};

}  // namespace guardbit::gpu
