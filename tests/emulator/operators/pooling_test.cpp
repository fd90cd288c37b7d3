#include "emulator/operators/images/pooling.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "emulator/operators/number_view.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;

/// What the middle of 3 x 3 elements gets, in each of two channels, where it is the greatest of all
/// four windows.
std::vector<float> middle_of(const formats::Format& type, const std::vector<float>& gradients,
                             const ops::Dimensions& stride) {
  const ops::Dimensions windows = {1, 2, 2, 2};
  ops::Tensor input = ops::tensor_of_numbers(type, {1, 2, 3, 3}, std::vector<float>(18));
  input.stride = stride;
  const ops::Tensor result = ops::max_pool_gradient(
      ops::tensor_of_numbers(type, windows, gradients), input,
      ops::tensor_of_integers(formats::int64, windows, std::vector<std::int64_t>(8, 4)),
      {.size = {1, 2, 2}});
  CHECK(result.stride == stride);
  const ops::NumberView numbers(result);
  for (std::size_t i = 0; i < 18; ++i)
    if (i % 9 != 4) CHECK(numbers[i] == 0);
  return {numbers[4], numbers[13]};
}

ops::Tensor volume(const ops::Dimensions& shape, const std::vector<float>& numbers) {
  return ops::tensor_of_numbers(formats::fp32, shape, numbers);
}

}  // namespace

TEST_CASE(
    "An element that is the greatest of several windows gets their gradients' FP32 sum, row by row") {
  const ops::Dimensions rows = {18, 9, 3, 1}, channels_together = {18, 1, 6, 2};
  for (const ops::Dimensions& stride : {rows, channels_together}) {
    CAPTURE(stride);
    CHECK(middle_of(formats::fp32, {0x1p24F, 1, 1, -0x1p24F, 1, 1, 0x1p24F, -0x1p24F}, stride) ==
          std::vector<float>{0, 2});
    // FP16 sums would be 0 and 2.
    CHECK(middle_of(formats::fp16, {0x1p11F, 1, 1, -0x1p11F, 1, 1, 0x1p11F, -0x1p11F}, stride) ==
          std::vector<float>{2, 2});
  }
}

TEST_CASE("The gradient of a single window keeps the sign of zero where channels lie together") {
  const std::vector<float> gradients(8, -0.0F);
  const auto sign_of = [&](const ops::Dimensions& stride, std::int64_t step) {
    ops::Tensor input = volume({1, 2, 4, 4}, std::vector<float>(32));
    input.stride = stride;
    const std::vector<std::int64_t> places = {0, 2, 8, 10, 0, 2, 8, 10};
    const ops::Dimensions windows = {1, 2, 2, 2};
    const ops::Tensor result = ops::max_pool_gradient(
        volume(windows, gradients), input, ops::tensor_of_integers(formats::int64, windows, places),
        {.size = {1, 2, 2}, .stride = {1, step, step}});
    return std::signbit(ops::numbers_of(result)[0]);
  };
  const ops::Dimensions rows = {32, 16, 4, 1}, channels_together = {32, 1, 8, 2};
  CHECK(!sign_of(rows, 2));
  CHECK(sign_of(channels_together, 2));
}

TEST_CASE("A window of infinities below zero gives its first place, or the image's") {
  const float infinity = std::numeric_limits<float>::infinity();
  ops::Tensor input = volume({1, 2, 2, 4}, std::vector<float>(16, -infinity));
  const ops::PoolingWindow window{.size = {1, 2, 2}, .stride = {1, 2, 2}};
  CHECK(ops::integers_of(ops::max_pool(input, window).indices) ==
        std::vector<std::int64_t>{0, 2, 0, 2});
  input.stride = {16, 1, 8, 2};
  CHECK(ops::integers_of(ops::max_pool(input, window).indices) ==
        std::vector<std::int64_t>{0, 0, 0, 0});
}

TEST_CASE("Gradients of averages look for windows by strides that say that channels lie together") {
  // One row of three elements, a window of two with a padding of one: 1, 1 + 2, 2 + 3 by halves.
  const auto gradient_of = [](const ops::Dimensions& stride) {
    ops::Tensor input = volume({1, 2, 1, 3}, std::vector<float>(6));
    input.stride = stride;
    const ops::Tensor gradient = volume({1, 2, 1, 4}, {2, 4, 8, 16, 2, 4, 8, 16});
    return ops::numbers_of(*ops::average_pool_gradient(
        gradient, input, {.size = {1, 1, 2}, .stride = {1, 1, 1}, .padding = {0, 0, 1}}, {}));
  };
  const std::vector<float> right = {3, 6, 12, 3, 6, 12}, without_padding = {1, 3, 6, 1, 3, 6};
  CHECK(gradient_of({6, 3, 3, 1}) == right);
  CHECK(gradient_of({6, 1, 6, 2}) == without_padding);
  // Channels of stride 1 alone do not say so.
  CHECK(gradient_of({6, 1, 2, 2}) == right);
  CHECK(gradient_of({2, 1, 12, 4}) == right);
}

TEST_CASE("Gradients of averages of volumes: by sums, by stores, by two atomics, or not known") {
  const ops::Tensor input = volume({1, 1, 1, 1, 4}, std::vector<float>(4));
  const auto gradient_of = [&](std::int64_t size, std::int64_t stride, std::int64_t padding,
                               const std::vector<float>& gradients) {
    const ops::Dimensions shape = {1, 1, 1, 1, static_cast<std::int64_t>(gradients.size())};
    return ops::average_pool_gradient(volume(shape, gradients), input,
                                      {.dimensions = 3,
                                       .size = {1, 1, size},
                                       .stride = {1, 1, stride},
                                       .padding = {0, 0, padding}},
                                      {});
  };
  // A sum times a third: the quotient of 5 by 3 would be 0x1.aaaaaap+0.
  CHECK(ops::numbers_of(*gradient_of(3, 1, 0, {5, 0}))[0] == 5 * (1 / 3.0F));
  CHECK(5 * (1 / 3.0F) != 5 / 3.0F);
  CHECK(ops::numbers_of(*gradient_of(2, 2, 0, {1, 3})) ==
        std::vector<float>{0.5F, 0.5F, 1.5F, 1.5F});
  // Two windows share elements: subnormal numbers are zero to atomics, but not to stores.
  const float small = 0x1p-130F;
  CHECK(ops::numbers_of(*gradient_of(2, 2, 0, {small, 2}))[0] == small / 2);
  CHECK(ops::numbers_of(*gradient_of(2, 1, 1, {2, 2, small, 2, 2})) ==
        std::vector<float>{2, 1, 1, 2});
  CHECK(!gradient_of(3, 1, 1, {1, 1, 1, 1}));
}

TEST_CASE("Windows are folded in order, in FP32") {
  // Two windows of one row and two columns meet in the middle.
  const ops::Tensor columns =
      ops::tensor_of_numbers(formats::fp16, {2, 2}, std::vector<float>{1, 3, 2, 4});
  const ops::Tensor image =
      ops::fold_windows(columns, {1, 1, 3}, {.size = {1, 1, 2}, .stride = {1, 1, 1}});
  CHECK(image.shape == ops::Dimensions{1, 1, 3});
  CHECK(ops::numbers_of(image) == std::vector<float>{1, 5, 4});
}

}  // namespace guardbit::tests
