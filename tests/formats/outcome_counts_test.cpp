#include "formats/outcome_counts.hpp"

#include <random>
#include <vector>

#include "formats/arithmetic.hpp"
#include "formats/catalogue.hpp"
#include "formats/conversion.hpp"
#include "formats/converters.hpp"
#include "formats/error.hpp"
#include "formats/storage.hpp"
#include "tests/catch.hpp"

namespace guardbit::formats {
namespace {

std::vector<CountedConversion> conversions() {
  std::vector<CountedConversion> all;
  for (const Format& to : {fp32, tf32, bf16, fp16, e5m2, e4m3, e4m3fnuz, e3m2, e2m1}) {
    for (const int exponent : {0, 8, -20, 140, -200}) {
      for (const Rounding rounding : {Rounding::nearest_even, Rounding::toward_zero}) {
        for (const Overflow& overflow :
             {overflow_ieee, overflow_saturate, find_converter("cvt.rn.satfinite", e4m3)->overflow})
          all.push_back({to, exponent, rounding, overflow});
      }
    }
  }
  return all;
}

/// The counts by convert_codes.
OutcomeCounts by_conversion(const Format& from, std::span<const std::byte> codes, std::size_t count,
                            const CountedConversion& c) {
  ConversionOptions options;
  options.rounding = c.rounding;
  options.overflow = c.overflow;
  options.scale = Value{Kind::finite, false, c.scale_exponent, 1};
  options.threads = 1;
  std::vector<std::byte> output(byte_size(c.to, Packing::container, count).value());
  const ConversionSummary s = convert_codes(from, Packing::container, codes, c.to,
                                            Packing::container, output, count, options);
  OutcomeCounts o;
  o.elements = s.elements;
  o.nans_in = s.nans_in;
  o.zeros_made = s.zeros_made;
  o.subnormals_made = s.subnormals_made;
  o.infinities_made = s.infinities_made;
  o.nans_made = s.nans_made;
  o.saturated = s.saturated;
  for (std::size_t i = 0; i < count; ++i) {
    const Value x = decode(from, load_code(codes, from, Packing::container, i));
    o.zeros_in += x.kind == Kind::zero ? 1U : 0U;
    o.infinities_in += x.kind == Kind::infinity ? 1U : 0U;
    if (x.kind != Kind::finite) continue;
    o.out_of_range += is_in_range(c.to, multiply(x, *options.scale), c.rounding) ? 0U : 1U;
  }
  return o;
}

}  // namespace

TEST_CASE("outcomes counted by comparing are those of the conversion") {
  const std::vector<CountedConversion> all = conversions();
  std::mt19937 random(1);
  for (const Format& from : {fp32, fp16, bf16, e5m2, e4m3fnuz}) {
    const std::size_t count = 3001;
    std::vector<std::uint64_t> codes(count);
    for (std::size_t i = 0; i < count; ++i) {
      codes[i] = random() & code_mask(from);
      if (i % 50 == 0) codes[i] &= sign_mask(from);
      if (i % 70 == 0 && has_infinity(from)) codes[i] = infinity_code(from);
    }
    std::vector<std::byte> bytes(byte_size(from, Packing::container, count).value());
    pack_codes(codes, from, Packing::container, bytes);
    for (const kernels::Kernels* kernels : kernels::available()) {
      const auto counts = OutcomeCounting(from, all, kernels)(bytes, count);
      REQUIRE(counts.size() == all.size());
      bool holds = true;
      for (std::size_t i = 0; i < all.size(); ++i)
        holds = holds && counts[i] == by_conversion(from, bytes, count, all[i]);
      CAPTURE(kernels->name, name_of(from));
      CHECK(holds);
    }
  }
}

TEST_CASE("outcomes that depend on the sign are refused") {
  const std::vector<CountedConversion> integers = {
      {int8, 0, Rounding::nearest_even, overflow_ieee}};
  const std::vector<CountedConversion> upward = {{e4m3, 0, Rounding::upward, overflow_ieee}};
  CHECK_THROWS_AS(OutcomeCounting(fp32, integers), Error);
  CHECK_THROWS_AS(OutcomeCounting(fp32, upward), Error);
  CHECK_THROWS_AS(OutcomeCounting(fp64, std::span<const CountedConversion>{}), Error);
}

}  // namespace guardbit::formats
