#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e20 {
namespace {

/// What the paper's Table 1 says, and what follows for the counts of codes.
struct Published {
  std::string_view name;
  double largest;
  int least_exponent, binades;
  double nans, infinities;
};
constexpr std::array published = {Published{"e4m3", 448, -9, 18, 2, 0},
                                  Published{"e5m2", 57344, -16, 32, 6, 2}};

Outcome run(Run& run) {
  Outcome outcome;
  outcome.figure = {"E20: positive codes in each binade", "binade (log2)", "codes"};
  const std::string source = "Micikevicius et al., arXiv 2209.05433, Table 1";
  const auto& names = run.settings().words("format");
  run.announce(names.size());
  for (const std::string& name : names) {
    const formats::Format format = formats::require_format(name, "format");
    const auto& values = run.point(name, [&] {
      std::vector<double> decoded;
      for (std::uint64_t code = 0; code <= formats::code_mask(format); ++code)
        decoded.push_back(emulator::scalar::decoded(format, code));
      return decoded;
    });
    double largest = 0, least = INFINITY, nans = 0, infinities = 0;
    std::map<int, int> binades;
    for (const double x : values) {
      if (std::isnan(x)) ++nans;
      if (std::isinf(x)) ++infinities;
      if (!std::isfinite(x) || x <= 0) continue;
      largest = std::max(largest, x);
      least = std::min(least, x);
      ++binades[std::ilogb(x)];
    }
    outcome.findings.insert(outcome.findings.end(),
                            {{name + ": largest number", "", largest},
                             {name + ": log2 of the smallest number", "", std::log2(least)},
                             {name + ": binades", "", static_cast<double>(binades.size())},
                             {name + ": NaN codes", "", nans},
                             {name + ": infinities", "", infinities}});
    for (const Published& p : published) {
      if (p.name != name) continue;
      const std::array<double, 5> expected = {p.largest, static_cast<double>(p.least_exponent),
                                              static_cast<double>(p.binades), p.nans, p.infinities};
      for (std::size_t i = 0; i < expected.size(); ++i)
        outcome.findings[outcome.findings.size() - expected.size() + i].reference =
            Reference{.value = expected[i], .source = source, .certainty = Certainty::read};
    }
    Curve curve{name, {}, {}, Look::steps};
    for (const auto& [binade, codes] : binades) curve.add(binade, codes);
    curve.add(curve.x.back() + 1, curve.y.back());
    outcome.figure.curves.push_back(curve);
  }
  return outcome;
}

}  // namespace
}  // namespace e20

Experiment fp8_formats() {
  using namespace e20;
  return {
      .name = "E20",
      .slug = "fp8_formats",
      .question = "What can the two FP8 formats hold?",
      .method = "Every code is decoded and counted.",
      .expected =
          "E4M3: up to 448, down to 2^-9, 18 binades, two NaNs, no infinity; E5M2: up to 57344, down to 2^-16, 32 binades (arXiv 2209.05433, read).",
      .parameters = {{"format", "to look at", "e4m3,e5m2", "", Parameter::Kind::word, true, 0, 0,
                      "e4m3,e5m2,e4m3fnuz,e5m2fnuz,e3m2,e2m3,e2m1,fp16,bf16"}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
