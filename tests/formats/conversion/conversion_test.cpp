#include "formats/conversion/conversion.hpp"

#include <atomic>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

#include "formats/codec.hpp"
#include "formats/conversion/counted_conversion.hpp"
#include "formats/random.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/tensors/storage.hpp"
#include "formats/text.hpp"
#include "tests/catch.hpp"

namespace guardbit::formats {

namespace {

Tensor tensor_of(const Format& f, const std::vector<std::uint64_t>& codes,
                 Packing packing = Packing::container) {
  return tensor_of_codes("x", f, packing, {static_cast<std::int64_t>(codes.size())},
                         std::span(codes));
}

std::vector<std::uint64_t> random_codes(const Format& f, std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> codes(count);
  for (auto& code : codes) code = random() & code_mask(f);
  return codes;
}

using Rational = boost::multiprecision::cpp_rational;

Rational power_of_two(int exponent) {
  const boost::multiprecision::cpp_int power = boost::multiprecision::cpp_int(1)
                                               << std::abs(exponent);
  return exponent >= 0 ? Rational(power) : Rational(1, power);
}

Rational magnitude(const Value& v) {
  return v.kind == Kind::finite ? Rational(v.significand) * power_of_two(v.exponent) : Rational(0);
}

}  // namespace

TEST_CASE("an array converts as its elements do, whatever the threads and the packing") {
  const Format from_formats[] = {fp64, fp32, tf32, fp16, e5m2, e2m1, int8, *find_format("e5m6")};
  const Format to_formats[] = {fp64, fp32, tf32, bf16, e4m3, e3m2, e2m1, e8m0, int4, uint64};
  for (const Format& from : from_formats) {
    const auto codes = random_codes(from, 70001, 1);
    for (const Format& to : to_formats) {
      INFO(name_of(from) << " to " << name_of(to));
      ConversionOptions options;
      options.threads = 1;
      ConversionSummary one;
      const Tensor result =
          convert_tensor(tensor_of(from, codes), to, Packing::container, options, one);
      CHECK(one.elements == codes.size());
      const auto converted = codes_of(result);
      bool same = true;
      for (std::size_t i = 0; i < codes.size(); ++i)
        same = same && converted[i] == convert(from, codes[i], to);
      CHECK(same);
      options.threads = 5;
      ConversionSummary many;
      const Tensor dense =
          convert_tensor(tensor_of(from, codes, Packing::dense), to, Packing::dense, options, many);
      CHECK(codes_of(dense) == converted);
      CHECK(many == one);
    }
  }
}

TEST_CASE("stochastic rounding depends on the seed and the element alone") {
  const auto codes = random_codes(fp32, 150000, 2);
  ConversionOptions options;
  options.rounding = Rounding::stochastic;
  options.seed = 42;
  options.threads = 1;
  ConversionSummary one;
  ConversionSummary many;
  const auto first =
      codes_of(convert_tensor(tensor_of(fp32, codes), bf16, Packing::container, options, one));
  options.threads = 7;
  CHECK(codes_of(convert_tensor(tensor_of(fp32, codes), bf16, Packing::container, options, many)) ==
        first);
  CHECK(one == many);
  for (const std::size_t i :
       {std::size_t{0}, std::size_t{1}, std::size_t{70001}, std::size_t{149999}}) {
    CHECK(first[i] ==
          convert(fp32, codes[i], bf16, Rounding::stochastic, overflow_ieee, random_bits(42, i)));
  }
  options.seed = 43;
  CHECK(codes_of(convert_tensor(tensor_of(fp32, codes), bf16, Packing::container, options, many)) !=
        first);
}

TEST_CASE("stochastic rounding is unbiased") {
  // 0.3 of the way from 1 to the next e4m3 number: three tenths of 10^5 elements go up, give or
  // take five deviations.
  const std::vector<std::uint64_t> codes(100000, encode(fp32, parse_value("1.0375", "test").value));
  ConversionOptions options;
  options.rounding = Rounding::stochastic;
  ConversionSummary summary;
  const auto result =
      codes_of(convert_tensor(tensor_of(fp32, codes), e4m3, Packing::container, options, summary));
  const auto up = static_cast<double>(std::count(result.begin(), result.end(), 0x39U));
  CHECK(std::abs(up - 30000) < 5 * std::sqrt(100000 * 0.3 * 0.7));
}

TEST_CASE("a scale multiplies exactly, with one rounding") {
  const auto codes = random_codes(fp32, 70000, 3);
  ConversionOptions options;
  options.scale = decode(fp64, encode(fp64, parse_value("0.1", "test").value));
  ConversionSummary summary;
  const auto result =
      codes_of(convert_tensor(tensor_of(fp32, codes), fp16, Packing::container, options, summary));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const Value value = decode(fp32, codes[i]);
    if (value.kind != Kind::finite) continue;
    // The exact product as a decimal, read back by the text reader: another path to the one
    // rounding.
    const Value whole = {Kind::finite, value.negative, value.exponent + options.scale->exponent,
                         value.significand};
    Decimal product = exact_decimal(whole);
    boost::multiprecision::cpp_int digits(product.digits);
    product.digits = boost::multiprecision::cpp_int(digits * options.scale->significand).str();
    if (i % 50 == 0) CHECK(result[i] == encode(fp16, unrounded(product)));
  }
  for (const char* bad : {"0", "inf", "nan", "-0"}) {
    options.scale = decode(fp64, encode(fp64, parse_value(bad, "test").value));
    CHECK_THROWS_AS(
        convert_tensor(tensor_of(fp32, {1}), fp16, Packing::container, options, summary), Error);
  }
}

TEST_CASE("the summary counts what happened") {
  std::vector<std::uint64_t> codes;
  for (const char* text : {"0", "-0", "1", "1.0625", "464", "464.001", "-1e9", "inf", "-inf", "nan",
                           "0x1p-10", "0x1.8p-10", "0x1p-9"}) {
    codes.push_back(encode(fp64, parse_value(text, "test").value));
  }
  ConversionSummary s;
  convert_tensor(tensor_of(fp64, codes), e4m3, Packing::container, {}, s);
  CHECK(s.elements == 13);
  CHECK(s.nans_in == 1);
  CHECK(s.nans_made == 4);  // 464.001, -1e9 and both infinities
  CHECK(s.infinities_made == 0);
  CHECK(s.saturated == 0);
  CHECK(s.zeros_made == 1);
  CHECK(s.subnormals_made == 2);
  CHECK(s.inexact == 8);  // 1.0625, 464, 2^-10, 1.5 * 2^-10 and the four NaNs
  CHECK(s.compared == 8);
  CHECK(s.max_ulp_error == 0.5);
  CHECK(s.mean_ulp_error == (0.5 + 0.5 + 0.5 + 0.25) / 8);

  ConversionOptions saturate;
  saturate.overflow = overflow_saturate;
  convert_tensor(tensor_of(fp64, codes), e4m3, Packing::container, saturate, s);
  CHECK(s.saturated == 4);
  CHECK(s.nans_made == 0);
  convert_tensor(tensor_of(fp64, codes), e5m2, Packing::container, {}, s);
  CHECK(s.infinities_made == 1);
  CHECK(s.saturated == 0);
  convert_tensor(tensor_of(fp64, codes), e2m1, Packing::container, {}, s);
  CHECK(s.saturated == 5);  // a format without infinity and NaN keeps all of them
}

TEST_CASE("errors in ulp agree with rational arithmetic") {
  const std::pair<Format, Format> pairs[] = {{fp32, e4m3}, {fp32, fp16}, {fp64, fp32},
                                             {fp32, e8m0}, {fp64, int8}, {fp64, e2m1}};
  for (const auto& [from, to] : pairs) {
    for (const Rounding rounding :
         {Rounding::nearest_even, Rounding::toward_zero, Rounding::upward, Rounding::to_odd}) {
      INFO(name_of(from) << " to " << name_of(to));
      ConversionOptions options;
      options.rounding = rounding;
      // Exponents around the destination's, so that most are in range.
      std::mt19937_64 random(4);
      std::vector<std::uint64_t> codes;
      for (int i = 0; i < 3000; ++i) {
        const std::uint64_t exponent = static_cast<std::uint64_t>(from.bias - 20) + random() % 36;
        codes.push_back(exponent << from.fraction_bits | (random() & fraction_mask(from)) |
                        (random() & sign_mask(from)));
      }
      ConversionSummary summary;
      const auto result = codes_of(
          convert_tensor(tensor_of(from, codes), to, Packing::container, options, summary));
      Rational largest = 0;
      Rational sum = 0;
      std::uint64_t compared = 0;
      const Rational beyond = magnitude(decode(to, max_finite_code(to)));
      for (std::size_t i = 0; i < codes.size(); ++i) {
        const Value x = decode(from, codes[i]);
        const Value y = decode(to, result[i]);
        if (y.kind == Kind::infinity || y.kind == Kind::nan) continue;
        // Past the largest number: left out unless rounding to nearest would come back to it.
        int top = x.exponent + leading_bit(x.significand);
        if (!is_integer(to)) top = std::max(top, min_exponent(to));
        const Rational ulp = power_of_two(is_integer(to) ? 0 : top - to.fraction_bits);
        const Rational error = abs(magnitude(x) - magnitude(y));
        if (magnitude(x) > beyond && !is_in_range(to, exactly(x), rounding)) continue;
        ++compared;
        sum += error / ulp;
        if (error / ulp > largest) largest = error / ulp;
      }
      CHECK(summary.compared == compared);
      CHECK(std::abs(summary.max_ulp_error - static_cast<double>(largest)) < 1e-15);
      if (compared != 0)
        CHECK(std::abs(summary.mean_ulp_error - static_cast<double>(sum / compared)) < 1e-12);
    }
  }
}

TEST_CASE("in range means that the unlimited exponent stays in the format") {
  // Against the same format with one more exponent bit, which holds whatever the limited one
  // cannot.
  for (const Format& f : {fp16, e5m2, floating(4, 3), floating(3, 1)}) {
    Format wider = floating(f.exponent_bits + 1, f.fraction_bits);
    wider.bias = f.bias;
    std::mt19937_64 random(5);
    for (const Rounding rounding :
         {Rounding::nearest_even, Rounding::nearest_away, Rounding::toward_zero, Rounding::upward,
          Rounding::downward, Rounding::to_odd}) {
      for (int i = 0; i < 2000; ++i) {
        const Value x = {Kind::finite, (random() & 1) != 0, max_exponent(f) - 20,
                         (random() >> 42) | 1};
        const Value rounded = decode(wider, encode(wider, x, rounding));
        const bool fits = magnitude(rounded) <= magnitude(decode(f, max_finite_code(f)));
        CHECK(is_in_range(f, exactly(x), rounding) == fits);
      }
    }
  }
}

TEST_CASE("a converter reads its own source format first") {
  const std::vector<std::uint64_t> codes = {
      encode(fp64, parse_value("0x1.1000000000001p0", "test").value)};
  ConversionSummary summary;
  const auto through = [&](std::string_view name) {
    return codes_of(convert_tensor(tensor_of(fp64, codes), e4m3, Packing::container,
                                   options_of(*find_converter(name, e4m3)), summary))[0];
  };
  CHECK(through("ml_dtypes") == 0x38);
  CHECK(through("cuda_fp8.nosat.f64") == 0x39);
}

TEST_CASE("parallel_for covers every index once and passes on the first exception") {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{1001}}) {
    for (const int threads : {0, 1, 3, 16}) {
      std::vector<std::atomic<int>> seen(count);
      parallel_for(count, 7, threads, [&](std::size_t begin, std::size_t end) {
        if (begin % 7 != 0 || (end % 7 != 0 && end != count))
          return;  // a wrong range leaves its elements unseen
        for (std::size_t i = begin; i < end; ++i) ++seen[i];
      });
      CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& n) { return n == 1; }));
    }
  }
  for (int attempt = 0; attempt < 20; ++attempt) {
    try {
      parallel_for(1000, 10, 4, [](std::size_t begin, std::size_t) {
        if (begin >= 300) throw std::runtime_error(std::to_string(begin));
      });
      FAIL("nothing thrown");
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()) == "300");
    }
  }
}

}  // namespace guardbit::formats
