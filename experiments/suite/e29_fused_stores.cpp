#include <array>
#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e29 {
namespace {

namespace scalar = emulator::scalar;
using formats::Format;

constexpr std::int64_t width = 128, depth = 256;

/// x * sigmoid(1.702 x), the sigmoid form of GELU.
double gelu(double x) { return x / (1 + power_of_two(-1.702 * 1.4426950408889634 * x)); }

/// Where results are stored, between operations that are each rounded to FP32: after the product,
/// after the bias, after the activation; always after the norm.
struct Stores {
  std::string_view name;
  bool product, bias, activation;
};
constexpr std::array kernels = {
    Stores{"1 kernel", false, false, false},
    Stores{"2 kernels (product and bias; the rest)", false, true, false},
    Stores{"3 kernels (product; bias and activation; norm)", true, false, true},
    Stores{"4 kernels", true, true, true},
};

/// What `round` makes of every result.
template <class Operation>
void apply(std::vector<double>& x, const Format& inside, bool stored, const Format& store,
           Operation operation) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = scalar::rounded(inside, operation(x[i], i));
    if (stored) x[i] = scalar::rounded(store, x[i]);
  }
}

/// RMS norm of every row.
void normalise(std::vector<double>& x, const Format& inside) {
  for (std::size_t row = 0; row < x.size(); row += width) {
    double squares = 0;
    for (std::size_t i = row; i < row + width; ++i)
      squares = scalar::rounded(inside, squares + scalar::rounded(inside, x[i] * x[i]));
    const double mean = scalar::rounded(inside, squares / width);
    const double root = scalar::rounded(inside, std::sqrt(scalar::rounded(inside, mean + 1e-6)));
    for (std::size_t i = row; i < row + width; ++i) x[i] = scalar::rounded(inside, x[i] / root);
  }
}

std::vector<double> layer(std::vector<double> x, const std::vector<double>& bias,
                          const Format& inside, const Stores& stores, const Format& store) {
  apply(x, inside, stores.product, store, [](double y, std::size_t) { return y; });
  apply(x, inside, stores.bias, store,
        [&](double y, std::size_t i) { return y + bias[i % width]; });
  apply(x, inside, stores.activation, store, [](double y, std::size_t) { return gelu(y); });
  normalise(x, inside);
  return x;
}

/// Mean squared error over mean square of the result, for each way; then the share of outputs that
/// the fewest stores leave further from the exact number than the most.
std::vector<double> errors_in(Run& run, const Format& store, std::int64_t rows) {
  emulator::GemmPlan plan;
  const bool half = store == formats::fp16;
  plan.unit = {"sm_90", std::string("wgmma.mma_async.sync.aligned.m64nNk16.f32.") +
                            (half ? "f16.f16" : "bf16.bf16")};
  emulator::GemmProblem problem;
  problem.a = run.draws("x").matrix(store, rows, depth, Distribution::normal, run.threads());
  problem.b =
      run.draws("w").matrix(store, depth, width, Distribution::normal, run.threads(), 0.0625F);
  const auto bias =
      values_of(run.draws("b").matrix(store, 1, width, Distribution::normal, run.threads(), 0.5F));
  const auto product = values_of(run.multiply(plan, problem));
  const auto exact = layer(values_of(run.multiply(exact_plan(), problem)), bias, formats::fp64,
                           kernels[0], formats::fp64);
  std::vector<double> result;
  std::vector<std::vector<double>> outputs;
  for (const Stores& stores : kernels) {
    auto y = layer(product, bias, formats::fp32, stores, store);
    for (double& v : y) v = scalar::rounded(store, v);
    const Errors e = errors_of(y, exact);
    result.push_back(e.mean_squared / e.mean_squared_exact);
    outputs.push_back(std::move(y));
  }
  double worse = 0;
  for (std::size_t i = 0; i < exact.size(); ++i)
    worse +=
        std::abs(outputs.front()[i] - exact[i]) > std::abs(outputs.back()[i] - exact[i]) ? 1 : 0;
  result.push_back(100 * worse / static_cast<double>(exact.size()));
  return result;
}

Outcome run(Run& run) {
  const auto& names = run.settings().words("format");
  run.announce(names.size() + 1);
  Outcome outcome;
  outcome.figure = {"E29: error of product, bias, GELU and RMS norm by the number of stores",
                    "stores of intermediate and final results",
                    "root mean square error (% of that of the result)"};
  for (const std::string& name : names) {
    const Format store = formats::require_format(name, "format");
    const auto& x =
        run.point(name, [&] { return errors_in(run, store, run.settings().integer("rows")); });
    Curve curve{name};
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const std::string key = name + ", " + std::string(kernels[i].name);
      curve.add(static_cast<double>(i + 1), 100 * std::sqrt(x[i]));
      outcome.findings.push_back({key + ": root mean square error", "%", 100 * std::sqrt(x[i])});
    }
    outcome.figure.curves.push_back(curve);
    outcome.findings.push_back({name + ": mean squared error, 1 kernel over 4", "", x[0] / x[3],
                                Reference{.value = 1,
                                          .source = "every store adds the variance of a rounding",
                                          .relation = Reference::Relation::at_most}});
    outcome.findings.push_back(
        {name + ": outputs that 1 kernel leaves further from exact than 4 do", "%", x[4]});
  }
  const auto& twice = run.point("double rounding", [] {
    const double x = 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -30);
    const double direct = scalar::rounded(formats::fp16, x);
    const double through = scalar::rounded(formats::fp16, scalar::rounded(formats::fp32, x));
    return std::vector<double>{std::ldexp(direct - through, 10)};
  });
  outcome.findings.push_back(
      {"1 + 2^-11 + 2^-30 to FP16, and through FP32: difference", "ulp", twice[0],
       Reference{.value = 1, .source = "FP32 drops 2^-30, which leaves a tie"}});
  outcome.notes.emplace_back(
      "Stored once, nearly every output is the format's number nearest to the exact one; that is why hardly any is worse than with more stores.");
  return outcome;
}

}  // namespace
}  // namespace e29

Experiment fused_stores() {
  using namespace e29;
  using Kind = Parameter::Kind;
  return {
      .name = "E29",
      .slug = "fused_stores",
      .question = "What does it cost to store between the operations of a layer?",
      .method =
          "x [rows, 256] of N(0, 1) times w [256, 128] of N(0, 1/16) on a Hopper tensor core, "
          "a bias, GELU (sigmoid form) and an RMS norm, every operation rounded to FP32; "
          "results between kernels and at the end are stored in 16 bits. "
          "Compared with FP64 throughout.",
      .expected =
          "No published figure: the mean squared error grows with the number of stores (theory).",
      .parameters = {{"format", "of what is stored", "fp16,bf16", "", Kind::word, true, 0, 0,
                      "fp16,bf16"},
                     {"rows", "of x", "512", "64", Kind::integer, false, 1, 100000}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
