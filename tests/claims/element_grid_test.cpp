#include "experiments/scaling/element_grid.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "formats/codec.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/conversion/conversion.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/first_code.hpp"
#include "formats/support/parallel.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"

namespace guardbit::experiments {
namespace {

constexpr std::array grid_formats = {formats::fp32, formats::fp16, formats::bf16,
                                     formats::tf32, formats::e4m3, formats::e5m2,
                                     formats::e3m2, formats::e2m3, formats::e2m1};

/// Does the grid round this FP32 code as the reference converts it?
bool agrees(const ElementGrid& grid, const formats::Format& to, std::uint32_t code) {
  const formats::Value x = formats::decode(formats::fp32, code);
  if (x.kind == formats::Kind::nan || x.kind == formats::Kind::infinity) return true;
  const std::uint64_t stored =
      convert(formats::fp32, code, to, formats::Rounding::nearest_even, formats::overflow_saturate);
  const double expected = std::bit_cast<double>(convert(to, stored, formats::fp64));
  const auto rounded = grid.nearest(static_cast<double>(std::bit_cast<float>(code)));
  const bool in_range = formats::is_in_range(to, exactly(x), formats::Rounding::nearest_even);
  return rounded.value == expected && rounded.is_past_largest == !in_range;
}

}  // namespace

TEST_CASE("element grid: rounds as the reference does around every midpoint") {
  std::mt19937 random(3);
  for (const formats::Format& to : grid_formats) {
    const ElementGrid grid(to);
    std::size_t differ = 0;
    const auto look_at = [&](std::uint32_t code) { differ += agrees(grid, to, code) ? 0U : 1U; };
    // Every number of the format (up to 16 bits of it), the middle to the next one, their
    // neighbours; with both signs.
    const std::uint64_t step = bits(to) > 16 ? max_finite_code(to) / 40000 : 1;
    for (std::uint64_t code = 0; code <= max_finite_code(to); code += step) {
      const auto low = static_cast<double>(std::bit_cast<double>(convert(to, code, formats::fp64)));
      const double high = std::bit_cast<double>(convert(to, code + 1, formats::fp64));
      for (const double near : {low, (low + high) / 2}) {
        if (!std::isfinite(near)) continue;
        const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(near));
        for (const std::uint32_t neighbour : {bits - 1, bits, bits + 1}) {
          look_at(neighbour & 0x7FFFFFFFU);
          look_at(neighbour | 0x80000000U);
        }
      }
    }
    for (int i = 0; i < 200000; ++i) look_at(static_cast<std::uint32_t>(random()));
    CAPTURE(name_of(to));
    CHECK(differ == 0);
  }
}

// The conversion of arrays is the reference's, every FP32 number of it (tests of array conversion);
// asking the reference itself takes twenty minutes.
TEST_CASE("element grid: rounds every FP32 number as conversion of arrays does", "[sweep]") {
  for (const formats::Format& to : {formats::e4m3, formats::fp16, formats::e2m1}) {
    const ElementGrid grid(to);
    std::vector<double> numbers(std::size_t{1} << bits(to));
    for (std::size_t code = 0; code < numbers.size(); ++code)
      numbers[code] = std::bit_cast<double>(convert(to, code, formats::fp64));
    // Whether a magnitude is in range is a matter of its size: bisection finds the first that is
    // not.
    std::uint32_t in = 0;
    std::uint32_t first_past = formats::fp32_infinity;
    while (first_past - in > 1) {
      const std::uint32_t middle = in + (first_past - in) / 2;
      const formats::Value x = formats::decode(formats::fp32, middle);
      const bool fits = formats::is_in_range(to, exactly(x), formats::Rounding::nearest_even);
      (fits ? in : first_past) = middle;
    }
    formats::ConversionOptions options;
    options.overflow = formats::overflow_saturate;
    const formats::ArrayConversion conversion(formats::fp32, formats::Packing::container, to,
                                              formats::Packing::container, options);
    std::atomic<std::uint64_t> differ = 0;
    constexpr std::size_t grain = std::size_t{1} << 18;
    formats::parallel_for(std::size_t{1} << 32, grain, 0, [&](std::size_t begin, std::size_t end) {
      std::vector<float> values(end - begin);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(begin + i));
      std::vector<std::byte> codes(2 * values.size());
      conversion(std::as_bytes(std::span(values)), codes, values.size());
      std::uint64_t some = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) continue;
        const std::uint64_t code = formats::load_code(codes, to, formats::Packing::container, i);
        const ElementGrid::Rounded rounded = grid.nearest(static_cast<double>(values[i]));
        const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(values[i]) & 0x7FFFFFFFU;
        const bool agree =
            rounded.value == numbers[code] && rounded.is_past_largest == (magnitude >= first_past);
        some += agree ? 0U : 1U;
      }
      differ += some;
    });
    CAPTURE(name_of(to));
    CHECK(differ == 0);
  }
}

}  // namespace guardbit::experiments
