#include "emulator/operators/layers/placed_gradient.hpp"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"

// cuDNN's gradient of data by a product for each place of the filter. What an H200 answered stands
// in tests/golden/convolutions/parts.npz, and tests/python compares it.
namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;

constexpr std::int64_t images = 2, channels = 3, outputs = 5, side = 9, filter = 3;

std::vector<float> drawn(std::size_t count, bool are_whole) {
  std::mt19937 random(7);
  std::vector<float> numbers(count);
  for (float& x : numbers)
    x = are_whole ? static_cast<float>(random() % 17) - 8
                  : std::ldexp(static_cast<float>(random() % 65536) - 32768, -15);
  return numbers;
}

struct Call {
  ops::Tensor gradient, input, weight;
};

/// A filter of 3 x 3 with padding 1.
Call call_of(std::int64_t stride, bool are_whole) {
  const std::int64_t rows = (side - 1) / stride + 1;
  const auto tensor = [&](const ops::Dimensions& shape) {
    std::size_t count = 1;
    for (const std::int64_t x : shape) count *= static_cast<std::size_t>(x);
    return ops::tensor_of_numbers(formats::fp32, shape, drawn(count, are_whole));
  };
  return {tensor({images, outputs, rows, rows}),
          ops::uninitialised_tensor(formats::fp32, {images, channels, side, side}),
          tensor({outputs, channels, filter, filter})};
}

std::vector<float> gradient_of(const Call& call, std::int64_t stride, std::int64_t chunk,
                               int threads = 1) {
  return ops::numbers_of(ops::placed_data_gradient(call.gradient, call.input, call.weight,
                                                   {stride, stride}, {1, 1}, chunk, threads));
}

TEST_CASE("a gradient by places is the exact one where every sum is exact") {
  for (const std::int64_t stride : {1, 2}) {
    const Call call = call_of(stride, true);
    const std::vector<float> maps = ops::numbers_of(call.gradient);
    const std::vector<float> weights = ops::numbers_of(call.weight);
    std::vector<float> expected(static_cast<std::size_t>(images * channels * side * side));
    const std::int64_t rows = call.gradient.shape[2];
    for (std::int64_t n = 0; n < images; ++n)
      for (std::int64_t o = 0; o < outputs; ++o)
        for (std::int64_t p = 0; p < rows * rows; ++p)
          for (std::int64_t t = 0; t < channels * filter * filter; ++t) {
            const std::int64_t c = t / (filter * filter), place = t % (filter * filter);
            const std::int64_t y = p / rows * stride - 1 + place / filter;
            const std::int64_t x = p % rows * stride - 1 + place % filter;
            if (y < 0 || y >= side || x < 0 || x >= side) continue;
            expected[static_cast<std::size_t>(((n * channels + c) * side + y) * side + x)] +=
                maps[static_cast<std::size_t>((n * outputs + o) * rows * rows + p)] *
                weights[static_cast<std::size_t>(o * channels * filter * filter + t)];
          }
    for (const std::int64_t chunk : {4, 64, 128})
      CHECK(gradient_of(call, stride, chunk) == expected);
  }
}

TEST_CASE("chunks of a gradient by places change bits, threads do not") {
  const Call call = call_of(1, false);
  const std::vector<float> whole = gradient_of(call, 1, 128);
  CHECK(gradient_of(call, 1, 81) == whole);
  CHECK(gradient_of(call, 1, 64) != whole);
  CHECK(gradient_of(call, 1, 64, 4) == gradient_of(call, 1, 64));
}

TEST_CASE("a gradient by places refuses shapes that no convolution has") {
  Call call = call_of(1, false);
  call.weight = ops::uninitialised_tensor(formats::fp32, {outputs, channels + 1, filter, filter});
  CHECK_THROWS_AS(gradient_of(call, 1, 64), ops::UnknownShape);
}

}  // namespace
}  // namespace guardbit::tests
