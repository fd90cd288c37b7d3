#include <array>
#include <cmath>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/gemm/scalar.hpp"
#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "experiments/harness/repeats.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments {

namespace e13 {
namespace {

using formats::fp16;
using formats::fp32;

const double u16 = std::ldexp(1.0, -11);
const double u32 = std::ldexp(1.0, -24);

/// One way to multiply, with the leading terms of its error bound for sums of n products of FP32
/// numbers, relative to |A||B|; b = 4 products in a block.
struct Method {
  std::string_view name;
  double (*bound)(double n);
  /// the bound at n = 4096
  std::string_view printed;
};
constexpr std::array methods = {
    Method{"fp16", [](double n) { return (n + 2) * u16; }, "2.0"},
    Method{"TC16", [](double n) { return (n / 4 + 2) * u16; }, "0.50"},
    Method{"TC32", [](double n) { return 2 * u16 + n * u32; }, "1.22e-3"},
    Method{"fp32", [](double n) { return n * u32; }, "2.44e-4"},
};

emulator::GemmPlan plan_of(std::string_view method) {
  emulator::GemmPlan plan;
  if (method == "fp16") {
    plan.unit = {"simt", "fma.fp16"};
    plan.epilogue.compute = plan.epilogue.output = fp16;
  } else if (method != "fp32") {
    const auto& result = method == "TC16" ? fp16 : fp32;
    const auto instruction = emulator::require_dot("sm_70", "mma.sync", fp16, result, 4, "E13");
    plan.unit = {"sm_70", std::string(std::string_view(instruction.name))};
    plan.epilogue.output = result;
  }
  return plan;
}

/// short enough for leading terms to be the bound
constexpr std::int64_t worst_n = 256;

/// The largest |error| / (|A||B|) of a sum that loses nearly all it can: 1 and then products just
/// below half of its last unit, of which no addition keeps any (four at once with TC16); with TC32
/// ones and 2^-11, half a unit of FP16, in both operands, which their conversion drops.
double worst_error(Run& run, std::string_view method) {
  const double lost = method == "fp32"   ? u32 * (1 - 2 * u32)
                      : method == "TC16" ? u16 / 4 * (1 - 2 * u16)
                                         : u16 * (1 - 2 * u16);
  const bool inputs = method == "TC32";
  const std::uint64_t one = emulator::scalar::encoded(fp32, inputs ? 1 + u16 : 1);
  const std::uint64_t rest = inputs ? one : emulator::scalar::encoded(fp32, lost);
  emulator::GemmProblem problem;
  problem.a = emulator::make_matrix(fp32, 1, 1, worst_n);
  problem.b = emulator::make_matrix(fp32, 1, worst_n, 1);
  for (std::int64_t i = 0; i < worst_n; ++i) {
    problem.a.set(i, one);
    problem.b.set(i, i == 0 ? one : rest);
  }
  const auto exact = values_of(run.multiply(exact_plan(), problem));
  return largest_share(values_of(run.multiply(plan_of(method), problem)), exact, exact);
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto lengths = s.integers("n");
  const auto& distributions = s.words("distribution");
  run.announce((lengths.size() * distributions.size() + 1) * methods.size());
  const std::string source = "Blanchard, Higham, Lopez, Mary, Pranesh, SISC 42(3), C124";
  Outcome outcome;
  outcome.figure = {"E13: error of a V100's ways to multiply, and its bounds",
                    "n (products in each sum)", "largest |error| / (|A||B|)", true, true};
  for (const Method& method : methods) {
    outcome.findings.push_back(
        {std::string(method.name) + ": bound at n = 4096", "", method.bound(4096),
         Reference{.value = number_of(method.printed),
                   .tolerance = half_digit(method.printed),
                   .tolerance_reason = "half a unit of the printed last digit",
                   .source = source,
                   .certainty = Certainty::recalled}});
    const auto& worst = run.point(std::string(method.name) + " worst", [&] {
      return std::vector<double>{worst_error(run, method.name)};
    });
    // (n - 1) of the bound's n + 2 terms or fewer, over |A||B| of up to 1 + n u16 = 1.125.
    outcome.findings.push_back(
        {std::string(method.name) + ": a sum of 256 that loses most: error / bound", "",
         worst[0] / method.bound(static_cast<double>(worst_n)),
         Reference{.value = 0.85,
                   .source = "every addition, or input, loses just below half a unit",
                   .relation = Reference::Relation::at_least}});
    Curve bound{std::string(method.name) + ", bound", {}, {}, Look::line, true};
    for (const std::int64_t n : lengths)
      bound.add(static_cast<double>(n), method.bound(static_cast<double>(n)));
    for (const std::string& distribution : distributions) {
      Curve curve{std::string(method.name) + ", " + distribution};
      for (const std::int64_t n : lengths) {
        const std::string key =
            std::string(method.name) + " " + distribution + " n=" + std::to_string(n);
        const auto& error = run.point(key, [&] {
          return std::vector<double>{largest_error_share(run, plan_of(method.name),
                                                         {fp32, distribution, s.integer("MN"), n})};
        });
        curve.add(static_cast<double>(n), error[0]);
        outcome.findings.push_back(
            {key + ": largest error / bound", "", error[0] / method.bound(static_cast<double>(n)),
             Reference{.value = 1,
                       .source = source,
                       .certainty = Certainty::recalled,
                       .relation = Reference::Relation::at_most,
                       .undecidable = std::isfinite(error[0])
                                          ? ""
                                          : "the bound is for sums that do not overflow"}});
      }
      outcome.figure.curves.push_back(curve);
    }
    outcome.figure.curves.push_back(bound);
  }
  outcome.notes.emplace_back(
      "The bounds are for rounding to nearest. "
      "A V100's tensor core cuts instead, which may lose twice as much in each step; with these numbers it still stays below.");
  return outcome;
}

}  // namespace
}  // namespace e13

Experiment block_fma_bound() {
  using namespace e13;
  using Kind = Parameter::Kind;
  return {
      .name = "E13",
      .slug = "block_fma_bound",
      .question =
          "Do the worst-case error bounds of block multiply-adds hold, and how tight are they?",
      .method =
          "FP32 matrices are multiplied with FP16 multiply-adds, "
          "a V100's tensor core with FP16 and with FP32 results, and FP32 multiply-adds; "
          "the largest error over |A||B| is set in relation to the leading terms of the bounds: "
          "(n + 2) u16, (n / 4 + 2) u16, 2 u16 + n u32, n u32. "
          "Then sums of 256 that lose nearly all that a sum can.",
      .expected =
          "At n = 4096: 2.0, 0.50, 1.22e-3, 2.44e-4; observed errors below (recalled from SISC 42(3), C124); "
          "sums that lose most reach 0.85 of the bound or more (derived).",
      .parameters = {{"n", "products in each sum", "64:4096:x4", "256,1024", Kind::integer, true, 4,
                      65536},
                     {"MN", "rows of A and columns of B", "64", "32", Kind::integer, false, 4,
                      1024},
                     {"distribution", "of the numbers", "normal,uniform", "", Kind::word, true, 0,
                      0, formats::choices_of<Distribution>()}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
