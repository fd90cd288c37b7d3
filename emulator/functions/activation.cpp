#include "emulator/functions/activation.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include "emulator/engine/cpu.hpp"
#include "emulator/functions/cuda/cuda_error_functions.hpp"
#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_hyperbolics.hpp"
#include "emulator/functions/numbers/host_number.hpp"
#include "emulator/functions/xla_math.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::emulator {

namespace {

using Number = HostNumber;

constexpr float root_of_half = 0x1.6a09e6p-1F;

inline Number relu(Number x) { return select(x <= 0, 0, x); }

inline Number gelu(Number x, const cuda_math::ErffTail& tail) {
  return (x * 0.5F) * (1 + cuda_math::erff(x * root_of_half, tail));
}

inline Number gelu_tanh(Number x) {
  const Number inner = 0x1.988454p-1F * fma(x * (x * x), 0x1.6e4e26p-5F, x);
  return (0.5F * x) * (1 + cuda_math::tanhf(inner));
}

/// An IEEE 754 division.
inline Number silu(Number x) { return x / (1 + cuda_math::expf(-x)); }

inline Number rounded(const formats::Format& format, Number x) {
  if (format == formats::fp32) return x;
  const std::uint64_t code = formats::convert(formats::fp32, bits(x), format);
  return Number::of(static_cast<std::uint32_t>(formats::convert(format, code, formats::fp32)));
}

inline Number gelu_erfc(Number number, const formats::Format& format) {
  const Number x = rounded(format, number);
  const Number place = rounded(format, -x * rounded(format, root_of_half));
  return rounded(format, rounded(format, x * 0.5F) * rounded(format, xla_math::erfc(place)));
}

template <class Function>
void each(std::span<float> numbers, const Function& function) {
  for (float& x : numbers) x = function(Number(x)).number();
}

inline void activate_all(Activation activation, const formats::Format& result,
                         std::span<float> numbers) {
  switch (activation) {
    case Activation::none: return;
    case Activation::relu: return each(numbers, relu);
    case Activation::gelu:
      return each(numbers, [](Number x) { return gelu(x, cuda_math::erff_tail_13); });
    case Activation::gelu_cuda12:
      return each(numbers, [](Number x) { return gelu(x, cuda_math::erff_tail_12); });
    case Activation::gelu_erfc:
      return each(numbers, [&](Number x) { return gelu_erfc(x, result); });
    case Activation::gelu_tanh: return each(numbers, gelu_tanh);
    case Activation::silu: return each(numbers, silu);
  }
}

#if defined(__x86_64__)
// Fused steps are the CPU's own instruction here, not a call.
[[gnu::target("avx2,fma"), gnu::flatten]] void activate_on_x86(Activation activation,
                                                               const formats::Format& result,
                                                               std::span<float> numbers) {
  activate_all(activation, result, numbers);
}
bool is_usable() { return cpu::features().avx2_kernels; }
#else
void activate_on_x86(Activation activation, const formats::Format& result,
                     std::span<float> numbers) {
  activate_all(activation, result, numbers);
}
bool is_usable() { return false; }
#endif

}  // namespace

void activate(Activation activation, const formats::Format& result, std::span<float> numbers) {
  is_usable() ? activate_on_x86(activation, result, numbers)
              : activate_all(activation, result, numbers);
}

bool has_steps_of_gelu_erfc(const formats::Format& result) {
  return result == formats::fp32 || result == formats::fp16 || result == formats::bf16;
}

double activated_in_doubles(Activation activation, double x) {
  switch (function_of(activation)) {
    case Activation::relu: return x <= 0 ? 0 : x;
    case Activation::gelu: return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::gelu_tanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::silu: return x / (1 + std::exp(-x));
    default: return x;
  }
}

double least_unchanged(Activation activation) {
  switch (function_of(activation)) {
    case Activation::relu: return std::numeric_limits<double>::denorm_min();
    case Activation::gelu:
    case Activation::gelu_tanh: return 6;
    case Activation::silu: return 18;
    default: return -std::numeric_limits<double>::infinity();
  }
}

double place_of_minimum(Activation activation) {
  switch (function_of(activation)) {
    case Activation::gelu_tanh: return -0.7524614;
    case Activation::silu: return -1.2784645;
    default: return -0.7517916;
  }
}

std::vector<Activation> forms_of(Activation activation) {
  constexpr std::array gelus = {Activation::gelu, Activation::gelu_cuda12, Activation::gelu_erfc};
  std::vector<Activation> forms = {activation};
  if (function_of(activation) != Activation::gelu) return forms;
  for (const Activation form : gelus)
    if (form != activation) forms.push_back(form);
  return forms;
}

Activation function_of(Activation activation) {
  const bool is_gelu = activation == Activation::gelu_cuda12 || activation == Activation::gelu_erfc;
  return is_gelu ? Activation::gelu : activation;
}

}  // namespace guardbit::emulator
