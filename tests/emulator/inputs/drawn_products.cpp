#include "tests/emulator/inputs/drawn_products.hpp"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::tests {

namespace {

using emulator::CodeMatrix;
using emulator::Epilogue;
using emulator::GemmPlan;
using emulator::GemmProblem;
using emulator::GemmUnit;
using formats::Rounding;
using Cut = emulator::InputConversion::Cut;

/// What a unit takes in products drawn here.
struct DrawnUnit {
  GemmUnit unit;
  std::vector<Format> operands;
  bool begins_with_c = true;
  bool is_sparse = false;
};

const std::vector<DrawnUnit>& units() {
  using namespace formats;
  const std::vector<Format> halves = {fp16, fp32}, brains = {bf16, fp32}, singles = {fp32, fp16},
                            eights = {e4m3, e4m3, fp32}, bytes = {int8};
  static const std::vector<DrawnUnit> list = {
      {{"simt", "fma.fp32"}, {fp32, fp32, bf16, fp64}},
      {{"simt", "fma.fp64"}, {fp64, fp32, fp16}},
      {{"simt", "fma.fp16"}, halves},
      {{"simt", "mul_add.fp32"}, {fp32, bf16}},
      {{"simt", "mul_add.fp16"}, halves},
      {{"simt", "mul_add.bf16"}, brains},
      {{"simt", "mad.int32"}, bytes},
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16"}, halves},
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk16.f16.f16.f16"}, halves},
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16"}, brains},
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32"}, {fp32, fp32, bf16}},
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3"}, eights},
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8"}, {int8, fp32, fp64}},
      {{"sm_90", "wgmma.mma_async.sp.sync.aligned.m64nNk32.f32.f16.f16"}, {fp16}, true, true},
      {{"sm_90", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"}, eights},
      {{"sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"}, singles},
      {{"sm_80", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"}, {fp64, fp32}},
      {{"sm_70", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"}, halves},
      {{"sm_70", "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16"}, halves},
      {{"sm_100", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"}, eights},
      {{"cdna1", "v_mfma_f32_32x32x8f16"}, halves},
      {{"cdna1", "v_mfma_f32_32x32x4bf16"}, brains},
      {{"cdna2", "v_mfma_f32_32x32x8f16"}, halves},
      {{"cdna3", "v_mfma_f32_32x32x8_f16"}, halves},
      {{"cdna3", "v_mfma_f32_16x16x8_xf32"}, singles},
      {{"x86", "TDPFP16PS"}, halves},
      {{"x86", "VDPBF16PS"}, brains},
      {{"tpu", "mxu.bf16"}, brains, false},
  };
  return list;
}

template <class Value, std::size_t count>
const Value& drawn_from(const std::array<Value, count>& values, Random& random) {
  return values[random.below(count)];
}

template <class Enum>
Enum any_of(std::uint64_t count, Random& random) {
  return static_cast<Enum>(random.below(count));
}

emulator::InputConversion conversion(const Format& from, bool to_integers, Random& random) {
  emulator::InputConversion x;
  x.rounding = drawn_from(
      std::array{Rounding::nearest_even, Rounding::nearest_away, Rounding::toward_zero}, random);
  if (to_integers && formats::is_integer(from)) return {};
  if (to_integers) {
    x.rounding = Rounding::toward_zero;
    x.pieces = random.between(1, 8);
    x.ranks = random.between(1, 2 * x.pieces - 1);
    x.cut = random.one_in(2) ? Cut::slices : Cut::grouped_slices;
    return x;
  }
  if (!random.one_in(3)) return x;
  x.pieces = random.between(2, 3);
  x.ranks = random.between(1, 2 * x.pieces - 1);
  if (random.one_in(3)) {
    x.cut = Cut::scaled_rest;
    x.shift = random.between(1, 12);
    return x;
  }
  if (random.one_in(2)) x.run = drawn_from(std::array{32, 12}, random);
  x.b_first = random.one_in(2);
  if (random.one_in(2)) x.last = Rounding::toward_zero;
  return x;
}

emulator::Partition partition(Random& random) {
  emulator::Partition p;
  p.parts = random.between(2, 9);
  p.tile = drawn_from(std::array{1, 4, 16, 32}, random);
  p.division = any_of<emulator::Division>(4, random);
  p.order = any_of<emulator::SumOrder>(9, random);
  if (p.order == emulator::SumOrder::halves && random.one_in(2)) p.group = random.between(2, 4);
  p.sums =
      drawn_from(std::array{formats::fp32, formats::fp16, formats::bf16, formats::fp64}, random);
  return p;
}

void draw_division(GemmPlan& plan, Random& random) {
  if (random.one_in(3)) plan.slices = partition(random);
  if (random.one_in(4)) {
    emulator::StreamK& x = plan.stream_k;
    x.blocks = random.between(1, 9);
    x.tile_m = random.between(1, 3), x.tile_n = random.between(1, 4);
    x.tile_k = drawn_from(std::array{1, 8, 16, 64}, random);
    x.tiles = any_of<emulator::StreamK::Tiles>(3, random);
    x.along_m = random.one_in(2);
    x.division = random.one_in(2) ? emulator::Division::ceil : emulator::Division::balanced;
    x.order = any_of<emulator::SumOrder>(9, random);
    x.sums = drawn_from(std::array{formats::fp32, formats::fp16, formats::bf16}, random);
  } else if (random.one_in(2)) {
    plan.split = partition(random);
    if (!random.one_in(4)) return;
    plan.split.order = emulator::SumOrder::in_place;
    plan.split.group = 0;
  }
}

void draw_epilogue(GemmPlan& plan, bool is_integer, Random& random) {
  using namespace formats;
  Epilogue& e = plan.epilogue;
  e.addition = any_of<Epilogue::Addition>(4, random);
  e.scales = any_of<Epilogue::Scales>(3, random);
  e.output = drawn_from(std::array{fp32, fp16, bf16, e4m3, fp64, int8}, random);
  if (random.one_in(3)) e.compute = drawn_from(std::array{fp64, fp16, bf16}, random);
  if (is_integer && random.one_in(2)) e.compute = e.output = int32;
  if (random.one_in(2)) {
    e.alpha = drawn_from(std::array{0.37, -1.7, 1e-3, 100.0}, random);
    e.alpha_on = any_of<Epilogue::AlphaOn>(4, random);
  }
  if (random.one_in(6)) e.via = drawn_from(std::array{fp16, bf16, fp32}, random);
  if (random.one_in(4)) e.activation = emulator::Activation::relu;
  const bool has_functions = e.compute == fp32 || e.compute == fp16;
  if (has_functions && random.one_in(6)) e.activation = any_of<emulator::Activation>(7, random);
  if (e.activation == emulator::Activation::gelu_erfc &&
      !emulator::has_steps_of_gelu_erfc(e.output))
    e.output = bf16;
}

/// Numbers of one kind: all signs, positive, near 1e-3 or 1e3, over many binades.
class Numbers {
 public:
  explicit Numbers(Random& random)
      : low_(drawn_from(std::array{-3, -13, 7, -9}, random)), positive_(random.one_in(3)) {}
  CodeMatrix operator()(const Format& f, std::int64_t rows, std::int64_t columns,
                        Random& random) const {
    CodeMatrix x = emulator::make_matrix(f, 1, rows, columns);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      std::uint64_t code = formats::is_integer(f)
                               ? random.below(std::uint64_t{1} << formats::bits(f))
                               : code_between(f, low_, low_ == -9 ? 5 : low_ + 4, random);
      if (positive_ && !formats::is_integer(f)) code &= formats::magnitude_mask(f);
      x.set(i, code);
    }
    return x;
  }

 private:
  int low_;
  bool positive_;
};

CodeMatrix zero_lines(CodeMatrix x, bool rows, Random& random) {
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.columns; ++j)
      if ((rows ? i : j) % 3 == 1 || random.one_in(16)) x.set(x.index(0, i, j), 0);
  return x;
}

/// The scales of lines, or of blocks of K, where the plan and the formats have room for them.
void draw_scales(DrawnProduct& x, Random& random) {
  GemmPlan& plan = x.plan;
  GemmProblem& p = x.problem;
  using Adder = emulator::Promotion::Adder;
  const bool blocks = plan.promotion.adder != Adder::add;
  if (!blocks && !random.one_in(4)) return;
  const auto scales = [&](std::int64_t rows, std::int64_t columns) {
    return Numbers(random)(formats::fp32, rows, columns, random);
  };
  if (!blocks) {
    p.scale_a = scales(random.one_in(2) ? p.m() : 1, 1);
    p.scale_b = scales(1, random.one_in(2) ? p.n() : 1);
    return;
  }
  plan.epilogue.scales = Epilogue::Scales::joint;
  // Of blocks of K, or of all of it.
  const std::int64_t block = random.one_in(4) ? p.k() : plan.promotion.interval;
  const std::int64_t count = (p.k() + block - 1) / block;
  if (count > 1) p.scale_k = block;
  const int whole = random.between(0, 7);  // one operand may have a scale for all of K
  p.scale_a = scales(p.m(), whole == 0 ? 1 : count);
  p.scale_b = scales(whole == 1 ? 1 : count, p.n());
}

/// Without what is refused: keys that nothing reads, cuts inside a run of pieces.
void make_executable(GemmPlan& plan) {
  if (plan.promotion.interval != 0) plan.residue_first = 0;
  if (plan.unit.arch == "simt") plan.input = {plan.input.rounding};
  if (plan.input.pieces == 1) return;
  const std::int64_t k =
      emulator::require_instruction(plan.unit.arch, plan.unit.instruction, "drawn").shape.k;
  const std::int64_t run = plan.input.run != 0 ? plan.input.run : k;
  for (std::int64_t* const length : {&plan.split.tile, &plan.slices.tile, &plan.stream_k.tile_k,
                                     &plan.residue_first, &plan.promotion.interval})
    *length = (*length + run - 1) / run * run;
}

void make_sparse(CodeMatrix& a) {
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < a.columns; ++k)
      if ((k + i) % 4 >= 2) a.set(a.index(0, i, k), 0);
}

}  // namespace

DrawnProduct drawn_product(Random& random) {
  DrawnProduct x;
  GemmPlan& plan = x.plan;
  GemmProblem& p = x.problem;
  const DrawnUnit& unit = units()[random.below(units().size())];
  const Format in = unit.operands[random.below(unit.operands.size())];
  const bool is_integer = unit.unit.instruction.find("s32") != std::string::npos ||
                          unit.unit.instruction == "mad.int32";
  plan.unit = unit.unit;
  if (!unit.is_sparse) plan.input = conversion(in, is_integer, random);
  const bool multiplies_first = unit.unit.instruction.starts_with("mul_add");
  if (multiplies_first && random.one_in(2)) plan.products = emulator::ProductOrder::tree;
  if (!unit.is_sparse && random.one_in(5)) plan.loads = {4, 8, 4};
  if (random.one_in(5)) plan.residue_first = 32;
  if (!unit.is_sparse) draw_division(plan, random);
  draw_epilogue(plan, is_integer, random);
  const bool sliced = plan.input.has_integer_slices();
  if (!sliced && random.one_in(4)) plan.promotion.interval = drawn_from(std::array{16, 32}, random);
  if (plan.promotion.interval != 0 && plan.input.pieces == 1 && plan.slices.whole() &&
      plan.split.whole() && plan.stream_k.none() && plan.loads.lanes == 0 && in != formats::fp64 &&
      random.one_in(2))
    plan.promotion.adder = any_of<emulator::Promotion::Adder>(5, random);
  make_executable(plan);

  const std::int64_t k = unit.is_sparse ? 64 : drawn_from(std::array{1, 17, 64, 100}, random);
  const Numbers numbers(random);
  p.a = numbers(in, 4, k, random);
  p.b = (random.one_in(2) ? numbers : Numbers(random))(in, k, 5, random);
  if (random.one_in(3)) p.a = zero_lines(p.a, true, random);
  if (random.one_in(3)) p.b = zero_lines(p.b, false, random);
  if (unit.is_sparse) make_sparse(p.a), p.sparse_a = true;
  if (in != formats::fp64) draw_scales(x, random);
  if (random.one_in(3)) {
    const Format c = drawn_from(std::array{formats::fp32, formats::fp16}, random);
    p.c = Numbers(random)(is_integer ? formats::int32 : c, 4, 5, random);
    plan.epilogue.beta = drawn_from(std::array{1.0, -0.7, 1e-5}, random);
  }
  if (random.one_in(3)) p.bias = Numbers(random)(formats::fp32, 1, 5, random);
  const bool has_addend = !p.c.empty() || !p.bias.empty();
  const bool begins_with_zero = sliced || plan.products == emulator::ProductOrder::tree;
  if (has_addend && unit.begins_with_c && !begins_with_zero && p.scale_a.empty() &&
      random.one_in(2)) {
    plan.epilogue.addition = Epilogue::Addition::initial;
    if (!plan.epilogue.scales_operand()) plan.epilogue.alpha = 1;
  }
  return x;
}

}  // namespace guardbit::tests
