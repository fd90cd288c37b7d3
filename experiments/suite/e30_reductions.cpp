#include <algorithm>
#include <array>
#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"
#include "experiments/training/precision.hpp"

namespace guardbit::experiments {

namespace e30 {
namespace {

namespace scalar = emulator::scalar;
using formats::Format;

/// The first count at which adding 1 in the format changes nothing.
double stuck_count(const Format& f) {
  double count = 0;
  while (scalar::add(f, count, 1) != count) ++count;
  return count;
}

/// The smallest number of FP16 for which `is_lost` holds; it holds for all larger ones.
template <class Predicate>
double first_fp16(Predicate is_lost) {
  std::uint64_t low = 0, high = formats::max_finite_code(formats::fp16);
  while (low < high) {
    const std::uint64_t middle = (low + high) / 2;
    if (is_lost(scalar::decoded(formats::fp16, middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return scalar::decoded(formats::fp16, low);
}

/// Mean of n equal numbers, summed in the format `inside`, result in FP16.
double mean_of(const Format& inside, double x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum = scalar::add(inside, sum, x);
  return scalar::rounded(formats::fp16, scalar::rounded(inside, sum / static_cast<double>(n)));
}

/// x / sqrt(mean of x^2 + eps) of n equal numbers, squares and their sum in `inside`.
double rms_norm_of(const Format& inside, double x, std::int64_t n) {
  double sum = 0;
  const double square = scalar::multiply(inside, x, x);
  for (std::int64_t i = 0; i < n; ++i) sum = scalar::add(inside, sum, square);
  const double mean = scalar::rounded(inside, sum / static_cast<double>(n));
  const double root = scalar::rounded(inside, std::sqrt(scalar::add(inside, mean, 1e-5)));
  return scalar::rounded(formats::fp16, x / root);
}

/// Sums of ones at powers of two.
Figure figure_of_counts() {
  Figure figure{.title = "E30: ones added one after another",
                .x_label = "ones",
                .y_label = "sum",
                .log_x = true,
                .log_y = true};
  for (const auto& [name, format] :
       {std::pair{"FP16", formats::fp16}, std::pair{"BF16", formats::bf16},
        std::pair{"FP32", formats::fp32}}) {
    Curve curve{name};
    double sum = 0;
    for (int i = 1; i <= 1 << 13; ++i) {
      sum = scalar::add(format, sum, 1);
      if ((i & (i - 1)) == 0) curve.add(i, sum);
    }
    figure.curves.push_back(curve);
  }
  return figure;
}

/// What the policy that training follows here makes of FP16 input, and torch did.
void add_autocast(Outcome& outcome) {
  using training::Operation;
  constexpr std::array measured = {std::pair{Operation::layer_norm, 32},
                                   std::pair{Operation::rms_norm, 16},
                                   std::pair{Operation::gelu, 16}, std::pair{Operation::relu, 16}};
  for (const auto& [operation, bits] : measured) {
    const training::CastRule& rule = training::rule_of(operation);
    outcome.findings.push_back({"autocast of FP16 input: " + std::string(rule.name), "bits",
                                rule.cast == training::Cast::fp32 ? 32.0 : 16.0,
                                Reference{.value = static_cast<double>(bits),
                                          .source = "type of the result, torch 2.11 on an H200",
                                          .certainty = Certainty::measured}});
  }
}

Outcome run(Run& run) {
  const auto n = run.settings().integer("n");
  run.announce(3);
  const auto& counts = run.point("counts", [&] {
    return std::vector<double>{stuck_count(formats::fp16), stuck_count(formats::bf16)};
  });
  const auto& squares = run.point("overflow", [&] {
    return std::vector<double>{
        first_fp16([](double x) { return std::isinf(scalar::multiply(formats::fp16, x, x)); }),
        first_fp16([&](double x) { return std::isinf(mean_of(formats::fp16, x, n)); }),
        std::isinf(mean_of(formats::fp32, 65504, n)) ? 1.0 : 0.0,
        first_fp16([&](double x) { return rms_norm_of(formats::fp16, x, n) == 0; })};
  });
  const auto& small = run.point("one", [&] {
    return std::vector<double>{mean_of(formats::fp16, 1, n), mean_of(formats::fp32, 1, n),
                               rms_norm_of(formats::fp16, 1, n), rms_norm_of(formats::fp32, 1, n)};
  });
  const std::string half = "65504 is FP16's largest; halfway to the next, 65520, overflows";
  const std::string even = "a tie goes to the even neighbour";
  Outcome outcome;
  outcome.findings = {
      {"ones that FP16 can count", "", counts[0], Reference{.value = 2048, .source = even}},
      {"ones that BF16 can count", "", counts[1], Reference{.value = 256, .source = even}},
      {"smallest FP16 number whose square overflows", "", squares[0],
       Reference{.value = 256, .source = half, .certainty = Certainty::derived}},
      {"mean of n equal numbers, summed in FP16: smallest that overflows", "", squares[1]},
      {"the same, summed in FP32: the mean of 65504 overflows", "", squares[2],
       Reference{.source = "a mean is no larger than the numbers",
                 .undecidable = n <= 8192 ? "" : "beyond 2^29 the sum in FP32 is rounded"}},
      {"RMS norm of n equal numbers in FP16: smallest that becomes 0", "", squares[3]},
      {"mean of n ones, summed in FP16", "", small[0],
       Reference{.value = std::min(1.0, 2048.0 / static_cast<double>(n)),
                 .tolerance = std::ldexp(1.0, -11),
                 .tolerance_reason = "half a unit in the last place of FP16 below 1",
                 .source = "the sum stops at 2048"}},
      {"the same, summed in FP32", "", small[1], Reference{.value = 1, .source = "exact"}},
      {"RMS norm of n ones, all in FP16", "", small[2]},
      {"the same, inside in FP32", "", small[3],
       Reference{.value = 1,
                 .tolerance = std::ldexp(1.0, -11),
                 .tolerance_reason = "half a unit in the last place",
                 .source = "x / |x|, but for eps"}}};
  add_autocast(outcome);
  outcome.figure = figure_of_counts();
  outcome.notes.emplace_back(
      "Under autocast with FP16 input, torch 2.11 also gives FP32 for sum, "
      "rsqrt and softmax, FP16 for mean, var, sqrt and batch_norm (measured on an H200). "
      "A kernel that also computes in FP16 inside meets the limits above.");
  return outcome;
}

}  // namespace
}  // namespace e30

Experiment reductions() {
  using namespace e30;
  return {
      .name = "E30",
      .slug = "reductions",
      .question = "Which reductions may be computed in FP16?",
      .method =
          "Counting ones, squares, means and an RMS norm of n equal numbers; "
          "every operation is rounded to FP16, or inside to FP32; the smallest numbers at which each fails.",
      .expected =
          "Squares overflow FP16 from about 256 on; counts stop at 2048 (FP16) and 256 (BF16) (derived). "
          "Under autocast layer_norm of FP16 is FP32; rms_norm, GELU and ReLU stay FP16 (measured, torch 2.11 on an H200).",
      .parameters = {{"n", "numbers", "4096", "", Parameter::Kind::integer, false, 1, 1000000}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
