#include "emulator/plan_candidates.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

#include "emulator/catalogue.hpp"
#include "emulator/plan_library.hpp"
#include "formats/error.hpp"

namespace guardbit::emulator {

namespace {

/// Rows that compute alike whatever their K: one step of blocks that fill every instruction, or
/// chains of multiply-adds.
struct Arithmetic {
  std::vector<Step> steps;
  Format d{};
  int k = 0;
  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

Arithmetic arithmetic_of(const MatrixInstruction& row) {
  Arithmetic x{{row.steps.begin(), row.steps.end()}, row.d, row.shape.k};
  if (x.steps.size() != 1) return x;
  const AccumulatorSpec& spec = x.steps[0].spec;
  const int length = spec.terms == 0 ? row.shape.k : std::min(spec.terms, row.shape.k);
  if (spec.summation == Summation::fma_chain || spec.summation == Summation::integer) {
    x.k = 1;
  } else if (row.shape.k % length == 0) {
    x.k = length;
    x.steps[0].spec.terms = length;
  }
  return x;
}

/// Families in the order in which libraries of a machine that has them use them.
int preference(const MatrixInstruction& row) {
  switch (row.family) {
    case Family::tcgen05:
    case Family::tcgen05_sp:
    case Family::wgmma:
    case Family::wgmma_sp: return 0;
    case Family::mma:
    case Family::mma_sp: return 1;
    default: return 2;
  }
}

/// Rows of the machine that multiply these formats, one of each arithmetic, the likely first.
std::vector<const MatrixInstruction*> rows_for(std::string_view arch, const Format& a,
                                               const Format& b, bool sparse,
                                               const Format* d = nullptr) {
  std::vector<const MatrixInstruction*> rows;
  for (const MatrixInstruction& row : catalogue()) {
    const bool is_sparse = row.sparsity.group_elements != 0;
    if (row.arch != arch || row.a != a || row.b != b || row.scale.count != 0 || is_sparse != sparse)
      continue;
    if (std::string_view(row.name).find("satfinite") != std::string_view::npos) continue;
    if (is_sparse && row.sparsity.chunk != 1) continue;
    if (row.c != row.d || (d != nullptr && row.d != *d)) continue;
    rows.push_back(&row);
  }
  // FP32 sums before others, preferred families, then the longest instruction.
  std::stable_sort(rows.begin(), rows.end(), [](const auto* x, const auto* y) {
    const auto key = [](const MatrixInstruction& row) {
      return std::tuple(row.d == formats::fp16, preference(row), -row.shape.k);
    };
    return key(*x) < key(*y);
  });
  std::vector<const MatrixInstruction*> distinct;
  std::vector<Arithmetic> seen;
  for (const MatrixInstruction* row : rows) {
    Arithmetic x = arithmetic_of(*row);
    if (std::find(seen.begin(), seen.end(), x) != seen.end()) continue;
    seen.push_back(std::move(x));
    distinct.push_back(row);
  }
  return distinct;
}

/// A unit with the conversion of its operands.
struct UnitChoice {
  GemmUnit unit;
  InputConversion input;
};

std::vector<UnitChoice> units_for(const GemmCapture& capture, std::string_view arch) {
  const Format a = capture.problem.a.format, b = capture.problem.b.format;
  const bool sparse = capture.problem.sparse_a;
  std::vector<UnitChoice> units;
  const auto add_rows = [&](const Format& x, const Format& y, const InputConversion& input) {
    for (const bool compressed : {sparse, false}) {
      for (const MatrixInstruction* row : rows_for(arch, x, y, compressed))
        units.push_back(
            {{std::string(row->arch), std::string(std::string_view(row->name))}, input});
      if (!compressed) break;
    }
  };
  const UnitChoice fma = {{"simt", "fma.fp32"}, {}};
  if (a == formats::fp64) return {{{"simt", "fma.fp64"}, {}}};
  if (formats::is_integer(a)) {
    add_rows(a, b, {});
    if (units.empty()) units.push_back({{"simt", "mad.int32"}, {}});
    units.resize(1);  // integer sums are exact, whatever the unit and the order
    return units;
  }
  if (a == formats::fp32) {
    std::vector<UnitChoice> tensor;
    for (const Rounding rounding :
         {Rounding::nearest_even, Rounding::toward_zero, Rounding::nearest_away})
      add_rows(formats::tf32, formats::tf32, {rounding, 1, 1});
    for (const auto& [pieces, ranks] : {std::pair{2, 2}, {2, 3}})
      add_rows(formats::tf32, formats::tf32, {Rounding::nearest_even, pieces, ranks});
    for (const auto& [pieces, ranks] : {std::pair{1, 1}, {2, 2}, {3, 3}, {3, 5}})
      add_rows(formats::bf16, formats::bf16, {Rounding::nearest_even, pieces, ranks});
    add_rows(formats::fp16, formats::fp16, {Rounding::nearest_even, 1, 1});
    std::erase_if(units, [](const UnitChoice& u) {
      return u.unit.instruction.find(".f16.f16.f16") != std::string::npos;
    });
    units.insert(capture.tf32 ? units.end() : units.begin(), fma);
    return units;
  }
  add_rows(a, b, {});
  units.push_back(fma);
  if (a == formats::fp16) units.push_back({{"simt", "fma.fp16"}, {}});
  return units;
}

/// Where the table of plans knows the kernels that a capture names, their unit is the likely one.
void put_named_first(const GemmCapture& capture, std::vector<UnitChoice>& units) {
  const auto kernels = capture.metadata.find("kernels");
  if (kernels == capture.metadata.end()) return;
  for (const LibraryPlan& row : library_plans()) {
    if (!matches_kernel(row.kernel, kernels->second)) continue;
    const GemmPlan named = parse_plan(row.plan, "table of plans");
    const auto found = std::find_if(units.begin(), units.end(), [&](const UnitChoice& x) {
      return x.unit == named.unit && x.input == named.input;
    });
    if (found == units.end()) continue;
    std::rotate(units.begin(), found, found + 1);
    return;
  }
}

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

/// Adds the plans of `make` for every unit that deal K in a new way.
template <class Make>
void add_stage(Candidates& candidates, const std::vector<UnitChoice>& units, Deals& deals,
               const Make& make) {
  std::vector<GemmPlan> deals_of_k;
  for (GemmPlan& plan : make())
    if (deals.insert(plan)) deals_of_k.push_back(plan);
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
    for (const MatrixInstruction* row :
         rows_for(page, x.a.format, x.b.format, false, &capture.d.format))
      stage.push_back(
          {{page, std::string(std::string_view(row->name))}, {}, {}, {}, 0, {}, {}, {}, {}});
    if (x.a.format != formats::fp32) continue;
    for (const MatrixInstruction* row :
         rows_for(page, formats::tf32, formats::tf32, false, &capture.d.format))
      stage.push_back({{page, std::string(std::string_view(row->name))},
                       {Rounding::toward_zero, 1, 1},
                       {},
                       {},
                       0,
                       {},
                       {},
                       {},
                       {}});
  }
  result.stages.push_back(std::move(stage));
  result.orders = {SumOrder::ascending};
  result.workspaces = {formats::fp32};
  Epilogue e;
  e.addition = Epilogue::Addition::initial;
  e.output = e.compute = capture.d.format;
  result.epilogues = {e};
  return result;
}

}  // namespace

Candidates candidates_for(const GemmCapture& capture) {
  Candidates result;
  if (capture.kind == "instruction")
    return instruction_candidates(capture, std::string(require_page(capture.arch, capture.path)));
  const std::string arch(require_page(capture.arch, capture.path));
  std::vector<UnitChoice> units = units_for(capture, arch);
  put_named_first(capture, units);
  const std::int64_t k = capture.convolution
                             ? capture.convolution->c / capture.convolution->groups *
                                   capture.convolution->r * capture.convolution->s
                             : capture.problem.k();
  Deals deals(k);
  const bool narrow = formats::bits(capture.problem.a.format) == 8;
  const auto kernels = capture.metadata.find("kernels");
  const bool says_split =
      kernels != capture.metadata.end() && kernels->second.find("split") != std::string::npos;

  const auto whole = [] { return std::vector<GemmPlan>(1); };
  const auto promoted = [&] {
    std::vector<GemmPlan> plans;
    for (const std::int64_t interval : {128, 64, 256, 32, 512}) {
      GemmPlan plan;
      plan.promotion.interval = interval;
      if (narrow && interval < k) plans.push_back(plan);
    }
    return plans;
  };
  const auto scaled_blocks = [&] {
    std::vector<GemmPlan> plans;
    using Adder = Promotion::Adder;
    for (const Adder adder :
         {Adder::scaled_fma, Adder::scaled_add, Adder::scale_a_fma, Adder::scale_b_fma}) {
      GemmPlan plan;
      plan.promotion = {capture.problem.scale_k, adder};
      plans.push_back(plan);
    }
    return plans;
  };
  const auto split = [&] {
    std::vector<GemmPlan> plans;
    for (const Partition& p : splits(k)) {
      GemmPlan plan;
      plan.split = p;
      plans.push_back(plan);
    }
    return plans;
  };
  const auto split_promoted = [&] {
    std::vector<GemmPlan> plans;
    for (const Partition& p : splits(k)) {
      if (!narrow || p.tile < 32) continue;
      GemmPlan plan;
      plan.split = p;
      plan.promotion.interval = 128;
      plans.push_back(plan);
    }
    return plans;
  };
  const auto split_residue = [&] {
    std::vector<GemmPlan> plans;
    for (const Partition& p : splits(k)) {
      for (const std::int64_t tile : {16, 32, 64, 8, 128}) {
        GemmPlan plan;
        plan.split = p;
        plan.residue_first = tile;
        if (p.tile < tile && p.division == Division::ceil) plans.push_back(plan);
      }
    }
    return plans;
  };
  const auto loads = [&] {
    std::vector<GemmPlan> plans;
    for (const auto& [lanes, run, take] : {std::tuple{4, 8, 4},
                                           {4, 8, 2},
                                           {4, 4, 2},
                                           {4, 16, 4},
                                           {4, 4, 1},
                                           {4, 16, 8},
                                           {2, 8, 4},
                                           {8, 8, 2},
                                           {4, 2, 1},
                                           {8, 4, 2}}) {
      GemmPlan plan;
      plan.loads = {lanes, run, take};
      plans.push_back(plan);
    }
    return plans;
  };
  const auto residue = [&] {
    std::vector<GemmPlan> plans;
    for (const std::int64_t tile : {8, 16, 32, 64, 128, 4}) {
      GemmPlan plan;
      plan.residue_first = tile;
      if (k % tile != 0) plans.push_back(plan);
    }
    return plans;
  };
  const auto lanes = [&] {
    std::vector<GemmPlan> plans;
    for (const Partition& p : lane_partitions(k)) {
      GemmPlan plan;
      plan.lanes = p;
      plans.push_back(plan);
    }
    return plans;
  };
  const std::vector<UnitChoice> likely(units.begin(), units.begin() + 1);
  if (units.size() == 1 && formats::is_integer(capture.problem.a.format)) {
    add_stage(result, units, deals, whole);
  } else if (capture.problem.scale_k != 0) {
    add_stage(result, units, deals, scaled_blocks);
  } else {
    if (narrow && capture.metadata.contains("fast_accumulation") &&
        capture.metadata.at("fast_accumulation") == "false")
      add_stage(result, units, deals, promoted);
    if (says_split) {
      add_stage(result, likely, deals, split);
      add_stage(result, likely, deals, split_promoted);
    }
    add_stage(result, units, deals, whole);
    add_stage(result, units, deals, promoted);
    add_stage(result, units, deals, residue);
    add_stage(result, units, deals, loads);
    result.simple_stages = result.stages.size() - 1;
    add_stage(result, likely, deals, split);
    add_stage(result, likely, deals, split_residue);
    add_stage(result, likely, deals, split_promoted);
    add_stage(result, likely, deals, lanes);
    if (units.size() > 1) {
      const std::vector<UnitChoice> others(units.begin() + 1, units.end());
      Deals again(k);
      again.insert({});
      add_stage(result, others, again, split);
      add_stage(result, others, again, lanes);
    }
  }

  result.orders = {SumOrder::ascending, SumOrder::descending, SumOrder::halves, SumOrder::adjacent};
  const Format d = capture.d.format;
  result.workspaces = {formats::fp32};
  if (d == formats::fp16 || d == formats::bf16) result.workspaces.push_back(d);

  Epilogue e;
  e.output = d;
  e.alpha = capture.alpha;
  e.beta = capture.beta;
  if (d == formats::fp64) e.compute = formats::fp64;
  if (d == formats::int32) e.compute = formats::int32;
  const GemmProblem& x = capture.problem;
  const bool has_addend = (!x.c.empty() && e.beta != 0) || !x.bias.empty();
  const bool scaled = x.scale_k == 0 && !(x.scale_a.empty() && x.scale_b.empty());
  using Addition = Epilogue::Addition;
  for (const Addition addition :
       {Addition::fma_product, Addition::separate, Addition::fma_addend, Addition::rounded}) {
    for (const auto scales :
         {Epilogue::Scales::joint, Epilogue::Scales::a_then_b, Epilogue::Scales::b_then_a}) {
      e.addition = addition;
      e.scales = scales;
      if ((has_addend || addition == Addition::fma_product) &&
          (scaled || scales == Epilogue::Scales::joint)) {
        result.epilogues.push_back(e);
        if (d != formats::fp16) continue;
        result.epilogues.push_back(e);
        result.epilogues.back().compute = formats::fp16;
      }
    }
  }
  return result;
}

}  // namespace guardbit::emulator
