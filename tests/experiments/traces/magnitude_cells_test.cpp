#include "experiments/traces/magnitude_cells.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "experiments/traces/magnitude_counts.hpp"
#include "experiments/traces/trace_statistics.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/number.hpp"
#include "tests/oracle/round.hpp"

namespace guardbit::experiments {
namespace {

struct Judged {
  formats::Format format;
  oracle::FormatParameters judge;
};

const std::vector<Judged> inputs = {
    {formats::fp32, oracle::fp32},         {formats::fp64, oracle::fp64},
    {formats::fp16, oracle::fp16},         {formats::bf16, oracle::bf16},
    {formats::e4m3, oracle::e4m3},         {formats::e5m2, oracle::e5m2},
    {formats::e4m3fnuz, oracle::e4m3fnuz}, {formats::e5m2fnuz, oracle::e5m2fnuz},
    {formats::e2m1, oracle::e2m1},         {formats::tf32, oracle::tf32}};

const std::vector<Judged> destinations = {
    {formats::fp16, oracle::fp16},         {formats::bf16, oracle::bf16},
    {formats::e4m3, oracle::e4m3},         {formats::e5m2, oracle::e5m2},
    {formats::e5m2fnuz, oracle::e5m2fnuz}, {formats::fp32, oracle::fp32}};

const std::vector<int> scales = {-140, -17, 0, 1, 16, 32, 120};

std::vector<Storing> storings(bool exact_product, const formats::Overflow& overflow) {
  std::vector<Storing> all;
  for (const Judged& to : destinations) {
    for (const int scale : scales) all.push_back({to.format, scale, overflow, exact_product});
  }
  return all;
}

/// Codes on both sides of everything at which something changes, with both signs, and random ones.
std::vector<std::uint64_t> codes_of_interest(const formats::Format& from,
                                             const MagnitudeCells& cells) {
  std::vector<std::uint64_t> codes;
  const std::uint64_t mask = magnitude_mask(from);
  if (bits(from) <= 8) {
    for (std::uint64_t code = 0; code <= code_mask(from); ++code) codes.push_back(code);
    return codes;
  }
  for (const std::uint64_t start : cells.starts()) {
    const std::uint64_t code = encode(from, formats::decode(cells.word(), start)) & mask;
    for (const std::uint64_t near : {code - 1, code, code + 1}) {
      codes.push_back(near & mask);
      codes.push_back((near & mask) | sign_mask(from));
    }
  }
  // Two in each binade as well, so that a cut left out cannot hide between starts.
  std::mt19937_64 random(5);
  for (std::uint64_t start = 0; start < mask; start += min_normal_code(from)) {
    codes.push_back(start | (random() & fraction_mask(from)));
    codes.push_back(start | 1U);
  }
  std::sort(codes.begin(), codes.end());
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  std::shuffle(codes.begin(), codes.end(), random);
  if (codes.size() > 1200) codes.resize(1200);
  return codes;
}

struct Expected {
  std::uint64_t underflow = 0, subnormal = 0, overflow = 0;
};

/// By the judge, one element after the other.
Expected judged(const Judged& from, const Judged& to, int scale, bool exact_product,
                const std::vector<std::uint64_t>& codes) {
  Expected expected;
  for (const std::uint64_t code : codes) {
    oracle::Number x = oracle::decode(from.judge, code);
    if (!x.is_finite() || x.is_zero()) continue;
    x.magnitude.exponent += scale;
    if (!exact_product)
      x = oracle::decode(oracle::fp32, oracle::encode(oracle::fp32, x, oracle::nearest_even));
    const oracle::Number stored =
        oracle::decode(to.judge, oracle::encode(to.judge, x, oracle::nearest_even));
    if (!stored.is_finite()) {
      ++expected.overflow;
    } else if (stored.is_zero()) {
      ++expected.underflow;
    } else if (oracle::floor_log2(stored.magnitude) < oracle::minimum_exponent(to.judge)) {
      ++expected.subnormal;
    }
  }
  return expected;
}

}  // namespace

TEST_CASE("trace: what is counted is what the judge says of each element") {
  for (const Judged& from : inputs) {
    for (const bool exact_product : {false, true}) {
      const auto all = storings(exact_product, formats::overflow_ieee);
      const MagnitudeCells cells(from.format, all);
      const std::vector<std::uint64_t> codes = codes_of_interest(from.format, cells);
      const formats::Tensor tensor =
          formats::tensor_of_codes("x", from.format, formats::Packing::container,
                                   {static_cast<std::int64_t>(codes.size())}, codes);
      const MagnitudeCounts counts = count_magnitudes(cells, tensor, 1);
      CHECK(counts == count_magnitudes_one_by_one(cells, tensor));
      const TraceStatistics statistics = statistics_of(cells, counts, all.size());
      // Clamping changes what is stored, not how many.
      const auto clamping = storings(exact_product, formats::overflow_saturate);
      const MagnitudeCells clamped(from.format, clamping);
      const TraceStatistics clamped_statistics =
          statistics_of(clamped, count_magnitudes(clamped, tensor, 1), all.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        const Judged& to = destinations[i / scales.size()];
        const Expected expected = judged(from, to, all[i].scale_exponent, exact_product, codes);
        CAPTURE(name_of(from.format), name_of(to.format), all[i].scale_exponent, exact_product);
        CHECK(statistics.outcomes[i].underflow == expected.underflow);
        CHECK(statistics.outcomes[i].subnormal == expected.subnormal);
        CHECK(statistics.outcomes[i].overflow == expected.overflow);
        CHECK(clamped_statistics.outcomes[i] == statistics.outcomes[i]);
      }
    }
  }
}

TEST_CASE("trace: the product that is rounded to FP32 first decides ties") {
  const std::vector<Storing> both = {{formats::fp32, -100, formats::overflow_ieee, false},
                                     {formats::fp16, -24, formats::overflow_ieee, false},
                                     {formats::fp16, -24, formats::overflow_ieee, true}};
  const MagnitudeCells cells(formats::fp64, both);
  // (1 + 2^-40) 2^-1: halfway between 0 and FP16's least after 2^-24, and a little more; the
  // product in FP32 loses the little.
  const std::vector<std::uint64_t> codes = {0x3FE0000000001000, 0x3FE0000000000000};
  const formats::Tensor tensor =
      formats::tensor_of_codes("x", formats::fp64, formats::Packing::container, {2}, codes);
  const auto s = statistics_of(cells, count_magnitudes(cells, tensor), both.size());
  CHECK(s.outcomes[0].underflow == 0);
  CHECK(s.outcomes[1].underflow == 2);
  CHECK(s.outcomes[2].underflow == 1);
}

TEST_CASE("trace: formats without a sign and integers are refused") {
  const std::vector<Storing> unsigned_destination = {{formats::ue4m3}};
  CHECK_THROWS_AS(MagnitudeCells(formats::fp32, unsigned_destination), formats::Error);
  CHECK_THROWS_AS(MagnitudeCells(formats::int32, {}), formats::Error);
}

}  // namespace guardbit::experiments
