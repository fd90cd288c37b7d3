#include "emulator/operators/channel_norms.hpp"

#include <vector>

#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;

ops::Tensor filled(const ops::Dimensions& shape, float value) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return ops::tensor_of_numbers(formats::fp32, shape,
                                std::vector<float>(static_cast<std::size_t>(count), value));
}

}  // namespace

TEST_CASE("A batch norm of operands that do not fit is refused") {
  const ops::Tensor input = filled({2, 4, 3, 3}, 1), four = filled({4}, 1), two = filled({2}, 1);
  const ops::Tensor other = filled({2, 4, 3, 2}, 1);
  for (const auto& norm : {ops::batch_norm, ops::cudnn_batch_norm}) {
    CHECK_NOTHROW(norm(input, {.weight = &four, .bias = &four}));
    CHECK_THROWS_AS(norm(input, {.weight = &two, .bias = &four}), ops::UnknownShape);
    CHECK_THROWS_AS(norm(input, {.weight = &four, .bias = &two}), ops::UnknownShape);
    CHECK_THROWS_AS(norm(input, {&four, &four, &two, &two, false}), ops::UnknownShape);
  }
  CHECK_THROWS_AS(ops::cudnn_batch_norm(input, {&four, &four, nullptr, nullptr, false}),
                  ops::UnknownShape);
  CHECK_NOTHROW(ops::cudnn_batch_norm_gradients(input, input, four, four, four));
  CHECK_THROWS_AS(ops::cudnn_batch_norm_gradients(other, input, four, four, four),
                  ops::UnknownShape);
  CHECK_THROWS_AS(ops::cudnn_batch_norm_gradients(input, input, two, four, four),
                  ops::UnknownShape);
  CHECK_NOTHROW(ops::batch_norm_gradients(input, input, four, four, &four));
  CHECK_THROWS_AS(ops::batch_norm_gradients(other, input, four, four, &four), ops::UnknownShape);
  CHECK_THROWS_AS(ops::batch_norm_gradients(input, input, four, two, &four), ops::UnknownShape);
}

}  // namespace guardbit::tests
