#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/repeats.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/quantisation/structured_sparsity.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments {

namespace e28 {
namespace {

constexpr std::size_t group = 4;
/// groups whose shares are one sample of the spread
constexpr std::size_t batch = 5000;

/// What the two largest magnitudes of each group keep: sums of |w| and w^2 kept and in all, groups
/// in which a tie decides which are kept; batch after batch.
std::vector<double> sums_of(Run& run, const formats::Format& format, std::int64_t groups,
                            Distribution distribution) {
  const emulator::CodeMatrix w = run.draws("weights").matrix(
      format, groups, static_cast<std::int64_t>(group), distribution, run.threads());
  run.uses(w);
  const std::size_t count = static_cast<std::size_t>(groups);
  const std::size_t batches = (count + batch - 1) / batch;
  std::vector<double> sums(5 * batches);
  formats::parallel_for(count, batch, run.threads(), [&](std::size_t begin, std::size_t end) {
    std::vector<float> weights;
    weights.reserve(group * (end - begin));
    for (std::size_t i = group * begin; i < group * end; ++i)
      weights.push_back(
          static_cast<float>(emulator::scalar::decoded(format, w[static_cast<std::int64_t>(i)])));
    const PruningSummary s = prune(weights, {weights.size(), 1}, "weights");
    double* const to = sums.data() + 5 * (begin / batch);
    to[0] = s.kept;
    to[1] = s.kept_squares;
    to[2] = s.all;
    to[3] = s.all_squares;
    to[4] = static_cast<double>(s.ties);
  });
  return sums;
}

struct Share {
  double percent = 0, error = 0;
};

/// Sum of the sums at `kept` over that at `all`, and its standard error over the batches.
Share share_of(const std::vector<double>& sums, std::size_t kept, std::size_t all) {
  const std::size_t batches = sums.size() / 5;
  double k = 0, a = 0, squares = 0;
  for (std::size_t b = 0; b < batches; ++b) {
    k += sums[5 * b + kept];
    a += sums[5 * b + all];
  }
  for (std::size_t b = 0; b < batches; ++b) {
    const double rest = sums[5 * b + kept] - k / a * sums[5 * b + all];
    squares += rest * rest;
  }
  return {100 * k / a, 100 * std::sqrt(squares) / a};
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto& names = s.words("format");
  const auto& distributions = s.words("distribution");
  run.announce(names.size() * distributions.size());
  Outcome outcome;
  outcome.figure = {"E28: what 2:4 pruning by magnitude keeps", "numbers", "kept (%)"};
  Curve masses{"sum of |w|", {}, {}, Look::points}, energies{"sum of w^2", {}, {}, Look::points};
  for (const std::string& distribution : distributions) {
    for (const std::string& name : names) {
      const formats::Format format = formats::require_format(name, "format");
      std::string key = distribution;
      key += ' ';
      key += name;
      const auto& sums = run.point(key, [&] {
        return sums_of(run, format, s.integer("groups"), distribution_of(distribution));
      });
      const Share mass = share_of(sums, 0, 2), energy = share_of(sums, 1, 3);
      double ties = 0;
      for (std::size_t b = 0; b < sums.size() / 5; ++b) ties += sums[5 * b + 4];
      const auto row = static_cast<double>(outcome.figure.categories.size());
      outcome.figure.categories.push_back(key);
      masses.add(row, mass.percent);
      energies.add(row, energy.percent);
      Finding of_mass{key + ": sum of |w| kept", "%", mass.percent};
      Finding of_energy{key + ": sum of w^2 kept", "%", energy.percent};
      if (distribution == "normal" && name == "fp32") {
        const auto reference = [](std::string_view printed, const Share& share) {
          return Reference{.value = number_of(printed),
                           .tolerance = half_digit(printed) + 3 * share.error,
                           .tolerance_reason =
                               "half a unit of the recorded last digit and three standard errors",
                           .source = "own NumPy run over 10^6 groups",
                           .certainty = Certainty::measured};
        };
        of_mass.reference = reference("74.5", mass);
        of_energy.reference = reference("86.8", energy);
      }
      outcome.findings.insert(outcome.findings.end(),
                              {of_mass,
                               of_energy,
                               {key + ": groups in which a tie decides the mask", "%",
                                100 * ties / static_cast<double>(s.integer("groups"))}});
    }
  }
  outcome.notes.emplace_back(
      "Where magnitudes are equal, libraries choose differently (ModelOpt by the iteration order of a Python set): "
      "masks that differ in such groups are no error.");
  outcome.figure.curves = {masses, energies};
  return outcome;
}

}  // namespace
}  // namespace e28

Experiment structured_pruning() {
  using namespace e28;
  using Kind = Parameter::Kind;
  return {
      .name = "E28",
      .slug = "structured_pruning",
      .question = "How much of a weight matrix survives 2:4 pruning by magnitude?",
      .method = "Of each four neighbours the two largest magnitudes are kept.",
      .expected = "N(0, 1): 74.5 % of the sum of |w| and 86.8 % of the sum of w^2 (measured).",
      .parameters = {{"groups", "of four", "1000000", "50000", Kind::integer, false, 10000,
                      100000000},
                     {"format", "of the weights", "fp32,fp16,e4m3", "fp32,e4m3", Kind::word, true,
                      0, 0, "fp32,fp16,bf16,e4m3,e5m2"},
                     {"distribution", "of the weights", "normal,laplace", "normal", Kind::word,
                      true, 0, 0, formats::choices_of<Distribution>()}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
