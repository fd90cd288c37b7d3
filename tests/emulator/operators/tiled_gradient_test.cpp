#include "emulator/operators/layers/tiled_gradient.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"

// cuDNN's tiled gradient of weights, against what an H200 answered: how many pixels' products are
// added before two that cancel have met.
namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;
using ops::GradientTiling;

/// A 3 x 3 convolution of one channel with padding 1: of the filter's middle place all pixels
/// count.
struct Images {
  std::int64_t count, side;
  GradientTiling tiling;

  /// 2^15 at the first pixel of the first image and -2^15 at `other`; 2^-24 everywhere else, which
  /// vanishes beside them.
  std::int64_t added_before(std::int64_t other) const {
    const ops::Dimensions shape = {count, 1, side, side};
    const auto pixels = static_cast<std::size_t>(count * side * side);
    std::vector<float> gradient(pixels, 0x1p-24F), input(pixels, 1);
    gradient[0] = 0x1p15F;
    gradient[static_cast<std::size_t>(other)] = -0x1p15F;
    const auto tensor = [](const ops::Dimensions& of, const std::vector<float>& numbers) {
      return ops::tensor_of_numbers(formats::fp16, of, numbers);
    };
    const ops::Tensor result = ops::tiled_weight_gradient(
        tensor(shape, gradient), tensor(shape, input), tensor({1, 1, 3, 3}, std::vector<float>(9)),
        {1, 1}, {1, 1}, tiling);
    std::uint16_t middle = 0;
    std::memcpy(&middle, result.bytes.data() + 8, sizeof middle);
    // A subnormal number of FP16: its code counts 2^-24.
    return static_cast<std::int64_t>(pixels) - middle;
  }
};

TEST_CASE("tiles of narrow runs are added as an H200 added them") {
  const Images one = {1, 8, GradientTiling::narrow};
  // Neighbours of a run, the next run, rows below, other lanes.
  CHECK(one.added_before(1) == 2);
  CHECK(one.added_before(2) == 16);
  CHECK(one.added_before(16) == 4);
  CHECK(one.added_before(32) == 6);
  CHECK(one.added_before(12) == 32);
  CHECK(one.added_before(4) == 64);
  CHECK(one.added_before(63) == 32);
  const Images two = {2, 12, GradientTiling::narrow};
  CHECK(two.added_before(8) == 3);
  CHECK(two.added_before(9) == 4);
  CHECK(two.added_before(96) == 5);
  CHECK(two.added_before(24) == 16);
  CHECK(two.added_before(48) == 20);
  CHECK(two.added_before(144) == 32);
  CHECK(two.added_before(168) == 40);
  CHECK(two.added_before(2) == 96);
  CHECK(two.added_before(16) == 144);
}

TEST_CASE("tiles of wide runs are added as an H200 added them") {
  const Images one = {1, 28, GradientTiling::wide};
  CHECK(one.added_before(5) == 6);
  CHECK(one.added_before(12) == 7);
  CHECK(one.added_before(27) == 16);
  CHECK(one.added_before(448) == 17);
  CHECK(one.added_before(112) == 64);
  CHECK(one.added_before(224) == 96);
  CHECK(one.added_before(336) == 112);
  CHECK(one.added_before(6) == 196);
  CHECK(one.added_before(84) == 392);
  CHECK(one.added_before(28) == 784);
}

TEST_CASE("a tiled gradient refuses shapes that no convolution has") {
  const auto tensor = [](ops::Dimensions shape) {
    return ops::uninitialised_tensor(formats::fp16, std::move(shape));
  };
  CHECK_THROWS_AS(
      ops::tiled_weight_gradient(tensor({1, 2, 4, 4}), tensor({1, 3, 4, 4}), tensor({2, 2, 3, 3}),
                                 {1, 1}, {1, 1}, GradientTiling::narrow),
      ops::UnknownShape);
}

}  // namespace
}  // namespace guardbit::tests
