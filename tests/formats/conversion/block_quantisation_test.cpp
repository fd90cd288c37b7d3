#include "formats/conversion/block_quantisation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "formats/codec.hpp"
#include "formats/conversion/converters.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/random.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"
#include "formats/text.hpp"
#include "tests/catch.hpp"

namespace guardbit::formats {
namespace {

/// Rows of FP32 words of many kinds, a kind per 96 elements.
std::vector<std::byte> words_of_all_kinds(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes(count * 4);
  for (std::size_t i = 0; i < count; ++i) {
    const auto any = static_cast<std::uint32_t>(random());
    std::uint32_t word = 0;
    switch (i / 96 % 10) {
      case 0: word = std::bit_cast<std::uint32_t>(normal(random)); break;
      case 1: word = std::bit_cast<std::uint32_t>(std::ldexp(normal(random), 100)); break;
      case 2: word = std::bit_cast<std::uint32_t>(std::ldexp(normal(random), -125)); break;
      case 3: word = any & 0x8000FFFF; break;                 // subnormals
      case 4: word = any & 0x80000000; break;                 // zeros
      case 5: word = any & 0xBFFFFFFF; break;                 // anything up to 2
      case 6: word = any; break;                              // NaNs among them
      case 7: word = (any & 0x80700000) + 0x3F800000; break;  // ties
      case 8: word = i % 7 == 0 ? 0x7F800000 | (any & 0x80000000) : any & 0xFFFF0000; break;
      default: word = (any & 0x83FFFFFF) + 0x3C000000; break;  // a few binades
    }
    store_word(&bytes[4 * i], word);
  }
  return bytes;
}

Value number(std::string_view text) {
  return decode(fp64, encode(fp64, parse_value(text, "test").value));
}

struct Quantised {
  std::vector<std::byte> elements, scales;
};

Quantised by_definition(const BlockFormat& format, const BlockQuantisationOptions& options,
                        const std::vector<std::byte>& words, std::size_t rows, std::size_t length) {
  Quantised result;
  const auto size = static_cast<std::size_t>(format.block_size);
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<std::uint64_t> codes;
    for (std::size_t first = 0; first < length; first += size) {
      std::vector<Value> block;
      Value largest;
      std::uint32_t most = 0;
      for (std::size_t i = first; i < std::min(length, first + size); ++i) {
        const auto word = load_word<std::uint32_t>(&words[4 * (row * length + i)]);
        block.push_back(decode(fp32, word));
        const std::uint32_t magnitude = word & 0x7FFFFFFF;
        if (magnitude < 0x7F800000 && magnitude >= most) most = magnitude;
      }
      largest = decode(fp32, most);
      const std::uint64_t scale = block_scale(format, largest, options);
      result.scales.push_back(static_cast<std::byte>(scale));
      for (const Value& x : block) {
        const std::size_t index = row * length + codes.size();
        const RandomBits random = random_bits(options.seed, index, options.random_bits);
        codes.push_back(block_element(format, x, scale, options, random));
      }
    }
    std::vector<std::byte> packed(
        static_cast<std::size_t>(element_bytes(format, static_cast<std::int64_t>(length))));
    pack_codes(codes, format.element, Packing::dense, packed);
    result.elements.insert(result.elements.end(), packed.begin(), packed.end());
  }
  return result;
}

void check_equal(const BlockFormat& format, const BlockQuantisationOptions& options,
                 const std::vector<std::byte>& words, std::size_t rows, std::size_t length) {
  const Quantised expected = by_definition(format, options, words, rows, length);
  for (const kernels::Kernels* kernels : kernels::available()) {
    const BlockQuantisation quantisation(format, options, kernels);
    Quantised made{std::vector<std::byte>(expected.elements.size()),
                   std::vector<std::byte>(expected.scales.size())};
    quantisation(words, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(length),
                 made.elements, made.scales);
    CAPTURE(kernels->name, rows, length);
    CHECK(made.scales == expected.scales);
    CHECK(made.elements == expected.elements);
  }
}

void check_equal(const BlockFormat& format, const BlockQuantisationOptions& options,
                 std::size_t rows, std::size_t length, unsigned seed) {
  check_equal(format, options, words_of_all_kinds(rows * length, seed), rows, length);
}

constexpr std::array rules = {scale_of_exponents, scale_without_overflow, scale_nearest};

}  // namespace

TEST_CASE("a block's scale is the one its rule names") {
  BlockQuantisationOptions options;
  const auto scale = [&](const BlockFormat& format, std::string_view largest) {
    return block_scale(format, number(largest), options);
  };
  // OCP MX 1.0, 6.3: e4m3's largest exponent is 8, e2m1's 2.
  CHECK(scale(mxfp8_e4m3, "256") == 127);
  CHECK(scale(mxfp8_e4m3, "511") == 127);
  CHECK(scale(mxfp4, "7.99") == 127);
  CHECK(scale(mxfp4, "8") == 128);
  CHECK(scale(mxint8, "1.99") == 127);
  CHECK(scale(mxfp4, "0") == 0);
  options.rule = scale_without_overflow;
  CHECK(scale(mxfp8_e4m3, "448") == 127);
  CHECK(scale(mxfp8_e4m3, "449") == 128);
  CHECK(scale(mxfp4, "6") == 127);
  CHECK(scale(mxfp4, "6.001") == 128);
  options.rule = scale_nearest;
  CHECK(scale(nvfp4, "6") == encode(ue4m3, number("1")));
  CHECK(scale(nvfp4, "1e30") == max_finite_code(ue4m3));
  options.tensor_scale = number("0.5");
  CHECK(scale(nvfp4, "6") == encode(ue4m3, number("2")));
}

TEST_CASE("an element is the quotient by its scales, rounded once") {
  BlockQuantisationOptions options;
  const auto element = [&](const BlockFormat& format, std::string_view x, std::uint64_t scale) {
    return block_element(format, number(x), scale, options);
  };
  CHECK(element(mxfp8_e4m3, "500", 127) == 0x7E);            // saturates
  CHECK(element(mxfp8_e4m3, "-500", 128) == (0x80 | 0x78));  // 250 is nearer to 256 than to 240
  CHECK(element(mxint8, "1", 127) == 64);
  CHECK(element(mxint8, "-1.99", 127) == 0x81);
  CHECK(element(nvfp4, "-3", 0x38) == (8 | 5));
  CHECK(element(nvfp4, "3", 0) == 0);
  CHECK(element(nvfp4, "-3", 0) == 8);
  options.tensor_scale = number("2");
  CHECK(element(nvfp4, "3", 0x38) == 3);
}

TEST_CASE("blocks are quantised as the definition says, whatever the rule and the data") {
  for (const BlockFormatEntry& entry : block_format_catalogue) {
    for (const ScaleRule& rule : rules) {
      for (const Rounding rounding : {Rounding::nearest_even, Rounding::toward_zero,
                                      Rounding::nearest_away, Rounding::upward, Rounding::to_odd}) {
        CAPTURE(entry.name, static_cast<int>(rounding));
        BlockQuantisationOptions options;
        options.rule = rule;
        options.rounding = rounding;
        options.threads = 1;
        check_equal(entry.format, options, 1, 4032, 1);
        if (rounding == Rounding::upward) options.overflow = overflow_ieee;
        check_equal(entry.format, options, 3, 97, 2);
      }
    }
  }
}

TEST_CASE("a tensor scale divides scales and elements") {
  for (const std::string_view scale : {"1", "0.0123", "0x1.fffffep-100", "3e30"}) {
    BlockQuantisationOptions options;
    options.rule = scale_nearest;
    options.tensor_scale = decode(fp32, encode(fp32, parse_value(scale, "test").value));
    check_equal(nvfp4, options, 1, 2000, 3);
    check_equal(mxfp8_e4m3, options, 1, 320, 4);
  }
  BlockQuantisationOptions options;
  options.tensor_scale = zero_value(false);
  CHECK_THROWS_AS(BlockQuantisation(nvfp4, options), Error);
  options.tensor_scale.reset();
  options.rule.rounding = Rounding::stochastic;
  CHECK_THROWS_AS(BlockQuantisation(nvfp4, options), Error);
}

TEST_CASE("stochastic elements take the random bits of their index, whatever rule and data") {
  BlockQuantisationOptions options;
  options.rounding = Rounding::stochastic;
  options.threads = 1;
  for (const BlockFormatEntry& entry : block_format_catalogue) {
    for (std::size_t i = 0; i < rules.size(); ++i) {
      options.rule = rules[i];
      options.random_bits = std::array{32, 1, 8}[i];
      options.overflow = i == 2 ? overflow_ieee : overflow_saturate;
      ++options.seed;
      CAPTURE(entry.name, options.random_bits);
      check_equal(entry.format, options, 1, 1984, 1);
      check_equal(entry.format, options, 3, 97, 2);
    }
  }
}

TEST_CASE("stochastic elements under a tensor scale, and of all threads, chunks and scales") {
  BlockQuantisationOptions options;
  options.rounding = Rounding::stochastic;
  options.rule = scale_nearest;
  options.seed = 5;
  for (const std::string_view scale : {"1", "0.0123", "0x1.fffffep-3", "0x1p-140", "3e30"}) {
    options.tensor_scale = decode(fp32, encode(fp32, parse_value(scale, "test").value));
    CHECK(BlockQuantisation(nvfp4, options).uses_kernels());
    check_equal(nvfp4, options, 1, 2000, 3);
  }
  // One bit more than FP32 has: products of scales and numbers need not fit their words.
  options.tensor_scale = number("0x1.0000001p0");
  CHECK_FALSE(BlockQuantisation(nvfp4, options).uses_kernels());
  check_equal(nvfp4, options, 1, 320, 4);
  options.tensor_scale.reset();
  options.threads = 3;
  for (const unsigned length : {1U, 15U, 33U, 1022U, 1024U, 2049U}) {
    check_equal(nvfp4, options, 5, length, length);
    check_equal(mxfp6_e3m2, options, 5, length, length);
  }
  // Every scale that NVFP4 has, and magnitudes around every number times it.
  options.threads = 1;
  std::mt19937 random(9);
  std::vector<std::byte> words;
  for (std::uint64_t scale = 1; scale <= max_finite_code(ue4m3); ++scale) {
    for (std::uint32_t i = 0; i < 16; ++i) {
      Value x = decode(ue4m3, scale);
      x.significand *= i == 0 ? 24 : random() % 25;  // quarters: neighbours and between them
      x.exponent -= 2;
      std::uint32_t word =
          static_cast<std::uint32_t>(encode(fp32, x.significand == 0 ? zero_value(false) : x));
      if (word > 8 && i != 0) word += static_cast<std::uint32_t>(random() % 3) - 1;
      words.resize(words.size() + 4);
      store_word(&words[words.size() - 4], word | (i % 2 << 31));
    }
  }
  check_equal(nvfp4, options, words, 1, words.size() / 4);
}

TEST_CASE("a million stochastic elements of every block format and many tensor scales", "[sweep]") {
  std::mt19937_64 random(11);
  for (const BlockFormatEntry& entry : block_format_catalogue) {
    for (unsigned seed = 0; seed < 64; ++seed) {
      BlockQuantisationOptions options;
      options.rounding = Rounding::stochastic;
      options.rule = rules[seed % 3];
      options.seed = random();
      options.random_bits = 1 + static_cast<int>(random() % 32);
      if (entry.format.tensor_scale) {
        const std::uint64_t word = 1 + random() % 0x7F7FFFFF;
        options.tensor_scale = decode(fp32, word);
      }
      CAPTURE(entry.name, options.seed, options.random_bits);
      check_equal(entry.format, options, 8, 2048 + seed, seed);
    }
  }
}

TEST_CASE("stochastic elements are right on average") {
  // 1/4, 1/2 and 7/8 of the way between numbers of a block whose largest says that its scale is 1.
  constexpr std::size_t count = 16384;
  constexpr std::array<float, 4> row = {6.0F, 0.125F, -2.5F, 5.75F};
  constexpr std::array<double, 4> expected = {6, 0.125, -2.5, 5.75};
  std::vector<std::byte> words(count * 4), elements(count / 2), scales(count / 16);
  for (std::size_t i = 0; i < count; ++i)
    store_word(&words[4 * i], std::bit_cast<std::uint32_t>(row[i % 4]));
  BlockQuantisationOptions options;
  options.rounding = Rounding::stochastic;
  options.rule = scale_nearest;
  BlockQuantisation(nvfp4, options)(words, 1, count, elements, scales);
  std::array<double, 4> sums{};
  for (std::size_t i = 0; i < count; ++i) {
    const Value x = decode(e2m1, load_code(elements, e2m1, Packing::dense, i));
    const double magnitude = std::ldexp(static_cast<double>(x.significand), x.exponent);
    sums[i % 4] += x.negative ? -magnitude : magnitude;
  }
  for (std::size_t k = 0; k < 4; ++k) {
    const double mean = sums[k] / (count / 4.0);
    const double deviation = 2 / std::sqrt(count / 4.0);  // of steps of at most 2: far above it
    CHECK(std::abs(mean - expected[k]) < (k == 0 ? 1e-12 : 3 * deviation));
  }
}

TEST_CASE("rows of any length are quantised by any number of threads") {
  for (const BlockFormat& format : {mxfp8_e5m2, mxfp6_e2m3, mxfp4, nvfp4}) {
    for (const unsigned length : {1U, 15U, 16U, 33U, 1023U, 1024U, 1025U, 3072U}) {
      BlockQuantisationOptions options;
      options.threads = 3;
      check_equal(format, options, 5, length, length);
    }
  }
}

TEST_CASE("the kernels quantise every block format") {
  BlockQuantisationOptions stochastic;
  stochastic.rounding = Rounding::stochastic;
  for (const BlockFormatEntry& entry : block_format_catalogue) {
    CAPTURE(entry.name);
    CHECK(BlockQuantisation(entry.format).uses_kernels());
    CHECK(BlockQuantisation(entry.format, stochastic).uses_kernels());
  }
}

}  // namespace guardbit::formats
