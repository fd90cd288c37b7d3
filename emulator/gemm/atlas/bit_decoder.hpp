#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// Bits of which some are likelier than others, as a range coder packs them: a bit takes the less
// room the better a model expects it.
namespace guardbit::emulator::atlas {

/// How likely a bit is 1, learned from the bits coded before: from few of them quickly.
class BitModel {
 public:
  /// out of 65536
  std::uint32_t one() const { return one_; }
  void learn(bool bit) {
    constexpr auto shifts = std::to_array<std::uint8_t>(
        {1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6});
    const std::uint32_t shift = shifts[seen_];
    if (seen_ + 1u < shifts.size()) ++seen_;
    one_ =
        bit ? one_ + ((65536 - least_room - one_) >> shift) : one_ - ((one_ - least_room) >> shift);
  }

 private:
  static constexpr std::uint32_t least_room = 24;

  std::uint32_t one_ = 32768;
  std::uint8_t seen_ = 0;
};

class BitDecoder {
 public:
  /// `bytes`: what an encoder wrote; after their end follow zeros.
  explicit BitDecoder(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
    for (int i = 0; i < 4; ++i) code_ = code_ << 8 | next();
  }

  /// The next bit; `wanted` is what an encoder would write.
  bool bit(BitModel& model, bool /*wanted*/ = false) {
    const std::uint32_t of_one = (range_ >> 16) * model.one();
    const bool result = code_ < of_one;
    if (result) {
      range_ = of_one;
    } else {
      code_ -= of_one;
      range_ -= of_one;
    }
    while (range_ < 1u << 24) {
      range_ <<= 8;
      code_ = code_ << 8 | next();
    }
    model.learn(result);
    return result;
  }

 private:
  std::uint32_t next() { return at_ < bytes_.size() ? bytes_[at_++] : 0; }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  std::uint32_t range_ = 0xffffffff, code_ = 0;
};

}  // namespace guardbit::emulator::atlas
