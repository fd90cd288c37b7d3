#include "formats/conversion/counted_conversion.hpp"

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "formats/codec.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/conversion/block_judgement.hpp"
#include "formats/conversion/conversion_outcome.hpp"
#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"

/// What kernels and tables count equals what the rule for one element says.
namespace guardbit::formats {

namespace {

constexpr std::array all_roundings = {
    Rounding::nearest_even, Rounding::nearest_away, Rounding::toward_zero, Rounding::upward,
    Rounding::downward,     Rounding::to_odd,       Rounding::stochastic};

std::vector<Overflow> policies() {
  return {overflow_ieee,
          overflow_saturate,
          {.finite = Overflow::Finite::infinity_always, .nan = Overflow::Nan::all_ones_signed},
          {.infinity = Overflow::Infinity::saturate, .no_nan = Overflow::NoNan::minimum},
          {.nan = Overflow::Nan::cut, .negative = Overflow::Negative::magnitude}};
}

std::vector<Format> destinations() {
  std::vector<Format> all = {fp32,
                             tf32,
                             bf16,
                             fp16,
                             e5m2,
                             e4m3,
                             e5m2fnuz,
                             e4m3fnuz,
                             e3m2,
                             e2m3,
                             e2m1,
                             ue4m3,
                             int16,
                             uint8,
                             int4,
                             integer(1, false),
                             e8m0,
                             fp64,
                             int8,
                             uint16,
                             integer(32, true)};
  for (const std::string_view name : {"e5m6", "e4m3:bias=11:specials=fnuz", "e8m7:bias=120",
                                      "e3m0:specials=none", "e9m5", "e6m9:unsigned"})
    all.push_back(*find_format(name));
  return all;
}

/// The ends and middles between codes with their neighbours, few ones in every binade, specials,
/// and what random bits give.
std::vector<std::uint32_t> words_for(const Format& to, int scale_exponent, unsigned seed) {
  std::vector<std::uint32_t> words;
  std::mt19937_64 random(seed);
  const auto add = [&](std::uint32_t word) {
    words.push_back(word);
    words.push_back(word ^ 0x80000000);
  };
  for (std::uint32_t field = 0; field < 256; ++field) {
    for (int bit = 0; bit < 24; bit += 1 + static_cast<int>(random() % 4)) {
      add(field << 23 | ((1U << bit) - 1));
      add(field << 23 | (0x7FFFFF ^ ((1U << bit) - 1)));
    }
  }
  const std::uint64_t most = magnitude_mask(to);
  for (int i = 0; i < 600; ++i) {
    const std::uint64_t code = i < 40   ? most - static_cast<std::uint64_t>(i) % (most + 1)
                               : i < 80 ? static_cast<std::uint64_t>(i - 40) % (most + 1)
                                        : random() % most;
    const Value value = decode(to, code);
    if (value.kind != Kind::finite || value.significand >> 60 != 0) continue;
    for (std::uint64_t quarter = 0; quarter < 4; ++quarter) {
      const Value between = {Kind::finite, false, value.exponent - 2 - scale_exponent,
                             4 * value.significand + quarter};
      const auto word = static_cast<std::uint32_t>(encode(fp32, between, Rounding::toward_zero));
      for (const std::uint32_t near : {word - 1, word, word + 1}) add(near & 0x7FFFFFFF);
    }
  }
  for (int i = 0; i < 3000; ++i) add(static_cast<std::uint32_t>(random()));
  std::shuffle(words.begin(), words.end(), random);
  return words;
}

ConversionSummary by_rule(const Format& from, const Format& to, std::span<const std::byte> input,
                          std::size_t begin, std::size_t end, const ConversionOptions& options) {
  const ElementConversion element(from, to, options);
  Tally tally;
  for (std::size_t i = begin; i < end; ++i) {
    const Value value = decode(from, load_code(input, from, Packing::container, i));
    tally.add(element(value, element.random(i)), 1);
  }
  return tally.summary();
}

/// Every kind of kernel against the rule, in pieces so that no two mistakes cancel.
void check_counts(const Format& from, const Format& to, std::span<const std::byte> input,
                  std::size_t count, const ConversionOptions& options) {
  constexpr std::size_t piece = 1000;
  for (std::size_t begin = 0; begin < count; begin += piece) {
    const std::size_t end = std::min(count, begin + piece);
    const ConversionSummary expected = by_rule(from, to, input, begin, end, options);
    for (const kernels::Kernels* kernels : kernels::available()) {
      const ArrayConversion conversion(from, Packing::container, to, Packing::container, options,
                                       kernels);
      if (!conversion.counts()) continue;
      std::vector<std::byte> output(byte_size(to, Packing::container, end - begin).value());
      Tally tally;
      conversion.convert_and_count(input, begin, end, output.data(), tally);
      INFO(kernels->name << ' ' << name_of(from) << " to " << name_of(to) << " from " << begin);
      CHECK((tally.summary() == expected));
    }
  }
}

Value power(int exponent) { return {Kind::finite, false, exponent, 1}; }

}  // namespace

TEST_CASE("kernels count what the rule says of FP32 words") {
  std::size_t counted = 0;
  for (const Format& to : destinations()) {
    for (const Rounding rounding : all_roundings) {
      for (const Overflow& overflow : policies()) {
        ConversionOptions options;
        options.rounding = rounding;
        options.overflow = overflow;
        options.seed = 5;
        const auto words = words_for(to, 0, static_cast<unsigned>(counted));
        const std::size_t count = std::min<std::size_t>(words.size(), 2999);
        check_counts(fp32, to, std::as_bytes(std::span(words)), count, options);
        const ArrayConversion conversion(fp32, Packing::container, to, Packing::container, options);
        counted += conversion.counts() ? 1U : 0U;
      }
    }
  }
  CHECK(counted > 700);  // all but e8m0, FP64, int32 and e9m5's directed kin have kernels
}

TEST_CASE("kernels count under scales and source formats") {
  for (const Format& to : {e4m3, fp16, bf16, e2m1, int8, ue4m3, e4m3fnuz, fp32}) {
    for (const int exponent : {-140, -20, -1, 3, 30, 130}) {
      for (const Rounding rounding :
           {Rounding::nearest_even, Rounding::upward, Rounding::stochastic}) {
        ConversionOptions options;
        options.rounding = rounding;
        options.scale = power(exponent);
        const auto words = words_for(to, exponent, 3);
        check_counts(fp32, to, std::as_bytes(std::span(words)), 2000, options);
        options.source = fp32;
        options.scale->significand = 3;
        check_counts(fp32, to, std::as_bytes(std::span(words)), 2000, options);
      }
    }
  }
}

TEST_CASE("all codes of 16 bits and less are counted as the rule says") {
  for (const Format& from : {fp16, bf16, integer(16, true), e5m2, e2m1, *find_format("e5m6")}) {
    const std::size_t codes = std::size_t{1} << bits(from);
    const std::size_t count = codes + 77;
    std::vector<std::uint64_t> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = i * 40503 % codes;
    std::vector<std::byte> input(byte_size(from, Packing::container, count).value());
    pack_codes(all, from, Packing::container, input);
    for (const Format& to : {fp32, fp16, e4m3, e2m1, int8, e8m0, fp64}) {
      for (const bool odd_scale : {false, true}) {
        for (const Packing packing : {Packing::container, Packing::dense}) {
          ConversionOptions options;
          options.rounding = Rounding::upward;
          if (odd_scale) options.scale = Value{Kind::finite, false, -3, 11};
          std::vector<std::byte> output(byte_size(to, packing, count).value());
          const ConversionSummary summary =
              convert_codes(from, Packing::container, input, to, packing, output, count, options);
          INFO(name_of(from) << " to " << name_of(to) << " scaled " << odd_scale);
          CHECK((summary == by_rule(from, to, input, 0, count, options)));
          bool same = true;
          for (std::size_t i = 0; i < count; i += 7)
            same = same &&
                   load_code(output, to, packing, i) == convert_code(from, all[i], to, options);
          CHECK(same);
        }
      }
    }
  }
}

TEST_CASE("every kind of kernel judges blocks alike, and as element by element") {
  std::mt19937_64 random(11);
  for (const BlockFormatEntry& entry : block_format_catalogue) {
    for (const Rounding rounding :
         {Rounding::nearest_even, Rounding::downward, Rounding::stochastic}) {
      BlockQuantisationOptions options;
      options.rounding = rounding;
      if (entry.format.tensor_scale) options.tensor_scale = Value{Kind::finite, false, -9, 5};
      const BlockQuantisation quantisation(entry.format, options);
      for (int i = 0; i < 300; ++i) {
        const auto size = static_cast<std::size_t>(entry.format.block_size);
        std::vector<std::uint32_t> words(size);
        const auto around = static_cast<std::uint32_t>(random() % 250);
        for (auto& word : words)
          word =
              static_cast<std::uint32_t>((around + random() % 6) << 23 | (random() & 0x807FFFFF));
        if (i % 10 == 0) words[random() % size] = 0x7F800000;
        if (i % 15 == 0) words[random() % size] = 0xFFC00000;
        const auto bytes = std::as_bytes(std::span(words));
        std::vector<std::byte> codes(size);
        std::byte scale{};
        quantisation.codes(bytes.data(), 64, size, codes.data(), &scale);
        // One element at a time, which takes no sum in another order; the blocks are counted apart.
        BlockSummary expected;
        const BlockJudgement by_one(entry.format, options);
        for (std::size_t k = 0; k < size; ++k)
          by_one.add(bytes.data() + 4 * k, codes.data() + k, 1,
                     std::to_integer<std::uint64_t>(scale), 64 + k, expected);
        expected.blocks = 1;
        for (const kernels::Kernels* kernels : kernels::available()) {
          const BlockJudgement judgement(entry.format, options, kernels);
          BlockSummary summary;
          judgement.add(bytes.data(), codes.data(), size, std::to_integer<std::uint64_t>(scale), 64,
                        summary);
          INFO(kernels->name << ' ' << entry.name << ' ' << i);
          CHECK((summary == expected));
        }
      }
    }
  }
}

}  // namespace guardbit::formats
