#pragma once

// Panels of an operand in memory, strip by strip. Included behind `#pragma GCC target`, as
// fused_panels.hpp is.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/engine/kernels/fused/fused_panels.hpp"
#include "emulator/engine/kernels/shared/panel_memory.hpp"

namespace guardbit::emulator::fused {

/// One operand over a range of places, packed strip by strip: B's part of a panel in one strip
/// stays in the first-level cache while A's panels stream past.
template <class Writer>
class PackedOperand {
 public:
  /// Makes room for `lines` lines over `count` places in strips of `strip`, signs in groups of
  /// `group`. Memory is kept from one range to the next.
  void prepare(const FusedInstruction& instruction, int group, std::int64_t lines,
               std::int64_t count, std::int64_t strip) {
    strip_ = strip;
    lines_ = (lines + Writer::lines - 1) / Writer::lines * Writer::lines;
    bands_ = (lines_ + band_lines - 1) / band_lines;
    count_ = count;
    strips_ = (count + strip - 1) / strip;
    const auto most_places = static_cast<std::size_t>(std::min(count, strip_));
    layout_ = Writer::layout(most_places, most_places / static_cast<std::size_t>(group),
                             instruction.any_exponents);
    const auto panels = static_cast<std::size_t>(bands_ * band_lines / Writer::lines);
    strip_bytes_ = layout_.size * panels;
    memory_.resize(strip_bytes_ * static_cast<std::size_t>(strips()));
    ranges_.resize(static_cast<std::size_t>(bands_ * strips()));
  }

  std::int64_t bands() const { return bands_; }
  std::int64_t strips() const { return strips_; }
  std::int64_t places(std::int64_t s) const { return std::min(strip_, count_ - s * strip_); }
  const PanelLayout& layout() const { return layout_; }
  const std::byte* panel(std::int64_t s, std::int64_t index) const {
    return memory_.data() + strip_bytes_ * static_cast<std::size_t>(s) +
           layout_.size * static_cast<std::size_t>(index);
  }
  Writer writer(std::int64_t s, std::int64_t band) {
    return {PanelPlaces<Writer::lines>::at(
        layout_, memory_.data() + strip_bytes_ * static_cast<std::size_t>(s), band)};
  }
  BandRange& range(std::int64_t s, std::int64_t band) {
    return ranges_[static_cast<std::size_t>(s * bands_ + band)];
  }
  const BandRange& range(std::int64_t s, std::int64_t band) const {
    return ranges_[static_cast<std::size_t>(s * bands_ + band)];
  }
  /// Of all bands in all strips.
  BandRange whole_range() const {
    BandRange all = ranges_.front();
    for (std::int64_t i = 1; i < bands_ * strips(); ++i)
      all.include(ranges_[static_cast<std::size_t>(i)]);
    return all;
  }

 private:
  std::int64_t lines_ = 0, bands_ = 0, count_ = 0, strip_ = 0, strips_ = 0;
  std::vector<BandRange> ranges_;
  PanelLayout layout_;
  std::size_t strip_bytes_ = 0;
  PanelMemory memory_;
};

}  // namespace guardbit::emulator::fused
