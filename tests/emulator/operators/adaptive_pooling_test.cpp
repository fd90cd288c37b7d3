#include "emulator/operators/images/adaptive_pooling.hpp"

#include <vector>

#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;

ops::Tensor tensor(const formats::Format& type, const ops::Dimensions& shape,
                   const ops::Dimensions& stride, const std::vector<float>& numbers) {
  return ops::tensor_of_numbers(type, shape, stride, numbers);
}

}  // namespace

TEST_CASE("Adaptive averages divide twice, or multiply by a reciprocal of the tensor's type") {
  const ops::Dimensions shape = {1, 2, 1, 3}, rows = {6, 3, 3, 1}, channels_together = {6, 1, 6, 2};
  const std::vector<float> numbers = {5, 0, 0, 5, 0, 0};
  const auto average = [&](const formats::Format& type, const ops::Dimensions& stride) {
    return ops::numbers_of(
        ops::adaptive_average_pool(tensor(type, shape, stride, numbers), {1, 1, 1}, 2))[0];
  };
  CHECK(average(formats::fp32, rows) == 5 / 3.0F);
  CHECK(average(formats::fp32, channels_together) == 5 * (1 / 3.0F));
  // The reciprocal of 3 in BF16 is 0x1.56p-2.
  CHECK(average(formats::bf16, rows) == 0x1.aap+0F);
  CHECK(average(formats::bf16, channels_together) == 0x1.acp+0F);
}

TEST_CASE("Adaptive averages of volumes divide once") {
  const ops::Tensor input = tensor(formats::fp32, {1, 1, 3, 3, 1}, {9, 9, 3, 1, 1},
                                   {1, 2, 4, 8, 16, 32, 64, 128, 0x1p-20F});
  const float sum = 255 + 0x1p-20F;
  CHECK(ops::numbers_of(ops::adaptive_average_pool(input, {1, 1, 1}, 3))[0] == sum / 9);
}

TEST_CASE("Gradients of adaptive averages: in order where channels lie together, else by atomics") {
  const ops::Dimensions shape = {1, 2, 1, 3}, windows = {1, 2, 1, 2};
  const std::vector<float> gradients = {1, 3, 1, 3};
  const auto gradient_of = [&](const ops::Dimensions& stride, const std::vector<float>& numbers,
                               const ops::Dimensions& of) {
    return ops::adaptive_average_pool_gradient(
        tensor(formats::fp32, of, ops::contiguous_stride(of), numbers),
        tensor(formats::fp32, shape, stride, std::vector<float>(6)), 2);
  };
  const ops::Dimensions rows = {6, 3, 3, 1}, channels_together = {6, 1, 6, 2};
  const std::vector<float> right = {0.5F, 2, 1.5F, 0.5F, 2, 1.5F};
  CHECK(ops::numbers_of(*gradient_of(rows, gradients, windows)) == right);
  CHECK(ops::numbers_of(*gradient_of(channels_together, gradients, windows)) == right);
  // Atomics take subnormal numbers for zero.
  const float small = 0x1p-130F;
  const std::vector<float> smalls(4, small);
  CHECK(ops::numbers_of(*gradient_of(rows, smalls, windows))[0] == 0);
  CHECK(ops::numbers_of(*gradient_of(channels_together, smalls, windows))[0] == small / 2);
  // Each element is in three windows of which two are itself alone, or in more.
  CHECK(!gradient_of(rows, std::vector<float>(18, 1), {1, 2, 1, 9}));
  CHECK(gradient_of(channels_together, std::vector<float>(18, 1), {1, 2, 1, 9}));
}

TEST_CASE("The greatest of several shares gets their sum where at most two are added") {
  const ops::Dimensions windows = {1, 1, 1, 3};
  const auto gradient_of = [&](std::int64_t length, const std::vector<float>& gradients,
                               const std::vector<std::int64_t>& places) {
    const ops::Dimensions shape = {1, 1, 1, length};
    return ops::adaptive_max_pool_gradient(
        tensor(formats::fp32, windows, ops::contiguous_stride(windows), gradients),
        tensor(formats::fp32, shape, ops::contiguous_stride(shape),
               std::vector<float>(static_cast<std::size_t>(length))),
        ops::tensor_of_integers(formats::int64, windows, places), 2);
  };
  CHECK(ops::numbers_of(*gradient_of(4, {1, 2, 0x1p-130F}, {1, 1, 3})) ==
        std::vector<float>{0, 3, 0, 0});
  CHECK(ops::numbers_of(*gradient_of(3, {1, 2, 0x1p-130F}, {0, 1, 2})) ==
        std::vector<float>{1, 2, 0x1p-130F});
  CHECK(!gradient_of(4, {1, 2, 3}, {1, 1, 1}));
}

}  // namespace guardbit::tests
