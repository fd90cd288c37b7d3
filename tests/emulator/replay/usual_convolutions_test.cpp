#include "emulator/replay/usual_convolutions.hpp"

#include <array>
#include <optional>

#include "emulator/gemm/plan.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/input_codes.hpp"

namespace guardbit::tests {
namespace {

namespace replay = emulator::replay;
using emulator::operators::uninitialised_tensor;

/// A number of at most so many bits.
std::int64_t drawn_size(Random& random, int most_bits) {
  return random.between(1, 1 << random.between(0, most_bits));
}

TEST_CASE("what the atlas says of a convolution is a plan, whatever its size") {
  Random random(3);
  const replay::Context context;
  int told = 0;
  for (int i = 0; i < 20'000; ++i) {
    constexpr std::array filters = {1, 2, 3, 5, 7};
    const formats::Format type = std::array{formats::fp16, formats::bf16, formats::fp32}.at(
        static_cast<std::size_t>(random.between(0, 2)));
    const std::int64_t filter = filters.at(static_cast<std::size_t>(random.between(0, 4)));
    const std::int64_t images = drawn_size(random, 3), channels = drawn_size(random, 5);
    const std::int64_t outputs = drawn_size(random, 5), side = filter + drawn_size(random, 4);
    replay::ConvolutionCall x;
    x.input = uninitialised_tensor(type, {images, channels, side, side});
    x.weight = uninitialised_tensor(type, {outputs, channels, filter, filter});
    x.stride.fill(random.between(1, 2));
    x.padding.fill(random.between(0, 1) * (filter / 2));
    const std::int64_t to = (side + 2 * x.padding[0] - filter) / x.stride[0] + 1;
    const replay::Tensor maps = uninitialised_tensor(type, {images, outputs, to, to});
    for (const auto& plan : {usual_forward(x, maps, context), usual_data(x, maps, x.input, context),
                             usual_weights(x, maps, x.weight, context)}) {
      if (!plan) continue;
      ++told;
      INFO(plan->plan);
      CHECK_NOTHROW(emulator::parse_plan(plan->plan, "the atlas"));
    }
  }
  CHECK(told > 30'000);
}

}  // namespace
}  // namespace guardbit::tests
