#include "experiments/harness/run.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "experiments/harness/repeats.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

using experiments::Finding;
using experiments::Outcome;
using experiments::Reference;
using experiments::Repeats;
using experiments::Run;
using experiments::Verdict;

TEST_CASE("a point that is known is not computed again") {
  Run::Options options;
  options.known["a"] = {{1, 2}, 5};
  std::vector<std::string> finished;
  std::vector<double> shares;
  options.finished = [&](const Run&, const std::string& key, const auto&) {
    finished.push_back(key);
  };
  options.progress = [&](double share) { shares.push_back(share); };
  Run run(options);
  run.announce(2);
  int computed = 0;
  const auto compute = [&] {
    ++computed;
    return std::vector<double>{3};
  };
  CHECK(run.point("a", compute) == std::vector<double>{1, 2});
  CHECK(computed == 0);
  CHECK(run.point("b", compute) == std::vector<double>{3});
  CHECK(computed == 1);
  CHECK(finished == std::vector<std::string>{"b"});
  CHECK(shares == std::vector<double>{0.5, 1});
  CHECK(run.points().at("a").inputs == 5);
}

TEST_CASE("a run that is asked to stop keeps the points that were finished") {
  bool stop = false;
  Run::Options options;
  options.stop = [&] { return stop; };
  std::size_t finished = 0;
  options.finished = [&](const Run&, const std::string&, const auto&) { ++finished; };
  Run run(options);
  run.point("a", [] { return std::vector<double>{1}; });
  const auto stopped_inside = [&] {
    stop = true;  // what was computed meanwhile may be cut short
    return std::vector<double>{2};
  };
  CHECK_THROWS_AS(run.point("b", stopped_inside), experiments::Stopped);
  CHECK_THROWS_AS(run.point("c", stopped_inside), experiments::Stopped);
  CHECK(finished == 1);
  CHECK(run.points().size() == 1);
}

TEST_CASE("the fingerprint of a point is that of its own inputs") {
  const auto inputs_of = [](std::uint64_t seed, bool other_first) {
    Run::Options options;
    options.seed = seed;
    Run run(options);
    const auto multiply = [&](std::string_view name) {
      emulator::GemmProblem problem;
      problem.a = run.draws(name).matrix(formats::fp16, 4, 16, experiments::Distribution::normal);
      problem.b = problem.a;
      problem.b.rows = 16;
      problem.b.columns = 4;
      run.multiply(experiments::exact_plan(), problem);
      return std::vector<double>{0};
    };
    if (other_first) run.point("other", [&] { return multiply("B"); });
    run.point("a", [&] { return multiply("A"); });
    CHECK(run.formats() == std::set<std::string>{"fp16"});
    CHECK(run.plans().size() == 1);
    return run.points().at("a").inputs;
  };
  CHECK(inputs_of(1, false) == inputs_of(1, true));
  CHECK(inputs_of(1, false) != inputs_of(2, false));
}

TEST_CASE("verdicts follow from references and tolerances") {
  using Relation = Reference::Relation;
  const auto verdict = [](double measured, const Reference& r) {
    return Finding{"", "", measured, r}.verdict();
  };
  CHECK(verdict(1.5, {.value = 1, .tolerance = 0.5}) == Verdict::reproduced);
  CHECK(verdict(1.6, {.value = 1, .tolerance = 0.5}) == Verdict::differs);
  CHECK(verdict(0.4, {.value = 1, .tolerance = 0.5}) == Verdict::differs);
  CHECK(verdict(0.4, {.value = 1, .relation = Relation::at_most}) == Verdict::reproduced);
  CHECK(verdict(1.1, {.value = 1, .relation = Relation::at_most}) == Verdict::differs);
  CHECK(verdict(0.9, {.value = 1, .relation = Relation::at_least}) == Verdict::differs);
  CHECK(verdict(NAN, {.value = 1, .tolerance = 9}) == Verdict::differs);
  CHECK(verdict(1, {.value = 1, .undecidable = "unknown data"}) == Verdict::undecidable);
  CHECK(Finding{"", "", 1}.verdict() == Verdict::undecidable);

  const Finding right{"", "", 1, Reference{.value = 1, .certainty = experiments::Certainty::read}},
      demanded{"", "", 1, Reference{.value = 1}}, wrong{"", "", 2, Reference{.value = 1}},
      open{"", "", 3};
  const auto of = [](std::vector<Finding> findings) {
    return Outcome{std::move(findings), {}, {}}.verdict();
  };
  CHECK(of({right, open}) == Verdict::reproduced);
  CHECK(of({right, wrong, open}) == Verdict::differs);
  CHECK(of({open}) == Verdict::undecidable);
  // What theory demands reproduces nothing, but can differ.
  CHECK(of({demanded, open}) == Verdict::undecidable);
  CHECK(of({demanded, right}) == Verdict::reproduced);
}

TEST_CASE("statistics of errors and of repeats") {
  const experiments::Errors e = experiments::errors_of({1.5, -2, 4}, {1, -2, 5});
  CHECK(e.count == 3);
  CHECK(e.largest == 1);
  CHECK(e.largest_relative == 0.5);
  CHECK(e.largest_exact == 5);
  CHECK(e.mean_exact == 8.0 / 3);
  CHECK(std::abs(e.bias() + 0.5 / 8) < 1e-15);
  CHECK(Repeats{{5, 1, 3}}.median() == 3);
  CHECK(Repeats{{5, 1, 3, 2}}.median() == 2.5);
  CHECK(std::abs(Repeats{{1, 3}}.spread_of_one_more() - std::sqrt(3.0)) < 1e-15);
  CHECK(std::abs(experiments::half_digit("0.52") - 0.005) < 1e-15);
  CHECK(experiments::half_digit("206") == 0.5);
  CHECK(std::abs(experiments::half_digit("7.25e-6") - 5e-9) < 1e-20);
  CHECK(experiments::number_of("-9.6") == -9.6);
}

}  // namespace
}  // namespace guardbit::tests
