#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "formats/codec.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/conversion/converters.hpp"
#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/random.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/words.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/formats/mismatches.hpp"

/// Every FP32 word to one destination on every kind of kernel, all roundings and policies.
namespace guardbit::formats {
namespace {

/// Words that are converted at a time: they and their results stay in the processor's cache.
constexpr std::uint32_t block = 1 << 13;
constexpr std::uint32_t blocks = 1 << 19;
constexpr std::uint32_t infinity = 0x7F800000;

constexpr std::array deterministic = {Rounding::nearest_even, Rounding::nearest_away,
                                      Rounding::toward_zero,  Rounding::upward,
                                      Rounding::downward,     Rounding::to_odd};

/// What the reference makes of the words [first, first + block). Rounding is monotone (sweep_test
/// walks the reference through every word), so equal ends of a run mean an equal run.
/// `Word` is as wide as the format's container.
template <typename Word>
class Expected {
 public:
  Expected(const Format& to, const ConversionOptions& options, std::uint32_t first)
      : to_(to), options_(options), first_(first), codes_(block) {
    if ((first & 0x7FFFFFFF) >= infinity) {
      for (std::uint32_t i = 0; i < block; ++i) codes_[i] = code(i);
    } else {
      codes_.front() = code(0);
      codes_.back() = code(block - 1);
      fill(0, block - 1);
    }
  }

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(codes_)); }

 private:
  Word code(std::uint32_t i) const {
    std::array<std::byte, 8> bytes{};
    store_code(bytes, to_, Packing::container, 0, convert_code(fp32, first_ + i, to_, options_));
    Word word;
    std::memcpy(&word, bytes.data(), sizeof(Word));
    return word;
  }

  void fill(std::uint32_t low, std::uint32_t high) {
    if (codes_[low] == codes_[high]) {
      std::fill(codes_.begin() + low, codes_.begin() + high, codes_[low]);
    } else if (high - low > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      codes_[middle] = code(middle);
      fill(low, middle);
      fill(middle, high);
    }
  }

  const Format& to_;
  const ConversionOptions& options_;
  std::uint32_t first_;
  std::vector<Word> codes_;
};

void fill_words(std::vector<std::uint32_t>& words, std::uint32_t first) {
  words.resize(block);
  std::iota(words.begin(), words.end(), first);
}

/// One destination, rounding and policy, by every kind of kernel.
struct Conversions {
  Conversions(const Format& destination, const ConversionOptions& how)
      : to(destination), options(how) {
    options.threads = 1;
    for (const kernels::Kernels* kernels : kernels::available())
      all.emplace_back(fp32, Packing::container, to, Packing::container, options, kernels);
  }

  /// Converts the words and compares with what is expected of them; `output` is room.
  void compare(std::span<const std::uint32_t> words, std::span<const std::byte> expected,
               std::vector<std::byte>& output, Mismatches& mismatches) const {
    output.resize(expected.size());
    for (const ArrayConversion& conversion : all) {
      conversion(std::as_bytes(words), output, block);
      if (std::memcmp(output.data(), expected.data(), output.size()) == 0) continue;
      for (std::uint32_t i = 0; i < block; ++i) {
        const std::uint64_t made = load_code(output, to, Packing::container, i);
        const std::uint64_t right = load_code(expected, to, Packing::container, i);
        mismatches.compare(made == right, made, right, [&](auto& out) {
          out << "fp32 " << words[i] << " to " << name_of(to) << ", " << word_of(options.rounding);
        });
      }
    }
  }

  Format to;
  ConversionOptions options;
  std::vector<ArrayConversion> all;
};

std::vector<Overflow> policies_of(const Format& to) {
  std::vector<Overflow> policies = {overflow_ieee, overflow_saturate};
  for (const Converter* converter : converters_to(to)) {
    if (std::find(policies.begin(), policies.end(), converter->overflow) == policies.end())
      policies.push_back(converter->overflow);
  }
  return policies;
}

std::vector<Conversions> deterministic_conversions(const Format& to) {
  std::vector<Conversions> all;
  for (const Overflow& overflow : policies_of(to)) {
    for (const Rounding rounding : deterministic) {
      ConversionOptions options;
      options.rounding = rounding;
      options.overflow = overflow;
      all.emplace_back(to, options);
    }
  }
  return all;
}

template <typename Word>
void sweep_words(const Format& to, std::size_t stride) {
  Mismatches mismatches;
  const std::vector<Conversions> conversions = deterministic_conversions(to);
  for (const Conversions& x : conversions) REQUIRE(x.all.front().uses_kernels());
  parallel_for(blocks / stride, 64, 0, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint32_t> words;
    std::vector<std::byte> output;
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t first = static_cast<std::uint32_t>(i * stride) * block;
      fill_words(words, first);
      for (const Conversions& x : conversions)
        x.compare(words, Expected<Word>(x.to, x.options, first).bytes(), output, mismatches);
    }
  });
  CHECK(mismatches.report() == "");
}

/// Every `stride`-th block of the words.
void sweep(const Format& to, std::size_t stride) {
  switch (byte_size(to, Packing::container, 1).value()) {
    case 1: return sweep_words<std::uint8_t>(to, stride);
    case 2: return sweep_words<std::uint16_t>(to, stride);
    case 4: return sweep_words<std::uint32_t>(to, stride);
    default: FAIL("no word is as wide as the container of " << name_of(to));
  }
}

/// Every word, once, with its own random bits.
void sweep_stochastic(const Format& to, std::size_t stride) {
  Mismatches mismatches;
  ConversionOptions options;
  options.rounding = Rounding::stochastic;
  options.overflow = overflow_saturate;
  parallel_for(blocks / stride, 64, 0, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint32_t> words;
    std::vector<std::byte> output, expected(byte_size(to, Packing::container, block).value());
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t first = static_cast<std::uint32_t>(i * stride) * block;
      ConversionOptions seeded = options;
      seeded.seed = first;
      fill_words(words, first);
      for (std::uint32_t k = 0; k < block; ++k) {
        store_code(expected, to, Packing::container, k,
                   convert_code(fp32, first + k, to, seeded, random_bits(first, k)));
      }
      Conversions(to, seeded).compare(words, expected, output, mismatches);
    }
  });
  CHECK(mismatches.report() == "");
}

constexpr std::array destinations = {fp32, tf32, bf16, fp16,  e5m2, e4m3,  e5m2fnuz, e4m3fnuz,
                                     e3m2, e2m3, e2m1, ue4m3, int8, uint8, int4,     int16};

}  // namespace

TEST_CASE("one in 32749 blocks of the fp32 words to every format by every kernel") {
  for (const Format& to : destinations) {
    CAPTURE(name_of(to));
    sweep(to, 32749);
    sweep_stochastic(to, 32749);
  }
}

TEST_CASE("every fp32 word to fp32 by every kernel", "[sweep]") { sweep(fp32, 1); }
TEST_CASE("every fp32 word to tf32 by every kernel", "[sweep]") { sweep(tf32, 1); }
TEST_CASE("every fp32 word to bf16 by every kernel", "[sweep]") { sweep(bf16, 1); }
TEST_CASE("every fp32 word to fp16 by every kernel", "[sweep]") { sweep(fp16, 1); }
TEST_CASE("every fp32 word to e5m2 by every kernel", "[sweep]") { sweep(e5m2, 1); }
TEST_CASE("every fp32 word to e4m3 by every kernel", "[sweep]") { sweep(e4m3, 1); }
TEST_CASE("every fp32 word to e5m2fnuz by every kernel", "[sweep]") { sweep(e5m2fnuz, 1); }
TEST_CASE("every fp32 word to e4m3fnuz by every kernel", "[sweep]") { sweep(e4m3fnuz, 1); }
TEST_CASE("every fp32 word to e3m2 by every kernel", "[sweep]") { sweep(e3m2, 1); }
TEST_CASE("every fp32 word to e2m3 by every kernel", "[sweep]") { sweep(e2m3, 1); }
TEST_CASE("every fp32 word to e2m1 by every kernel", "[sweep]") { sweep(e2m1, 1); }
TEST_CASE("every fp32 word to ue4m3 by every kernel", "[sweep]") { sweep(ue4m3, 1); }
TEST_CASE("every fp32 word to int8 by every kernel", "[sweep]") { sweep(int8, 1); }
TEST_CASE("every fp32 word to uint8 by every kernel", "[sweep]") { sweep(uint8, 1); }
TEST_CASE("every fp32 word to int4 by every kernel", "[sweep]") { sweep(int4, 1); }
TEST_CASE("every fp32 word to int16 by every kernel", "[sweep]") { sweep(int16, 1); }
TEST_CASE("every fp32 word stochastically to e4m3 by every kernel", "[sweep]") {
  sweep_stochastic(e4m3, 1);
}
TEST_CASE("every fp32 word stochastically to fp16 by every kernel", "[sweep]") {
  sweep_stochastic(fp16, 1);
}
TEST_CASE("every fp32 word stochastically to bf16 by every kernel", "[sweep]") {
  sweep_stochastic(bf16, 1);
}

}  // namespace guardbit::formats
