#include "emulator/functions/activation.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "emulator/functions/cuda/cuda_error_functions.hpp"
#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_hyperbolics.hpp"
#include "emulator/functions/numbers/host_number.hpp"
#include "emulator/functions/xla_math.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/words.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/functions/digest.hpp"

/// Digests of all inputs are the hardware's, of an H100 (docs/FUNCTIONS.md); those of a part are of
/// the model that gives them.
namespace guardbit::tests {
namespace {

namespace cuda_math = emulator::cuda_math;
using emulator::Activation;

using emulator::HostNumber;

HostNumber tail_12(HostNumber x) { return cuda_math::erff(x, cuda_math::erff_tail_12); }
HostNumber tail_13(HostNumber x) { return cuda_math::erff(x); }
HostNumber expf(HostNumber x) { return cuda_math::expf(x); }
HostNumber tanhf(HostNumber x) { return cuda_math::tanhf(x); }
HostNumber erfc(HostNumber x) { return emulator::xla_math::erfc(x); }

float activated(Activation activation, float x) {
  emulator::activate(activation, formats::fp32, {&x, 1});
  return x;
}

TEST_CASE("activations give PyTorch's results, and steps of compilers the GPU's, for all inputs",
          "[sweep]") {
  const auto digest_of_activation = [](Activation activation) {
    return digest_of(
        of_codes([=](HostNumber x) -> HostNumber { return activated(activation, x.number()); }));
  };
  CHECK(digest_of_activation(Activation::gelu) == 0x275da2d4000f88b3);
  CHECK(digest_of_activation(Activation::gelu_tanh) == 0xd46ea1a17ee0aae6);
  CHECK(digest_of_activation(Activation::silu) == 0xc7b1890c3eb41234);
  CHECK(digest_of_activation(Activation::gelu_cuda12) == 0xd364b9d66b768cf8);
  CHECK(digest_of(of_codes(tail_12)) == 0x48fd5c668ff6e391);
  CHECK(digest_of(of_codes(erfc)) == 0xe4860afe10fa0bbe);
}

/// How far a function lies from what doubles give, in units of the result's last place.
template <class Function, class Exact>
double largest_error(const Function& function, const Exact& exact, float from, float to) {
  double largest = 0;
  for (float x = from; x < to; x += 0.00037F) {
    const double wanted = exact(double{x});
    const auto near = static_cast<float>(std::abs(wanted));
    const double unit = std::nextafter(near, std::numeric_limits<float>::infinity()) - near;
    largest = std::max(largest, std::abs(function(x).number() - wanted) / unit);
  }
  return largest;
}

TEST_CASE("functions are what their names say") {
  const auto exponential = [](double x) { return std::exp(x); };
  const auto tangent = [](double x) { return std::tanh(x); };
  const auto error = [](double x) { return std::erf(x); };
  const auto complement = [](double x) { return std::erfc(x); };
  CHECK(largest_error(expf, exponential, -80, 80) < 2);
  CHECK(largest_error(tanhf, tangent, -12, 12) < 2);
  CHECK(largest_error(tail_12, error, -5, 5) < 2);
  CHECK(largest_error(tail_13, error, -5, 5) < 2);
  CHECK(largest_error(erfc, complement, -5, 9) < 80);
}

TEST_CASE("activations at special inputs") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Activation activation :
       {Activation::gelu, Activation::gelu_cuda12, Activation::gelu_erfc, Activation::gelu_tanh,
        Activation::silu}) {
    CAPTURE(formats::word_of(activation));
    CHECK(activated(activation, 0) == 0);
    CHECK(std::signbit(activated(activation, -0.0F)));
    CHECK(activated(activation, infinity) == infinity);
    CHECK(std::isnan(activated(activation, std::numeric_limits<float>::quiet_NaN())));
    const auto unchanged = static_cast<float>(emulator::least_unchanged(activation));
    for (const float x : {unchanged, 1.37F * unchanged, 1000.0F})
      CHECK(activated(activation, x) == x);
    const double lowest = emulator::place_of_minimum(activation);
    for (const double step : {-1e-3, 1e-3})
      CHECK(emulator::activated_in_doubles(activation, lowest + step) >
            emulator::activated_in_doubles(activation, lowest));
    for (float x = -4; x < 8; x += 0.01F)
      CHECK(std::abs(activated(activation, x) - emulator::activated_in_doubles(activation, x)) <
            2e-6);
  }
}

TEST_CASE("activations are computed step by step, by every CPU alike") {
  const auto rounded = [](const formats::Format& f, float x) {
    return static_cast<float>(emulator::scalar::rounded(f, x));
  };
  constexpr float root_of_half = 0x1.6a09e6p-1F;
  for (float x = -9; x < 9; x += 0.0017F) {
    const float place = x * root_of_half;
    CHECK(activated(Activation::gelu, x) == (x * 0.5F) * (1 + tail_13(place).number()));
    CHECK(activated(Activation::gelu_cuda12, x) == (x * 0.5F) * (1 + tail_12(place).number()));
    CHECK(activated(Activation::silu, x) == x / (1 + expf(-x).number()));
    const float inner = std::fma(x * (x * x), 0x1.6e4e26p-5F, x);
    CHECK(activated(Activation::gelu_tanh, x) ==
          (0.5F * x) * (1 + tanhf(0x1.988454p-1F * inner).number()));
    for (const formats::Format& d : {formats::fp32, formats::fp16, formats::bf16}) {
      const float y = rounded(d, x), half = rounded(d, y * 0.5F);
      const float negative = rounded(d, -y * rounded(d, root_of_half));
      float result = x;
      emulator::activate(Activation::gelu_erfc, d, {&result, 1});
      CHECK(result == rounded(d, half * rounded(d, erfc(negative).number())));
    }
  }
}

TEST_CASE("forms of an activation compute one function in other bits") {
  std::vector<float> numbers;
  for (float x = -5; x < 5; x += 0.013F) numbers.push_back(x);
  const auto through = [&](Activation activation, const formats::Format& d) {
    std::vector<float> y = numbers;
    emulator::activate(activation, d, y);
    return y;
  };
  for (const Activation form : emulator::forms_of(Activation::gelu)) {
    for (const Activation other : emulator::forms_of(form)) {
      CHECK(function_of(other) == Activation::gelu);
      CHECK((through(form, formats::fp32) == through(other, formats::fp32)) == (form == other));
    }
  }
  CHECK(emulator::forms_of(Activation::silu) == std::vector{Activation::silu});
  // Steps are rounded to D's format in one form alone.
  CHECK(through(Activation::gelu, formats::bf16) == through(Activation::gelu, formats::fp32));
  CHECK(through(Activation::gelu_erfc, formats::bf16) !=
        through(Activation::gelu_erfc, formats::fp32));
}

}  // namespace
}  // namespace guardbit::tests
