#pragma once

#include <span>
#include <string_view>

#include "emulator/functions/array_function.hpp"
#include "emulator/functions/function_catalogue.hpp"

// Functions of FP32 numbers as attention kernels call them.
namespace guardbit::emulator::attention {

inline constexpr float log2_e = 0x1.715476p+0F, ln_2 = 0x1.62e43p-1F;

/// A function of the catalogue, of many numbers or of one.
class UnaryFunction {
 public:
  explicit UnaryFunction(std::string_view name)
      : function_(&require_function("sm_90", name, "attention")) {}

  void apply(std::span<float> numbers) const { emulator::apply(*function_, numbers, numbers); }
  float operator()(float x) const {
    apply({&x, 1});
    return x;
  }

 private:
  const Function* function_;
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
