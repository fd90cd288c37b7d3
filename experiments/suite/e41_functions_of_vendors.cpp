#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/function_errors.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e41 {
namespace {

using emulator::Function;

/// One function by the instructions of two vendors.
struct Rivals {
  std::string_view meaning, radeon, hopper;
  /// both take the same argument: sine and cosine take turns and radians
  bool same_argument;
  /// AMD's has a bound in units of the last place; roots of subnormal numbers are zeros
  bool is_bounded;
};
constexpr std::array<Rivals, 7> rivals = {
    {{"2^x", "v_exp_f32", "ex2.approx.ftz.f32", true, true},
     {"log2(x)", "v_log_f32", "lg2.approx.ftz.f32", true, true},
     {"1 / x", "v_rcp_f32", "rcp.approx.ftz.f32", true, true},
     {"1 / sqrt(x)", "v_rsq_f32", "rsqrt.approx.ftz.f32", true, true},
     {"sqrt(x)", "v_sqrt_f32", "sqrt.approx.ftz.f32", true, false},
     {"sin", "v_sin_f32", "sin.approx.ftz.f32", false, false},
     {"cos", "v_cos_f32", "cos.approx.ftz.f32", false, false}}};

/// The largest error in ulp, and the share of results that are correctly rounded.
std::vector<double> errors_of(const Function& function, std::uint64_t stride) {
  const emulator::FunctionErrors errors = emulator::function_errors(function, stride);
  const auto results = static_cast<double>(errors.results);
  return {errors.largest, 100 * static_cast<double>(errors.correctly_rounded) / results};
}

/// The share of codes whose results differ, but for those that are NaNs of both.
double share_that_differs(const Function& x, const Function& y, std::uint64_t stride) {
  constexpr std::uint64_t codes = std::uint64_t{1} << 32, at_once = 1 << 16;
  std::uint64_t differing = 0, asked = 0;
  std::vector<std::uint32_t> arguments, of_x(at_once), of_y(at_once);
  const auto is_nan = [](std::uint32_t code) { return (code & 0x7fffffff) > 0x7f800000; };
  const auto compare = [&] {
    of_x.resize(arguments.size());
    of_y.resize(arguments.size());
    x.run({{arguments}, {of_x}});
    y.run({{arguments}, {of_y}});
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (of_x[i] != of_y[i] && !(is_nan(of_x[i]) && is_nan(of_y[i]))) ++differing;
    asked += arguments.size();
    arguments.clear();
  };
  for (std::uint64_t code = 0; code < codes; code += stride) {
    arguments.push_back(static_cast<std::uint32_t>(code));
    if (arguments.size() == at_once) compare();
  }
  compare();
  return 100 * static_cast<double>(differing) / static_cast<double>(asked);
}

Outcome run(Run& run) {
  const auto stride = static_cast<std::uint64_t>(run.settings().integer("stride"));
  run.announce(3 * rivals.size() - 2);
  Outcome outcome;
  Curve radeons{"RDNA3 and RDNA4", {}, {}, Look::points}, hoppers{"sm_90", {}, {}, Look::points};
  double place = 0;
  for (const Rivals& x : rivals) {
    const Function& radeon = emulator::require_function("rdna4", x.radeon, "E41");
    const Function& hopper = emulator::require_function("sm_90", x.hopper, "E41");
    for (const Function* const function : {&radeon, &hopper}) {
      const std::string name(function->name);
      const auto& errors = run.point(name, [&] { return errors_of(*function, stride); });
      Finding largest = {name + ": largest error", "ulp", errors[0]};
      if (function == &radeon && x.is_bounded)
        largest.reference = Reference{.value = 1,
                                      .source = "the instruction set's bound, 1 ulp",
                                      .certainty = Certainty::recalled,
                                      .relation = Reference::Relation::at_most};
      outcome.findings.push_back(largest);
      outcome.findings.push_back({name + ": correctly rounded", "%", errors[1]});
      (function == &radeon ? radeons : hoppers).add(place, errors[1]);
    }
    outcome.figure.categories.emplace_back(x.meaning);
    ++place;
    if (!x.same_argument) continue;
    const std::string pair = std::string(x.radeon) + " and " + std::string(x.hopper);
    const auto& share = run.point(
        pair, [&] { return std::vector<double>{share_that_differs(radeon, hopper, stride)}; });
    outcome.findings.push_back({pair + ": results that differ", "%", share[0]});
  }
  outcome.figure.title = "E41: correctly rounded results of two vendors' functions";
  outcome.figure.x_label = "function";
  outcome.figure.y_label = "%";
  outcome.figure.curves = {radeons, hoppers};
  return outcome;
}

}  // namespace
}  // namespace e41

Experiment functions_of_vendors() {
  using namespace e41;
  using Kind = Parameter::Kind;
  return {
      .name = "E41",
      .slug = "functions_of_vendors",
      .question = "How far are special functions of a Radeon from those of an H100?",
      .method =
          "The models of RDNA3's and RDNA4's functions and of Hopper's, over every 1021st code of FP32: the largest error, how many results are correctly "
          "rounded, and for how many arguments the two differ. Sine and cosine take turns on one and radians on the other.",
      .expected =
          "AMD's reciprocal, reciprocal root, exponential and logarithm stay within 1 ulp, as its instruction set manuals say (recalled).",
      .parameters = {{"stride", "every such code; 1: all", "1021", "65537", Kind::integer, false, 1,
                      1 << 20}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
