#include "emulator/plan_candidates.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <span>
#include <utility>

#include "emulator/catalogue.hpp"
#include "emulator/plan_units.hpp"
#include "emulator/stream_k.hpp"

namespace guardbit::emulator {

namespace {

/// Plans that deal K alike are one plan.
class Deals {
 public:
  explicit Deals(std::int64_t k) : k_(k) {}
  bool insert(const GemmPlan& plan) {
    std::string key;
    for (const KRanges& slice : divide(plan.split, {{0, k_}})) {
      key += '|';
      for (const KRanges& lane : divide(plan.lanes, slice)) {
        key += ';';
        for (const KRange& range : lane)
          key += std::to_string(range.begin) + "-" + std::to_string(range.end) + ",";
      }
    }
    const bool adds = plan.promotion.adder == Promotion::Adder::add;
    if (!adds || plan.promotion.interval < k_)
      key += "p" + std::to_string(plan.promotion.interval) + "/" +
             std::to_string(static_cast<int>(plan.promotion.adder));
    key += "l" + std::to_string(plan.loads.lanes) + "/" + std::to_string(plan.loads.run) + "/" +
           std::to_string(plan.loads.take);
    key += "r" + std::to_string(plan.residue_first);
    if (!plan.stream_k.none()) key += to_text(plan);  // cuts depend on the tile
    return seen_.insert(std::move(key)).second;
  }

 private:
  std::int64_t k_;
  std::set<std::string> seen_;
};

constexpr std::array<std::int64_t, 11> tiles = {64, 32, 8, 16, 128, 1, 4, 2, 256, 96, 48};
constexpr int most_parts = 160;

/// Parts that K can be split into, few before many: every number up to a limit where there are
/// tiles enough.
std::vector<Partition> splits(std::int64_t k) {
  std::vector<Partition> result;
  for (const auto& [fewest, most] : {std::pair{2, 16}, {17, 64}, {65, most_parts}}) {
    for (const Division division : {Division::ceil, Division::balanced, Division::round_robin}) {
      for (const std::int64_t tile : tiles) {
        const std::int64_t count = (k + tile - 1) / tile;
        for (int parts = fewest; parts <= std::min<std::int64_t>(count, most); ++parts)
          result.push_back({parts, tile, division, SumOrder::ascending, formats::fp32});
      }
    }
  }
  return result;
}

/// Warps and threads share K in powers of two.
std::vector<Partition> lane_partitions(std::int64_t k) {
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

/// Adds those of the plans, for every unit, that deal K in a new way.
void add_stage(Candidates& candidates, const std::vector<UnitChoice>& units, Deals& deals,
               std::vector<GemmPlan> plans) {
  std::vector<GemmPlan> deals_of_k;
  for (GemmPlan& plan : plans)
    if (deals.insert(plan)) deals_of_k.push_back(std::move(plan));
  std::vector<GemmPlan> stage;
  for (const UnitChoice& choice : units) {
    for (GemmPlan plan : deals_of_k) {
      plan.unit = choice.unit;
      plan.input = choice.input;
      stage.push_back(std::move(plan));
    }
  }
  candidates.stages.push_back(std::move(stage));
}

/// An instruction that no row is known for: every row of every machine that multiplies these
/// formats, its own machine's first.
Candidates instruction_candidates(const GemmCapture& capture, const std::string& arch) {
  Candidates result;
  std::vector<GemmPlan> stage;
  std::vector<std::string> pages = {arch};
  for (const Arch& machine : architectures())
    if (machine.alias_of.empty() && machine.name != arch) pages.emplace_back(machine.name);
  const GemmProblem& x = capture.problem;
  for (const std::string& page : pages) {
    const auto add_rows = [&](const Format& a, const Format& b, Rounding rounding) {
      for (const MatrixInstruction* row : rows_for(page, a, b, false, &capture.d.format)) {
        GemmPlan& plan = stage.emplace_back();
        plan.unit = {page, std::string(std::string_view(row->name))};
        plan.input.rounding = rounding;
      }
    };
    add_rows(x.a.format, x.b.format, Rounding::nearest_even);
    if (x.a.format == formats::fp32) add_rows(formats::tf32, formats::tf32, Rounding::toward_zero);
  }
  result.stages.push_back(std::move(stage));
  result.walks = {{}};
  result.orders = {SumOrder::ascending};
  result.workspaces = {formats::fp32};
  Epilogue e;
  e.addition = Epilogue::Addition::initial;
  e.output = e.compute = capture.d.format;
  result.epilogues = {e};
  return result;
}

/// Plans that differ in one thing.
template <class Values, class Set>
std::vector<GemmPlan> plans_of(const Values& values, Set set) {
  std::vector<GemmPlan> plans;
  for (const auto& value : values) {
    GemmPlan plan;
    if (set(plan, value)) plans.push_back(std::move(plan));
  }
  return plans;
}

/// The first grid that a recording names, "5x1x1 of 128; ...": blocks in each direction; else
/// zeros.
std::array<int, 3> grid_of(const GemmCapture& capture) {
  std::array<int, 3> grid{};
  const auto grids = capture.metadata.find("grids");
  if (grids == capture.metadata.end()) return grid;
  const char* at = grids->second.data();
  const char* const end = at + grids->second.size();
  for (int& blocks : grid) {
    const auto [next, error] = std::from_chars(at, end, blocks);
    if (error != std::errc() || blocks < 1 || blocks > 1 << 16) return {};
    at = next == end ? next : next + 1;
  }
  return grid;
}

/// The ways to deal K that the stages try, for one capture.
class DealtPlans {
 public:
  DealtPlans(const GemmCapture& capture, std::int64_t k)
      : capture_(capture),
        k_(k),
        narrow_(formats::bits(capture.problem.a.format) == 8),
        grid_(grid_of(capture)) {}

  static std::vector<GemmPlan> whole() { return std::vector<GemmPlan>(1); }
  std::vector<GemmPlan> promoted() const {
    return plans_of(std::array<std::int64_t, 5>{128, 64, 256, 32, 512},
                    [&](GemmPlan& plan, std::int64_t interval) {
                      plan.promotion.interval = interval;
                      return narrow_ && interval < k_;
                    });
  }
  std::vector<GemmPlan> scaled_blocks() const {
    using Adder = Promotion::Adder;
    return plans_of(
        std::array{Adder::scaled_fma, Adder::scaled_add, Adder::scale_a_fma, Adder::scale_b_fma},
        [&](GemmPlan& plan, Adder adder) {
          plan.promotion = {capture_.problem.scale_k, adder};
          return true;
        });
  }
  std::vector<GemmPlan> split() const {
    return plans_of(splits(k_), [](GemmPlan& plan, const Partition& p) {
      plan.split = p;
      return true;
    });
  }
  /// As many slices as a recorded grid is deep, with incomplete tiles last or first.
  std::vector<GemmPlan> split_as_recorded() const {
    std::vector<std::pair<Partition, std::int64_t>> pairs;
    for (const Partition& p : splits(k_))
      for (const std::int64_t tile : {0, 16, 32, 64, 8, 128})
        if (p.parts == grid_[2]) pairs.emplace_back(p, tile);
    return plans_of(pairs, [](GemmPlan& plan, const auto& pair) {
      plan.split = pair.first;
      plan.residue_first = pair.second;
      return plan.residue_first == 0 || plan.split.division == Division::ceil;
    });
  }
  std::vector<GemmPlan> split_promoted() const {
    return plans_of(splits(k_), [&](GemmPlan& plan, const Partition& p) {
      plan.split = p;
      plan.promotion.interval = 128;
      return narrow_ && p.tile >= 32;
    });
  }
  std::vector<GemmPlan> split_residue() const {
    std::vector<std::pair<Partition, std::int64_t>> pairs;
    for (const Partition& p : splits(k_))
      for (const std::int64_t tile : {16, 32, 64, 8, 128}) pairs.emplace_back(p, tile);
    return plans_of(pairs, [](GemmPlan& plan, const auto& pair) {
      plan.split = pair.first;
      plan.residue_first = pair.second;
      return plan.split.tile < plan.residue_first && plan.split.division == Division::ceil;
    });
  }
  static std::vector<GemmPlan> loads() {
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
  std::vector<GemmPlan> residue() const {
    return plans_of(std::array<std::int64_t, 6>{8, 16, 32, 64, 128, 4},
                    [&](GemmPlan& plan, std::int64_t tile) {
                      plan.residue_first = tile;
                      return k_ % tile != 0;
                    });
  }
  std::vector<GemmPlan> lanes() const {
    return plans_of(lane_partitions(k_), [](GemmPlan& plan, const Partition& p) {
      plan.lanes = p;
      return true;
    });
  }

  /// Few slices of K, and warps or threads that share each.
  std::vector<GemmPlan> split_lanes() const {
    std::vector<std::pair<Partition, Partition>> pairs;
    for (const Partition& split : splits(k_)) {
      const bool usual = split.tile == 32 || split.tile == 64 || split.tile == 128;
      if (split.parts > 4 || !usual || split.division != Division::ceil) continue;
      for (const Partition& lanes : lane_partitions(k_ / split.parts))
        if (lanes.parts <= 4 && lanes.tile >= 8 && lanes.division != Division::balanced)
          pairs.emplace_back(split, lanes);
    }
    return plans_of(pairs, [](GemmPlan& plan, const auto& pair) {
      plan.split = pair.first;
      plan.lanes = pair.second;
      return true;
    });
  }

  /// More slices, and the lanes of warps, or of the threads of a warp.
  std::vector<GemmPlan> split_many_lanes() const {
    std::vector<std::pair<Partition, Partition>> pairs;
    for (const Partition& split : splits(k_)) {
      const bool usual = split.tile >= 16 && split.tile <= 128 && split.tile != 96;
      if (split.parts > 16 || !usual || split.division == Division::round_robin) continue;
      for (const Partition& lanes : lane_partitions(k_ / split.parts)) {
        const bool warps = lanes.parts <= 16 && lanes.tile >= 8;
        const bool threads = lanes.parts == 32 && lanes.tile <= 4;
        if ((warps || threads) && lanes.division != Division::balanced)
          pairs.emplace_back(split, lanes);
      }
    }
    return plans_of(pairs, [](GemmPlan& plan, const auto& pair) {
      plan.split = pair.first;
      plan.lanes = pair.second;
      return true;
    });
  }

  /// Tiles of libraries' kernels, on as many blocks as the recording names, also with two or four
  /// warps that share K; or as machines have multiprocessors. Those that cut no tile in a new way
  /// are left out.
  std::vector<GemmPlan> stream_k_as_recorded() const;
  std::vector<GemmPlan> stream_k() const {
    return stream_k_on(std::array{132, 108, 114, 148, 144, 142, 84});
  }

  bool narrow() const { return narrow_; }

 private:
  std::vector<GemmPlan> stream_k_on(std::span<const int> block_counts) const;

  const GemmCapture& capture_;
  std::int64_t k_;
  bool narrow_;
  std::array<int, 3> grid_;
};

std::vector<GemmPlan> DealtPlans::stream_k_as_recorded() const {
  std::vector<GemmPlan> plans = stream_k_on(std::array{grid_[0] * grid_[1] * grid_[2]});
  const std::size_t whole = plans.size();
  for (std::size_t i = 0; i < whole; ++i) {
    for (const int warps : {2, 4}) {
      for (const std::int64_t tile : {16, 32, 8}) {
        if (tile * warps > plans[i].stream_k.tile_k && tile != plans[i].stream_k.tile_k) continue;
        GemmPlan plan = plans[i];
        plan.lanes = {warps, tile, Division::round_robin, SumOrder::ascending, formats::fp32};
        plans.push_back(std::move(plan));
      }
    }
  }
  return plans;
}

std::vector<GemmPlan> DealtPlans::stream_k_on(std::span<const int> block_counts) const {
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

std::vector<ConvolutionOrder> walks_for(const GemmCapture& capture) {
  if (!capture.convolution) return {{}};
  using Walk = ConvolutionOrder::Walk;
  const std::int64_t channels = capture.convolution->c / capture.convolution->groups;
  std::vector<ConvolutionOrder> walks = {{Walk::rsc, 0, 1}, {Walk::crs, 0, 1}};
  for (const int block : {64, 32})
    if (block < channels) walks.push_back({Walk::rsc, block, 1});
  for (const Walk walk : {Walk::rsc, Walk::src, Walk::crs}) {
    for (const int fill : {1, 4, 8, 16, 32, 64}) {
      if (walk == Walk::crs && fill != 1) continue;
      for (const int block : {0, 16, 64, 32, 8, 128}) {
        const ConvolutionOrder order{walk, block, fill};
        const bool known = std::find(walks.begin(), walks.end(), order) != walks.end();
        if (!known && block < channels && block % fill == 0) walks.push_back(order);
      }
    }
  }
  return walks;
}

std::vector<Epilogue> epilogues_for(const GemmCapture& capture) {
  const Format d = capture.d.format;
  Epilogue e;
  e.output = d;
  e.alpha = capture.alpha;
  e.beta = capture.beta;
  if (d == formats::fp64) e.compute = formats::fp64;
  if (d == formats::int32) e.compute = formats::int32;
  const GemmProblem& x = capture.problem;
  const bool has_addend = (!x.c.empty() && e.beta != 0) || !x.bias.empty();
  const bool scaled = x.scale_k == 0 && !(x.scale_a.empty() && x.scale_b.empty());
  std::vector<Epilogue> list;
  using Addition = Epilogue::Addition;
  for (const Addition addition :
       {Addition::fma_product, Addition::separate, Addition::fma_addend, Addition::rounded}) {
    for (const auto scales :
         {Epilogue::Scales::joint, Epilogue::Scales::a_then_b, Epilogue::Scales::b_then_a}) {
      if (!has_addend && addition != Addition::fma_product) continue;
      if (!scaled && scales != Epilogue::Scales::joint) continue;
      e.addition = addition;
      e.scales = scales;
      list.push_back(e);
      if (d != formats::fp16) continue;
      list.push_back(e);
      list.back().compute = formats::fp16;
    }
  }
  return list;
}

/// Do the metadata of a capture say this?
bool says(const GemmCapture& capture, const std::string& key, std::string_view part) {
  const auto found = capture.metadata.find(key);
  return found != capture.metadata.end() && found->second.find(part) != std::string::npos;
}

void add_stages(const GemmCapture& capture, const std::vector<UnitChoice>& units, std::int64_t k,
                Candidates& result) {
  Deals deals(k);
  const DealtPlans dealt(capture, k);
  const auto add = [&](const std::vector<UnitChoice>& of, Deals& known,
                       std::vector<GemmPlan> plans) {
    add_stage(result, of, known, std::move(plans));
  };
  if (units.size() == 1 && formats::is_integer(capture.problem.a.format))
    return add(units, deals, DealtPlans::whole());
  if (capture.problem.scale_k != 0) return add(units, deals, dealt.scaled_blocks());
  const std::vector<UnitChoice> likely(units.begin(), units.begin() + 1);
  if (dealt.narrow() && says(capture, "fast_accumulation", "false"))
    add(units, deals, dealt.promoted());
  if (says(capture, "kernels", "split")) {
    add(likely, deals, dealt.split());
    add(likely, deals, dealt.split_promoted());
  }
  add(likely, deals, dealt.split_as_recorded());
  add(units, deals, DealtPlans::whole());
  add(units, deals, dealt.promoted());
  add(units, deals, dealt.residue());
  add(units, deals, DealtPlans::loads());
  result.simple_stages = result.stages.size() - 1;
  add(units, deals, dealt.stream_k_as_recorded());
  add(likely, deals, dealt.split());
  add(likely, deals, dealt.split_residue());
  add(likely, deals, dealt.split_promoted());
  add(likely, deals, dealt.lanes());
  if (units.size() > 1) {
    const std::vector<UnitChoice> others(units.begin() + 1, units.end());
    Deals again(k);
    again.insert({});
    add(others, again, dealt.split());
    add(others, again, dealt.lanes());
  }
  add(likely, deals, dealt.stream_k());
  add(likely, deals, dealt.split_lanes());
  add(likely, deals, dealt.split_many_lanes());
}

}  // namespace

Candidates candidates_for(const GemmCapture& capture) {
  const std::string arch(require_page(capture.arch, capture.path));
  if (capture.kind == "instruction") return instruction_candidates(capture, arch);
  Candidates result;
  const std::vector<UnitChoice> units = units_for(capture, arch);
  const std::int64_t k = capture.convolution
                             ? capture.convolution->c / capture.convolution->groups *
                                   capture.convolution->r * capture.convolution->s
                             : capture.problem.k();
  add_stages(capture, units, k, result);
  for (const UnitChoice& choice : units) {
    GemmPlan& plan = result.units.emplace_back();
    plan.unit = choice.unit;
    plan.input = choice.input;
  }
  result.walks = walks_for(capture);
  result.orders = {SumOrder::ascending, SumOrder::descending, SumOrder::halves, SumOrder::adjacent,
                   SumOrder::in_place};
  const Format d = capture.d.format;
  result.workspaces = {formats::fp32};
  if (d == formats::fp16 || d == formats::bf16) result.workspaces.push_back(d);
  result.epilogues = epilogues_for(capture);
  return result;
}

}  // namespace guardbit::emulator
