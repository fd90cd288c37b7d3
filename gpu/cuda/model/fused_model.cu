#include <algorithm>
#include <cstdint>

#include "emulator/model/dot.hpp"
#include "gpu/cuda/model/fused_block.cuh"
#include "gpu/cuda/model/fused_model.hpp"
#include "gpu/cuda/model/model_launch.cuh"

namespace guardbit::gpu {

namespace {

// ---- Instructions of several steps ----

__device__ std::uint32_t canonical(float x) {
  return x != x ? 0x7FFFFFFFU : static_cast<std::uint32_t>(__float_as_int(x));
}

__device__ float fp16_value(std::uint32_t code) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(static_cast<std::uint16_t>(code)));
  return x;
}

__device__ std::uint32_t fp16_code(float x) {
  std::uint16_t code;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
  return code;
}

/// The code of a scalar step's operand.
__device__ std::uint32_t source_code(std::int8_t source, std::uint32_t c,
                                     const std::uint32_t (&results)[5], const Format& result) {
  if (source == static_cast<std::int8_t>(Source::c)) return c;
  if (source == static_cast<std::int8_t>(Source::positive_zero)) return 0;
  if (source == static_cast<std::int8_t>(Source::negative_zero))
    return static_cast<std::uint32_t>(formats::sign_mask(result));
  return results[source];
}

__device__ __noinline__ std::uint32_t scalar_by_model(const FusedInstruction& instruction,
                                                      int index, std::uint32_t c,
                                                      const std::uint32_t (&results)[5]) {
  Registers registers{};
  for (int i = 0; i < index; ++i)
    registers[static_cast<std::size_t>(i)] = {
        results[i], instruction.model.instruction.steps.list[static_cast<std::size_t>(i)].result};
  const DotOperands operands{{}, {}, c};
  return static_cast<std::uint32_t>(
      scalar_step(instruction.model.instruction,
                  instruction.model.instruction.steps.list[static_cast<std::size_t>(index)],
                  operands, registers));
}

__device__ std::uint32_t run_scalar(const FusedInstruction& instruction, int index, std::uint32_t c,
                                    const std::uint32_t (&results)[5]) {
  const FusedStep& step = instruction.steps[index];
  const Format& result =
      instruction.model.instruction.steps.list[static_cast<std::size_t>(index)].result;
  const auto code = [&](std::int8_t source) { return source_code(source, c, results, result); };
  const auto fp32 = [&](std::int8_t source) {
    return __int_as_float(static_cast<int>(code(source)));
  };
  switch (step.kind) {
    case FusedStep::Kind::add_fp32:
      return canonical(__fadd_rn(fp32(step.addend), fp32(step.other)));
    // FP32 has more than twice the precision and two bits: rounding twice is rounding once.
    case FusedStep::Kind::add_fp16:
      return fp16_code(__fadd_rn(fp16_value(code(step.addend)), fp16_value(code(step.other))));
    case FusedStep::Kind::narrow_to_fp16: return fp16_code(fp32(step.addend));
    case FusedStep::Kind::widen_to_fp32: return canonical(fp16_value(code(step.addend)));
    default: return scalar_by_model(instruction, index, c, results);
  }
}

template <bool Sparse>
__device__ void run_steps(const FusedInstruction& instruction, const Patch<Sparse>& patch,
                          Codes32& codes) {
  if (instruction.count == 1) {
    run_blocks(instruction, 0, patch, codes);
    return;
  }
  std::uint32_t results[rows_each][columns_each][5];
  for (int index = 0; index < instruction.count; ++index) {
    if (instruction.steps[index].kind != FusedStep::Kind::dot) {
      for (int r = 0; r < rows_each; ++r)
        for (int c = 0; c < columns_each; ++c)
          results[r][c][index] = run_scalar(instruction, index, codes[r][c], results[r][c]);
      continue;
    }
    Codes32 sums;
    const Format& format =
        instruction.model.instruction.steps.list[static_cast<std::size_t>(index)].result;
#pragma unroll
    for (int r = 0; r < rows_each; ++r)
#pragma unroll
      for (int c = 0; c < columns_each; ++c)
        sums[r][c] =
            source_code(instruction.steps[index].addend, codes[r][c], results[r][c], format);
    run_blocks(instruction, index, patch, sums);
#pragma unroll
    for (int r = 0; r < rows_each; ++r)
#pragma unroll
      for (int c = 0; c < columns_each; ++c) results[r][c][index] = sums[r][c];
  }
  for (int r = 0; r < rows_each; ++r)
    for (int c = 0; c < columns_each; ++c) codes[r][c] = results[r][c][instruction.count - 1];
}

// ---- The kernel ----

template <bool Sparse>
__global__ void __launch_bounds__(threads_per_tile, 8)
    fused_kernel(const __grid_constant__ FusedInstruction instruction, DeviceOperands operands,
                 DeviceResults results, DeviceTally* tally, DeviceElements d, int executions_each) {
  const Shape& shape = instruction.model.instruction.shape;
  FusedTile tile;
  tile.first_execution = std::int64_t{blockIdx.x} * executions_each;
  tile.executions = static_cast<int>(
      min(std::int64_t{executions_each}, operands.executions - tile.first_execution));
  tile.first_column = static_cast<int>(blockIdx.y) * columns_per_tile;
  tile.columns = min(columns_per_tile, shape.n - tile.first_column);
  tile.a_lines = tile.executions * shape.m;
  tile.a_stride = instruction.model.ordered | 1;
  tile.b_rows = Sparse ? shape.k : instruction.model.ordered;
  const int b_size = tile.executions * tile.b_rows * tile.columns;
  tile.b_exponents = b_size;
  tile.a_significands = 2 * b_size;
  tile.a_exponents = tile.a_significands + tile.a_lines * tile.a_stride;
  tile.k_of = 2 * (tile.a_exponents + tile.a_lines * tile.a_stride);
  // A table that lanes read at different places: constant memory would serve them in turn.
  __shared__ std::uint8_t order[max_k];
  for (int i = static_cast<int>(threadIdx.x); i < instruction.model.ordered; i += threads_per_tile)
    order[i] = instruction.model.order[i];
  __syncthreads();
  const bool is_whole = tile.columns == instruction.columns;
  const Divisor by_columns = is_whole ? instruction.by_columns : divisor(tile.columns);
  decode_tile<Sparse>(instruction, operands, tile, order, by_columns);
  __syncthreads();
  const int across = tile.columns / columns_each, down = shape.m / rows_each;
  const Divisor by_across = is_whole ? instruction.by_across : divisor(across);
  const int result_bits = formats::bits(instruction.model.instruction.d);
  Verdicts verdicts;
  for (int x = static_cast<int>(threadIdx.x); x < tile.executions * down * across;
       x += threads_per_tile) {
    const int pair = by_across.quotient(x), j = (x - pair * across) * columns_each;
    const int execution = instruction.by_down.quotient(pair),
              i = (pair - execution * down) * rows_each;
    const int line = execution * shape.m + i;
    const Patch<Sparse> patch{tile,
                              {line * tile.a_stride, (line + 1) * tile.a_stride},
                              execution * tile.b_rows * tile.columns + j};
    const std::int64_t t = tile.first_execution + execution;
    const int place = i * shape.n + tile.first_column + j;
    const std::size_t index = static_cast<std::size_t>(t) * shape.m * shape.n + place;
    Codes32 codes;
#pragma unroll
    for (int r = 0; r < rows_each; ++r)
#pragma unroll
      for (int c = 0; c < columns_each; ++c)
        codes[r][c] =
            instruction.model.modifiers.zero_addend
                ? 0
                : static_cast<std::uint32_t>(load_element(operands.c, index + r * shape.n + c));
    run_steps(instruction, patch, codes);
#pragma unroll
    for (int r = 0; r < rows_each; ++r)
#pragma unroll
      for (int c = 0; c < columns_each; ++c) {
        const int offset = r * shape.n + c;
        if (d.data != nullptr) store_element(d, index + offset, codes[r][c]);
        if (results.images != nullptr)
          verdicts.add(load_result(results, result_bits, t, place + offset, shape.m * shape.n) !=
                           codes[r][c],
                       index + offset);
      }
  }
  if (tally != nullptr) verdicts.report(tally);
}

constexpr int outputs_per_tile = 4 * threads_per_tile;

int executions_per_tile(const Shape& shape) {
  return std::max(1, outputs_per_tile / (shape.m * std::min(shape.n, columns_per_tile)));
}

}  // namespace

void run_fused_model(const FusedInstruction& instruction, const DeviceOperands& operands,
                     const DeviceResults& results, DeviceTally* tally, const DeviceElements& d) {
  const Shape& shape = instruction.model.instruction.shape;
  const bool sparse = instruction.model.instruction.sparsity.group_elements != 0;
  const int columns = instruction.columns, each = executions_per_tile(shape);
  const int a_size = each * shape.m * (instruction.model.ordered | 1);
  const int b_size = each * (sparse ? shape.k : instruction.model.ordered) * columns;
  const auto shared_bytes = static_cast<int>(2 * sizeof(int)) * (a_size + b_size) +
                            (sparse ? static_cast<int>(sizeof(std::uint16_t)) * a_size : 0);
  const dim3 grid(static_cast<unsigned>((operands.executions + each - 1) / each),
                  static_cast<unsigned>((shape.n + columns - 1) / columns));
  launch(instruction.model, sparse ? fused_kernel<true> : fused_kernel<false>, grid, shared_bytes,
         instruction, operands, results, tally, d, each);
}

}  // namespace guardbit::gpu
