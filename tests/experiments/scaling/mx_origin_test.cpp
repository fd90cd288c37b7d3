#include "experiments/scaling/mx_origin.hpp"

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "experiments/scaling/element_grid.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/words.hpp"
#include "tests/catch.hpp"

namespace guardbit::experiments {
namespace {

struct Written {
  std::vector<float> source;
  std::vector<std::uint8_t> elements, scales;

  MxData data(const formats::Format& element, std::size_t columns) const {
    return {element, columns, elements, scales};
  }
};

/// Rows of numbers whose blocks have amaxes anywhere, as that mode and rounding write them.
Written write(MxMode mode, const formats::Format& element, std::size_t rows, std::size_t columns,
              formats::Rounding rounding = formats::Rounding::nearest_even) {
  Written written;
  std::mt19937 random(11);
  std::uniform_real_distribution<float> exponent(-20, 20);
  std::uniform_real_distribution<float> share(-1, 1);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t begin = 0; begin < columns; begin += mx_block) {
      const std::size_t count = std::min(mx_block, columns - begin);
      std::vector<float> block(count);
      const float amax = std::exp2(exponent(random));
      for (float& x : block) x = share(random) * amax;
      block[random() % count] = amax;
      const std::uint8_t scale = mx_scale_code(mode, element, amax_of(block.data(), block.size()));
      for (const float x : block) {
        written.source.push_back(x);
        const double y = std::ldexp(static_cast<double>(x), 127 - scale);
        written.elements.push_back(
            static_cast<std::uint8_t>(convert(formats::fp64, std::bit_cast<std::uint64_t>(y),
                                              element, rounding, formats::overflow_saturate)));
      }
      written.scales.push_back(scale);
    }
  }
  return written;
}

constexpr std::array elements = {formats::e4m3, formats::e5m2, formats::e3m2, formats::e2m3,
                                 formats::e2m1};

std::size_t index_of(MxMode mode) {
  return static_cast<std::size_t>(std::find(mx_modes.begin(), mx_modes.end(), mode) -
                                  mx_modes.begin());
}

}  // namespace

TEST_CASE("MX origin: with the source, the mode that wrote is the only one left") {
  for (const formats::Format& element : elements) {
    for (const MxMode mode : mx_modes) {
      const Written written = write(mode, element, 20, 200);
      REQUIRE(is_consistent(written.data(element, 200)));
      const MxOrigin origin = mx_origin(written.data(element, 200), written.source);
      CAPTURE(name_of(element), formats::word_of(mode));
      CHECK(origin.blocks == 140);
      for (const MxMode other : mx_modes)
        CHECK((origin.modes[index_of(other)].count == 0) == (other == mode));
      CHECK(origin.not_nearest_even == 0U);
    }
  }
}

TEST_CASE("MX origin: with the source, ties tell the rounding") {
  Written written;
  written.source = {448, 1.0625F, 1.1875F};  // ties between E4M3's 1 and 1.125, 1.125 and 1.25
  written.scales = {127};
  written.elements = {0x7E, 0x38, 0x3A};
  MxOrigin origin = mx_origin(written.data(formats::e4m3, 3), written.source);
  CHECK(origin.not_nearest_even == 0U);
  CHECK(origin.not_nearest_away == 1U);
  written.elements = {0x7E, 0x39, 0x3A};
  origin = mx_origin(written.data(formats::e4m3, 3), written.source);
  CHECK(origin.not_nearest_even == 1U);
  CHECK(origin.not_nearest_away == 0U);
}

TEST_CASE("MX origin: without the source, no mode contradicts what it wrote itself") {
  for (const formats::Format& element : elements) {
    for (const MxMode mode : mx_modes) {
      const Written written = write(mode, element, 100, 320);
      const MxOrigin origin = mx_origin(written.data(element, 320));
      CAPTURE(name_of(element), formats::word_of(mode));
      CHECK(origin.telling == 1000);
      CHECK(origin.modes[index_of(mode)].count == 0);
      // Floor and even look alike; the others are told apart.
      const auto contradicted = [&](MxMode other) { return origin.modes[index_of(other)].count; };
      switch (mode) {
        case MxMode::floor:
        case MxMode::even:
          CHECK(contradicted(MxMode::ceil) > 0);
          CHECK(origin.chance_of_rceil < 1e-3);
          break;
        case MxMode::ceil:
          CHECK(contradicted(MxMode::floor) > 0);
          CHECK(contradicted(MxMode::rceil) > 0);
          break;
        case MxMode::rceil:
          CHECK(contradicted(MxMode::floor) > 0);
          CHECK(contradicted(MxMode::ceil) > 0);
          CHECK(origin.chance_of_rceil == 1);
          break;
      }
    }
  }
}

TEST_CASE("MX origin: blocks of zeros, NaN and clamped scales say nothing") {
  Written written;
  written.elements = {0, 0x80, 0x7F, 1, 1, 0x7E};
  written.scales = {127, 127, 127, 0, 254, 255};
  const MxOrigin origin = mx_origin(written.data(formats::e4m3, 1));
  CHECK(origin.blocks == 6);
  CHECK(origin.telling == 0);
  CHECK_FALSE(is_consistent(written.data(formats::e4m3, 4)));
  CHECK_FALSE(is_consistent(written.data(formats::e4m3, 0)));
  CHECK(is_consistent(MxData{formats::e4m3, 0, {}, {}}));
}

}  // namespace guardbit::experiments
