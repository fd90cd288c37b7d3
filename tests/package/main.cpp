// A program outside the project: what does a Hopper FP8 instruction make of 1 * 1 + 2^-14? The
// exact sum is an fp32 number; the instruction keeps 13 bits below the largest exponent and drops
// the rest.

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/model/dot.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

int main() {
  using namespace guardbit;
  const char* const name = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3";
  const auto instruction = emulator::find_instruction("sm_90", name);
  if (!instruction) {
    std::fprintf(stderr, "no %s\n", name);
    return 1;
  }

  const auto code = [](double value, const formats::Format& format) {
    return formats::convert(formats::fp64, std::bit_cast<std::uint64_t>(value), format);
  };
  std::array<std::uint64_t, 32> a{}, b{};
  a[0] = b[0] = code(1.0, formats::e4m3);
  const auto sum_with = [&](double addend) {
    const std::uint64_t d = emulator::dot(*instruction, {a, b, code(addend, formats::fp32)});
    const float sum = std::bit_cast<float>(static_cast<std::uint32_t>(d));
    std::printf("1 * 1 + %a = %a\n", addend, static_cast<double>(sum));
    return static_cast<double>(sum);
  };
  const bool kept = sum_with(0x1p-13) == 1 + 0x1p-13;
  const bool dropped = sum_with(0x1p-14) == 1;
  return kept && dropped ? 0 : 1;
}
