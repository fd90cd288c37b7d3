#include "emulator/operators/images/grid_sampling.hpp"

#include <cmath>
#include <vector>

#include "emulator/operators/images/interpolation.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;

/// One row of three elements at these columns: -1 and 1 are its ends.
std::vector<float> sampled(const std::vector<float>& columns, const ops::GridRule& rule,
                           const formats::Format& type = formats::fp32) {
  std::vector<float> grid;
  for (const float column : columns) grid.insert(grid.end(), {column, 0});
  const auto count = static_cast<std::int64_t>(columns.size());
  return ops::numbers_of(
      ops::grid_sample(ops::tensor_of_numbers(type, {1, 1, 1, 3}, std::vector<float>{1, 2, 4}),
                       ops::tensor_of_numbers(type, {1, 1, count, 2}, grid), rule, 2));
}

}  // namespace

TEST_CASE("Grids name places between the ends of images") {
  using enum ops::Outside;
  const std::vector<float> columns = {-1, 0, 1, 0.5F, 2};
  CHECK(sampled(columns, {.outside = zeros, .aligns_corners = true}) ==
        std::vector<float>{1, 2, 4, 3, 0});
  CHECK(sampled(columns, {.outside = border, .aligns_corners = true}) ==
        std::vector<float>{1, 2, 4, 3, 4});
  CHECK(sampled(columns, {.outside = reflection, .aligns_corners = true}) ==
        std::vector<float>{1, 2, 4, 3, 2});
  // The ends are those of elements, not their centres.
  CHECK(sampled(columns, {.outside = zeros}) == std::vector<float>{0.5F, 2, 2, 3.5F, 0});
}

TEST_CASE("Grids: halves go to the even element, what is no place lies outside") {
  const ops::GridRule nearest{.sampling = ops::Sampling::nearest, .aligns_corners = true};
  CHECK(sampled({-0.5F, 0.5F, NAN, HUGE_VALF, 1e30F}, nearest) ==
        std::vector<float>{1, 4, 0, 0, 0});
  ops::GridRule border = nearest;
  border.outside = ops::Outside::border;
  CHECK(sampled({NAN, HUGE_VALF, -HUGE_VALF}, border) == std::vector<float>{1, 4, 1});
}

TEST_CASE("Grids: products of neighbours are fused one after another, from zero") {
  // 0.3 is no binary fraction: weights are 1 - x and x of the same x.
  const float place = std::fma(0.1F + 1, 3.0F, -1.0F) / 2;
  const float second = place - 1, first = 2 - place;
  CHECK(sampled({0.1F}, {})[0] == std::fma(4.0F, second, 2 * first));
}

TEST_CASE("Grids: cubic neighbours are places of the tensor's type") {
  // 256.140625: in BF16 the neighbour at 257 is that at 256 again.
  constexpr std::int64_t length = 300;
  std::vector<float> numbers(length);
  numbers[256] = 1;
  numbers[257] = 64;
  const auto at = [&](const formats::Format& type) {
    const ops::Tensor input = ops::tensor_of_numbers(type, {1, 1, 1, length}, numbers);
    const ops::Tensor grid =
        ops::tensor_of_numbers(type, {1, 1, 1, 2}, std::vector<float>{0.7109375F, 0});
    return ops::numbers_of(ops::grid_sample(input, grid, {.sampling = ops::Sampling::cubic}, 2))[0];
  };
  const auto weights = ops::cubic_weights(0.140625F);
  CHECK(at(formats::fp32) == ops::weighted({0, 1, 64, 0}, weights));
  CHECK(at(formats::bf16) == ops::rounded_to(formats::bf16, ops::weighted({0, 1, 1, 0}, weights)));
}

}  // namespace guardbit::tests
