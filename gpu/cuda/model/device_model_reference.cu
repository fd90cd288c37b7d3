#include "gpu/cuda/model/device_model.hpp"
#include "gpu/cuda/model/model_launch.cuh"
#include "gpu/validation/coverage.hpp"

namespace guardbit::gpu {

namespace {

/// Scales of a row of A, at most (scale_vec::4X).
constexpr int most_scales = 4;

/// emulator::dot itself, one thread per output, with what happened on the way.
template <std::size_t Capacity>
__global__ void __launch_bounds__(threads_per_tile)
    reference_kernel(const __grid_constant__ ModelInstruction model, DeviceOperands operands,
                     DeviceResults results, DeviceTally* tally, DeviceElements d,
                     DeviceCoverage* coverage) {
  const MatrixInstruction& instruction = model.instruction;
  const int m = instruction.shape.m, n = instruction.shape.n, k = instruction.shape.k,
            stored = stored_k(instruction, k);
  const std::int64_t total = operands.executions * m * n;
  const std::int64_t index = std::int64_t{blockIdx.x} * threads_per_tile + threadIdx.x;
  const bool counted = index < total;
  Verdicts verdicts;
  EventSet events;
  if (counted) {
    const std::int64_t t = index / (m * n);
    const int place = static_cast<int>(index % (m * n)), i = place / n, j = place % n;
    std::uint64_t a[Capacity], b[Capacity];
    for (int s = 0; s < stored; ++s) {
      const std::size_t a_index = (static_cast<std::size_t>(t) * m + i) * stored + s;
      const int at = dense_k_of(instruction, operands, a_index, s);
      const std::size_t b_index = (static_cast<std::size_t>(t) * k + at) * n + j;
      a[s] =
          operand_code(instruction.a, load_element(operands.a, a_index), model.modifiers.negate_a);
      b[s] =
          operand_code(instruction.b, load_element(operands.b, b_index), model.modifiers.negate_b);
    }
    std::uint64_t a_scale[most_scales], b_scale[most_scales];
    const int scales = instruction.scale.count;
    for (int s = 0; s < scales; ++s) {
      a_scale[s] =
          load_element(operands.a_scale, (static_cast<std::size_t>(t) * m + i) * scales + s);
      b_scale[s] =
          load_element(operands.b_scale, (static_cast<std::size_t>(t) * scales + s) * n + j);
    }
    const auto count = static_cast<std::size_t>(stored),
               scale_count = static_cast<std::size_t>(scales);
    const std::uint64_t c =
        model.modifiers.zero_addend ? 0 : load_element(operands.c, static_cast<std::size_t>(index));
    const std::uint64_t code = observed_dot<Capacity>(
        instruction, {{a, count}, {b, count}, c, {a_scale, scale_count}, {b_scale, scale_count}},
        events);
    if (d.data != nullptr) store_element(d, static_cast<std::size_t>(index), code);
    if (results.images != nullptr)
      verdicts.add(load_result(results, formats::bits(instruction.d), t, place, m * n) != code,
                   static_cast<unsigned long long>(index));
  }
  if (tally != nullptr) verdicts.report(tally);
  if (coverage != nullptr) add_events(coverage, events.bits);
}

}  // namespace

void run_reference(const ModelInstruction& model, const DeviceOperands& operands,
                   const DeviceResults& results, DeviceTally* tally, const DeviceElements& d,
                   DeviceCoverage* coverage) {
  const Shape& shape = model.instruction.shape;
  const std::int64_t total = operands.executions * shape.m * shape.n;
  const dim3 grid(static_cast<unsigned>((total + threads_per_tile - 1) / threads_per_tile));
  const bool is_short = stored_k(model.instruction, shape.k) <= 64;
  launch(model, is_short ? reference_kernel<64> : reference_kernel<max_k>, grid, 0, model, operands,
         results, tally, d, coverage);
}

}  // namespace guardbit::gpu
