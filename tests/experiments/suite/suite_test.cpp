#include "experiments/suite/suite.hpp"

#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "experiments/harness/repeats.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/lost_updates.hpp"
#include "experiments/suite/mx_scales.hpp"
#include "experiments/suite/recorded_products.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"

namespace guardbit::tests {
namespace {

using experiments::Experiment;
using experiments::Finding;
using experiments::Outcome;
using experiments::Parameter;
using experiments::Run;
using experiments::Verdict;

Outcome quick_run(const Experiment& x, std::uint64_t seed = 1) {
  Run::Options options;
  options.settings = experiments::usual_settings(x.parameters, true);
  options.seed = seed;
  Run run(options);
  return x.run(run);
}

void check_outcome(const Experiment& x, const Outcome& outcome, Verdict expected) {
  std::set<std::string> keys;
  for (const Finding& f : outcome.findings) {
    INFO(x.name << ": " << f.key << ": " << f.measured);
    CHECK(keys.insert(f.key).second);
    CHECK(f.verdict() != Verdict::differs);
    if (!f.reference) continue;
    CHECK(!f.reference->source.empty());
    CHECK((f.reference->tolerance == 0) == f.reference->tolerance_reason.empty());
  }
  INFO(x.name);
  CHECK(outcome.verdict() == expected);
  CHECK_FALSE(outcome.figure.curves.empty());
  for (const experiments::Curve& c : outcome.figure.curves) CHECK(c.x.size() == c.y.size());
}

using Set = std::vector<std::pair<std::string_view, std::string_view>>;

/// A run with the quick settings, but for these.
Outcome run_with(const Experiment& x, const Set& set) {
  Run::Options options;
  options.settings = experiments::usual_settings(x.parameters, true);
  options.threads = 1;
  for (const auto& [key, values] : set) {
    for (const Parameter& p : x.parameters)
      if (p.name == key) options.settings.set(key, experiments::parse_values(p, values, key));
  }
  Run run(options);
  return x.run(run);
}

TEST_CASE("every experiment has a name, a file, a question and parameters that it takes") {
  std::set<std::string_view> names, slugs;
  for (const Experiment& x : experiments::suite()) {
    INFO(x.name);
    CHECK(names.insert(x.name).second);
    CHECK(slugs.insert(x.slug).second);
    const std::string file = formats::lower_case(x.name) + "_" + std::string(x.slug) + ".cpp";
    CHECK(std::filesystem::exists(tests::in_source("experiments/suite/" + file)));
    for (const std::string_view text : {x.question, x.method, x.expected}) CHECK(text.size() > 15);
    CHECK(x.question.ends_with('?'));
    for (const bool quick : {false, true}) {
      const auto settings = experiments::usual_settings(x.parameters, quick);
      CHECK(settings.all().size() == x.parameters.size());
    }
    for (const Parameter& p : x.parameters) CHECK(p.meaning.size() + p.name.size() > 2);
    CHECK(&experiments::require_experiment(x.slug, "test") == &x);
    CHECK(&experiments::require_experiment(formats::lower_case(x.name), "test") == &x);
  }
  CHECK_THROWS_AS(experiments::require_experiment("E99", "test"), formats::Error);
}

/// Experiments that have no figure of anybody's that their data could decide: what they check is
/// what theory demands.
Verdict expected_verdict(std::string_view name) {
  for (const std::string_view known :
       {"E02", "E16", "E24", "E29", "E33", "E34", "E35", "E36", "E37"})
    if (name == known) return Verdict::undecidable;
  return Verdict::reproduced;
}

TEST_CASE("experiments that take no time say what they should") {
  for (const char* const name : {"E01", "E03", "E04", "E05", "E20", "E23", "E25", "E27", "E28",
                                 "E30", "E31", "E39", "E40", "E41"}) {
    const Experiment& x = experiments::require_experiment(name, "test");
    check_outcome(x, quick_run(x), Verdict::reproduced);
  }
  for (const char* const name : {"E02", "E24"}) {
    const Experiment& x = experiments::require_experiment(name, "test");
    check_outcome(x, quick_run(x), Verdict::undecidable);
  }
}

TEST_CASE("experiments on units say what they should of small matrices") {
  const std::vector<std::pair<std::string_view, Set>> runs = {
      {"E13", {{"n", "64"}, {"MN", "4"}}},
      {"E33", {{"K", "50,64"}, {"MN", "8"}, {"tile", "32"}}},
      {"E34", {{"K", "64"}, {"MN", "4"}}},
      {"E35", {{"K", "128"}, {"MN", "4"}, {"orders", "3"}, {"parts", "1,2"}}},
      {"E36", {{"K", "64"}, {"MN", "8"}, {"arch", "sm_80,sm_90"}}},
      {"E37", {{"keys", "64"}, {"queries", "4"}, {"depth", "16"}, {"block", "32"}}},
      {"E38", {{"trials", "20"}, {"iterations", "10"}}}};
  for (const auto& [name, set] : runs) {
    const Experiment& x = experiments::require_experiment(name, "test");
    check_outcome(x, run_with(x, set), expected_verdict(name));
  }
}

TEST_CASE("experiments with settings that cannot decide do not say that it differs") {
  const std::vector<std::pair<std::string_view, Set>> runs = {
      {"E02", {{"log2_S", "16,0,8"}}},
      {"E05", {{"steps", "1"}, {"trials", "2"}}},
      {"E05", {{"weight", "1000"}, {"update", "1e-6"}, {"steps", "10"}, {"trials", "2"}}},
      {"E11", {{"width", "1,40"}}},
      {"E13", {{"n", "64"}, {"MN", "4"}, {"distribution", "log_uniform"}}},
      {"E17", {{"exponent", "-100,100"}, {"K", "16"}, {"MN", "4"}}},
      {"E18", {{"K", "1"}, {"MN", "4"}, {"stride", "1000000"}}},
      {"E19", {{"slices", "4"}, {"moduli", "4"}, {"K", "16"}, {"MN", "4"}}},
      {"E30", {{"n", "20000"}}},
      {"E38", {{"steps", "1"}, {"trials", "2"}, {"iterations", "1"}}},
      {"E38", {{"decay", "0.1"}, {"trials", "2"}, {"iterations", "1"}}},
      {"E38", {{"beta2", "0.9"}, {"steps", "1"}, {"trials", "2"}, {"iterations", "1"}}}};
  for (const auto& [name, set] : runs) {
    INFO(name << " " << set.front().first << "=" << set.front().second);
    const Experiment& x = experiments::require_experiment(name, "test");
    for (const Finding& f : run_with(x, set).findings) {
      INFO(f.key << ": " << f.measured);
      CHECK(f.verdict() != Verdict::differs);
    }
  }
}

TEST_CASE("repeats that lie a factor of two from a recorded number differ from it") {
  const auto verdict = [](double scale) {
    experiments::Repeats repeats;
    for (const double x : {0.9, 0.75, 1.0, 1.25, 1.1}) repeats.values.push_back(scale * x);
    const auto reference = experiments::reference_of_repeats("1.00", repeats, "recorded");
    return Finding{"", "", repeats.median(), reference}.verdict();
  };
  CHECK(verdict(1) == Verdict::reproduced);
  CHECK(verdict(1.3) == Verdict::reproduced);
  CHECK(verdict(2) == Verdict::differs);
  CHECK(verdict(0.5) == Verdict::differs);
}

TEST_CASE("a recorded product tells its plan from another one") {
  constexpr std::string_view unit =
      "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3 d=fp32";
  const auto changed = [&](std::string_view file) {
    Run::Options options;
    options.settings.set("products", {"tests/golden/gemm"});
    Run run(options);
    Outcome outcome;
    const std::array products = {experiments::RecordedProduct{"product", file, unit}};
    experiments::add_recorded_products(run, products, outcome);
    REQUIRE(outcome.findings.size() == 1);
    return outcome.findings[0];
  };
  CHECK(changed("scaledmm_e4m3_e4m3_fp32_fast1_t_1.0_1.0_0_64x64x256.safetensors").verdict() ==
        Verdict::reproduced);
  // Recorded without fast accumulation, so added to FP32 after every 128 elements.
  const Finding precise =
      changed("scaledmm_e4m3_e4m3_fp32_fast0_t_1.0_1.0_0_64x64x256.safetensors");
  CHECK(precise.verdict() == Verdict::differs);
  CHECK(precise.measured > 1000);
}

TEST_CASE("the quick suite reproduces what it can", "[sweep]") {
  for (const Experiment& x : experiments::suite()) {
    check_outcome(x, quick_run(x), expected_verdict(x.name));
  }
}

TEST_CASE("statistical tolerances hold for other seeds", "[sweep]") {
  for (const char* const name : {"E05", "E06", "E08", "E09", "E15", "E26", "E28", "E33", "E34",
                                 "E35", "E36", "E37", "E38"}) {
    const Experiment& x = experiments::require_experiment(name, "test");
    for (std::uint64_t seed = 2; seed < 6; ++seed)
      check_outcome(x, quick_run(x, seed), expected_verdict(name));
  }
}

TEST_CASE("a lost update is the largest that rounds away") {
  const auto all = experiments::lost_updates(formats::e5m2);
  REQUIRE(all.size() == 8);
  // 1, 1.25, 1.5, 1.75: units of 1/4 above, of 1/8 below 1.
  const double grid = experiments::update_grid(formats::e5m2);
  CHECK(all[0].largest_lost == 0.125);
  CHECK(all[1].largest_lost == 0.0625);
  CHECK(all[2].largest_lost == 0.125 - grid);
  CHECK(all[3].largest_lost == 0.125 - grid);
  CHECK(all[4].largest_lost == 0.125);
}

TEST_CASE("MX scale modes by hand") {
  const auto scale = [](float amax, std::string_view mode) {
    return static_cast<int>(experiments::mx_scale(formats::mxfp4, amax, mode)) - 127;
  };
  // E2M1: largest 6 = 1.5 * 2^2, one fraction bit.
  CHECK(scale(4, "floor") == 0);
  CHECK(scale(7.9F, "floor") == 0);
  CHECK(scale(4, "ceil") == 0);
  CHECK(scale(4.1F, "ceil") == 1);
  CHECK(scale(6, "rceil") == 0);
  CHECK(scale(6.1F, "rceil") == 1);
  CHECK(scale(6.9F, "even") == 0);  // rounds to 6 or 7 eighths of 8: not to 8
  CHECK(scale(7, "even") == 1);
}

}  // namespace
}  // namespace guardbit::tests
