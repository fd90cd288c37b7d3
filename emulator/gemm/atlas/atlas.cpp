#include "emulator/gemm/atlas/atlas.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "emulator/gemm/atlas/leaf.hpp"
#include "emulator/gemm/atlas/one_position.hpp"
#include "emulator/gemm/atlas/usual_shapes.hpp"
#include "emulator/gemm/usual_plan.hpp"
#include "formats/support/error.hpp"
#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::atlas {

namespace {

using formats::Error;

constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();

const Format& format_of(Numbers numbers) {
  if (numbers == Numbers::f16) return formats::fp16;
  return numbers == Numbers::bf16 ? formats::bf16 : formats::fp32;
}

void check_size(std::int64_t size, const char* what) {
  if (size < 1 || size > largest)
    throw Error("atlas", std::string(what) + " " + std::to_string(size) + " is out of range",
                "1 to " + std::to_string(largest));
}

void check(const ProductCall& call) {
  check_size(call.m, "m");
  check_size(call.n, "n");
  check_size(call.k, "k");
  check_size(call.batch, "batch");
  if (call.batch != 1 && call.op != Operator::bmm) throw Error("atlas", "only bmm has a batch");
  const std::int64_t a = call.a_transposed ? call.m : call.k;
  const std::int64_t b = call.b_transposed ? call.k : call.n;
  if (call.a_leading != 0 && call.a_leading < a)
    throw Error("atlas", "rows of A overlap: a leading dimension of " +
                             std::to_string(call.a_leading) + " below " + std::to_string(a));
  if (call.b_leading != 0 && call.b_leading < b)
    throw Error("atlas", "rows of B overlap: a leading dimension of " +
                             std::to_string(call.b_leading) + " below " + std::to_string(b));
}

/// Of all parts of K but the last one, which may have less.
std::int64_t length_of_part(std::int64_t k, std::int64_t parts, std::int64_t tile) {
  return formats::rounded_up(formats::divided_up(k, parts), tile);
}

/// Of the parts that a rule asks for those that get elements of K.
int parts_with_elements(std::int64_t k, std::int64_t parts, std::int64_t tile, bool in_turn) {
  if (in_turn) return static_cast<int>(std::min(parts, formats::divided_up(k, tile)));
  return static_cast<int>(formats::divided_up(k, length_of_part(k, parts, tile)));
}

/// Lanes that share `k` elements of K.
Partition lanes_of(std::int64_t k, const Leaf& leaf) {
  Partition lanes;
  lanes.parts = leaf.lanes;
  const std::int64_t share = formats::divided_up(k, leaf.lanes);
  lanes.tile = leaf.tile == 0    ? share
               : leaf.tile == 64 ? std::min<std::int64_t>(64, share)
                                 : leaf.tile;
  lanes.division = Division::round_robin;
  if (leaf.form == Form::lanes_halves || leaf.form == Form::split_lanes)
    lanes.order = std::has_single_bit(static_cast<unsigned>(leaf.lanes)) ? SumOrder::halves
                                                                         : SumOrder::shuffles;
  return lanes;
}

/// Blocks of 128 threads take runs of K in turn, a thread one element of each run; or two, where
/// neighbours in K are neighbours in memory. The sum of each of these two has a chain of its own.
void set_dot(std::int64_t k, bool contiguous, std::int64_t blocks_asked, GemmPlan& plan) {
  const int of_thread = contiguous ? 2 : 1;
  plan.slices = {128 * of_thread, 1, Division::round_robin, SumOrder::halves, formats::fp32};
  if (of_thread == 2) plan.slices.group = 2;
  const std::int64_t run = 128 * of_thread;
  const std::int64_t blocks = std::min(blocks_asked, formats::divided_up(k, run));
  if (blocks > 1)
    plan.split = {static_cast<int>(blocks), run, Division::round_robin, SumOrder::by_four,
                  formats::fp32};
}

/// Of vectors: K is cut, or divided over lanes, or both.
void set_lanes(const ProductCall& call, const Leaf& leaf, GemmPlan& plan) {
  const int parts = parts_with_elements(call.k, leaf.parts, 1, false);
  const std::int64_t run = formats::divided_up(call.k, leaf.parts);
  if (parts > 1) plan.split.parts = parts;
  if (leaf.lanes > 1) plan.slices = lanes_of(run, leaf);
  plan.promotion.interval = leaf.restart;
  // A kernel of its own adds the bias to rounded sums, unless D begins as a copy of it.
  if (leaf.form == Form::split_lanes && call.op == Operator::addmm && call.n > 1 &&
      plan.epilogue.output != formats::fp32)
    plan.epilogue.addition = Epilogue::Addition::rounded;
}

GemmPlan plan_of(const ProductCall& call, const Leaf& leaf) {
  const Format& format = format_of(call.numbers);
  const bool simt = leaf.unit == Unit::simt;
  GemmPlan plan = usual_plan(scope.arch, format, format, format,
                             call.numbers == Numbers::tf32 && !simt, "atlas");
  if (leaf.unit == Unit::k8)
    plan.unit = {"sm_90", call.numbers == Numbers::f16
                              ? "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
                              : "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"};
  if (simt) plan.unit = {"simt", "fma.fp32"};
  switch (leaf.form) {
    case Form::dot: {
      const bool a_contiguous = !call.a_transposed || call.leading_of_a() == 1;
      const bool b_contiguous = call.b_transposed || call.leading_of_b() == 1;
      set_dot(call.k, a_contiguous && b_contiguous, leaf.parts, plan);
      return plan;
    }
    case Form::lanes_halves:
    case Form::lanes_ascending:
    case Form::split_lanes:
    case Form::split_chains: set_lanes(call, leaf, plan); return plan;
    default: break;
  }
  const bool in_turn = leaf.form == Form::round_robin;
  const bool has_residue = !in_turn && leaf.tile != 0;
  if (has_residue && call.k % leaf.tile != 0) plan.residue_first = leaf.tile;
  if (leaf.form == Form::chain) return plan;
  std::int64_t parts = leaf.parts;
  switch (leaf.form) {
    case Form::round_robin: plan.split.tile = leaf.tile; break;
    case Form::tiles_of_64: plan.split.tile = 64; break;
    case Form::runs_of_8:
      plan.split.tile = std::max<std::int64_t>(8, formats::rounded_up(call.k / parts, 8));
      parts = formats::divided_up(call.k, plan.split.tile);
      break;
    default: {
      const bool contiguous = !call.a_transposed || call.b_transposed || call.m == 1 || call.n == 1;
      plan.split.tile = tile_of_parts(format == formats::fp32, call.k, contiguous);
    }
  }
  plan.split.parts = parts_with_elements(call.k, parts, plan.split.tile, in_turn);
  if (plan.split.parts == 1) {
    plan.split = {};
    return plan;
  }
  // A part whose tiles are not all whole begins with the incomplete one, too.
  if (has_residue && length_of_part(call.k, plan.split.parts, plan.split.tile) % leaf.tile != 0)
    plan.residue_first = leaf.tile;
  if (in_turn) plan.split.division = Division::round_robin;
  // What was recorded of cuBLAS' tiles of 64: six parts, and no others, go by way of buffers.
  if (in_turn && leaf.tile == 64 && plan.split.parts == 6) plan.split.order = SumOrder::buffers;
  if (leaf.form == Form::in_place) plan.split.order = SumOrder::in_place;
  if (leaf.form == Form::rounded_parts) {
    plan.split.sums = format;
    plan.epilogue.addition = Epilogue::Addition::rounded;
  }
  return plan;
}

std::string share_that_agrees(int agree) {
  if (agree == 0) return "the recorded calls most like it often disagree";
  return "at least " + std::to_string(agree) + " of 1000 recorded calls like it agree";
}

/// Of lanes in ascending order a rule stands for few rows and columns: of 15,261 such calls 23
/// launched another kernel.
bool is_rule_of_small(const ProductCall& call, const Leaf& leaf) {
  constexpr std::int64_t few = 256;
  return leaf.form == Form::lanes_ascending && leaf.agree == most_of_ascending_lanes &&
         call.op != Operator::bmm && std::max(call.m, call.n) <= few;
}

/// Of one product each: of 460,000 recorded calls without gaps all took a kernel that rounds it
/// once and adds it to +0 (and then to the bias, in FP32), so that a plan is right whichever it
/// was. But where FP16 takes gemmk1, which keeps the sign of a product that is zero; batches take
/// it in other places, too.
bool is_one_product(const ProductCall& call) {
  if (call.k != 1 || call.op == Operator::bmm || call.numbers == Numbers::tf32) return false;
  if (call.leading_of_a() != (call.a_transposed ? call.m : 1) ||
      call.leading_of_b() != (call.b_transposed ? 1 : call.n))
    return false;
  const auto [least, most] = std::minmax(call.m, call.n);
  return call.op == Operator::addmm || call.numbers != Numbers::f16 || least < 320 || most > 1280;
}

/// What the trees say of one product, if that is a kernel that was recorded, or what most calls
/// take.
Leaf leaf_of_one_product(const ProductCall& call, const Leaf& told) {
  const bool is_fp32 = call.numbers == Numbers::f32;
  Leaf leaf = told;
  if (told.form != Form::chain && told.form != (is_fp32 ? Form::split_lanes : Form::dot)) {
    leaf = {};
    leaf.form = Form::chain;
    leaf.unit = is_fp32 ? Unit::usual : Unit::k8;
  }
  leaf.agree = rule_agrees;
  return leaf;
}

constexpr bool is_between(std::int64_t x, std::int64_t low, std::int64_t high) {
  return low <= x && x <= high;
}

/// Of one row in FP32 the trees' rules were wrong for 146 of 44,277 recorded calls, all of them
/// with such sizes.
bool is_exception_of_one_row(const ProductCall& call) {
  return call.numbers == Numbers::f32 && call.op != Operator::bmm && call.m == 1 &&
         (is_between(call.n, 850, 866) || is_between(call.k, 322, 346));
}

/// What scores of one query weight in FP32: of 173 results with more than 512 positions the rules
/// were wrong for 32, with 640 and 768; with 1,000 and more, and of up to 512, for 3 of 8,000.
bool is_exception_of_one_query(const ProductCall& call) {
  return call.numbers == Numbers::f32 && call.op == Operator::bmm && call.m == 1 &&
         !call.b_transposed && is_between(call.k, 513, 999);
}

/// A linear layer of one feature in 16 bits by a kernel of the tensor cores, which K that 8 divides
/// takes: its bias is copied to D first, and what the kernel gives is rounded before it is added
/// (792 of 792 results). Where K is cut a second kernel adds it to the sums, in FP32 (36 of 36).
bool is_one_feature_with_bias(const ProductCall& call, const Leaf& leaf) {
  const bool is_16_bits = call.numbers == Numbers::f16 || call.numbers == Numbers::bf16;
  return is_16_bits && call.op == Operator::addmm && call.n == 1 && call.k > 1 &&
         leaf.unit != Unit::simt;
}

/// What is known of a call, and whether it was recorded itself.
struct Told {
  Leaf leaf;
  bool is_recorded = false;
};
Told told_of(const ProductCall& call) {
  Leaf leaf = leaf_of(call);
  if (is_one_product(call)) leaf = leaf_of_one_product(call, leaf);
  if (const std::optional<Leaf> found = leaf_of_one_position(call))
    return {*found, found->agree > rule_agrees};
  if (leaf.agree < rule_agrees) {
    if (const std::optional<Leaf> recorded = recorded_leaf(call, leaf)) return {*recorded, true};
  }
  if (is_rule_of_small(call, leaf)) leaf.agree = rule_agrees;
  const bool is_exception = is_exception_of_one_row(call) || is_exception_of_one_query(call);
  if (call.k > 1 && is_exception) leaf.agree = std::min(leaf.agree, rule_agrees - 1);
  return {leaf, false};
}

}  // namespace

GemmPlan plan_of_dot(const Format& type, std::int64_t k, bool contiguous) {
  GemmPlan plan = usual_plan(scope.arch, type, type, type, false, "atlas");
  plan.unit = {"simt", "fma.fp32"};
  set_dot(k, contiguous, formats::divided_up(k, 128), plan);
  return plan;
}

Answer plan_of(const ProductCall& call) {
  check(call);
  const auto [leaf, is_recorded] = told_of(call);
  Answer answer;
  if (leaf.form == Form::unknown) {
    answer.why = "the library takes a kernel whose order is not in the atlas";
    return answer;
  }
  answer.plan = plan_of(call, leaf);
  if (is_one_feature_with_bias(call, leaf) && answer.plan.split.parts <= 1)
    answer.plan.epilogue.addition = Epilogue::Addition::rounded;
  if (is_recorded) {
    answer.known = Known::recorded;
    answer.agree = 1000;
    answer.why = "this call was recorded";
    return answer;
  }
  answer.known = leaf.agree >= rule_agrees ? Known::rule : Known::nearest;
  answer.agree = leaf.agree;
  answer.why = share_that_agrees(leaf.agree);
  return answer;
}

}  // namespace guardbit::emulator::atlas
