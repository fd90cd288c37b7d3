#include "experiments/element_grid.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "formats/catalogue.hpp"
#include "formats/codec.hpp"
#include "formats/conversion.hpp"
#include "formats/parallel.hpp"
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

TEST_CASE("element grid: rounds every FP32 number as the reference does", "[sweep]") {
  for (const formats::Format& to : {formats::e4m3, formats::fp16, formats::e2m1}) {
    const ElementGrid grid(to);
    std::atomic<std::uint64_t> differ = 0;
    formats::parallel_for(std::size_t{1} << 32, std::size_t{1} << 20, 0,
                          [&](std::size_t begin, std::size_t end) {
                            std::uint64_t some = 0;
                            for (std::size_t code = begin; code < end; ++code)
                              some += agrees(grid, to, static_cast<std::uint32_t>(code)) ? 0U : 1U;
                            differ += some;
                          });
    CAPTURE(name_of(to));
    CHECK(differ == 0);
  }
}

}  // namespace guardbit::experiments
