#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/gemm/atlas/bit_decoder.hpp"

namespace guardbit::emulator::atlas {

/// Writes what BitDecoder reads; of use where the atlas is made (tools/scripts/atlas/fit_shapes.py)
/// and in its test.
class BitEncoder {
 public:
  bool bit(BitModel& model, bool wanted) {
    const std::uint32_t of_one = (range_ >> 16) * model.one();
    if (wanted) {
      range_ = of_one;
    } else {
      low_ += of_one;
      range_ -= of_one;
    }
    while (range_ < 1u << 24) {
      range_ <<= 8;
      shift();
    }
    model.learn(wanted);
    return wanted;
  }

  /// All that was written, which ends the encoder's use.
  std::vector<std::uint8_t> bytes() {
    for (int i = 0; i < 5; ++i) shift();
    bytes_.erase(bytes_.begin());
    while (!bytes_.empty() && bytes_.back() == 0) bytes_.pop_back();
    return bytes_;
  }

 private:
  /// The highest byte is written once no carry can change it: a run of 0xff waits.
  void shift() {
    if (low_ < 0xff000000u || low_ >> 32 != 0) {
      const auto carry = static_cast<std::uint8_t>(low_ >> 32);
      bytes_.push_back(static_cast<std::uint8_t>(last_ + carry));
      for (; waiting_ > 0; --waiting_) bytes_.push_back(static_cast<std::uint8_t>(0xff + carry));
      last_ = static_cast<std::uint8_t>(low_ >> 24);
    } else {
      ++waiting_;
    }
    low_ = (low_ & 0xffffff) << 8;
  }

  std::uint64_t low_ = 0;
  std::uint32_t range_ = 0xffffffff;
  std::uint8_t last_ = 0;
  std::size_t waiting_ = 0;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace guardbit::emulator::atlas
