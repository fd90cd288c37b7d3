#pragma once

#include "emulator/catalogue/families.hpp"

// TPU matrix unit. The documents say BF16 operands and FP32 accumulation and no more; the order and
// rounding below are this project's definition.
namespace guardbit::emulator::tpu {

inline constexpr AccumulatorSpec bf16_to_fp32 = {.summation = Summation::fma_chain,
                                                 .result = Rounding::nearest_even,
                                                 .nan = NanPolicy::unspecified};

inline constexpr Evidence definition = {
    Basis::inferred,
    "documented only as bf16 in, fp32 out; one ascending FMA chain is this project's definition"};

inline Instructions instructions() {
  Machine m("tpu");
  m.named("mxu.bf16", Family::tpu, {0, 0, 128}, {formats::bf16, formats::bf16}, to_fp32,
          native(bf16_to_fp32, to_fp32, definition));
  return m.take();
}

}  // namespace guardbit::emulator::tpu
