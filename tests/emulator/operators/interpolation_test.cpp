#include "emulator/operators/images/interpolation.hpp"

#include <cmath>
#include <vector>

#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;

ops::Tensor row(const std::vector<float>& numbers) {
  const auto length = static_cast<std::int64_t>(numbers.size());
  return ops::tensor_of_numbers(formats::fp32, {1, 1, length}, numbers);
}
ops::Tensor image(const std::vector<float>& numbers) {
  const auto length = static_cast<std::int64_t>(numbers.size());
  return ops::tensor_of_numbers(formats::fp32, {1, 1, 1, length}, numbers);
}

/// The first channel between four pixels.
std::vector<float> between(std::int64_t channels, bool together, const formats::Format& type) {
  const std::vector<float> pixels = {0x1.234568p0F, 0x1.89abcep0F, 0x1.357912p0F, 0x1.abcdeep0F};
  std::vector<float> numbers;
  for (std::int64_t c = 0; c < channels; ++c)
    numbers.insert(numbers.end(), pixels.begin(), pixels.end());
  ops::Tensor input = ops::tensor_of_numbers(type, {1, channels, 2, 2}, numbers);
  if (together) input.stride = {4 * channels, 1, 2 * channels, channels};
  const ops::Tensor result = ops::interpolate_linear(input, {.size = {1, 3, 7}});
  CHECK(result.stride == (together ? ops::Dimensions{21 * channels, 1, 7 * channels, channels}
                                   : ops::Dimensions{21 * channels, 21, 7, 1}));
  std::vector<float> results = ops::numbers_of(result);
  results.resize(21);
  return results;
}

}  // namespace

TEST_CASE("The nearest element: images are copied along a length that stays, rows are not") {
  ops::Interpolation rule{.dimensions = 1, .size = {1, 1, 4}};
  rule.scales.columns = 0.5;
  CHECK(ops::numbers_of(ops::interpolate_nearest(row({1, 2, 3, 4}), rule)) ==
        std::vector<float>{1, 3, 4, 4});
  rule.dimensions = 2;
  CHECK(ops::numbers_of(ops::interpolate_nearest(image({1, 2, 3, 4}), rule)) ==
        std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("Gradients of the nearest element are of a range of results, not of those that took it") {
  // Of 10 results at a scale of 0.3 the places are whole numbers times 0.3, rounded up.
  ops::Interpolation rule{.dimensions = 1, .size = {1, 1, 3}};
  rule.scales.columns = 0.3;
  CHECK(ops::numbers_of(ops::interpolate_nearest_gradient(row({1, 2, 4}), {1, 1, 10}, rule)) ==
        std::vector<float>{1, 0, 0, 2, 0, 0, 4, 0, 0, 0});
  rule.takes_centres = true;
  CHECK(ops::numbers_of(ops::interpolate_nearest_gradient(row({1, 2, 4}), {1, 1, 10}, rule)) ==
        std::vector<float>{0, 1, 0, 0, 0, 2, 0, 0, 4, 0});
}

TEST_CASE("Infinities stay where a size stays") {
  const std::vector<float> numbers = {HUGE_VALF, 1, -HUGE_VALF};
  for (const int dimensions : {1, 2}) {
    const ops::Tensor input = dimensions == 1 ? row(numbers) : image(numbers);
    const ops::Interpolation rule{.dimensions = dimensions, .size = {1, 1, 3}};
    CHECK(ops::numbers_of(ops::interpolate_linear(input, rule)) == numbers);
    if (dimensions == 2) CHECK(ops::numbers_of(ops::interpolate_cubic(input, rule)) == numbers);
  }
}

TEST_CASE("Of 16 channels together the other product of the first row is fused, in FP32 alone") {
  CHECK(between(15, true, formats::fp32) == between(15, false, formats::fp32));
  CHECK(between(16, true, formats::fp32) != between(16, false, formats::fp32));
  CHECK(between(16, true, formats::bf16) == between(16, false, formats::bf16));
}

TEST_CASE("Weights of cubic neighbours are of the distance to an FP32 floor, in FP64, too") {
  // 7 of 21 elements: the place is 1 in FP32, less than that in FP64.
  const ops::Tensor input =
      ops::tensor_of_doubles({1, 1, 1, 4}, std::vector<double>{1, 10, 100, 1000});
  ops::Interpolation rule{.size = {1, 1, 1}};
  rule.scales.columns = 1 / (3 - 0x1p-50);
  const double place = std::fma(static_cast<double>(3 - 0x1p-50), 0.5, -0.5);
  REQUIRE(place < 1);
  const auto weights = ops::cubic_weights(place - 1.0);
  const auto of_the_floor_below = ops::cubic_weights(place);
  const double result = ops::doubles_of(ops::interpolate_cubic(input, rule))[0];
  CHECK(result == ops::weighted({1.0, 10.0, 100.0, 1000.0}, weights));
  CHECK(result != ops::weighted({1.0, 1.0, 10.0, 100.0}, of_the_floor_below));
}

TEST_CASE("Antialiased interpolation rounds weights and rows to the tensor's type") {
  const std::vector<float> numbers = {1.5F, -7, 3.25F, 4, 0.125F, 6, -7.5F};
  const ops::Interpolation rule{.size = {1, 1, 3}};
  const auto in = [&](const formats::Format& type, bool is_cubic) {
    return ops::numbers_of(ops::interpolate_antialiased(
        ops::tensor_of_numbers(type, {1, 1, 1, 7}, numbers), rule, is_cubic));
  };
  for (const bool is_cubic : {false, true}) {
    std::vector<float> once = in(formats::fp32, is_cubic);
    ops::round_to(formats::bf16, once);
    CHECK(in(formats::bf16, is_cubic) != once);
  }
}

}  // namespace guardbit::tests
