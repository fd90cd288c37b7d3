#include "emulator/gemm/plan.hpp"

#include <algorithm>

namespace guardbit::emulator {

namespace {

/// Consecutive runs of k's, of those lengths.
std::vector<KRanges> cut(const KRanges& ranges, const std::vector<std::int64_t>& lengths) {
  std::vector<KRanges> parts;
  std::size_t at = 0;
  KRange rest = ranges.empty() ? KRange{} : ranges[0];
  for (std::int64_t length : lengths) {
    KRanges part;
    while (length > 0 && at < ranges.size()) {
      const std::int64_t taken = std::min(length, rest.length());
      if (taken > 0) part.push_back({rest.begin, rest.begin + taken});
      rest.begin += taken;
      length -= taken;
      if (rest.length() == 0 && ++at < ranges.size()) rest = ranges[at];
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

void append(KRanges& to, const KRanges& ranges) {
  for (const KRange& range : ranges) {
    if (!to.empty() && to.back().end == range.begin) {
      to.back().end = range.end;
    } else {
      to.push_back(range);
    }
  }
}

}  // namespace

std::vector<std::int64_t> lengths_of_parts(const Partition& partition, std::int64_t length) {
  if (partition.whole()) return {length};
  const std::int64_t tile = std::max<std::int64_t>(1, partition.tile);
  const std::int64_t tiles = (length + tile - 1) / tile;
  std::vector<std::int64_t> lengths;
  if (partition.division == Division::ceil) {
    const std::int64_t each = (tiles + partition.parts - 1) / partition.parts * tile;
    for (std::int64_t begin = 0; begin < length; begin += each)
      lengths.push_back(std::min(each, length - begin));
    return lengths;
  }
  const std::int64_t parts =
      std::min<std::int64_t>(partition.parts, std::max<std::int64_t>(1, tiles));
  const bool last = partition.division == Division::balanced_last;
  // Of tiles that go round the one that may be incomplete is not in the last part.
  const std::int64_t incomplete =
      partition.division == Division::round_robin && tiles > 0 ? (tiles - 1) % parts : parts - 1;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t place = last ? parts - 1 - part : part;
    const std::int64_t own = tiles / parts + (place < tiles % parts ? 1 : 0);
    lengths.push_back(own * tile - (part == incomplete ? tiles * tile - length : 0));
  }
  return lengths;
}

std::vector<KRanges> divide(const Partition& partition, const KRanges& ranges) {
  if (partition.whole()) return {ranges};
  std::int64_t length = 0;
  for (const KRange& range : ranges) length += range.length();
  if (partition.division != Division::round_robin)
    return cut(ranges, lengths_of_parts(partition, length));
  const std::int64_t tile = std::max<std::int64_t>(1, partition.tile);
  const std::int64_t tiles = (length + tile - 1) / tile;
  const std::int64_t parts =
      std::min<std::int64_t>(partition.parts, std::max<std::int64_t>(1, tiles));
  std::vector<KRanges> result(static_cast<std::size_t>(parts));
  const std::vector<KRanges> tiles_of_k =
      cut(ranges, std::vector<std::int64_t>(static_cast<std::size_t>(tiles), tile));
  for (std::size_t t = 0; t < tiles_of_k.size(); ++t)
    append(result[t % static_cast<std::size_t>(parts)], tiles_of_k[t]);
  return result;
}

}  // namespace guardbit::emulator
