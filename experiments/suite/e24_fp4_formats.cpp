#include <algorithm>
#include <array>
#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/scaling/nvfp4_recipe.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/conversion/block_quantisation.hpp"
#include "formats/support/words.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::experiments {

namespace e24 {
namespace {

namespace scalar = emulator::scalar;
using formats::BlockFormat;

struct Method {
  std::string_view name;
  BlockFormat format;
  formats::ScaleRule rule;
};
const std::array methods = {
    Method{"MXFP4 floor", formats::mxfp4, formats::scale_of_exponents},
    Method{"MXFP4 rceil", formats::mxfp4, formats::scale_without_overflow},
    Method{"NVFP4", formats::nvfp4, formats::scale_nearest},
};

/// amax / (448 * 6) in FP32: with it the largest block's scale is E4M3's largest number.
formats::Value tensor_scale_of(std::span<const float> numbers) {
  float amax = 0;
  for (const float x : numbers) amax = std::max(amax, std::abs(x));
  return formats::decode(formats::fp32, scalar::encoded(formats::fp32, amax / (448.0 * 6)));
}

/// Signal over error in dB, and the share of numbers stored as zero in percent.
std::vector<double> quality(Run& run, const Method& method, std::int64_t blocks,
                            const std::string& distribution) {
  const auto length = static_cast<std::size_t>(blocks * 32);
  std::vector<float> numbers(length);
  run.draws("numbers").fill(distribution_of(distribution), numbers, run.threads());
  const auto words = std::as_bytes(std::span<const float>(numbers));
  run.uses(words);
  formats::BlockQuantisationOptions options;
  options.rule = method.rule;
  options.threads = run.threads();
  double tensor_scale = 1;
  if (method.format.tensor_scale) {
    options.tensor_scale = tensor_scale_of(numbers);
    tensor_scale = std::ldexp(static_cast<double>(options.tensor_scale->significand),
                              options.tensor_scale->exponent);
  }
  const auto count = static_cast<std::int64_t>(length);
  std::vector<std::byte> elements(
      static_cast<std::size_t>(formats::element_bytes(method.format, count)));
  std::vector<std::byte> scales(
      static_cast<std::size_t>(formats::scale_bytes(method.format, count)));
  formats::BlockQuantisation(method.format, options)(words, 1, count, elements, scales);
  double signal = 0, noise = 0, zeros = 0, nonzero = 0;
  for (std::size_t i = 0; i < length; ++i) {
    const auto block = i / static_cast<std::size_t>(method.format.block_size);
    const double element = scalar::decoded(
        method.format.element,
        formats::load_code(elements, method.format.element, formats::Packing::dense, i));
    const double scale =
        scalar::decoded(method.format.scale, std::to_integer<std::uint64_t>(scales[block]));
    const double x = numbers[i], y = element * scale * tensor_scale;
    signal += x * x;
    noise += (x - y) * (x - y);
    if (x == 0) continue;
    ++nonzero;
    if (y == 0) ++zeros;
  }
  return {10 * std::log10(signal / noise), 100 * zeros / nonzero};
}

/// The largest amax of a block, as a share of the tensor's, all of which becomes zero: by bisection
/// over powers of two in steps of 2^-12. Transformer Engine rounds the scale to E4M3 as it is;
/// torchao raises it to 2^-6, E4M3's smallest normal number.
double largest_lost_block(bool torchao) {
  const auto lost = [&](double share) {
    // In units in which the tensor's amax is 448 * 6.
    const double amax = share * 448 * 6;
    double scale = scalar::rounded(formats::e4m3, amax / 6);
    if (torchao) scale = std::max(scale, std::ldexp(1.0, -6));
    return scale == 0 || scalar::rounded(formats::e2m1, amax / scale) == 0;
  };
  double low = std::ldexp(1.0, -40), high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (lost(middle) ? low : high) = middle;
  }
  return low;
}

/// Of NVFP4 plain, after Hadamard, rounded stochastically, 4 over 6, 4 over 6 with scales to 256:
/// the sum of squared errors over that of squares. Then: the sum of squares after Hadamard over
/// before; its error over the plain one and the standard error of that; the error that stochastic
/// rounding should make and its standard deviation; its mean error in standard errors.
std::vector<double> recipe_shares(Run& run, std::int64_t blocks, const std::string& distribution) {
  std::vector<float> numbers(static_cast<std::size_t>(blocks * 32));
  run.draws("numbers").fill(distribution_of(distribution), numbers, run.threads());
  run.uses(std::as_bytes(std::span<const float>(numbers)));
  double squares = 0;
  for (const float x : numbers) squares += static_cast<double>(x) * static_cast<double>(x);
  const auto made = [&](const Nvfp4Recipe& recipe) {
    return nvfp4_round_trip(numbers, recipe, run.draws("signs"), run.draws("rounding"));
  };
  const auto noise = [&](const Nvfp4Outcome& outcome) {
    double sum = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double error = outcome.numbers[i] - static_cast<double>(numbers[i]);
      sum += error * error;
    }
    return sum / squares;
  };
  const Nvfp4Outcome plain = made({}), hadamard = made({.hadamard = true}),
                     stochastic = made({.stochastic = true});
  // Variances of sums over blocks, from the blocks themselves.
  const auto variance = [](const std::vector<double>& x) {
    double mean = 0, sum = 0;
    for (const double v : x) mean += v / static_cast<double>(x.size());
    for (const double v : x) sum += (v - mean) * (v - mean);
    return sum;
  };
  const double plain_noise = noise(plain);
  return {plain_noise,
          noise(hadamard),
          noise(stochastic),
          noise(made({.four_over_six = true})),
          noise(made({.four_over_six = true, .largest_scale = 256})),
          hadamard.transformed_squares / squares,
          noise(hadamard) / plain_noise,
          std::sqrt(variance(plain.block_noise) + variance(hadamard.block_noise)) / squares /
              plain_noise,
          stochastic.expected / squares,
          std::sqrt(stochastic.expected_variance) / squares,
          stochastic.signed_sum / std::sqrt(stochastic.signed_variance)};
}

void add_recipes(Run& run, Outcome& outcome, const std::string& distribution) {
  const auto& x = run.point(distribution + " recipes", [&] {
    return recipe_shares(run, run.settings().integer("blocks"), distribution);
  });
  const auto decibels = [](double share) { return -10 * std::log10(share); };
  const std::string key = distribution + ", NVFP4";
  constexpr double fp32_unit = 0x1p-24;
  outcome.findings.insert(
      outcome.findings.end(),
      {{key + ": signal over error again", "dB", decibels(x[0])},
       {key + " after a random Hadamard transform: signal over error", "dB", decibels(x[1])},
       {key + " rounded stochastically: signal over error", "dB", decibels(x[2])},
       {key + ", 4 over 6: signal over error", "dB", decibels(x[3])},
       {key + ", 4 over 6, scales to 256: signal over error", "dB", decibels(x[4])},
       {key + ", 4 over 6: squared error over that of 6 alone", "", x[3] / x[0],
        Reference{.value = 1,
                  .source = "of two ways each block takes the better one",
                  .relation = Reference::Relation::at_most}},
       {key + " after Hadamard: sum of squares over before", "", x[5],
        Reference{
            .value = 1,
            .tolerance = 2 * fp32_unit + 0x1p-40,
            .tolerance_reason =
                "each number is rounded to FP32, which moves squares by two units of 2^-24 at most; and FP64's own errors",
            .source = "the transform is orthogonal"}},
       {key + " rounded stochastically: squared error over signal", "", x[2],
        Reference{.value = x[8],
                  .tolerance = 4 * x[9],
                  .tolerance_reason =
                      "four standard deviations of the sum, from each element's probabilities",
                  .source = "(x - low)(high - x) for neighbours low and high"}},
       {key + " rounded stochastically: mean error", "standard errors", std::abs(x[10]),
        Reference{.value = 4,
                  .source = "each rounding keeps its mean, so 4 is exceeded once in 16000 runs",
                  .relation = Reference::Relation::at_most}}});
  Finding rotation{key + " after Hadamard: squared error over that without", "", x[6]};
  if (distribution == "normal")
    rotation.reference = Reference{
        .value = 1,
        .tolerance = 4 * x[7],
        .tolerance_reason = "four standard errors of the difference, from the spread of the blocks",
        .source = "normal numbers are normal again after a rotation"};
  outcome.findings.push_back(rotation);
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto& distributions = s.words("distribution");
  run.announce(distributions.size() * (methods.size() + 1) + 1);
  Outcome outcome;
  outcome.figure = {"E24: what FP4 blocks keep of numbers", "stored as zero (% of all)",
                    "signal over error (dB)"};
  for (const std::string& distribution : distributions) {
    std::array<double, methods.size()> decibels{};
    for (std::size_t i = 0; i < methods.size(); ++i) {
      const std::string key = distribution + " " + std::string(methods[i].name);
      const auto& x = run.point(
          key, [&] { return quality(run, methods[i], s.integer("blocks"), distribution); });
      decibels[i] = x[0];
      Curve point{key, {}, {}, Look::points};
      point.add(x[1], x[0]);
      outcome.figure.curves.push_back(point);
      outcome.findings.insert(outcome.findings.end(), {{key + ": signal over error", "dB", x[0]},
                                                       {key + ": stored as zero", "%", x[1]}});
    }
    Finding gain{distribution + ": NVFP4 over the better MXFP4", "dB",
                 decibels[2] - std::max(decibels[0], decibels[1])};
    if (distribution == "normal" || distribution == "laplace") {
      gain.reference = Reference{.value = 0,
                                 .source = "half the block and scales with a fraction fit better",
                                 .relation = Reference::Relation::at_least};
    }
    outcome.findings.push_back(gain);
    add_recipes(run, outcome, distribution);
  }
  const auto& lost = run.point("lost blocks", [&] {
    return std::vector<double>{std::log2(largest_lost_block(false)),
                               std::log2(largest_lost_block(true))};
  });
  // Half of 2^-9, and a quarter (half of E2M1's smallest 0.5) of 2^-6, both over 448 * 6 / 6 or 6.
  const double bit = 1e-9;
  const std::string reason = "steps of the bisection";
  outcome.findings.push_back(
      {"NVFP4, Transformer Engine: log2 of the largest block amax / tensor amax that is lost", "",
       lost[0],
       Reference{.value = std::log2(std::ldexp(1.0, -10) / 448),
                 .tolerance = bit,
                 .tolerance_reason = reason,
                 .source = "the scale rounds to zero up to 2^-10"}});
  outcome.findings.push_back({"NVFP4, torchao: the same", "", lost[1],
                              Reference{.value = std::log2(std::ldexp(1.0, -8) / (448 * 6)),
                                        .tolerance = bit,
                                        .tolerance_reason = reason,
                                        .source = "elements round to zero up to 0.25 * 2^-6"}});
  outcome.notes.emplace_back(
      "Recipes scale as Transformer Engine does, blocks of 16 along the numbers. "
      "A Hadamard transform spreads an outlier over its block; stochastic rounding trades error for the absence of bias; "
      "4 over 6 lets a block's largest number be 4 where E2M1's gap between 4 and 6 would cost more.");
  return outcome;
}

}  // namespace
}  // namespace e24

Experiment fp4_formats() {
  using namespace e24;
  using Kind = Parameter::Kind;
  return {
      .name = "E24",
      .slug = "fp4_formats",
      .question = "Which FP4 block format keeps more of a tensor?",
      .method =
          "Random numbers are quantised to MXFP4 (blocks of 32, "
          "powers of two by either rule) and NVFP4 (blocks of 16, E4M3 scales under one FP32 scale) and decoded again; "
          "NVFP4 also after a random Hadamard transform, rounded stochastically, and with 4 over 6. "
          "Then the largest block that NVFP4 loses altogether, by the two rules for its smallest scale.",
      .expected =
          "No published figure for these numbers: NVFP4 keeps more of numbers without outliers, and the borders follow from the formats.",
      .parameters = {{"blocks", "of 32 numbers", "20000", "500", Kind::integer, false, 500,
                      10000000},
                     {"distribution", "of the numbers", "normal,laplace,outliers,log_uniform", "",
                      Kind::word, true, 0, 0, formats::choices_of<Distribution>()}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
