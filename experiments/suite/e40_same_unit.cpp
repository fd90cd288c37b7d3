#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "emulator/functions/array_function.hpp"
#include "emulator/functions/function_catalogue.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e40 {
namespace {

/// A function on a binade, or a part of one.
struct Range {
  std::string function;
  std::uint32_t first = 0, count = 1U << 23;
};

struct Counts {
  double correctly_rounded = 0, relative = 0, absolute = 0;
};

Counts counts_of(const Range& range) {
  const auto& function = emulator::require_function("sm_90", range.function, "E40");
  Counts counts;
  constexpr std::uint32_t at_once = 1 << 16;
  std::vector<float> x(at_once), results(at_once);
  for (std::uint32_t begin = 0; begin < range.count; begin += at_once) {
    for (std::uint32_t i = 0; i < at_once; ++i)
      x[i] = std::bit_cast<float>(range.first + begin + i);
    emulator::apply(function, x, results);
    for (std::uint32_t i = 0; i < at_once; ++i) {
      const double exact = function.in_doubles({double{x[i]}})[0];
      if (static_cast<float>(exact) == results[i]) ++counts.correctly_rounded;
      const double error = std::abs(double{results[i]} - exact);
      counts.absolute = std::max(counts.absolute, error);
      counts.relative = std::max(counts.relative, error / std::abs(exact));
    }
  }
  return counts;
}

const std::string machines = "an A100, an L40S, an H100, and a model of the G80 of 2006";

Outcome run(Run& run) {
  struct Published {
    Range range;
    std::string name;
    double count;
  };
  const std::vector<Published> published = {
      {{"rcp.approx.ftz.f32", 0x3f800000}, "rcp on [1, 2)", 7280086},
      {{"rsqrt.approx.ftz.f32", 0x3f800000}, "rsqrt on [1, 2)", 6505163},
      {{"rsqrt.approx.ftz.f32", 0x40000000}, "rsqrt on [2, 4)", 6637923}};
  run.announce(published.size() + 4);
  const auto counted = [&](const std::string& key, const Range& range) {
    return run.point(key, [&] {
      const Counts counts = counts_of(range);
      return std::vector<double>{counts.correctly_rounded, counts.relative, counts.absolute};
    });
  };
  Outcome outcome;
  Curve modelled{"this model", {}, {}, Look::points},
      others{"published", {}, {}, Look::points, true};
  for (const Published& p : published) {
    const auto counts = counted(p.name, p.range);
    const auto place = static_cast<double>(outcome.figure.categories.size());
    outcome.figure.categories.push_back(p.name);
    modelled.add(place, counts[0]);
    others.add(place, p.count);
    outcome.findings.push_back({p.name + ": correctly rounded", "of 8388608", counts[0],
                                Reference{.value = p.count,
                                          .source = "counts published of " + machines,
                                          .certainty = Certainty::recalled}});
    const bool is_root = p.name.starts_with("rsqrt");
    outcome.findings.push_back(
        {p.name + ": largest relative error", "", counts[1],
         Reference{.value = is_root ? std::exp2(-22.4) : 0x1p-23,
                   .source = is_root ? "the unit's largest error, 1.52 ulp" : "1 ulp, the PTX ISA",
                   .certainty = is_root ? Certainty::derived : Certainty::recalled,
                   .relation = Reference::Relation::at_most}});
  }
  const auto ex2 = counted("ex2 on [1, 2)", {"ex2.approx.ftz.f32", 0x3f800000});
  outcome.findings.push_back({"ex2 on [1, 2): correctly rounded", "of 8388608", ex2[0]});
  const auto tanh = counted("tanh on [1/2, 1)", {"tanh.approx.f32", 0x3f000000});
  outcome.findings.push_back({"tanh on [1/2, 1): largest relative error", "", tanh[1],
                              Reference{.value = 0x1p-11,
                                        .source = "the PTX ISA, of tanh.approx.f32",
                                        .certainty = Certainty::recalled,
                                        .relation = Reference::Relation::at_most}});
  const auto sine = counted("sin on [1/2, 1)", {"sin.approx.ftz.f32", 0x3f000000});
  outcome.findings.push_back({"sin on [1/2, 1): largest error", "", sine[2],
                              Reference{.value = std::exp2(-20.5),
                                        .source = "the PTX ISA, of sin.approx.f32 to 2 pi",
                                        .certainty = Certainty::recalled,
                                        .relation = Reference::Relation::at_most}});
  const auto lg2 = counted("lg2 on [1, 2)", {"lg2.approx.ftz.f32", 0x3f800000});
  outcome.findings.push_back({"lg2 on [1, 2): largest error", "", lg2[2],
                              Reference{.value = 0x1p-22,
                                        .source = "the PTX ISA, of lg2.approx.f32",
                                        .certainty = Certainty::recalled,
                                        .relation = Reference::Relation::at_most}});
  outcome.figure.title = "E40: correctly rounded results of a binade";
  outcome.figure.x_label = "function";
  outcome.figure.y_label = "of 8388608";
  outcome.figure.curves = {modelled, others};
  outcome.notes.emplace_back(
      "Three counts of seven digits that agree leave little room for another table: rcp and rsqrt of these machines "
      "are very likely one unit. Of ex2, lg2, sin and tanh no counts of other machines are known; for them this says nothing.");
  return outcome;
}

}  // namespace
}  // namespace e40

Experiment same_unit() {
  using namespace e40;
  return {
      .name = "E40",
      .slug = "same_unit",
      .question = "Is the special function unit the same since 2006?",
      .method =
          "The model of Hopper's unit, which gives an H100's results for all inputs: how many results of whole binades are "
          "correctly rounded, and the largest errors there, beside what was published of other machines.",
      .expected =
          "rcp rounds 7280086 of the numbers of [1, 2) correctly, rsqrt 6505163 and 6637923 of [1, 2) and [2, 4): counts published of an A100, "
          "an L40S, an H100 and a model of the G80 (recalled). Errors stay within the bounds of the PTX ISA (recalled).",
      .parameters = {},
      .run = run,
  };
}

}  // namespace guardbit::experiments
