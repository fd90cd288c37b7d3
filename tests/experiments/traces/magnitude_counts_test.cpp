#include "experiments/traces/magnitude_counts.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "experiments/traces/trace_statistics.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/number.hpp"

namespace guardbit::experiments {
namespace {

std::vector<Storing> usual() {
  std::vector<Storing> all;
  for (const formats::Format& to : {formats::fp16, formats::bf16, formats::e4m3, formats::e5m2}) {
    for (int scale = 0; scale <= 32; scale += 4) all.push_back({to, scale});
  }
  return all;
}

enum class Mixture { gradients, narrow, subnormals, anything };

std::vector<std::uint64_t> codes_of(const formats::Format& format, std::size_t count,
                                    Mixture mixture) {
  std::mt19937_64 random(count);
  std::vector<std::uint64_t> codes(count);
  for (std::uint64_t& code : codes) {
    code = random() & code_mask(format);
    if (mixture == Mixture::gradients) {
      const std::uint64_t exponent = random() % (std::uint64_t{1} << format.exponent_bits) / 2;
      code &= ~infinity_code(format);
      code |= std::max<std::uint64_t>(exponent, 1) << format.fraction_bits;
      if (random() % 8 == 0) code = 0;
    }
    if (mixture == Mixture::narrow) {
      code &= ~infinity_code(format);
      code |= (random() % 10 + 3) << format.fraction_bits;
      if (random() % 8 == 0) code = 0;
    }
    if (mixture == Mixture::subnormals && random() % 4 == 0) code &= ~infinity_code(format);
  }
  return codes;
}

formats::Tensor tensor_of(const formats::Format& format, const std::vector<std::uint64_t>& codes) {
  return formats::tensor_of_codes("x", format, formats::Packing::container,
                                  {static_cast<std::int64_t>(codes.size())}, codes);
}

}  // namespace

TEST_CASE("trace: the pass by blocks and threads counts what the pass one by one counts") {
  const auto questions = usual();
  for (const formats::Format& format :
       {formats::fp32, formats::fp16, formats::bf16, formats::e4m3, formats::fp64}) {
    const MagnitudeCells cells(format, questions);
    for (const std::size_t count : {0U, 1U, 1023U, 1024U, 5000U, 600001U}) {
      if (count > 10000 && format == formats::fp64) continue;
      for (const Mixture mixture : {Mixture::gradients, Mixture::subnormals, Mixture::anything}) {
        const formats::Tensor tensor = tensor_of(format, codes_of(format, count, mixture));
        const MagnitudeCounts expected = count_magnitudes_one_by_one(cells, tensor);
        CAPTURE(name_of(format), count, static_cast<int>(mixture));
        CHECK(expected.elements == count);
        CHECK(count_magnitudes(cells, tensor, 1) == expected);
        CHECK(count_magnitudes(cells, tensor, 3) == expected);
      }
    }
  }
}

TEST_CASE("trace: without sums the counts are the same, of binades and of other cells") {
  const auto questions = usual();
  for (const auto& some : {std::vector<Storing>(), questions}) {
    const MagnitudeCells cells(formats::fp32, some);
    for (const std::size_t count : {0U, 1000U, 1024U, 300'001U}) {
      for (const Mixture mixture : {Mixture::gradients, Mixture::narrow, Mixture::anything}) {
        const auto tensor = tensor_of(formats::fp32, codes_of(formats::fp32, count, mixture));
        MagnitudeCounts expected = count_magnitudes_one_by_one(cells, tensor);
        std::fill(expected.sum.begin(), expected.sum.end(), Sum192());
        std::fill(expected.squares.begin(), expected.squares.end(), Sum192());
        CAPTURE(some.size(), count, static_cast<int>(mixture));
        CHECK(count_magnitudes(cells, tensor, 1, {}, Sums::none) == expected);
        CHECK(count_magnitudes(cells, tensor, 3, {}, Sums::none) == expected);
      }
    }
  }
  // More exponents than are compared one by one, in blocks without subnormal numbers.
  std::vector<std::uint64_t> codes;
  for (std::uint64_t i = 0; i < 4096; ++i)
    codes.push_back((i * 37 % 255) << 23 | (i % 255 == 0 ? 0 : i));
  for (std::uint64_t& code : codes) code = code < 0x800000 ? 0 : code;
  const MagnitudeCells binades(formats::fp32, {});
  const auto tensor = tensor_of(formats::fp32, codes);
  CHECK(count_magnitudes(binades, tensor, 1, {}, Sums::none).count ==
        count_magnitudes_one_by_one(binades, tensor).count);
}

TEST_CASE("trace: slots are full at the largest significands without spilling") {
  const auto questions = usual();
  const MagnitudeCells cells(formats::fp32, questions);
  const std::vector<std::uint64_t> codes(std::size_t{1} << 19, 0x3F7FFFFF);
  const formats::Tensor tensor = tensor_of(formats::fp32, codes);
  CHECK(count_magnitudes(cells, tensor, 1) == count_magnitudes_one_by_one(cells, tensor));
}

TEST_CASE("trace: more cuts than slots have room for") {
  std::vector<Storing> many;
  for (int fraction = 2; fraction < 14; ++fraction)
    many.push_back({formats::floating(5, fraction), 0});
  const MagnitudeCells cells(formats::fp32, many);
  const formats::Tensor tensor =
      tensor_of(formats::fp32, codes_of(formats::fp32, 5000, Mixture::anything));
  CHECK(count_magnitudes(cells, tensor, 1) == count_magnitudes_one_by_one(cells, tensor));
}

TEST_CASE("trace: parts add up to the whole in any order") {
  const auto questions = usual();
  for (const formats::Format& format : {formats::fp32, formats::fp64, formats::bf16}) {
    const MagnitudeCells cells(format, questions);
    std::vector<std::uint64_t> codes = codes_of(format, 9000, Mixture::anything);
    const auto statistics = [&](std::size_t begin, std::size_t end) {
      const auto at = [&](std::size_t i) { return codes.begin() + static_cast<std::ptrdiff_t>(i); };
      const formats::Tensor tensor = tensor_of(format, {at(begin), at(end)});
      return statistics_of(cells, count_magnitudes(cells, tensor), questions.size());
    };
    const TraceStatistics whole = statistics(0, codes.size());
    TraceStatistics merged = statistics(7000, codes.size());
    merged.add(statistics(0, 1));
    merged.add(statistics(1, 7000));
    CHECK(merged == whole);
    std::shuffle(codes.begin(), codes.end(), std::mt19937(3));
    CHECK(statistics(0, codes.size()) == whole);
  }
}

TEST_CASE("trace: sums are exact") {
  // 2^100 hides everything else from a double's sum; the cells keep it.
  const std::vector<double> values = {0x1p100, 0x1p-1074, -0x1.8p-3, 0x1p-1074, 1.0};
  std::vector<std::uint64_t> codes;
  for (const double value : values) codes.push_back(std::bit_cast<std::uint64_t>(value));
  const MagnitudeCells cells(formats::fp64, {});
  const auto tensor = tensor_of(formats::fp64, codes);
  const TraceStatistics s = statistics_of(cells, count_magnitudes(cells, tensor), 0);
  ExactSum sum(lowest_magnitude);
  sum.add(1, 100);
  sum.add(2, -1074);
  sum.add(3, -4);
  sum.add(1, 0);
  CHECK(s.sum == sum);
  ExactSum squares(lowest_square);
  squares.add(1, 200);
  squares.add(2, -2148);
  squares.add(9, -8);
  squares.add(1, 0);
  CHECK(s.squares == squares);
  CHECK(s.amax == 0x1p100);
  CHECK(s.amin_nonzero == 0x1p-1074);
  CHECK(s.subnormals == 2);
}

TEST_CASE("trace: an exact sum becomes the nearest double") {
  std::mt19937_64 random(11);
  for (int i = 0; i < 2000; ++i) {
    ExactSum sum(lowest_magnitude);
    oracle::Integer exact = 0;
    const int highest = static_cast<int>(random() % 300) - 1074;
    for (int term = 0; term < 3; ++term) {
      const std::uint64_t x = random() >> (random() % 64);
      const int exponent =
          -1074 + static_cast<int>(random() % static_cast<unsigned>(highest + 1075));
      sum.add(x, exponent);
      exact += oracle::Integer(x) << static_cast<unsigned>(exponent + 1074);
    }
    ExactSum read(lowest_magnitude);
    CHECK(read.add_text(sum.text()));
    CHECK(read == sum);
    // A double times a power of two is compared with its neighbours, as integers.
    const double nearest = sum.nearest();
    const auto as_integer = [](double value) {
      int exponent = 0;
      const double fraction = std::frexp(value, &exponent);
      oracle::Integer significand(std::ldexp(fraction, 53));
      const int shift = exponent - 53 + 1074;
      return shift >= 0 ? oracle::Integer(significand << static_cast<unsigned>(shift))
                        : oracle::Integer(significand >> static_cast<unsigned>(-shift));
    };
    const auto distance = [&](double value) {
      return oracle::Integer(abs(as_integer(value) - exact));
    };
    const double above = std::nextafter(nearest, 1e300);
    const double below = std::nextafter(nearest, 0.0);
    const bool even = (std::bit_cast<std::uint64_t>(nearest) & 1U) == 0;
    CHECK((distance(nearest) < distance(above) || (even && distance(nearest) == distance(above))));
    if (nearest > 0)
      CHECK(
          (distance(nearest) < distance(below) || (even && distance(nearest) == distance(below))));
  }
  ExactSum none(lowest_magnitude);
  for (const char* text :
       {"", "p0", "1", "1p", "1p-1075", "gp0", "1p0x", "1p99999999999", "1p9999"})
    CHECK_FALSE(none.add_text(text));
  CHECK(none.is_zero());
  ExactSum tie(lowest_magnitude);
  tie.add((std::uint64_t{1} << 53) + 1, 0);
  CHECK(tie.nearest() == 0x1p53);
  tie.add(1, -1074);
  CHECK(tie.nearest() == 0x1p53 + 2);
  ExactSum least(lowest_square);
  least.add(1, -1075);
  CHECK(least.nearest() == 0);
  least.add(1, -2148);
  CHECK(least.nearest() == 0x1p-1074);
}

TEST_CASE("trace: the first element that is no number, wherever it lies") {
  const auto questions = usual();
  for (const formats::Format& format : {formats::fp32, formats::fp16, formats::fp64}) {
    const MagnitudeCells cells(format, questions);
    for (const std::size_t at : {0U, 1500U, 69999U}) {
      std::vector<std::uint64_t> codes(70000, 0);
      codes[at] = infinity_code(format) | sign_mask(format);
      codes.back() = quiet_nan_code(format);
      CHECK(count_magnitudes(cells, tensor_of(format, codes), 2).first_nonfinite == at);
    }
  }
}

TEST_CASE("trace: percentiles and the window of scales") {
  TraceStatistics s;
  s.binades = {{-30, 1}, {-20, 98}, {-3, 1}};
  s.elements = 150;
  s.zeros = 50;
  CHECK(s.percentile(0.01) == -30);
  CHECK(s.percentile(0.011) == -20);
  CHECK(s.percentile(0.99) == -20);
  CHECK(s.percentile(1) == -3);
  CHECK_FALSE(TraceStatistics{}.percentile(0.5));

  std::vector<StoringOutcome> outcomes(5);
  const std::vector<std::uint64_t> lost = {50, 2, 1, 1, 0};
  std::map<int, const StoringOutcome*> by_scale;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    outcomes[i].underflow = lost[i];
    by_scale[static_cast<int>(4 * i)] = &outcomes[i];
  }
  outcomes[4].overflow = 1;
  const ScaleWindow window = scale_window(by_scale, 100, 0.02);
  CHECK(window.first == 4);
  CHECK(window.last == 12);
  CHECK(window.recommended == 8);
  outcomes[0].overflow = 1;
  CHECK_FALSE(scale_window(by_scale, 100, 1).recommended);
}

}  // namespace guardbit::experiments
