#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/harness/run.hpp"
#include "experiments/quantisation/calibrators.hpp"
#include "experiments/quantisation/integer_tensor.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments {

namespace e26 {
namespace {

constexpr auto& all_calibrators = formats::enumerators_of<Calibrator>;

/// Integrals of f, x f and x^2 f over [a, b], f the density of |x|.
struct Moments {
  double mass = 0, first = 0, second = 0;
};

Moments normal_moments(double a, double b) {
  const double root = std::sqrt(2 / std::acos(-1.0));
  const auto density = [&](double x) { return root * std::exp(-x * x / 2); };
  const double mass = std::erf(b / std::sqrt(2.0)) - std::erf(a / std::sqrt(2.0));
  const double fa = density(a), fb = density(b);
  return {mass, fa - fb, mass + a * fa - b * fb};
}

Moments laplace_moments(double a, double b) {
  const double rate = std::sqrt(2.0);
  const auto from = [&](double x) -> Moments {
    const double e = std::exp(-rate * x);
    return {e, e * (x + 1 / rate), e * (x * x + 2 * x / rate + 2 / (rate * rate))};
  };
  const Moments low = from(a), high = from(b);
  return {low.mass - high.mass, low.first - high.first, low.second - high.second};
}

/// Mean squared error of the numbers of a distribution up to amax, on the integers' grid of that
/// amax.
double theory(std::string_view distribution, double amax, int bound) {
  const double step = amax / bound;
  double error = 0, mass = 0;
  for (int q = 0; q <= bound; ++q) {
    const double centre = q * step;
    const double low = q == 0 ? 0 : centre - step / 2, high = q < bound ? centre + step / 2 : amax;
    const Moments m =
        distribution == "normal" ? normal_moments(low, high) : laplace_moments(low, high);
    error += m.second - 2 * centre * m.first + centre * centre * m.mass;
    mass += m.mass;
  }
  return error / mass;
}

/// amax; percent beyond it, percent clipped, SQNR in dB; of the numbers up to amax the mean squared
/// error and its standard error.
std::vector<double> quality(const std::vector<float>& numbers, Calibrator calibrator,
                            const CalibrationOptions& options) {
  const float amax = calibrated_amax(calibrator, numbers, options, "numbers");
  const IntegerGrid grid = modelopt_grid(amax, options.bits, options.is_unsigned);
  double beyond = 0, clipped = 0, signal = 0, noise = 0, within = 0, squares = 0;
  for (const float number : numbers) {
    const double x = number, error = static_cast<double>(grid.fake_quantised(number)) - x;
    clipped += std::fabs(grid.unclamped(number)) > static_cast<float>(grid.high) ? 1 : 0;
    signal += x * x;
    noise += error * error;
    if (std::fabs(number) > amax) {
      ++beyond;
    } else {
      within += error * error;
      squares += error * error * error * error;
    }
  }
  const auto n = static_cast<double>(numbers.size());
  const double mean = within / (n - beyond);
  return {static_cast<double>(amax),
          100 * beyond / n,
          100 * clipped / n,
          10 * std::log10(signal / noise),
          mean,
          std::sqrt((squares / (n - beyond) - mean * mean) / (n - beyond))};
}

/// The cubes of a sequence of integers, which other programs can make, too.
std::vector<float> recorded_numbers() {
  std::vector<float> numbers;
  for (std::uint64_t i = 0; i < 4096; ++i) {
    const float x = static_cast<float>(((i * 2654435761U) & 0xFFFFFFFFU) >> 8U) / 0x1p23F - 1;
    numbers.push_back(x * x * x);
  }
  return numbers;
}

void add_recorded(Run& run, Outcome& outcome) {
  const auto& chosen = run.point("recorded numbers", [&] {
    const std::vector<float> numbers = recorded_numbers();
    run.uses(std::as_bytes(std::span<const float>(numbers)));
    std::vector<double> amaxes;
    for (const Calibrator calibrator : all_calibrators) {
      CalibrationOptions options;
      options.quirks = parse_quirks("modelopt", "quirks");
      amaxes.push_back(
          static_cast<double>(calibrated_amax(calibrator, numbers, options, "numbers")));
    }
    return amaxes;
  });
  constexpr std::array recorded = {1.0, 0.99951171875, 1.0, 0.992431640625, 1.0394737720489502};
  for (std::size_t i = 0; i < recorded.size(); ++i)
    outcome.findings.push_back(
        {"4096 numbers of a formula, " + std::string(formats::word_of(all_calibrators[i])) +
             ": amax",
         "", chosen[i],
         Reference{.value = recorded[i],
                   .source = "ModelOpt 0.47, torch 2.15, on the same numbers",
                   .certainty = Certainty::measured}});
}

/// ModelOpt's entropy overwrote the first bin of the collector's own histogram.
void add_overwritten_bin(Run& run, Outcome& outcome) {
  const auto& edges = run.point("overwritten bin", [&] {
    MagnitudeHistogram h;
    for (std::int64_t i = 0; i < 2048; ++i)
      h.counts.push_back(i == 0 ? 10000000 : 1000000 / (1 + i));
    for (int i = 0; i <= 2048; ++i) h.edges.push_back(i);
    CalibrationOptions options;
    options.percentile = 90;
    options.quirks = parse_quirks("modelopt_numpy", "quirks");
    const double before = percentile_amax(h, options);
    entropy_choice(h, options);
    return std::vector<double>{before, percentile_amax(h, options)};
  });
  const auto reference = [](double value) {
    return Reference{.value = value,
                     .source = "ModelOpt 0.47, NumPy histograms",
                     .certainty = Certainty::measured};
  };
  outcome.findings.push_back(
      {"90th percentile before entropy was asked", "bins", edges[0], reference(365)});
  outcome.findings.push_back(
      {"90th percentile afterwards, of the same histogram", "bins", edges[1], reference(947)});
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto& distributions = s.words("distribution");
  const auto bits = s.integers("bits");
  run.announce(distributions.size() * bits.size() * all_calibrators.size() + 2);
  Outcome outcome;
  outcome.figure = {"E26: what calibrators choose", "amax (standard deviations)",
                    "signal over error (dB)", true};
  CalibrationOptions options;
  options.quirks = parse_quirks(s.word("quirks"), "quirks");
  for (const std::string& distribution : distributions) {
    std::vector<float> numbers(static_cast<std::size_t>(s.integer("numbers")));
    run.draws("numbers").fill(distribution_of(distribution), numbers, run.threads());
    const bool has_theory = distribution == "normal" || distribution == "laplace";
    for (const std::int64_t bit : bits) {
      options.bits = static_cast<int>(bit);
      std::string where = distribution;
      where += ", " + std::to_string(bit) + " bits";
      Curve curve{where, {}, {}, Look::points};
      for (const Calibrator calibrator : all_calibrators) {
        std::string key = where;
        key += ", ";
        key += formats::word_of(calibrator);
        const auto& x = run.point(key, [&] {
          run.uses(std::as_bytes(std::span<const float>(numbers)));
          return quality(numbers, calibrator, options);
        });
        curve.add(x[0], x[3]);
        Finding beyond{key + ": beyond amax", "%", x[1]};
        if (calibrator == Calibrator::max)
          beyond.reference = Reference{.value = 0, .source = "amax is the largest magnitude"};
        if (calibrator == Calibrator::percentile && options.quirks.left_edge)
          beyond.reference = Reference{.value = 100 - options.percentile,
                                       .tolerance = 1e-9,
                                       .tolerance_reason = "rounding of the percentage",
                                       .source = "the left edge of the bin that reaches 99.99 %",
                                       .relation = Reference::Relation::at_least};
        Finding error{key + ": mean squared error up to amax", "", x[4]};
        if (has_theory)
          error.reference =
              Reference{.value = theory(distribution, x[0], options.bound()),
                        .tolerance = 4 * x[5],
                        .tolerance_reason = "four standard errors of the mean",
                        .source = "integral of the distribution on the integers of that amax"};
        outcome.findings.insert(outcome.findings.end(),
                                {{key + ": amax", "", x[0]},
                                 beyond,
                                 {key + ": clipped", "%", x[2]},
                                 error,
                                 {key + ": signal over error", "dB", x[3]}});
      }
      outcome.figure.curves.push_back(curve);
    }
  }
  add_recorded(run, outcome);
  add_overwritten_bin(run, outcome);
  outcome.notes.emplace_back(
      "What lies up to half a unit beyond amax still rounds onto the last integer: it is beyond, and not clipped.");
  outcome.notes.emplace_back(
      "ModelOpt 0.47 hands the number of bits over as a bias in its histogram's mse, so that what it chooses means nothing; "
      "recorded is the same search with the parameters in their places.");
  return outcome;
}

}  // namespace
}  // namespace e26

Experiment calibrators() {
  using namespace e26;
  using Kind = Parameter::Kind;
  return {
      .name = "E26",
      .slug = "calibrators",
      .question = "Which range do calibrators choose for integers, and what does it cost?",
      .method =
          "Random numbers are calibrated by max, the 99.99th percentile, entropy, mean squared error of a histogram, "
          "and a search over multiples of the maximum, as ModelOpt does, and quantised with the range that each chose. "
          "The error is compared with the integral of the distribution; amaxes of given numbers with those that ModelOpt chose.",
      .expected =
          "Of given numbers the amaxes of ModelOpt 0.47, which was run (measured); "
          "a percentile that moves once entropy was asked of the same histogram (measured); "
          "errors follow from the distribution and amax (derived).",
      .parameters = {{"numbers", "", "200000", "20000", Kind::integer, false, 1000, 100000000},
                     {"distribution", "of the numbers", "normal,laplace,uniform,outliers",
                      "normal,outliers", Kind::word, true, 0, 0,
                      formats::choices_of<Distribution>()},
                     {"bits", "of the integers", "8,4", "", Kind::integer, true, 2, 8},
                     {"quirks", "of the calibrators, one of these", "modelopt", "", Kind::word,
                      false, 0, 0, "modelopt,modelopt_numpy,none"}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
