#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/format.hpp"

namespace guardbit::experiments {

/// What updates do to weights that are kept in a format.
struct UpdateEffect {
  /// updates other than zero
  std::uint64_t changes = 0;
  /// of each format: changes that leave the weight as it was
  std::vector<std::uint64_t> stale;

  void add(const UpdateEffect& other);
  friend bool operator==(const UpdateEffect&, const UpdateEffect&) = default;
};

/// Weights w and updates d are FP32 words, as many of one as of the other. A format keeps round(w);
/// d is stale where round(round(w) + d) is round(w), both to nearest even and the sum exact.
/// Elements that are no numbers are left out. The formats have at most 24 bits of significand, or
/// are FP64.
UpdateEffect update_effect(std::span<const std::byte> weights, std::span<const std::byte> updates,
                           std::span<const formats::Format> formats);

}  // namespace guardbit::experiments
