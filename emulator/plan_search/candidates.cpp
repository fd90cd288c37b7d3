#include "emulator/plan_search/candidates.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/continuation.hpp"
#include "emulator/gemm/gemm_operands.hpp"
#include "emulator/plan_search/chain_evidence.hpp"
#include "emulator/plan_search/partitions.hpp"
#include "emulator/plan_search/plan_evidence.hpp"
#include "emulator/plan_search/units.hpp"

namespace guardbit::emulator {

namespace {

/// A kernel that takes the products of a tile of K pair by pair of pieces adds each tile to a sum
/// in FP32. A shorter part of K is one tile.
void set_tile_of_k(GemmPlan& plan, std::int64_t longest_part) {
  plan.input.run = std::min(plan.input.run, longest_part);
  plan.promotion.interval = plan.input.run;
}

/// Elements of K of the longest accumulator.
std::int64_t longest_part(const GemmPlan& plan, std::int64_t k) {
  std::int64_t longest = 0;
  for (const KRanges& part : divide(plan.split, {{0, k}})) {
    for (const KRanges& slice : divide(plan.slices, part)) {
      std::int64_t length = 0;
      for (const KRange& range : slice) length += range.length();
      longest = std::max(longest, length);
    }
  }
  return longest;
}

/// Every unit with each of the plans whose partition of K is not in `known`, which takes them in.
std::vector<GemmPlan> stage_of(const std::vector<UnitChoice>& units, KnownPartitions& known,
                               std::vector<GemmPlan> plans, std::int64_t k) {
  std::erase_if(plans, [&](const GemmPlan& plan) { return !known.insert(plan); });
  const bool are_tiled = std::any_of(units.begin(), units.end(),
                                     [](const UnitChoice& unit) { return unit.is_tiled(); });
  std::vector<std::int64_t> longest;
  if (are_tiled)
    for (const GemmPlan& plan : plans) longest.push_back(longest_part(plan, k));
  std::vector<GemmPlan> stage;
  stage.reserve(units.size() * plans.size());
  std::set<std::string> tiled;
  for (const UnitChoice& choice : units) {
    for (std::size_t i = 0; i < plans.size(); ++i) {
      GemmPlan plan = plans[i];
      apply(choice, plan);
      if (plan.products == ProductOrder::tree && !product_format(plan.unit)) continue;
      if (choice.is_tiled()) {
        set_tile_of_k(plan, longest[i]);
        if (!tiled.insert(to_text(plan)).second) continue;
      }
      stage.push_back(std::move(plan));
    }
  }
  return stage;
}

/// For a recording of a single instruction: every instruction of every machine that multiplies
/// these formats, the recording's own machine first.
Candidates instruction_candidates(const GemmCapture& capture, const std::string& arch) {
  Candidates result;
  GemmPlan begun;
  begun.epilogue.addition = Epilogue::Addition::initial;
  std::vector<GemmPlan> stage;
  std::vector<std::string> pages = {arch};
  for (const Arch& machine : architectures())
    if (machine.alias_of.empty() && machine.name != arch) pages.emplace_back(machine.name);
  const GemmProblem& x = capture.problem;
  // The instruction that the recording names comes first. Of integers its name says whether sums
  // saturate, which the formats alone leave open.
  if (const auto named = capture.metadata.find("instruction"); named != capture.metadata.end()) {
    const auto instruction = find_instruction(arch, named->second);
    if (instruction && takes_addend(*instruction) && instruction->a == x.a.format &&
        instruction->b == x.b.format && instruction->d == capture.d.format)
      stage.emplace_back(begun).unit = {arch, named->second};
  }
  for (const std::string& page : pages) {
    const auto add_instructions = [&](const Format& a, const Format& b, Rounding rounding) {
      for (const MatrixInstruction* instruction :
           instructions_for(page, a, b, false, &capture.d.format)) {
        if (!takes_addend(*instruction)) continue;
        GemmPlan& plan = stage.emplace_back(begun);
        plan.unit = {page, std::string(std::string_view(instruction->name))};
        plan.input.rounding = rounding;
      }
    };
    add_instructions(x.a.format, x.b.format, Rounding::nearest_even);
    if (x.a.format == formats::fp32)
      add_instructions(formats::tf32, formats::tf32, Rounding::toward_zero);
  }
  result.stages.push_back(
      {"every instruction of these formats", [stage = std::move(stage)] { return stage; }});
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

/// Every epilogue with each form of its activation. One kernel may compute all of it, or a second
/// kernel applies the activation to what the first one stored in D's format.
std::vector<Epilogue> activated_in_all_forms(const std::vector<Epilogue>& epilogues) {
  std::vector<Epilogue> list;
  for (const Epilogue& epilogue : epilogues) {
    for (const Activation form : forms_of(epilogue.activation)) {
      if (form == Activation::gelu_erfc && !has_steps_of_gelu_erfc(epilogue.output)) continue;
      Epilogue& e = list.emplace_back(epilogue);
      e.activation = form;
      // A second kernel changes nothing in these two cases: the first one stores FP32, or this form
      // rounds its argument to D's format anyway.
      if (e.output == formats::fp32 || form == Activation::gelu_erfc) continue;
      Epilogue by_two_kernels = e;
      by_two_kernels.via = e.output;
      list.push_back(by_two_kernels);
    }
  }
  return list;
}

std::vector<Epilogue> epilogues_for(const GemmCapture& capture) {
  const Format d = capture.d.format;
  Epilogue e;
  e.output = d;
  capture.set_factors(e);
  // Plans apply smooth functions to FP32 numbers only; otherwise D's format computes the epilogue.
  if (!is_smooth(e.activation) && (d == formats::fp64 || d == formats::int32)) e.compute = d;
  const GemmProblem& x = capture.problem;
  const bool scaled = x.scale_k == 0 && !(x.scale_a.empty() && x.scale_b.empty());
  std::vector<Epilogue> list;
  using Addition = Epilogue::Addition;
  for (const Addition addition :
       {Addition::fma_product, Addition::separate, Addition::fma_addend, Addition::rounded}) {
    for (const auto scales :
         {Epilogue::Scales::joint, Epilogue::Scales::a_then_b, Epilogue::Scales::b_then_a}) {
      if (!has_addend(capture) && addition != Addition::fma_product) continue;
      if (!scaled && scales != Epilogue::Scales::joint) continue;
      e.addition = addition;
      e.scales = scales;
      list.push_back(e);
      if (d != formats::fp16) continue;
      list.push_back(e);
      list.back().compute = formats::fp16;
    }
  }
  // Compilers may multiply by alpha after the result was rounded to D's format.
  if (e.alpha != 1 && formats::bits(d) <= 16 && !formats::is_integer(d)) {
    const std::size_t count = list.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (list[i].compute != formats::fp32 || list[i].addition == Addition::rounded) continue;
      list.push_back(list[i]);
      list.back().alpha_on = Epilogue::AlphaOn::d;
    }
  }
  if (is_smooth(e.activation)) list = activated_in_all_forms(list);
  return list;
}

/// True if the capture's metadata hold `part` under `key`.
bool says(const GemmCapture& capture, const std::string& key, std::string_view part) {
  const auto found = capture.metadata.find(key);
  return found != capture.metadata.end() && found->second.find(part) != std::string::npos;
}

/// Units that stages share.
struct Units {
  /// after a cut's name: "by units that do not fit"
  std::string_view name;
  std::shared_ptr<const std::vector<UnitChoice>> list;
};

/// A list of partitions of K.
struct Cut {
  std::string_view name;
  std::vector<GemmPlan> (*plans)(const PartitionedPlans&);
};
using P = PartitionedPlans;
constexpr Cut whole = {"one chain over K", [](const P& /*plans*/) { return P::whole(); }};
constexpr Cut loads = {"one chain, K permuted by wide loads",
                       [](const P& /*plans*/) { return P::loads(); }};
constexpr Cut promoted = {"one chain, promoted at intervals",
                          [](const P& x) { return x.promoted(); }};
constexpr Cut residue = {"one chain, the incomplete tile of K first",
                         [](const P& x) { return x.residue(); }};
constexpr Cut scaled_blocks = {"one chain for each block of scales",
                               [](const P& x) { return x.scaled_blocks(); }};
constexpr Cut split = {"K split over thread blocks", [](const P& x) { return x.split(); }};
constexpr Cut split_as_shown = {"K split as the result shows",
                                [](const P& x) { return x.split_as_shown(); }};
constexpr Cut split_as_deep = {"K split into as many parts as the recorded grid has blocks in z",
                               [](const P& x) { return x.split_as_deep(); }};
constexpr Cut split_as_high = {"K split into as many parts as the recorded grid has blocks in y",
                               [](const P& x) { return x.split_as_high(); }};
constexpr Cut split_promoted = {"K split over thread blocks, promoted at intervals",
                                [](const P& x) { return x.split_promoted(); }};
constexpr Cut split_residue = {"K split over thread blocks, the incomplete tile first",
                               [](const P& x) { return x.split_residue(); }};
constexpr Cut sliced = {"K sliced over the warps or threads of a block",
                        [](const P& x) { return x.sliced(); }};
constexpr Cut promoted_slices = {"slices that are promoted at intervals",
                                 [](const P& x) { return x.promoted_slices(); }};
constexpr Cut blocks_of_threads = {"blocks that take pieces of K in turn, sliced over threads",
                                   [](const P& x) { return x.blocks_of_threads(); }};
constexpr Cut warps_of_threads = {"K split over warps, sliced over their threads",
                                  [](const P& x) { return x.warps_of_threads(); }};
constexpr Cut reduced = {"K reduced by the threads and warps of a block",
                         [](const P& x) { return x.reduced(); }};
constexpr Cut split_and_reduced = {"equal parts of K that warps of a second kernel add",
                                   [](const P& x) { return x.split_and_reduced(); }};
constexpr Cut split_in_few_slices = {"up to 4 parts of up to 4 slices",
                                     [](const P& x) { return x.split_in_few_slices(); }};
constexpr Cut split_in_many_slices = {"up to 16 parts of up to 32 slices",
                                      [](const P& x) { return x.split_in_many_slices(); }};
constexpr Cut stream_k_as_recorded = {"stream-K on the recorded number of blocks",
                                      [](const P& x) { return x.stream_k_as_recorded(); }};
constexpr Cut stream_k = {"stream-K on as many blocks as machines have multiprocessors",
                          [](const P& x) { return x.stream_k(); }};

/// ChainEvidence that is gathered when it is first asked for.
class LazyEvidence {
 public:
  explicit LazyEvidence(const GemmCapture& capture) : capture_(capture) {}
  bool refutes(const GemmPlan& plan) {
    if (!evidence_) evidence_.emplace(capture_);
    return evidence_->refutes(plan);
  }

 private:
  const GemmCapture& capture_;
  std::optional<ChainEvidence> evidence_;
};

/// Fills the stages of a search. Of the units, the first `supported` fit the result
/// (plan_evidence.hpp). The likeliest of these meets every partition of K; the others, most; units
/// that do not fit, few.
class Stages {
 public:
  Stages(const GemmCapture& capture, const std::vector<UnitChoice>& units, std::size_t supported,
         std::int64_t k, std::optional<Partition> shown, Candidates& result)
      : capture_(capture),
        k_(k),
        partitioned_(std::make_shared<const PartitionedPlans>(capture, k, shown)),
        is_split_shown_(shown.has_value()),
        all_(named("by every unit", units)),
        likely_(copy("by the likeliest unit", units, 0, 1)),
        others_(copy("by the other units that fit", units, std::min<std::size_t>(1, supported),
                     supported)),
        good_(copy("by every unit that fits", units, 0, supported)),
        unlikely_(copy("by units that do not fit", units, supported, units.size())),
        compiled_(of_compilers("by units of compilers", units, supported)),
        known_(std::make_shared<KnownPartitions>(k)),
        result_(result) {
    of_plain_ = std::make_shared<KnownPartitions>(k);
    of_begun_ = std::make_shared<KnownPartitions>(k);
    for (Known* known : {&of_others_, &of_unlikely_, &of_warps_, &of_reduced_, &of_scalar_,
                         &of_compiled_, &of_likely_}) {
      *known = std::make_shared<KnownPartitions>(k);
      (*known)->insert({});  // one chain over K is a stage of all units
    }
  }

  void add_all() {
    const GemmProblem& problem = capture_.problem;
    if (all_.list->size() == 1 && formats::is_integer(problem.a.format))
      return add(all_, known_, whole);
    if (problem.scale_k != 0) return add(all_, known_, scaled_blocks);
    add_simple();
    result_.simple_stages = result_.stages.size() - 1;
    evidence_ = std::make_shared<LazyEvidence>(capture_);
    add_partitions();
  }

 private:
  using Known = std::shared_ptr<KnownPartitions>;

  static Units named(std::string_view name, std::vector<UnitChoice> units) {
    return {name, std::make_shared<const std::vector<UnitChoice>>(std::move(units))};
  }
  /// Units of compilers are left out, but the likeliest one: they have their own stages.
  static Units copy(std::string_view name, const std::vector<UnitChoice>& units, std::size_t begin,
                    std::size_t end) {
    std::vector<UnitChoice> list;
    for (std::size_t i = begin; i < end; ++i)
      if (i == 0 || !units[i].is_of_compilers()) list.push_back(units[i]);
    return named(name, std::move(list));
  }
  static Units of_compilers(std::string_view name, const std::vector<UnitChoice>& units,
                            std::size_t supported) {
    std::vector<UnitChoice> list(units.begin(),
                                 units.begin() + static_cast<std::ptrdiff_t>(supported));
    std::erase_if(list, [](const UnitChoice& unit) { return !unit.is_of_compilers(); });
    return named(name, std::move(list));
  }

  /// Appends the stage of these units and of the plans that are not in `known` then.
  void add(const Units& units, const Known& known, const Cut& cut) {
    if (units.list->empty()) return;
    result_.stages.push_back(
        {std::string(cut.name) + " " + std::string(units.name),
         [units = units.list, known, cut, partitioned = partitioned_, evidence = evidence_,
          k = k_] {
           std::vector<GemmPlan> plans = stage_of(*units, *known, cut.plans(*partitioned), k);
           if (evidence)
             std::erase_if(plans, [&](const GemmPlan& plan) { return evidence->refutes(plan); });
           return plans;
         }});
  }

  /// One chain over K, and the splits that the recording itself suggests.
  void add_simple() {
    if (is_split_shown_) add(all_, std::make_shared<KnownPartitions>(k_), split_as_shown);
    if (partitioned_->has_8_bit_operands() && says(capture_, "fast_accumulation", "false"))
      add(good_, known_, promoted);
    if (says(capture_, "kernels", "split")) {
      add(likely_, known_, split);
      add(likely_, known_, split_promoted);
    }
    add(likely_, known_, split_as_deep);
    add(all_, known_, whole);
    add(begun_units(), of_begun_, whole);
    add(plain_units(), of_plain_, whole);
    add(good_, known_, promoted);
    add(good_, known_, residue);
    add(matrix_units(), known_, loads);
  }

  /// All other partitions of K.
  void add_partitions() {
    const Units scalar = scalar_units();
    if (capture_.is_of_vector()) {
      add(scalar, of_scalar_, reduced);
      add(scalar, of_scalar_, sliced);
      add(scalar, of_scalar_, warps_of_threads);
    }
    add(compiled_, of_compiled_, split_and_reduced);
    // Several plans may give one result. The first of them is reported, so a library's result is
    // tried with a library's splits before those of compilers, and a compiler's the other way
    // round.
    const bool is_compiled = capture_.metadata.contains("hlo");
    if (is_compiled) add(likely_, of_likely_, split_and_reduced);
    add(likely_, known_, split_as_high);
    add(likely_, known_, stream_k_as_recorded);
    add(likely_, known_, split);
    if (!is_compiled) add(likely_, of_likely_, split_and_reduced);
    add(others_, of_reduced_, split_and_reduced);
    add(likely_, known_, split_residue);
    add(likely_, known_, split_promoted);
    add(likely_, known_, sliced);
    add(scalar, known_, promoted_slices);
    add(scalar, known_, blocks_of_threads);
    add(others_, of_others_, split_as_deep);
    add(others_, of_others_, split_as_high);
    add(others_, of_others_, stream_k_as_recorded);
    add(good_, of_warps_, warps_of_threads);
    add(others_, of_others_, split);
    add(others_, of_others_, sliced);
    add(likely_, known_, stream_k);
    add(likely_, known_, split_in_few_slices);
    add(likely_, known_, split_in_many_slices);
    add(others_, of_others_, split_residue);
    if (capture_.problem.a.format == formats::fp64) return;
    add(unlikely_, of_unlikely_, split);
    add(unlikely_, of_unlikely_, sliced);
  }

  /// Good units whose first chain begins with the addend: compilers (Triton) give a product its
  /// addend so where all of K is one tile, and alpha is 1 or multiplies an operand.
  Units begun_units() const {
    if (!has_addend(capture_)) return named("", {});
    std::vector<UnitChoice> units = *good_.list;
    units.insert(units.end(), compiled_.list->begin(), compiled_.list->end());
    std::erase_if(units, [&](const UnitChoice& x) {
      return (capture_.alpha != 1 && x.alpha_on == Epilogue::AlphaOn::sum) || x.is_tiled();
    });
    for (UnitChoice& x : units) {
      x.addition = Epilogue::Addition::initial;
      x.beta = capture_.beta;
    }
    return named("from the addend on, by every unit that fits", std::move(units));
  }

  /// Good units to which wide loads bring K in another order: the lanes of a warp load for one
  /// instruction. A multiply-add of one thread has no lanes.
  Units matrix_units() const {
    std::vector<UnitChoice> units = *good_.list;
    std::erase_if(units,
                  [](const UnitChoice& x) { return x.unit.arch == "simt" || x.loads.lanes != 0; });
    return named("by matrix units", std::move(units));
  }

  /// What programs without a matrix unit do: round each product before they add it, or sum in FP64.
  /// They come before partitions of K, among which each has a look-alike.
  Units plain_units() const {
    std::vector<UnitChoice> units;
    const Format& a = capture_.problem.a.format;
    if (a == formats::fp32) units.push_back({{"simt", "mul_add.fp32"}, {}});
    if (a != formats::fp64 && !formats::is_integer(a)) units.push_back({{"simt", "fma.fp64"}, {}});
    return named("by rounded products or in FP64", std::move(units));
  }

  /// Good units of CUDA cores. Kernels of dot products may round the products; those of matrix
  /// products do not.
  Units scalar_units() const {
    std::vector<UnitChoice> units = *good_.list;
    std::erase_if(units, [](const UnitChoice& x) { return x.unit.arch != "simt"; });
    if (!capture_.is_of_vector() && !units.empty() && units[0].unit.instruction == "fma.fp32")
      units.push_back({{"simt", "mul_add.fp32"}, {}});
    return named("by multiply-adds", std::move(units));
  }

  const GemmCapture& capture_;
  std::int64_t k_;
  std::shared_ptr<const PartitionedPlans> partitioned_;
  bool is_split_shown_;
  /// asked by the stages that are added from then on; null: not asked
  std::shared_ptr<LazyEvidence> evidence_;
  Units all_, likely_, others_, good_, unlikely_, compiled_;
  /// The partitions that stages have given: to the likeliest unit, and to those of these names.
  Known known_, of_others_, of_unlikely_, of_warps_, of_plain_, of_begun_, of_reduced_, of_scalar_,
      of_compiled_, of_likely_;
  Candidates& result_;
};

}  // namespace

Candidates candidates_for(const GemmCapture& capture, std::optional<Partition> shown) {
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
  Stages(capture, units, evidence.supported, k, shown, result).add_all();
  for (const UnitChoice& choice : units) {
    GemmPlan& plan = result.units.emplace_back();
    apply(choice, plan);
  }
  result.walks = walks_for(capture);
  result.orders = {SumOrder::ascending, SumOrder::descending,    SumOrder::halves,
                   SumOrder::adjacent,  SumOrder::adjacent_last, SumOrder::buffers,
                   SumOrder::by_four,   SumOrder::shuffles,      SumOrder::last_first,
                   SumOrder::in_place};
  const Format d = capture.d.format;
  result.workspaces = {formats::fp32};
  if (d == formats::fp16 || d == formats::bf16) result.workspaces.push_back(d);
  if (shown && std::find(result.workspaces.begin(), result.workspaces.end(), shown->sums) ==
                   result.workspaces.end())
    result.workspaces.push_back(shown->sums);
  result.epilogues = epilogues_for(capture);
  return result;
}

}  // namespace guardbit::emulator
