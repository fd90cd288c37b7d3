#include "experiments/traces/update_effect.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "formats/conversion/array_conversion.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::experiments {

using formats::Format;
using formats::Packing;

namespace {

constexpr std::size_t piece = std::size_t{1} << 14;

/// Between FP64 numbers and the codes of a format, a piece at a time.
class Keeping {
 public:
  explicit Keeping(const Format& format)
      : format_(format), codes_(piece * static_cast<std::size_t>(container_bits(format)) / 8) {
    options_.overflow = formats::overflow_ieee;
    options_.threads = 1;
  }

  /// Replaces each number by the one that the format keeps of it.
  void round(std::span<double> numbers) {
    const auto bytes = std::as_writable_bytes(numbers);
    const std::size_t n = numbers.size();
    const auto codes =
        std::span(codes_).first(n * static_cast<std::size_t>(container_bits(format_)) / 8);
    formats::convert_array(formats::fp64, Packing::container, bytes, format_, Packing::container,
                           codes, n, options_);
    formats::convert_array(format_, Packing::container, codes, formats::fp64, Packing::container,
                           bytes, n, options_);
  }

 private:
  Format format_;
  std::vector<std::byte> codes_;
  formats::ConversionOptions options_;
};

double number_at(std::span<const std::byte> words, std::size_t i) {
  return std::bit_cast<float>(formats::load_word<std::uint32_t>(words.data() + 4 * i));
}

}  // namespace

void UpdateEffect::add(const UpdateEffect& other) {
  changes += other.changes;
  stale.resize(std::max(stale.size(), other.stale.size()));
  for (std::size_t i = 0; i < other.stale.size(); ++i) stale[i] += other.stale[i];
}

UpdateEffect update_effect(std::span<const std::byte> weights, std::span<const std::byte> updates,
                           std::span<const Format> formats) {
  assert(weights.size() == updates.size());
  UpdateEffect effect{0, std::vector<std::uint64_t>(formats.size())};
  std::vector<Keeping> kept(formats.begin(), formats.end());
  std::vector<double> w, d, before, after;
  const std::size_t count = weights.size() / 4;
  for (std::size_t at = 0; at < count; at += piece) {
    w.clear();
    d.clear();
    for (std::size_t i = at; i < std::min(count, at + piece); ++i) {
      const double update = number_at(updates, i);
      const double weight = number_at(weights, i);
      if (update == 0 || !std::isfinite(update) || !std::isfinite(weight)) continue;
      w.push_back(weight);
      d.push_back(update);
    }
    effect.changes += w.size();
    for (std::size_t f = 0; f < formats.size(); ++f) {
      before = w;
      kept[f].round(before);
      after.resize(before.size());
      // For FP64 itself this is the sum that it rounds. Others keep at most 24 bits: half a unit in
      // the last place of round(w) is at least 2^-26 |round(w)| on either side. A sum that FP64
      // does not hold has an update of less than 2^-28 |round(w)|: stale, and as FP64 rounds it no
      // more than that away. So this is the exact sum rounded once.
      for (std::size_t i = 0; i < after.size(); ++i) after[i] = before[i] + d[i];
      kept[f].round(after);
      for (std::size_t i = 0; i < after.size(); ++i)
        effect.stale[f] += after[i] == before[i] ? 1U : 0U;
    }
  }
  return effect;
}

}  // namespace guardbit::experiments
