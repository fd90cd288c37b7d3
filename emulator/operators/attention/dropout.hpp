#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "emulator/operators/attention/attention.hpp"

// Which probabilities attention kernels drop: each library gives the places of a tile random
// numbers in an order of its own.
namespace guardbit::emulator::attention {

enum class DropoutOrder : std::uint8_t { none, flash, efficient, cudnn };
constexpr auto words(DropoutOrder) { return std::array{"none", "flash", "efficient", "cudnn"}; }

/// The dropped places of a head.
class DroppedKeys {
 public:
  DroppedKeys(DropoutOrder order, const Problem& problem, std::int64_t head)
      : order_(order), problem_(problem), head_(head) {}

  bool is_used() const { return problem_.dropout.probability > 0; }
  /// Sets what is dropped of a row's probabilities from that key on to 0.
  void drop(std::span<float> row, std::int64_t query, std::int64_t first_key) const;
  bool is_kept(std::int64_t query, std::int64_t key) const;
  /// 1 / (1 - probability) as the kernels have it.
  float kept_factor() const;

 private:
  DropoutOrder order_;
  const Problem& problem_;
  std::int64_t head_;
};

}  // namespace guardbit::emulator::attention
