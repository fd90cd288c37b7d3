#include "emulator/plan_search/candidates.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/continuation.hpp"
#include "emulator/plan_search/partitions.hpp"
#include "emulator/plan_search/plan_evidence.hpp"
#include "emulator/plan_search/units.hpp"

namespace guardbit::emulator {

namespace {

/// Those of the plans, for every unit, that deal K in a new way.
std::vector<GemmPlan> stage_of(const std::vector<UnitChoice>& units, Deals& deals,
                               std::vector<GemmPlan> plans) {
  std::erase_if(plans, [&](const GemmPlan& plan) { return !deals.insert(plan); });
  std::vector<GemmPlan> stage;
  stage.reserve(units.size() * plans.size());
  for (const UnitChoice& choice : units) {
    for (GemmPlan plan : plans) {
      choose(choice, plan);
      // What takes a tile of K pair by pair adds each tile to its sum.
      if (choice.input.run != 0) plan.promotion.interval = choice.input.run;
      stage.push_back(std::move(plan));
    }
  }
  return stage;
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
        if (!takes_addend(*row)) continue;
        GemmPlan& plan = stage.emplace_back();
        plan.unit = {page, std::string(std::string_view(row->name))};
        plan.input.rounding = rounding;
      }
    };
    add_rows(x.a.format, x.b.format, Rounding::nearest_even);
    if (x.a.format == formats::fp32) add_rows(formats::tf32, formats::tf32, Rounding::toward_zero);
  }
  result.stages.emplace_back([stage = std::move(stage)] { return stage; });
  result.walks = {{}};
  result.orders = {SumOrder::ascending};
  result.workspaces = {formats::fp32};
  Epilogue e;
  e.addition = Epilogue::Addition::initial;
  e.output = e.compute = capture.d.format;
  result.epilogues = {e};
  return result;
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

/// Stages for units of which the first `supported` are those that the result speaks for.
void add_stages(const GemmCapture& capture, const std::vector<UnitChoice>& all,
                std::size_t supported, std::int64_t k, Candidates& result) {
  const auto dealt = std::make_shared<const DealtPlans>(capture, k);
  using Units = std::shared_ptr<const std::vector<UnitChoice>>;
  const auto part = [&](std::size_t begin, std::size_t end) {
    const auto at = [&](std::size_t i) { return all.begin() + static_cast<std::ptrdiff_t>(i); };
    return std::make_shared<const std::vector<UnitChoice>>(at(begin), at(end));
  };
  const auto new_deals = [k](bool with_whole) {
    auto deals = std::make_shared<Deals>(k);
    if (with_whole) deals->insert({});
    return deals;
  };
  const auto deals = new_deals(false);
  const auto add = [&](const Units& units, const std::shared_ptr<Deals>& known, auto plans) {
    if (units->empty()) return;
    result.stages.emplace_back(
        [=] { return stage_of(*units, *known, std::invoke(plans, *dealt)); });
  };
  const auto whole = [](const DealtPlans&) { return DealtPlans::whole(); };
  const auto loads = [](const DealtPlans&) { return DealtPlans::loads(); };
  const Units units = part(0, all.size());
  if (all.size() == 1 && formats::is_integer(capture.problem.a.format))
    return add(units, deals, whole);
  if (capture.problem.scale_k != 0) return add(units, deals, &DealtPlans::scaled_blocks);
  // Loads permute what lanes give to an instruction; multiply-adds of one thread have none.
  auto matrix_units = *part(0, supported);
  std::erase_if(matrix_units,
                [](const UnitChoice& x) { return x.unit.arch == "simt" || x.loads.lanes != 0; });
  const auto loading = std::make_shared<const std::vector<UnitChoice>>(std::move(matrix_units));
  auto scalar_units = *part(0, supported);
  std::erase_if(scalar_units, [](const UnitChoice& x) { return x.unit.arch != "simt"; });
  // Kernels of dot products round them; those of matrices do not.
  if (!scalar_units.empty() && scalar_units[0].unit.instruction == "fma.fp32")
    scalar_units.push_back({{"simt", "mul_add.fp32"}, {}});
  const auto threads = std::make_shared<const std::vector<UnitChoice>>(std::move(scalar_units));
  const Units good = part(0, supported), likely = part(0, 1), others = part(1, supported),
              unlikely = part(supported, all.size());
  if (dealt->narrow() && says(capture, "fast_accumulation", "false"))
    add(good, deals, &DealtPlans::promoted);
  if (says(capture, "kernels", "split")) {
    add(likely, deals, &DealtPlans::split);
    add(likely, deals, &DealtPlans::split_promoted);
  }
  add(likely, deals, &DealtPlans::split_as_deep);
  add(units, deals, whole);
  add(good, deals, &DealtPlans::promoted);
  add(good, deals, &DealtPlans::residue);
  add(loading, deals, loads);
  result.simple_stages = result.stages.size() - 1;
  add(likely, deals, &DealtPlans::split_as_high);
  add(likely, deals, &DealtPlans::stream_k_as_recorded);
  add(likely, deals, &DealtPlans::split);
  add(likely, deals, &DealtPlans::split_residue);
  add(likely, deals, &DealtPlans::split_promoted);
  add(likely, deals, &DealtPlans::lanes);
  add(threads, deals, &DealtPlans::promoted_lanes);
  add(threads, deals, &DealtPlans::blocks_of_threads);
  const auto of_others = new_deals(true), of_unlikely = new_deals(true),
             warp_deals = new_deals(true);
  add(others, of_others, &DealtPlans::split_as_deep);
  add(others, of_others, &DealtPlans::split_as_high);
  add(others, of_others, &DealtPlans::stream_k_as_recorded);
  add(good, warp_deals, &DealtPlans::warps_of_threads);
  add(others, of_others, &DealtPlans::split);
  add(others, of_others, &DealtPlans::lanes);
  add(likely, deals, &DealtPlans::stream_k);
  add(likely, deals, &DealtPlans::split_lanes);
  add(likely, deals, &DealtPlans::split_many_lanes);
  add(others, of_others, &DealtPlans::split_residue);
  if (capture.problem.a.format == formats::fp64) return;
  add(unlikely, of_unlikely, &DealtPlans::split);
  add(unlikely, of_unlikely, &DealtPlans::lanes);
}

}  // namespace

Candidates candidates_for(const GemmCapture& capture) {
  const std::string arch(require_page(capture.arch, capture.path));
  if (capture.kind == "instruction") return instruction_candidates(capture, arch);
  Candidates result;
  std::vector<UnitChoice> units = units_for(capture, arch);
  const ResultEvidence evidence = put_supported_first(capture, units);
  result.plausible = evidence.plausible;
  const std::int64_t k = capture.convolution
                             ? capture.convolution->c / capture.convolution->groups *
                                   capture.convolution->r * capture.convolution->s
                             : capture.problem.k();
  add_stages(capture, units, evidence.supported, k, result);
  for (const UnitChoice& choice : units) {
    GemmPlan& plan = result.units.emplace_back();
    choose(choice, plan);
  }
  result.walks = walks_for(capture);
  result.orders = {SumOrder::ascending, SumOrder::descending,    SumOrder::halves,
                   SumOrder::adjacent,  SumOrder::adjacent_last, SumOrder::buffers,
                   SumOrder::by_four,   SumOrder::in_place};
  const Format d = capture.d.format;
  result.workspaces = {formats::fp32};
  if (d == formats::fp16 || d == formats::bf16) result.workspaces.push_back(d);
  result.epilogues = epilogues_for(capture);
  return result;
}

}  // namespace guardbit::emulator
