#include "experiments/traces/update_effect.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"

namespace guardbit::experiments {
namespace {

UpdateEffect effect(const std::vector<float>& w, const std::vector<float>& d,
                    const std::vector<formats::Format>& all) {
  return update_effect(std::as_bytes(std::span(w)), std::as_bytes(std::span(d)), all);
}

TEST_CASE("trace: updates that weights in a format do not feel") {
  // 1 moves down by half as little as up: -2^-11 + 1 is a number of FP16.
  const std::vector<formats::Format> half = {formats::fp16};
  CHECK(effect({1.0F}, {0x1p-11F}, half) == UpdateEffect{1, {1}});
  CHECK(effect({1.0F}, {-0x1p-11F}, half) == UpdateEffect{1, {0}});
  CHECK(effect({1.0F}, {std::nextafter(0x1p-11F, 1.0F)}, half) == UpdateEffect{1, {0}});
  // A tie goes to the even neighbour: 1 + 2^-10 moves.
  CHECK(effect({1.0F + 0x1p-10F}, {0x1p-11F}, half) == UpdateEffect{1, {0}});
  // BF16 counts a thousand times 0.001 to nothing.
  CHECK(effect(std::vector<float>(3, 1.0F), std::vector<float>(3, 0.001F), {formats::bf16}) ==
        UpdateEffect{3, {3}});
  const float nan = std::nanf("");
  CHECK(effect({1.0F, nan, 2.0F}, {0.0F, 1.0F, nan}, half) == UpdateEffect{0, {0}});
  CHECK(effect({}, {}, half) == UpdateEffect{0, {0}});
}

TEST_CASE("trace: stale updates are those that the exact sum rounds away") {
  const std::vector<formats::Format> all = {formats::fp32, formats::fp16, formats::bf16,
                                            formats::e4m3, formats::e5m2};
  std::mt19937 random(5);
  std::vector<float> w, d;
  for (int i = 0; i < 40000; ++i) {
    const auto number = [&](int first, int span) {
      const float x = std::ldexp(1.0F + static_cast<float>(random() % 16) / 16,
                                 first + static_cast<int>(random() % static_cast<unsigned>(span)));
      return random() % 2 == 0 ? x : -x;
    };
    w.push_back(number(-4, 6));
    d.push_back(number(-34, 34));
  }
  UpdateEffect expected{w.size(), std::vector<std::uint64_t>(all.size())};
  for (std::size_t i = 0; i < w.size(); ++i) {
    for (std::size_t f = 0; f < all.size(); ++f) {
      const auto value = [](double x) {
        return formats::decode(formats::fp64, std::bit_cast<std::uint64_t>(x));
      };
      const std::uint64_t before = encode(all[f], value(w[i]));
      const double kept =
          std::bit_cast<double>(encode(formats::fp64, formats::decode(all[f], before)));
      // Exponents of at most 40 apart, significands of 24 bits: no rounding but the format's.
      const long double exact = static_cast<long double>(kept) + d[i];
      const double rounded = static_cast<double>(exact);
      REQUIRE(static_cast<long double>(rounded) == exact);
      expected.stale[f] += encode(all[f], value(rounded)) == before ? 1U : 0U;
    }
  }
  CHECK(effect(w, d, all) == expected);
  for (const std::uint64_t n : expected.stale) {
    CHECK(n > 0);
    CHECK(n < w.size());
  }
}

}  // namespace
}  // namespace guardbit::experiments
