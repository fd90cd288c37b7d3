#include "emulator/gemm/stream_k.hpp"

#include <algorithm>

namespace guardbit::emulator {

namespace {

/// Tiles whose iterations are shared; they come first, the others are whole.
std::int64_t shared_tiles(const StreamK& x, std::int64_t tiles) {
  const std::int64_t rest = tiles % x.blocks;
  switch (x.tiles) {
    case StreamK::Tiles::all: return tiles;
    case StreamK::Tiles::one_tile: return rest;
    case StreamK::Tiles::two_tile: return rest == 0 ? 0 : std::min(tiles, x.blocks + rest);
  }
  return tiles;
}

/// The first iteration of a block's share.
std::int64_t share_begin(const StreamK& x, std::int64_t iterations, std::int64_t block) {
  if (x.division == Division::ceil)
    return std::min(iterations, block * ((iterations + x.blocks - 1) / x.blocks));
  return block * (iterations / x.blocks) + std::min(block, iterations % x.blocks);
}

}  // namespace

std::int64_t TileOrder::tile_of(const Output& output) const {
  const std::int64_t i = output.row / x_.tile_m, j = output.column / x_.tile_n;
  return output.batch * down_ * across_ + (x_.along_m ? j * down_ + i : i * across_ + j);
}

std::vector<KRange> stream_k_cuts(const StreamK& x, std::int64_t tiles, std::int64_t tile,
                                  std::int64_t k) {
  const std::int64_t shared = shared_tiles(x, tiles);
  if (tile >= shared) return {{0, k}};
  const std::int64_t steps = (k + x.tile_k - 1) / x.tile_k;
  const std::int64_t begin = tile * steps, end = begin + steps;
  std::vector<KRange> cuts;
  for (std::int64_t block = 0; block < x.blocks; ++block) {
    const std::int64_t first = std::max(begin, share_begin(x, shared * steps, block));
    const std::int64_t last = std::min(end, share_begin(x, shared * steps, block + 1));
    if (first < last)
      cuts.push_back({(first - begin) * x.tile_k, std::min(k, (last - begin) * x.tile_k)});
  }
  return cuts;
}

std::vector<KRange> stream_k_ranges(const StreamK& x, std::int64_t tiles, std::int64_t k) {
  std::vector<KRange> ranges;
  const std::int64_t steps = (k + x.tile_k - 1) / x.tile_k, shared = shared_tiles(x, tiles);
  std::int64_t cut = 0, last = -1;  // tiles
  for (std::int64_t block = 1; block < x.blocks; ++block) {
    const std::int64_t at = share_begin(x, shared * steps, block);
    if (at % steps == 0 || at / steps == last) continue;
    last = at / steps;
    ++cut;
    for (const KRange& range : stream_k_cuts(x, tiles, last, k))
      if (std::find(ranges.begin(), ranges.end(), range) == ranges.end()) ranges.push_back(range);
  }
  if (cut < tiles) ranges.push_back({0, k});
  return ranges;
}

}  // namespace guardbit::emulator
