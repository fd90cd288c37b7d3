#include "tools/products/error_report.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "emulator/gemm/gemm.hpp"
#include "experiments/accuracy/roundings.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/drawn_products.hpp"

// What `compare` prints of a bound is what it judges.
namespace guardbit::tests {
namespace {

using experiments::ErrorBound;
using tools::ErrorReport;

struct JudgedProduct {
  ErrorReport report;
  /// what the bound is relative to
  std::vector<double> sums;
};

JudgedProduct judged(const DrawnProduct& x) {
  const emulator::GemmProblem& p = x.problem;
  const emulator::Epilogue& e = x.plan.epilogue;
  JudgedProduct result;
  ErrorReport& report = result.report;
  report.file = "d.npy";
  report.reference = "exact";
  report.plan = x.plan;
  report.bound = experiments::error_bound(x.plan, p, "drawn");
  report.d = emulator::execute(x.plan, p, 1);
  report.deviations =
      experiments::exact_deviations(report.d, p, e.alpha, e.beta, 1, "drawn", {}, e.activation);
  report.sums = experiments::magnitudes(p, e.alpha, e.beta, 1, "drawn");
  result.sums = experiments::magnitudes(p, e.alpha, e.beta, 1, "drawn", report.bound.least_a,
                                        report.bound.least_b);
  report.analysis = experiments::analyse(report.deviations, report.d.format, report.sums,
                                         report.bound, result.sums);
  return result;
}

/// The numbers of "X |A||B| + Y |D| + Z: the largest error is P of it".
struct Sentence {
  double sum = 0, last = 0, absolute = 0, part = 0;
};
Sentence sentence_of(const std::string& text) {
  const std::string begin = "bound    deterministic ", middle = ": the largest error is ";
  const std::size_t at = text.find(begin), end = text.find(middle, at);
  REQUIRE(at != std::string::npos);
  REQUIRE(end != std::string::npos);
  Sentence x;
  std::istringstream terms(text.substr(at + begin.size(), end - at - begin.size()));
  for (double number = 0; terms >> number;) {
    std::string unit;
    terms >> unit;
    (unit == "|A||B|" ? x.sum : unit == "|D|" ? x.last : x.absolute) = number;
    if (unit != "+") terms >> unit;
  }
  x.part = std::stod(text.substr(end + middle.size()));
  return x;
}

/// The largest part of the bound that the sentence says, over the outputs that are judged.
double largest_part(const JudgedProduct& x, const Sentence& said) {
  double largest = 0;
  for (std::size_t i = 0; i < x.sums.size(); ++i) {
    const experiments::Deviation& at = x.report.deviations[i];
    const double error = std::fabs(at.error), of_sum = said.sum * x.sums[i];
    const bool is_judged =
        x.sums[i] <= x.report.bound.largest_sum &&
        std::fabs(at.reference) <= experiments::largest_number(x.report.d.format);
    if (!is_judged || !(error > 0)) continue;
    largest = std::max(
        largest, error / (of_sum + said.last * (std::fabs(at.reference) + of_sum) + said.absolute));
  }
  return largest;
}

TEST_CASE("the bound that compare prints is the one that it judges") {
  Random random(5);
  int said = 0;
  for (int i = 0; i < 300; ++i) {
    const DrawnProduct x = drawn_product(random);
    CAPTURE(i, emulator::to_text(x.plan));
    JudgedProduct product;
    try {
      product = judged(x);
    } catch (const formats::Error&) {
      continue;  // a plan without a bound
    }
    std::ostringstream out;
    tools::print(out, product.report, false);
    INFO(out.str());
    if (product.report.analysis.deterministic->judged == 0) {
      CHECK(out.str().find("nothing to judge") != std::string::npos);
      continue;
    }
    const Sentence sentence = sentence_of(out.str());
    const double part = largest_part(product, sentence);
    // Both are printed with four digits.
    CHECK(std::fabs(part - sentence.part) <= 0.002 * part);
    ++said;
  }
  CHECK(said > 200);
}

}  // namespace
}  // namespace guardbit::tests
