#include "emulator/plan_search/partitions.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "emulator/gemm/stream_k.hpp"

namespace guardbit::emulator {

namespace {

/// Elements of K that go to one part together, likely numbers first.
constexpr std::array<std::int64_t, 11> tiles_of_k = {64, 32, 8, 16, 128, 1, 4, 2, 256, 96, 48};
constexpr int most_parts = 1024;

/// Partitions of K over thread blocks: every number of parts up to most_parts that has a tile of K
/// for each part; few parts first.
std::vector<Partition> splits(std::int64_t k) {
  std::vector<Partition> result;
  for (const auto& [fewest, most] : {std::pair{2, 16}, {17, 64}, {65, 160}, {161, most_parts}}) {
    for (const Division division :
         {Division::ceil, Division::balanced, Division::round_robin, Division::balanced_last}) {
      if (division == Division::balanced_last && fewest != 2) continue;
      if (division != Division::ceil && fewest > 160) continue;
      for (const std::int64_t tile : tiles_of_k) {
        const std::int64_t count = (k + tile - 1) / tile;
        for (int parts = fewest; parts <= std::min<std::int64_t>(count, most); ++parts)
          result.push_back({parts, tile, division, SumOrder::ascending, formats::fp32});
      }
    }
  }
  return result;
}

/// Partitions of K over the warps or threads of a block: powers of two.
std::vector<Partition> slice_partitions(std::int64_t k) {
  std::vector<Partition> result;
  for (const Division division : {Division::round_robin, Division::ceil, Division::balanced}) {
    for (int parts = 2; parts <= 256; parts *= 2) {
      for (const std::int64_t tile : {1, 2, 4, 8, 16, 32, 64, 128}) {
        if (parts * tile < 2 * k)
          result.push_back({parts, tile, division, SumOrder::ascending, formats::fp32});
      }
    }
  }
  return result;
}

/// A hash of a list of numbers in 128 bits: two polynomials over them, mixed after each step.
class Digest {
 public:
  void add(std::int64_t value) {
    for (std::size_t i = 0; i < 2; ++i) {
      std::uint64_t x = (state_[i] ^ static_cast<std::uint64_t>(value)) * factors[i];
      x ^= x >> 32;
      state_[i] = x * factors[i] + 1;
    }
  }
  const std::array<std::uint64_t, 2>& value() const { return state_; }

 private:
  static constexpr std::array<std::uint64_t, 2> factors = {0x9e3779b97f4a7c15, 0xd6e8feb86659fd93};
  std::array<std::uint64_t, 2> state_{};
};

/// A plan for each value: `set(plan, value)` changes it and says whether to keep it.
template <class Values, class Set>
std::vector<GemmPlan> plans_of(const Values& values, Set set) {
  std::vector<GemmPlan> plans;
  for (const auto& value : values) {
    GemmPlan plan;
    if (set(plan, value)) plans.push_back(std::move(plan));
  }
  return plans;
}

/// Plans with a split and, within each part, slices.
std::vector<GemmPlan> split_and_sliced(const std::vector<std::pair<Partition, Partition>>& pairs) {
  return plans_of(pairs, [](GemmPlan& plan, const auto& pair) {
    plan.split = pair.first;
    plan.slices = pair.second;
    return true;
  });
}

}  // namespace

bool KnownPartitions::insert(const GemmPlan& plan) {
  Digest digest;
  bool has_residue = false;
  for (const KRanges& part : divide(plan.split, {{0, k_}})) {
    digest.add(-1);
    for (const KRanges& slice : divide(plan.slices, part)) {
      digest.add(-2);
      for (const KRange& range : slice) {
        digest.add(range.begin);
        digest.add(range.end);
        has_residue =
            has_residue || (plan.residue_first != 0 && range.length() > plan.residue_first &&
                            range.length() % plan.residue_first != 0);
      }
    }
  }
  const bool adds = plan.promotion.adder == Promotion::Adder::add;
  const bool promotes = !adds || plan.promotion.interval < k_;
  for (const std::int64_t value :
       {promotes ? plan.promotion.interval : 0,
        promotes ? static_cast<std::int64_t>(plan.promotion.adder) : 0,
        std::int64_t{plan.loads.lanes}, std::int64_t{plan.loads.run}, std::int64_t{plan.loads.take},
        has_residue ? plan.residue_first : 0, static_cast<std::int64_t>(plan.products),
        static_cast<std::int64_t>(plan.split.order), static_cast<std::int64_t>(plan.slices.order),
        std::int64_t{plan.split.group}})
    digest.add(value);
  if (!plan.stream_k.none())  // where K is cut depends on the tile of D
    for (const char c : to_text(plan)) digest.add(c);
  return seen_.insert(digest.value()).second;
}

PartitionedPlans::PartitionedPlans(const GemmCapture& capture, std::int64_t k,
                                   std::optional<Partition> shown)
    : capture_(capture),
      k_(k),
      shown_(shown),
      has_8_bit_operands_(formats::bits(capture.problem.a.format) == 8),
      grids_(grids_of(capture)) {}

/// Reads "5x1x1 of 128; 30x1x1 of 256" as the grids 5x1x1 and 30x1x1, one for each kernel.
std::vector<PartitionedPlans::Grid> PartitionedPlans::grids_of(const GemmCapture& capture) {
  std::vector<Grid> grids;
  const auto recorded = capture.metadata.find("grids");
  if (recorded == capture.metadata.end()) return grids;
  const std::string& text = recorded->second;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    const char* from = text.data() + at;
    Grid grid{};
    bool read = true;
    for (int& blocks : grid) {
      const auto [next, error] = std::from_chars(from, text.data() + end, blocks);
      read = read && error == std::errc() && blocks >= 1 && blocks <= 1 << 16;
      if (!read) break;
      from = next == text.data() + end ? next : next + 1;
    }
    if (read) grids.push_back(grid);
    at = end + 1;
    while (at < text.size() && text[at] == ' ') ++at;
  }
  return grids;
}

std::vector<GemmPlan> PartitionedPlans::promoted() const {
  return plans_of(std::array<std::int64_t, 5>{128, 64, 256, 32, 512},
                  [&](GemmPlan& plan, std::int64_t interval) {
                    plan.promotion.interval = interval;
                    return has_8_bit_operands_ && interval < k_;
                  });
}

std::vector<GemmPlan> PartitionedPlans::scaled_blocks() const {
  using Adder = Promotion::Adder;
  return plans_of(
      std::array{Adder::scaled_fma, Adder::scaled_add, Adder::scale_a_fma, Adder::scale_b_fma},
      [&](GemmPlan& plan, Adder adder) {
        plan.promotion = {capture_.problem.scale_k, adder};
        return true;
      });
}

std::vector<GemmPlan> PartitionedPlans::split() const {
  return plans_of(splits(k_), [](GemmPlan& plan, const Partition& p) {
    plan.split = p;
    return true;
  });
}

std::vector<GemmPlan> PartitionedPlans::split_as_shown() const {
  if (!shown_) return {};
  GemmPlan plan;
  plan.split = *shown_;
  // Orders and formats of partial sums are the search's.
  plan.split.order = SumOrder::ascending;
  plan.split.sums = formats::fp32;
  return {plan};
}

std::vector<GemmPlan> PartitionedPlans::split_as_recorded(std::size_t direction) const {
  std::vector<int> depths;
  for (const Grid& grid : grids_) {
    const int depth = grid[direction];
    if (depth > 1 && std::find(depths.begin(), depths.end(), depth) == depths.end())
      depths.push_back(depth);
  }
  std::vector<std::pair<Partition, std::int64_t>> pairs;
  const std::vector<Partition> all = splits(k_);
  for (const int depth : depths)
    for (const Partition& p : all)
      for (const std::int64_t tile : {0, 16, 32, 64, 8, 128})
        if (p.parts == depth) pairs.emplace_back(p, tile);
  return plans_of(pairs, [](GemmPlan& plan, const auto& pair) {
    plan.split = pair.first;
    plan.residue_first = pair.second;
    return plan.residue_first == 0 || plan.split.division == Division::ceil;
  });
}

std::vector<GemmPlan> PartitionedPlans::split_promoted() const {
  return plans_of(splits(k_), [&](GemmPlan& plan, const Partition& p) {
    plan.split = p;
    plan.promotion.interval = 128;
    return has_8_bit_operands_ && p.tile >= 32;
  });
}

std::vector<GemmPlan> PartitionedPlans::split_residue() const {
  std::vector<std::pair<Partition, std::int64_t>> pairs;
  for (const Partition& p : splits(k_))
    for (const std::int64_t tile : {16, 32, 64, 8, 128}) pairs.emplace_back(p, tile);
  return plans_of(pairs, [](GemmPlan& plan, const auto& pair) {
    plan.split = pair.first;
    plan.residue_first = pair.second;
    return plan.split.tile < plan.residue_first && plan.split.division == Division::ceil;
  });
}

std::vector<GemmPlan> PartitionedPlans::loads() {
  return plans_of(std::array<LoadOrder, 10>{{{4, 8, 4},
                                             {4, 8, 2},
                                             {4, 4, 2},
                                             {4, 16, 4},
                                             {4, 4, 1},
                                             {4, 16, 8},
                                             {2, 8, 4},
                                             {8, 8, 2},
                                             {4, 2, 1},
                                             {8, 4, 2}}},
                  [](GemmPlan& plan, const LoadOrder& loads) {
                    plan.loads = loads;
                    return true;
                  });
}

std::vector<GemmPlan> PartitionedPlans::residue() const {
  return plans_of(std::array<std::int64_t, 6>{8, 16, 32, 64, 128, 4},
                  [&](GemmPlan& plan, std::int64_t tile) {
                    plan.residue_first = tile;
                    return k_ % tile != 0;
                  });
}

std::vector<GemmPlan> PartitionedPlans::sliced() const {
  return plans_of(slice_partitions(k_), [](GemmPlan& plan, const Partition& p) {
    plan.slices = p;
    return true;
  });
}

std::vector<GemmPlan> PartitionedPlans::promoted_slices() const {
  std::vector<std::pair<Partition, std::int64_t>> pairs;
  for (const int parts : {16, 32, 8, 4, 64, 128})
    for (const std::int64_t tile : {1, 2, 4})
      for (const std::int64_t interval : {32, 16, 64, 8, 4, 128})
        if (parts * interval < k_ && tile <= interval)
          pairs.emplace_back(
              Partition{parts, tile, Division::round_robin, SumOrder::ascending, formats::fp32},
              interval);
  return plans_of(pairs, [](GemmPlan& plan, const auto& pair) {
    plan.slices = pair.first;
    plan.promotion.interval = pair.second;
    return true;
  });
}

std::vector<GemmPlan> PartitionedPlans::blocks_of_threads() const {
  std::vector<std::pair<Partition, Partition>> pairs;
  for (const int threads : {128, 256, 64, 32, 512}) {
    for (const std::int64_t run : {1, 2, 4, 8}) {
      const std::int64_t piece = threads * run, pieces = (k_ + piece - 1) / piece;
      if (pieces < 2) continue;
      const Partition over_threads{threads, run, Division::round_robin, SumOrder::ascending,
                                   formats::fp32};
      for (const std::int64_t blocks : {pieces, std::int64_t{16}, std::int64_t{31},
                                        std::int64_t{32}, std::int64_t{64}, std::int64_t{8}})
        if (blocks <= pieces && blocks <= most_parts)
          pairs.emplace_back(Partition{static_cast<int>(blocks), piece, Division::round_robin,
                                       SumOrder::ascending, formats::fp32},
                             over_threads);
    }
  }
  return split_and_sliced(pairs);
}

std::vector<GemmPlan> PartitionedPlans::warps_of_threads() const {
  std::vector<std::pair<Partition, Partition>> pairs;
  for (const std::int64_t run : {1, 4, 8, 2, 16}) {
    for (const int warps : {2, 4, 8, 16, 32}) {
      const Partition threads{32, run, Division::round_robin, SumOrder::ascending, formats::fp32};
      for (const std::int64_t rounds : {1, 2, 4})
        if (warps * 32 * run * rounds < 2 * k_)
          pairs.emplace_back(Partition{warps, 32 * run * rounds, Division::round_robin,
                                       SumOrder::ascending, formats::fp32},
                             threads);
    }
  }
  return split_and_sliced(pairs);
}

std::vector<GemmPlan> PartitionedPlans::reduced() const {
  std::vector<GemmPlan> plans;
  for (const ProductOrder products : {ProductOrder::tree, ProductOrder::chain}) {
    for (const int threads : {32, 16, 8, 4, 2, 1}) {
      for (const std::int64_t run : {1, 4, 8, 2, 16}) {
        for (const int warps : {4, 8, 2, 1, 16, 32}) {
          const std::int64_t tile = threads * run;
          if (warps * threads == 1 || warps * tile >= 4 * k_) continue;
          GemmPlan& plan = plans.emplace_back();
          plan.products = products;
          if (threads > 1)
            plan.slices = {threads, run, Division::round_robin, SumOrder::halves, formats::fp32};
          if (warps > 1)
            plan.split = {warps, tile, Division::round_robin, SumOrder::halves, formats::fp32};
        }
      }
    }
  }
  return plans;
}

std::vector<GemmPlan> PartitionedPlans::split_and_reduced() const {
  std::vector<GemmPlan> plans;
  std::set<std::pair<int, std::int64_t>> seen;
  // K is filled up with zeros so that all parts are equal and aligned.
  const std::int64_t aligned = std::max(4, 128 / formats::bits(capture_.problem.a.format));
  for (const std::int64_t multiple : {aligned, std::int64_t{4}, std::int64_t{8}, std::int64_t{1},
                                      std::int64_t{16}, std::int64_t{32}, std::int64_t{64}}) {
    for (int parts = 2; parts <= 512; parts *= 2) {
      const std::int64_t together = parts * multiple;
      const std::int64_t length = (k_ + together - 1) / together * multiple;
      if (length < 8 || length >= k_ || !seen.emplace(parts, length).second) continue;
      plans.emplace_back().split = {parts, length, Division::ceil, SumOrder::ascending,
                                    formats::fp32};
      for (int groups = 2; 2 * groups <= parts && groups <= 128; groups *= 2) {
        // Groups are threads of a warp, then warps.
        for (int threads = 1; threads < groups && threads <= 32; threads *= 2) {
          GemmPlan& plan = plans.emplace_back();
          plan.slices = {parts / groups, length, Division::ceil, SumOrder::adjacent, formats::fp32};
          plan.split = {groups, length, Division::round_robin, SumOrder::halves, formats::fp32};
          if (threads > 1) plan.split.group = threads;
        }
      }
    }
  }
  return plans;
}

std::vector<GemmPlan> PartitionedPlans::split_in_few_slices() const {
  std::vector<std::pair<Partition, Partition>> pairs;
  for (const Partition& split : splits(k_)) {
    const bool usual = split.tile == 32 || split.tile == 64 || split.tile == 128;
    if (split.parts > 4 || !usual || split.division != Division::ceil) continue;
    for (const Partition& slices : slice_partitions(k_ / split.parts))
      if (slices.parts <= 4 && slices.tile >= 8 && slices.division != Division::balanced)
        pairs.emplace_back(split, slices);
  }
  return split_and_sliced(pairs);
}

std::vector<GemmPlan> PartitionedPlans::split_in_many_slices() const {
  std::vector<std::pair<Partition, Partition>> pairs;
  for (const Partition& split : splits(k_)) {
    const bool usual = split.tile >= 16 && split.tile <= 128 && split.tile != 96;
    if (split.parts > 16 || !usual || split.division == Division::round_robin) continue;
    for (const Partition& slices : slice_partitions(k_ / split.parts)) {
      const bool warps = slices.parts <= 16 && slices.tile >= 8;
      const bool threads = slices.parts == 32 && slices.tile <= 4;
      if ((warps || threads) && slices.division != Division::balanced)
        pairs.emplace_back(split, slices);
    }
  }
  return split_and_sliced(pairs);
}

std::vector<GemmPlan> PartitionedPlans::stream_k() const {
  return stream_k_on(std::array{132, 108, 114, 148, 144, 142, 84});
}

std::vector<GemmPlan> PartitionedPlans::stream_k_as_recorded() const {
  constexpr std::size_t most_counts = 2;
  std::vector<int> counts;
  for (const Grid& grid : grids_) {
    const std::int64_t blocks = std::int64_t{grid[0]} * grid[1] * grid[2];
    if (blocks < 2 || blocks > 1 << 16 || counts.size() == most_counts) continue;
    const int count = static_cast<int>(blocks);
    if (std::find(counts.begin(), counts.end(), count) == counts.end()) counts.push_back(count);
  }
  std::vector<GemmPlan> plans = stream_k_on(counts);
  const std::size_t whole = plans.size();
  for (std::size_t i = 0; i < whole; ++i) {
    for (const int warps : {2, 4}) {
      for (const std::int64_t tile : {16, 32, 8}) {
        if (tile * warps > plans[i].stream_k.tile_k && tile != plans[i].stream_k.tile_k) continue;
        GemmPlan plan = plans[i];
        plan.slices = {warps, tile, Division::round_robin, SumOrder::ascending, formats::fp32};
        plans.push_back(std::move(plan));
      }
    }
  }
  return plans;
}

std::vector<GemmPlan> PartitionedPlans::stream_k_on(std::span<const int> block_counts) const {
  constexpr std::array sides = {128, 256, 64, 32, 16};
  const GemmProblem& x = capture_.problem;
  const std::int64_t m = capture_.d.rows, n = capture_.d.columns;
  std::vector<GemmPlan> plans;
  std::set<std::vector<std::int64_t>> seen;
  StreamK s;
  const auto add = [&] {
    const TileOrder order(s, capture_.d.batch, m, n);
    std::vector<std::int64_t> cuts = {s.tile_m, s.tile_n, s.along_m ? 1 : 0};
    bool divided = false;
    for (std::int64_t tile = 0; tile < order.count(); ++tile) {
      const std::vector<KRange> of_tile = stream_k_cuts(s, order.count(), tile, k_);
      divided = divided || of_tile.size() > 1;
      for (const KRange& range : of_tile) cuts.push_back(range.end);
    }
    if (!divided || !seen.insert(std::move(cuts)).second) return;
    plans.emplace_back().stream_k = s;
  };
  for (const int blocks : block_counts) {
    for (const int tile_m : sides) {
      for (const int tile_n : sides) {
        const std::int64_t all =
            ((m + tile_m - 1) / tile_m) * ((n + tile_n - 1) / tile_n) * x.a.batch;
        if (blocks < 2 || all > 4096) continue;
        for (const int tile_k : {32, 64, 16, 128}) {
          s = {blocks, tile_m, tile_n, tile_k, {}, {}, {}, {}, formats::fp32};
          for (const Division division : {Division::balanced, Division::ceil}) {
            for (const auto which :
                 {StreamK::Tiles::two_tile, StreamK::Tiles::all, StreamK::Tiles::one_tile}) {
              for (const bool along_m : {false, true}) {
                s.division = division;
                s.tiles = which;
                s.along_m = along_m;
                add();
              }
            }
          }
        }
      }
    }
  }
  return plans;
}

}  // namespace guardbit::emulator
