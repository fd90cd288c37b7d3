#include "emulator/operators/pooling.hpp"

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
      ops::tensor_of_integers(formats::int64, windows, std::vector<std::int64_t>(8, 4)));
  CHECK(result.stride == stride);
  const ops::NumberView numbers(result);
  for (std::size_t i = 0; i < 18; ++i)
    if (i % 9 != 4) CHECK(numbers[i] == 0);
  return {numbers[4], numbers[13]};
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

}  // namespace guardbit::tests
