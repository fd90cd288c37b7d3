#pragma once

#include <cstdint>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"

// Stream-K: thread blocks share the iterations of all tiles equally.
namespace guardbit::emulator {

/// The tiles of a product of these sizes in the order in which stream-K takes them.
class TileOrder {
 public:
  TileOrder(const StreamK& stream_k, std::int64_t batch, std::int64_t m, std::int64_t n)
      : x_(stream_k),
        down_((m + x_.tile_m - 1) / x_.tile_m),
        across_((n + x_.tile_n - 1) / x_.tile_n),
        count_(batch * down_ * across_) {}

  std::int64_t count() const { return count_; }
  /// The place of the tile that holds an output.
  std::int64_t tile_of(const Output& output) const;

 private:
  StreamK x_;
  std::int64_t down_, across_, count_;
};

/// How a tile's K is cut: a run of k's for each block that works on it, in ascending order.
std::vector<KRange> stream_k_cuts(const StreamK& stream_k, std::int64_t tiles, std::int64_t tile,
                                  std::int64_t k);

/// The k's of every share of a tile, each once: all of K, and those of the tiles that are cut.
std::vector<KRange> stream_k_ranges(const StreamK& stream_k, std::int64_t tiles, std::int64_t k);

}  // namespace guardbit::emulator
