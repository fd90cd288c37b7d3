#include <array>

#include "emulator/gemm/gemm.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"

namespace guardbit::tests {

using emulator::CodeMatrix;
using emulator::GemmPlan;
using formats::Rounding;

CodeMatrix random_matrix(const Format& f, std::int64_t batch, std::int64_t rows,
                         std::int64_t columns, Random& random, int low, int high) {
  CodeMatrix m = emulator::make_matrix(f, batch, rows, columns);
  for (std::int64_t i = 0; i < m.size(); ++i)
    m.set(i, formats::is_integer(f) ? random_code(f, random) : code_between(f, low, high, random));
  return m;
}

namespace {

template <class Value, std::size_t count>
Value one_of(const std::array<Value, count>& values, Random& random) {
  return values[random.below(count)];
}

emulator::Partition random_partition(Random& random) {
  emulator::Partition p;
  if (random.one_in(2)) return p;
  p.parts = random.between(2, 9);
  p.tile = one_of(std::array{1, 4, 8, 64}, random);
  p.division = static_cast<emulator::Division>(random.below(4));
  p.order = static_cast<emulator::SumOrder>(random.below(9));
  if (p.order == emulator::SumOrder::halves && random.one_in(2)) p.group = random.between(2, 4);
  p.sums = one_of(std::array{formats::fp32, formats::fp16, formats::bf16}, random);
  return p;
}

emulator::StreamK random_stream_k(Random& random) {
  emulator::StreamK x;
  x.blocks = random.between(1, 20);
  x.tile_m = random.between(1, 3);
  x.tile_n = random.between(1, 4);
  x.tile_k = one_of(std::array{1, 8, 16, 64}, random);
  x.tiles = static_cast<emulator::StreamK::Tiles>(random.below(3));
  x.along_m = random.one_in(2);
  x.division = random.one_in(2) ? emulator::Division::ceil : emulator::Division::balanced;
  x.order = static_cast<emulator::SumOrder>(random.below(9));
  x.sums = one_of(std::array{formats::fp32, formats::fp16, formats::bf16}, random);
  return x;
}

}  // namespace

GemmPlan random_plan(Random& random) {
  GemmPlan plan;
  plan.unit.instruction = random.one_in(2) ? "fma.fp32" : "fma.fp64";
  if (random.one_in(2)) plan.unit = {"sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"};
  plan.input.rounding = one_of(
      std::array{Rounding::nearest_even, Rounding::nearest_away, Rounding::toward_zero}, random);
  if (random.one_in(3)) {
    plan.input.pieces = random.between(2, 3);
    plan.input.ranks = random.between(1, 2 * plan.input.pieces - 1);
    using Cut = emulator::InputConversion::Cut;
    if (random.one_in(3)) {
      plan.input.cut = Cut::scaled_rest;
      plan.input.shift = random.between(1, 24);
    } else if (random.one_in(3)) {
      plan.input.rounding = Rounding::toward_zero;
      plan.input.cut = random.one_in(2) ? Cut::slices : Cut::grouped_slices;
    } else if (random.one_in(2)) {
      plan.input.run = one_of(std::array{32, 12}, random);
      plan.input.b_first = random.one_in(2);
      plan.input.last = Rounding::toward_zero;
    }
  }
  plan.convolution = {static_cast<emulator::ConvolutionOrder::Walk>(random.below(3)),
                      random.one_in(2) ? 0 : 32, random.one_in(2) ? 1 : 8};
  if (random.one_in(3)) plan.loads = {4, 8, 4};
  if (random.one_in(3)) plan.residue_first = 32;
  if (random.one_in(3))
    plan.promotion = {128, static_cast<emulator::Promotion::Adder>(random.below(5))};
  plan.slices = random_partition(random);
  plan.split = random_partition(random);
  if (!plan.split.whole() && random.one_in(4)) {
    plan.split.order = emulator::SumOrder::in_place;
    plan.split.group = 0;
  }
  if (random.one_in(3)) {
    plan.split = {};
    plan.stream_k = random_stream_k(random);
  }
  plan.epilogue.addition = static_cast<emulator::Epilogue::Addition>(random.below(5));
  plan.epilogue.scales = static_cast<emulator::Epilogue::Scales>(random.below(3));
  plan.epilogue.output = one_of(std::array{formats::fp32, formats::fp16, formats::e4m3}, random);
  if (random.one_in(3)) plan.epilogue.compute = formats::fp64;
  if (random.one_in(2)) plan.epilogue.alpha = 1.0 / random.between(2, 9);
  if (plan.epilogue.alpha != 1)
    plan.epilogue.alpha_on = static_cast<emulator::Epilogue::AlphaOn>(random.below(4));
  if (random.one_in(2)) plan.epilogue.beta = -1e-5 * random.between(1, 9);
  if (random.one_in(4)) plan.epilogue.activation = emulator::Activation::relu;
  // What nothing would read is refused.
  if (plan.input.has_integer_slices()) plan.promotion = {};
  if (plan.input.cut == emulator::InputConversion::Cut::scaled_rest)
    plan.promotion.adder = emulator::Promotion::Adder::add;
  if (plan.promotion.interval != 0) plan.residue_first = 0;
  if (emulator::takes_scales(plan.promotion))
    plan.epilogue.scales = emulator::Epilogue::Scales::joint;
  return plan;
}

emulator::GemmCapture recording_of(const GemmPlan& plan, const emulator::GemmProblem& problem) {
  emulator::GemmCapture capture;
  capture.path = "a made result";
  capture.kind = "gemm";
  capture.arch = "sm_90";
  capture.problem = problem;
  capture.alpha = plan.epilogue.alpha;
  capture.beta = plan.epilogue.beta;
  capture.activation = plan.epilogue.activation;
  capture.d = emulator::execute(plan, problem);
  return capture;
}

}  // namespace guardbit::tests
