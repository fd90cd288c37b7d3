#include "emulator/operators/layers/distances.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "emulator/operators/layers/embedding_bag.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;
using Floats = std::vector<float>;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// One table.
ops::Tensor one_table(std::int64_t rows, std::int64_t width, const Floats& numbers) {
  return ops::tensor_of_numbers(formats::fp32, {1, rows, width}, numbers);
}
float distance(const Floats& row, double order) {
  const auto width = static_cast<std::int64_t>(row.size());
  const ops::Tensor first = one_table(1, width, row),
                    zeros = one_table(1, width, Floats(row.size()));
  return ops::numbers_of(ops::distances({first, zeros, order}, 1))[0];
}

}  // namespace

TEST_CASE("Distances of each order") {
  const ops::Tensor first = one_table(2, 2, {0, 0, 1, 1}), second = one_table(2, 2, {3, -4, 1, 0});
  const auto of = [&](double order) {
    return ops::numbers_of(ops::distances({first, second, order}, 1));
  };
  CHECK(of(2) == Floats{5, 1, std::sqrt(29.0F), 1});
  CHECK(of(1) == Floats{7, 1, 7, 1});
  CHECK(of(0) == Floats{2, 1, 2, 1});
  CHECK(of(infinity) == Floats{4, 1, 5, 1});
  CHECK(of(0.5)[1] == 1);
}

TEST_CASE("Differences are added by 256 threads that meet by halves") {
  Floats row(300);
  row[0] = 0x1p24F;
  row[1] = 1;
  row[2] = 1;
  // 1 is lost at each step.
  CHECK(distance(row, 1) == 0x1p24F);
  row[2] = 0;
  row[3] = 1;
  // Lanes 1 and 3 meet before they meet lane 0.
  CHECK(distance(row, 1) == 0x1p24F + 2);
  row[1] = row[3] = 0;
  row[257] = 2;
  CHECK(distance(row, 1) == 0x1p24F + 2);
}

TEST_CASE("What a distance adds to a gradient") {
  const ops::Tensor first = one_table(1, 2, {0, 2}), second = one_table(2, 2, {3, -2, 0, 2});
  const ops::Tensor gradient = one_table(1, 2, {2, 1});
  const auto terms = [&](double order) {
    const ops::DistanceOperands operands{first, second, order};
    return ops::numbers_of(
        ops::distance_gradient_terms(gradient, operands, ops::distances(operands, 1), 1));
  };
  CHECK(terms(2) == Floats{-1.2F, 1.6F, 0, 0});
  CHECK(terms(1) == Floats{-2, 2, 0, 0});
  CHECK(terms(infinity) == Floats{0, 2, 0, 0});
}

TEST_CASE("The greatest of each bag is the first one, and 0 of an empty bag") {
  const ops::Tensor numbers =
      ops::tensor_of_numbers(formats::fp32, {3, 2}, Floats{1, -5, 1, -2, 9, -9});
  const std::array<std::int64_t, 4> taken{0, 1, 2, 0};
  const std::array<std::int64_t, 3> begins{0, 3, 3};
  const ops::Tensor indices = ops::tensor_of_integers(formats::int64, {4}, taken);
  const ops::Tensor offsets = ops::tensor_of_integers(formats::int64, {3}, begins);
  const ops::GreatestOfBags greatest =
      ops::greatest_of_bags(numbers, {.indices = indices, .offsets = offsets, .padding = 2});
  CHECK(ops::numbers_of(greatest.numbers) == Floats{1, -2, 0, 0, 1, -5});
  CHECK(ops::integers_of(greatest.rows) == std::vector<std::int64_t>{0, 1, -1, -1, 0, 0});
}

}  // namespace guardbit::tests
