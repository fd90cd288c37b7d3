#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"

// Functions of FP32 numbers as attention kernels call them.
namespace guardbit::emulator::attention {

inline constexpr float log2_e = 0x1.715476p+0F, ln_2 = 0x1.62e43p-1F;

/// A function of the catalogue, of many numbers or of one.
class UnaryFunction {
 public:
  explicit UnaryFunction(std::string_view name)
      : run_(require_function("sm_90", name, "attention").run) {}

  void apply(std::span<float> numbers) const {
    const std::span codes(reinterpret_cast<std::uint32_t*>(numbers.data()), numbers.size());
    run_(codes, {}, codes);
  }
  float operator()(float x) const {
    apply({&x, 1});
    return x;
  }

 private:
  void (*run_)(FunctionCodes, FunctionCodes, std::span<std::uint32_t>);
};

struct Functions {
  UnaryFunction ex2{"ex2.approx.f32"}, ex2_ftz{"ex2.approx.ftz.f32"}, lg2{"lg2.approx.f32"},
      lg2_ftz{"lg2.approx.ftz.f32"}, rcp{"rcp.approx.ftz.f32"}, expf{"expf"}, logf{"logf"};
};
inline const Functions& functions() {
  static const Functions all;
  return all;
}

/// scale * log2(e), as the host computes it once.
inline float scale_of_exponents(double scale) {
  return static_cast<float>(static_cast<double>(static_cast<float>(scale)) * 1.4426950408889634);
}

}  // namespace guardbit::emulator::attention
