#include <algorithm>
#include <cmath>

#include "emulator/catalogue/usual_instruction.hpp"
#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "experiments/suite/suite.hpp"
#include "experiments/suite/unit_products.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments {

namespace e34 {
namespace {

/// Largest error over |A||B|, over the bound, and the largest D - exact over |A||B|.
std::vector<double> measured(Run& run, const UnitUnderTest& unit, Distribution numbers,
                             std::int64_t k) {
  const std::int64_t size = run.settings().integer("MN");
  const auto problem = random_problem(run, unit.inputs, size, size, k, numbers);
  const auto d = values_of(run.multiply(unit.plan, problem));
  const auto exact = values_of(run.multiply(exact_plan(), problem));
  const auto scale = magnitude_products(run, problem);
  double above = -INFINITY;
  for (std::size_t i = 0; i < d.size(); ++i) above = std::max(above, (d[i] - exact[i]) / scale[i]);
  return {largest_share(d, exact, scale),
          largest_share(d, exact, allowed_errors(run, unit.plan, problem)), above};
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto lengths = s.integers("K");
  const std::string& distribution = s.word("distribution");
  const formats::Format format = formats::require_format(s.word("format"), "format");
  run.announce(s.words("arch").size() * lengths.size());
  Outcome outcome;
  outcome.figure = {"E34: largest error of " + s.word("format") + " products, " + distribution +
                        " numbers, by machine",
                    "K (products in each sum)", "largest |error| / (|A||B|)", true, true};
  for (const std::string& arch : s.words("arch")) {
    const auto instruction = emulator::usual_instruction(arch, {format, format, formats::fp32});
    if (!instruction) {
      outcome.notes.push_back(arch + " has no product of " + s.word("format") + " into FP32.");
      continue;
    }
    const UnitUnderTest unit = unit_of(*instruction, arch);
    Curve curve{arch};
    for (const std::int64_t k : lengths) {
      const std::string key = arch + " K=" + std::to_string(k);
      const auto& found =
          run.point(key, [&] { return measured(run, unit, distribution_of(distribution), k); });
      curve.add(static_cast<double>(k), found[0]);
      outcome.findings.push_back({key + ": largest |error| / (|A||B|)", "", found[0]});
      outcome.findings.push_back({key + ": largest error / bound", "", found[1],
                                  Reference{.value = 1,
                                            .source = "worst-case analysis of the unit's blocks",
                                            .relation = Reference::Relation::at_most}});
      if (distribution != "uniform" || !unit.truncates) continue;
      outcome.findings.push_back(
          {key + ": largest result - exact, over |A||B|", "", found[2],
           Reference{.source = "sums of positive numbers that are only ever cut cannot grow",
                     .relation = Reference::Relation::at_most}});
    }
    outcome.notes.push_back(arch + ": " + std::string(std::string_view(instruction->name)) + " (" +
                            std::string(formats::word_of(instruction->evidence.basis)) + ").");
    outcome.figure.curves.push_back(curve);
  }
  return outcome;
}

}  // namespace
}  // namespace e34

Experiment error_by_architecture() {
  using namespace e34;
  using Kind = Parameter::Kind;
  constexpr std::string_view machines =
      "sm_70,sm_75,sm_80,sm_89,sm_90,sm_100,sm_120,cdna1,cdna2,cdna3,x86,tpu";
  return {
      .name = "E34",
      .slug = "error_by_architecture",
      .question = "How does the error of a matrix product grow with K on each machine?",
      .method =
          "The same random matrices on each machine's widest unit for the format (accumulated in FP32), against their FP64 product.",
      .expected =
          "Errors stay within each unit's own worst-case bound, and units that cut toward zero never give too much of positive numbers (derived).",
      .parameters = {{"K", "products in each sum", "64:4096:x2", "64:1024:x4", Kind::integer, true,
                      1, 65536},
                     {"MN", "rows and columns", "64", "32", Kind::integer, false, 1, 1024},
                     {"distribution", "of A and B", "uniform", "", Kind::word, false, 0, 0,
                      formats::choices_of<Distribution>()},
                     {"format", "of A and B", "fp16", "", Kind::word, false, 0, 0, "fp16,bf16"},
                     {"arch", "", machines, "", Kind::word, true, 0, 0, machines}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
