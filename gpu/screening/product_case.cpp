#include "gpu/screening/product_case.hpp"

#include <array>
#include <cstring>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/plan.hpp"
#include "emulator/inputs/input_draw.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::gpu {

namespace {

struct Kind {
  const char* name;
  const char* plan;
  formats::Format a, d;
  int size;
};

// Plans that the table of plans (emulator/gemm/plan_library.cpp) has for cuBLAS on Hopper.
constexpr std::array kinds = {
    Kind{"fp16", "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 d=fp16", formats::fp16,
         formats::fp16, 8192},
    Kind{"bf16", "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16 d=bf16", formats::bf16,
         formats::bf16, 8192},
    Kind{"tf32", "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 d=fp32", formats::tf32,
         formats::fp32, 8192},
    Kind{"fp32", "simt/fma.fp32 d=fp32", formats::fp32, formats::fp32, 4096},
    Kind{"fp64", "simt/fma.fp64 compute=fp64 d=fp64", formats::fp64, formats::fp64, 4096},
};

/// Numbers from 1/8 to 1 of both signs, with all fraction bits, so that sums stay within FP16.
emulator::CodeMatrix numbers(const formats::Format& format, int rows, int columns,
                             std::uint64_t seed) {
  emulator::CodeMatrix x = emulator::make_matrix(format, 1, rows, columns);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const std::uint64_t random =
        emulator::inputs::mixed(seed ^ static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15U);
    const std::uint64_t exponent = static_cast<std::uint64_t>(format.bias) - 1 - (random >> 62);
    x.set(i, ((random >> 61 & 1) != 0 ? formats::sign_mask(format) : 0) |
                 exponent << format.fraction_bits | (random & formats::fraction_mask(format)));
  }
  return x;
}

std::vector<std::byte> bytes_of(const emulator::CodeMatrix& x) {
  const auto size = static_cast<std::size_t>(x.size()) *
                    static_cast<std::size_t>(formats::container_bits(x.format) / 8);
  return {x.bytes.data(), x.bytes.data() + size};
}

}  // namespace

int product_kinds() { return static_cast<int>(kinds.size()); }

ProductCase make_product_case(int kind, int shrink, int threads) {
  const Kind& of = kinds.at(static_cast<std::size_t>(kind));
  ProductCase x;
  x.m = x.n = x.k = of.size / shrink;
  const std::string size = std::to_string(x.m);
  x.name = std::string(of.name) + " " + size + " x " + size + " x " + size;
  x.plan = of.plan;
  x.instruction.a = x.instruction.b = of.a;
  x.instruction.c = x.instruction.d = of.d;
  emulator::GemmProblem problem;
  problem.a = numbers(of.a, distinct_rows, x.k, 1);
  problem.b = numbers(of.a, x.k, distinct_columns, 2);
  x.a = bytes_of(problem.a);
  x.b = bytes_of(problem.b);
  x.expected = bytes_of(
      emulator::execute(emulator::parse_plan(x.plan, "gpu screen"), problem, threads).contiguous());
  return x;
}

}  // namespace guardbit::gpu
