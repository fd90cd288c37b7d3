#include "formats/conversion/array_conversion.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "formats/codec.hpp"
#include "formats/conversion/converters.hpp"
#include "formats/conversion/counted_conversion.hpp"
#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/random.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/words.hpp"
#include "formats/tensors/storage.hpp"
#include "formats/text.hpp"
#include "tests/catch.hpp"
#include "tests/formats/mismatches.hpp"
#include "tests/instruction_sets_here.hpp"

/// Array conversions equal convert_code, element by element, on every kind of kernel this CPU
/// runs.
namespace guardbit::formats {
namespace {

using tests::Avx2;
using tests::Avx512;
using tests::Neon;
using tests::Portable;

constexpr std::array all_roundings = {
    Rounding::nearest_even, Rounding::nearest_away, Rounding::toward_zero, Rounding::upward,
    Rounding::downward,     Rounding::to_odd,       Rounding::stochastic};

constexpr std::array sources = {fp32, tf32, bf16, fp16, e5m2,  e4m3,  e5m2fnuz, e4m3fnuz, e3m2,
                                e2m3, e2m1, int8, int4, uint8, uint4, ue4m3,    int16};

/// Every destination with a narrowing, and one without.
std::vector<Format> destinations() {
  std::vector<Format> all(sources.begin(), sources.end());
  for (const Format& f : {uint16, b1, e8m0}) all.push_back(f);
  for (const std::string_view name : {"e5m6", "e4m3:bias=11:specials=fnuz", "e8m7:bias=120",
                                      "e3m0:specials=none", "e9m5", "e6m9:unsigned"})
    all.push_back(*find_format(name));
  return all;
}

/// Every policy of the converters, and some that no converter has.
std::vector<Overflow> policies() {
  std::vector<Overflow> all = {overflow_ieee, overflow_saturate};
  for (const Converter& converter : converters) all.push_back(converter.overflow);
  all.push_back(
      {.finite = Overflow::Finite::infinity_always, .nan = Overflow::Nan::all_ones_signed});
  all.push_back({.finite = Overflow::Finite::saturate, .nan = Overflow::Nan::quiet});
  all.push_back({.infinity = Overflow::Infinity::saturate, .no_nan = Overflow::NoNan::minimum});
  all.push_back({.no_nan = Overflow::NoNan::zero, .negative = Overflow::Negative::magnitude});
  all.push_back({.no_nan = Overflow::NoNan::negative_zero});
  std::vector<Overflow> distinct;
  for (const Overflow& policy : all) {
    if (std::find(distinct.begin(), distinct.end(), policy) == distinct.end())
      distinct.push_back(policy);
  }
  return distinct;
}

std::vector<std::byte> packed(const Format& f, const std::vector<std::uint64_t>& codes,
                              Packing packing = Packing::container) {
  std::vector<std::byte> bytes(byte_size(f, packing, codes.size()).value());
  pack_codes(codes, f, packing, bytes);
  return bytes;
}

std::vector<std::uint64_t> all_codes(const Format& f) {
  std::vector<std::uint64_t> codes(std::size_t{1} << bits(f));
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = i;
  return codes;
}

/// FP32 codes where a conversion may go wrong: every exponent with fractions of few or many ones,
/// and the middles and ends between the codes of the format, with their neighbours.
std::vector<std::uint64_t> adversarial_words(const Format& to, std::size_t random_count) {
  std::vector<std::uint64_t> words;
  for (std::uint64_t field = 0; field < 256; ++field) {
    for (int bit = 0; bit <= 23; ++bit) {
      for (const std::uint64_t fraction : {std::uint64_t{1} << bit, (std::uint64_t{1} << bit) - 1,
                                           0x7FFFFF ^ ((std::uint64_t{1} << bit) - 1)})
        words.push_back(field << 23 | (fraction & 0x7FFFFF));
    }
  }
  const std::uint64_t stride = magnitude_mask(to) / 300 + 1;
  for (std::uint64_t code = 0; code <= magnitude_mask(to); code += stride) {
    const Value value = decode(to, code);
    if (value.kind != Kind::finite) continue;
    for (const int quarter : {0, 1, 2, 3}) {
      const Value between = {Kind::finite, false, value.exponent - 2,
                             4 * value.significand + static_cast<std::uint64_t>(quarter)};
      const std::uint64_t word = encode(fp32, between, Rounding::toward_zero);
      for (const std::uint64_t near : {word - 1, word, word + 1})
        words.push_back(near & 0x7FFFFFFF);
    }
  }
  const std::size_t positive = words.size();
  for (std::size_t i = 0; i < positive; ++i) words.push_back(words[i] | 0x80000000);
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i < random_count; ++i) words.push_back(random() & 0xFFFFFFFF);
  return words;
}

/// The conversion on every kind of kernel against the reference.
void check_equal(const Format& from, const Format& to, const std::vector<std::uint64_t>& codes,
                 const ConversionOptions& options, Mismatches& mismatches) {
  const std::vector<std::byte> input = packed(from, codes);
  std::vector<std::byte> expected(byte_size(to, Packing::container, codes.size()).value());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const RandomBits random = options.rounding == Rounding::stochastic
                                  ? random_bits(options.seed, i, options.random_bits)
                                  : RandomBits{};
    store_code(expected, to, Packing::container, i,
               convert_code(from, codes[i], to, options, random));
  }
  std::vector<std::byte> output(expected.size());
  for (const kernels::Kernels* kernels : kernels::available()) {
    std::fill(output.begin(), output.end(), std::byte{0xA5});
    ArrayConversion(from, Packing::container, to, Packing::container, options, kernels)(
        input, output, codes.size());
    if (output == expected) continue;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const std::uint64_t made = load_code(output, to, Packing::container, i);
      const std::uint64_t right = load_code(expected, to, Packing::container, i);
      mismatches.compare(made == right, made, right, [&](auto& out) {
        out << kernels->name << ", " << name_of(from) << ' ' << hex_text(from, codes[i]) << " to "
            << name_of(to) << ", rounding " << word_of(options.rounding);
      });
    }
  }
}

/// Every rounding and policy for one pair.
void check_pair(const Format& from, const Format& to, const std::vector<std::uint64_t>& codes,
                std::span<const Overflow> overflows, Mismatches& mismatches) {
  for (const Rounding rounding : all_roundings) {
    for (const Overflow& overflow : overflows) {
      ConversionOptions options;
      options.rounding = rounding;
      options.overflow = overflow;
      options.threads = 1;
      options.seed = 11;
      options.random_bits = overflow == overflow_saturate ? 32 : 13;
      check_equal(from, to, codes, options, mismatches);
    }
  }
}

void check_pairs(const Format& from, std::span<const Overflow> overflows) {
  const std::vector<Format> all = destinations();
  Mismatches mismatches;
  parallel_for(all.size(), 1, 0, [&](std::size_t index, std::size_t) {
    const Format& to = all[index];
    const auto codes = bits(from) <= 16 ? all_codes(from) : adversarial_words(to, 2000);
    check_pair(from, to, codes, overflows, mismatches);
  });
  CHECK(mismatches.report() == "");
}

const std::array few_policies = {overflow_ieee, overflow_saturate};

}  // namespace

// Every other case takes the kernels that are here, so this one says which are not.
TEMPLATE_TEST_CASE("the kernels have every pair of narrow formats", "[cpu]", Avx512, Avx2, Neon,
                   Portable) {
  if (!tests::can_test(TestType::sets)) return;
  const auto all = kernels::available();
  const auto found = std::find_if(all.begin(), all.end(), [](const kernels::Kernels* kernels) {
    return kernels->name == TestType::name;
  });
  REQUIRE(found != all.end());
  for (const Format& from : sources) {
    for (const Format& to : sources) {
      for (const Rounding rounding : all_roundings) {
        ConversionOptions options;
        options.rounding = rounding;
        CAPTURE(name_of(from), name_of(to));
        CHECK(ArrayConversion(from, Packing::container, to, Packing::container, options, *found)
                  .uses_kernels());
      }
    }
  }
}

TEST_CASE("every code of at most 8 bits converts as the reference says, all policies", "[long]") {
  const std::vector<Overflow> all = policies();
  for (const Format& from : sources) {
    if (bits(from) <= 8) check_pairs(from, all);
  }
}

TEST_CASE("every fp16 and bf16 code converts as the reference says", "[long]") {
  check_pairs(fp16, std::span(few_policies).first(1));
  check_pairs(bf16, std::span(few_policies).last(1));
}

TEST_CASE("fp32 and tf32 numbers at their hardest convert as the reference says, all policies",
          "[long]") {
  const std::vector<Overflow> all = policies();
  Mismatches mismatches;
  const std::vector<Format> to = destinations();
  parallel_for(to.size(), 1, 0, [&](std::size_t index, std::size_t) {
    std::vector<std::uint64_t> words = adversarial_words(to[index], 50);
    check_pair(fp32, to[index], words, few_policies, mismatches);
    // Policies differ where a code is special: the last binade, infinities, NaNs and some others
    // suffice.
    std::vector<std::uint64_t> specials;
    for (const std::uint64_t word : words) {
      if ((word & 0x7FFFFFFF) >= 0x7F000000 || word % 37 == 0) specials.push_back(word);
    }
    check_pair(fp32, to[index], specials, all, mismatches);
    for (std::uint64_t& word : words) word >>= 13;
    check_pair(tf32, to[index], words, few_policies, mismatches);
  });
  CHECK(mismatches.report() == "");
}

TEST_CASE("int16 codes convert as the reference says", "[long]") {
  check_pairs(int16, std::span(few_policies).first(1));
}

TEST_CASE("arrays are scaled exactly, whatever the scale and the source it is read through",
          "[long]") {
  const std::vector<Format> to = destinations();
  std::vector<ConversionOptions> cases;
  for (const std::string_view scale :
       {"2", "0x1p-3", "-4", "0x1p20", "0x1p-30", "0x1p30", "0x1p-120", "0x1p127", "0x1p-140",
        "0x1p900", "3", "0.1", "-0x1.fffffffffffffp9", "0x1.8p-130", "448", "1e300", "0x1p-1074"}) {
    for (const Rounding rounding : all_roundings) {
      ConversionOptions options;
      options.rounding = rounding;
      options.scale = decode(fp64, encode(fp64, parse_value(scale, "test").value));
      options.threads = 1;
      cases.push_back(options);
      options.overflow = overflow_saturate;
      options.source = rounding == Rounding::to_odd ? fp64 : fp32;
      cases.push_back(options);
    }
  }
  Mismatches mismatches;
  parallel_for(to.size(), 1, 0, [&](std::size_t index, std::size_t) {
    std::vector<std::uint64_t> words = adversarial_words(to[index], 200);
    for (std::size_t i = 0; i < words.size(); i += 29) words[i / 29] = words[i];
    words.resize(words.size() / 29);
    std::vector<std::uint64_t> halves(400);
    for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = i * 16411 & 0xFFFF;
    for (const ConversionOptions& options : cases) {
      check_equal(fp32, to[index], words, options, mismatches);
      check_equal(fp16, to[index], halves, options, mismatches);
      check_equal(e5m2, to[index], all_codes(e5m2), options, mismatches);
    }
  });
  CHECK(mismatches.report() == "");
  ConversionOptions zero;
  zero.scale = zero_value(false);
  CHECK_THROWS_AS(ArrayConversion(fp32, Packing::container, e4m3, Packing::container, zero), Error);
}

TEST_CASE("any count at any address in any packing, by any number of threads") {
  std::mt19937_64 random(3);
  struct Pair {
    Format from, to;
  };
  for (const Pair& pair :
       {Pair{fp32, e4m3}, Pair{fp32, fp16}, Pair{fp32, tf32}, Pair{fp16, fp32}, Pair{fp32, e2m1},
        Pair{e2m1, fp32}, Pair{e3m2, bf16}, Pair{bf16, e2m3}, Pair{e2m1, int4}, Pair{int4, e2m3},
        Pair{fp64, e2m1}, Pair{fp32, b1}, Pair{b1, fp16}, Pair{fp16, fp64}}) {
    for (const unsigned count : {0U, 1U, 3U, 17U, 63U, 64U, 65U, 257U, 1023U, 1025U, 70003U}) {
      for (const Packing from_packing : {Packing::container, Packing::dense}) {
        for (const Packing to_packing : {Packing::container, Packing::dense}) {
          for (const Rounding rounding : {Rounding::nearest_even, Rounding::stochastic}) {
            if (count > 70000 && rounding == Rounding::nearest_even) continue;
            CAPTURE(name_of(pair.from), name_of(pair.to), count);
            ConversionOptions options;
            options.rounding = rounding;
            std::vector<std::uint64_t> codes(count);
            for (auto& code : codes) code = random() & code_mask(pair.from);
            const std::vector<std::byte> bytes = packed(pair.from, codes, from_packing);
            const std::size_t size = byte_size(pair.to, to_packing, count).value();
            std::vector<std::byte> expected(size);
            convert_codes(pair.from, from_packing, bytes, pair.to, to_packing, expected, count,
                          options);
            for (const kernels::Kernels* kernels : kernels::available()) {
              for (const int threads : {1, 3}) {
                const std::size_t shift = random() % 9;
                std::vector<std::byte> input(bytes.size() + shift);
                std::copy(bytes.begin(), bytes.end(), input.begin() + static_cast<long>(shift));
                std::vector<std::byte> output(size + shift + 1, std::byte{0x5A});
                options.threads = threads;
                ArrayConversion(pair.from, from_packing, pair.to, to_packing, options, kernels)(
                    std::span(input).subspan(shift), std::span(output).subspan(shift, size), count);
                CHECK(std::equal(expected.begin(), expected.end(),
                                 output.begin() + static_cast<long>(shift)));
                CHECK(output.back() == std::byte{0x5A});
                CHECK((shift == 0 || output[shift - 1] == std::byte{0x5A}));
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("an array past the caches is streamed to any address") {
  constexpr std::size_t count = 9'000'001;
  std::vector<std::byte> input(count * 4);
  for (std::size_t i = 0; i < count; ++i)
    store_word(&input[4 * i], static_cast<std::uint32_t>(i * 2654435761U));
  for (const Format& to : {e4m3, fp16}) {
    const auto width = static_cast<std::size_t>(bits(to) / 8);
    std::vector<std::byte> expected(count * width);
    const ArrayConversion plain(fp32, Packing::container, to, Packing::container, {},
                                kernels::available().back());
    for (std::size_t i = 0; i < count; i += 1000) {  // short arrays are not streamed
      const std::size_t n = std::min<std::size_t>(1000, count - i);
      plain(std::span(input).subspan(4 * i), std::span(expected).subspan(width * i), n);
    }
    for (const kernels::Kernels* kernels : kernels::available()) {
      for (const unsigned shift : {0U, 1U, 2U, 6U}) {
        std::vector<std::byte> output(count * width + shift);
        ArrayConversion(fp32, Packing::container, to, Packing::container, {}, kernels)(
            input, std::span(output).subspan(shift), count);
        CAPTURE(kernels->name, name_of(to), shift);
        CHECK(std::memcmp(output.data() + shift, expected.data(), expected.size()) == 0);
      }
    }
  }
}

}  // namespace guardbit::formats
