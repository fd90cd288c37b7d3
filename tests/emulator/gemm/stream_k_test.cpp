#include "emulator/gemm/stream_k.hpp"

#include <cstdint>
#include <vector>

#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

using emulator::Division;

TEST_CASE("stream-K cuts the tiles where shares end") {
  using emulator::KRange;
  using emulator::StreamK;
  const auto cuts = [](StreamK x, std::int64_t tiles, std::int64_t tile) {
    return emulator::stream_k_cuts(x, tiles, tile, 100);
  };
  // 3 tiles of 7 iterations of 16: 21 iterations over 4 blocks, in shares of 6 and at last 3.
  StreamK x;
  x.blocks = 4, x.tile_k = 16;
  CHECK(cuts(x, 3, 0) == std::vector<KRange>{{0, 96}, {96, 100}});
  CHECK(cuts(x, 3, 1) == std::vector<KRange>{{0, 80}, {80, 100}});
  CHECK(cuts(x, 3, 2) == std::vector<KRange>{{0, 64}, {64, 100}});
  // Evenly: 6, 5, 5, 5.
  x.division = Division::balanced;
  CHECK(cuts(x, 3, 1) == std::vector<KRange>{{0, 64}, {64, 100}});
  CHECK(cuts(x, 3, 2) == std::vector<KRange>{{0, 32}, {32, 100}});
  // 9 tiles on 4 blocks: the last wave of 1, or the last two of 5, are shared.
  x.tiles = StreamK::Tiles::one_tile;
  CHECK(cuts(x, 9, 0).size() == 4);
  CHECK(cuts(x, 9, 1) == std::vector<KRange>{{0, 100}});
  x.tiles = StreamK::Tiles::two_tile;
  CHECK(cuts(x, 9, 0) == std::vector<KRange>{{0, 100}});
  CHECK(cuts(x, 9, 1) == std::vector<KRange>{{0, 32}, {32, 100}});
  CHECK(cuts(x, 9, 5) == std::vector<KRange>{{0, 100}});
  CHECK(cuts(x, 8, 7) == std::vector<KRange>{{0, 100}});
}

}  // namespace
}  // namespace guardbit::tests
