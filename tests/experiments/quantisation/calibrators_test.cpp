#include "experiments/quantisation/calibrators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "experiments/harness/random_numbers.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/calibration.hpp"

namespace guardbit::tests {
namespace {

using experiments::CalibrationOptions;
using experiments::Calibrator;
using experiments::MagnitudeHistogram;

constexpr double width = 0.0078125;
constexpr std::int64_t bins = 2048;

/// Histograms by formulas of integers, which other programs can make, too.
MagnitudeHistogram histogram_of(const std::string& name, std::int64_t count = bins) {
  MagnitudeHistogram h;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t x = 0;
    if (name == "long_tail") x = 2000000 / (1 + i * i / 64);
    if (name == "wedge_and_outlier")
      x = std::max<std::int64_t>(0, 3000 - 3 * i) + (i == count - 1 ? 5 : 0);
    if (name == "random_with_holes") x = i % 5 == 0 ? 0 : (i * 2654435761 % (1LL << 32)) >> 22;
    if (name == "many_zeros") x = i == 0 ? 10000000 : 1000000 / (1 + i);
    if (name == "few_bins") x = (i < 150 ? i * i + 1 : 0) + (i == count - 1 ? 1 : 0);
    if (name == "flat") x = 7;
    h.counts.push_back(x);
  }
  for (std::int64_t i = 0; i <= count; ++i) h.edges.push_back(static_cast<double>(i) * width);
  return h;
}
const std::vector<std::string> names = {"long_tail",  "wedge_and_outlier", "random_with_holes",
                                        "many_zeros", "few_bins",          "flat"};

CalibrationOptions options_of(int bits, bool is_unsigned) {
  CalibrationOptions options;
  options.bits = bits;
  options.is_unsigned = is_unsigned;
  options.quirks = experiments::parse_quirks("modelopt", "test");
  return options;
}

// ModelOpt 0.47 with torch 2.15 and NumPy 2.4 on these histograms, as multiples of the bins' width.
// Its own mse hands the bits over as a bias since that parameter came first; it was called with the
// parameters in their places.
struct Recorded {
  const char* name;
  int bits;
  bool is_unsigned;
  double entropy, percentile, percentile_99, mse;
};

void check_recorded(const Recorded& r) {
  INFO(r.name << ", " << r.bits << " bits" << (r.is_unsigned ? ", unsigned" : ""));
  MagnitudeHistogram h = histogram_of(r.name);
  CalibrationOptions options = options_of(r.bits, r.is_unsigned);
  CHECK(experiments::entropy_choice(h, options)->amax / width == r.entropy);
  CHECK(experiments::percentile_amax(h, options) / width == r.percentile);
  CHECK(experiments::mse_amax(h, options).value() / width == r.mse);
  options.percentile = 99;
  CHECK(experiments::percentile_amax(h, options) / width == r.percentile_99);
}

TEST_CASE("calibrators choose what ModelOpt chose of the same histograms") {
  check_recorded({"wedge_and_outlier", 8, false, 998, 990, 900, 983.5});
  check_recorded({"random_with_holes", 4, false, 2047, 2047, 2024, 1903.5});
  check_recorded({"few_bins", 8, false, 150, 149, 149, 379.5});
}

TEST_CASE("calibrators choose what ModelOpt chose of more histograms", "[sweep]") {
  for (const Recorded& r : std::vector<Recorded>{
           {"long_tail", 8, false, 960, 1952, 351, 1928.5},
           {"long_tail", 8, true, 1856, 1952, 351, 1977.5},
           {"long_tail", 4, false, 128, 1952, 351, 1469.5},
           {"wedge_and_outlier", 8, true, 1000, 990, 900, 1529.5},
           {"wedge_and_outlier", 4, false, 979, 990, 900, 832.5},
           {"random_with_holes", 8, false, 2045, 2047, 2024, 2040.5},
           {"many_zeros", 8, false, 2048, 2044, 1724, 2031.5},
           {"many_zeros", 8, true, 2048, 2044, 1724, 2039.5},
           {"many_zeros", 4, false, 2032, 2044, 1724, 1820.5},
           {"few_bins", 4, false, 150, 149, 149, 142.5},
           {"flat", 8, false, 2048, 2047, 2027, 2039.5},
           {"flat", 4, false, 2048, 2047, 2027, 1911.5},
       })
    check_recorded(r);
}

TEST_CASE("calibrators agree with an independent implementation") {
  constexpr std::size_t first = 128;
  for (const std::string& name : names) {
    for (const int bits : {8, 4}) {
      INFO(name << ", " << bits << " bits");
      MagnitudeHistogram h = histogram_of(name, 200);
      CalibrationOptions options = options_of(bits, false);
      const int bound = options.bound();
      for (const bool zero_bin : {false, true}) {
        options.quirks.zero_bin = zero_bin;
        const auto judged =
            oracle::divergences(h.counts, first, static_cast<std::size_t>(bound) + 1, zero_bin);
        const auto choice = experiments::entropy_choice(h, options).value();
        REQUIRE(choice.divergences.size() == judged.size());
        for (std::size_t i = 0; i < judged.size(); ++i) {
          const double expected = static_cast<double>(judged[i]);
          if (std::isinf(expected)) {
            CHECK(std::isinf(choice.divergences[i]));
          } else {
            // Sums of 200 terms of at most |log(2^-23)| = 16, each within some units of 2^-53.
            CHECK(std::abs(choice.divergences[i] - expected) < 200 * 16 * 0x1p-50);
          }
        }
      }
      const auto share = oracle::percentile_bin(h.counts, 9999);
      CHECK(experiments::percentile_amax(h, options) == h.edges[share]);
      std::vector<float> centres;
      for (std::size_t v = 0; v < h.counts.size(); ++v)
        centres.push_back(static_cast<float>((h.edges[v] + h.edges[v + 1]) / 2));
      const auto errors = oracle::squared_errors(h.counts, centres, first, -bound, bound);
      const auto best = std::ranges::min_element(errors) - errors.begin();
      CHECK(experiments::mse_amax(h, options).value() ==
            static_cast<double>(centres[first + static_cast<std::size_t>(best)]));
    }
  }
}

TEST_CASE("each quirk of the calibrators changes what it says") {
  const CalibrationOptions plain = [] {
    CalibrationOptions options;
    options.percentile = 99;
    return options;
  }();
  CalibrationOptions quirky = plain;
  MagnitudeHistogram h = histogram_of("long_tail");
  quirky.quirks.left_edge = true;
  CHECK(experiments::percentile_amax(h, plain) - experiments::percentile_amax(h, quirky) == width);
  // A bin of zeros weighs ten times all others: with the second bin's count in its place less of
  // the histogram is kept.
  MagnitudeHistogram zeros = histogram_of("many_zeros");
  quirky = plain;
  quirky.quirks.zero_bin = true;
  CHECK(experiments::entropy_choice(zeros, plain)->divergences !=
        experiments::entropy_choice(zeros, quirky)->divergences);
  CHECK(zeros.counts[0] == 10000000);
  // Kept in the histogram, it moves a percentile that is asked for later.
  quirky.percentile = 90;
  const double before = experiments::percentile_amax(zeros, quirky);
  quirky.quirks.zero_bin_kept = true;
  CHECK(experiments::entropy_choice(zeros, quirky));
  CHECK(zeros.counts[0] == zeros.counts[1]);
  CHECK(experiments::percentile_amax(zeros, quirky) > before);
  // Everything in the first bins: all edges are equally good (no divergence).
  MagnitudeHistogram few;
  few.counts.assign(256, 0);
  few.counts[0] = few.counts[1] = 5;
  for (int i = 0; i <= 256; ++i) few.edges.push_back(i);
  CHECK(experiments::entropy_choice(few, plain)->amax == 128);
  quirky = plain;
  quirky.quirks.last_minimum = true;
  // From 256 bins on, groups hold two bins; the two with counts share a group, evenly.
  CHECK(experiments::entropy_choice(few, quirky)->amax == 256);
  // Outliers beyond an empty bin have no candidate.
  few.counts[255] = 1;
  const auto choice = experiments::entropy_choice(few, plain).value();
  CHECK(std::isinf(choice.divergences.front()));
  CHECK(choice.amax == 256);
}

TEST_CASE("a collector counts batches and extends its range") {
  experiments::HistogramCollector collector({}, 4);
  collector.collect(std::vector<float>{0, 1, -2, 3, 4}, "test");
  CHECK(collector.histogram().edges == std::vector<double>{0, 1, 2, 3, 4});
  CHECK(collector.histogram().counts == std::vector<std::int64_t>{1, 1, 1, 2});
  collector.collect(std::vector<float>{5.5F, -0.5F}, "test");
  CHECK(collector.histogram().edges == std::vector<double>{0, 1, 2, 3, 4, 5, 6});
  CHECK(collector.histogram().counts == std::vector<std::int64_t>{2, 1, 1, 2, 0, 1});
  experiments::CalibrationQuirks least;
  least.least_edge = true;
  experiments::HistogramCollector from_least(least, 4);
  from_least.collect(std::vector<float>{-1, 3}, "test");
  CHECK(from_least.histogram().edges == std::vector<double>{1, 1.5, 2, 2.5, 3});
  for (const float x : {std::numeric_limits<float>::infinity(), std::nanf("")})
    CHECK_THROWS_AS(collector.collect(std::vector<float>{1, x}, "test"), formats::Error);
}

TEST_CASE("counts in FP32 stop at 2^24", "[sweep]") {
  const std::vector<float> zeros((1U << 24U) + 100, 0.25F);
  experiments::CalibrationQuirks quirks;
  for (const bool fp32 : {false, true}) {
    quirks.fp32_counts = fp32;
    experiments::HistogramCollector collector(quirks, 1);
    collector.collect(zeros, "test");
    CHECK(collector.histogram().counts[0] == (1 << 24) + (fp32 ? 0 : 100));
    collector.collect(std::vector<float>{0.25F}, "test");
    CHECK(collector.histogram().counts[0] == (1 << 24) + (fp32 ? 0 : 101));
  }
}

TEST_CASE("the search's choices are those recorded of ModelOpt") {
  // ((i * 2654435761 mod 2^32) / 2^8 / 2^23 - 1)^3 in FP32; MseCalibrator of ModelOpt 0.47.
  std::vector<float> numbers;
  for (std::uint64_t i = 0; i < 4096; ++i) {
    const float x = static_cast<float>(((i * 2654435761U) & 0xFFFFFFFFU) >> 8U) / 0x1p23F - 1;
    numbers.push_back(x * x * x);
  }
  const auto amax = [&](Calibrator calibrator, int bits) {
    return experiments::calibrated_amax(calibrator, numbers, options_of(bits, false), "test");
  };
  CHECK(amax(Calibrator::max, 8) == 1);
  CHECK(amax(Calibrator::search, 8) == 1.0394737720489502F);
  CHECK(amax(Calibrator::search, 4) == 0.940789520740509F);
  CHECK(amax(Calibrator::search, 3) == 0.8421052694320679F);
  CHECK(amax(Calibrator::search, 2) == 0.6447368860244751F);
  // HistogramCalibrator of the same.
  CHECK(amax(Calibrator::entropy, 8) == 1);
  CHECK(amax(Calibrator::percentile, 8) == 0.99951171875F);
  CHECK(amax(Calibrator::mse, 8) == 0.992431640625F);
}

TEST_CASE("quirks are read and written by their names") {
  using experiments::parse_quirks;
  CHECK(to_text(parse_quirks("none", "test")) == "none");
  CHECK(to_text(parse_quirks("modelopt", "test")) == "left_edge,zero_bin,last_minimum,fp32_counts");
  CHECK(to_text(parse_quirks("zero_bin_kept,LEFT_EDGE", "test")) ==
        "left_edge,zero_bin,zero_bin_kept");
  CHECK(parse_quirks("left_edge,zero_bin,zero_bin_kept,last_minimum,least_edge", "test") ==
        parse_quirks("modelopt_numpy", "test"));
  CHECK_THROWS_AS(parse_quirks("left", "test"), formats::Error);
}

}  // namespace
}  // namespace guardbit::tests
