#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "emulator/functions/array_function.hpp"
#include "emulator/functions/function_catalogue.hpp"
#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e39 {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Floats applied(std::string_view name, Floats x) {
  emulator::apply(emulator::require_function("sm_90", name, "E39"), x, x);
  return x;
}

constexpr float log2_of_e = 0x1.715476p+0F;

/// 2^x of an x from -126 to 0 as FlashAttention-4 computes part of them: a cubic of the fraction,
/// each step fused, whose exponent the integer is added to.
float polynomial_ex2(float x) {
  const float whole = std::floor(x), t = x - whole;  // exact
  float p = 0.077119089663028717041015625F;
  for (const float c : {0.227564394474029541015625F, 0.695146143436431884765625F, 1.0F})
    p = std::fma(p, t, c);
  return std::ldexp(p, static_cast<int>(whole));
}

/// One way to compute e^(x - most) of numbers.
struct Exponential {
  std::string name;
  std::function<Floats(const Floats&, float)> of;
};

Floats scaled(const Floats& x, float most) {
  Floats y;
  for (const float number : x) y.push_back(std::fma(number, log2_of_e, -(most * log2_of_e)));
  return y;
}
Floats less(const Floats& x, float most) {
  Floats y;
  for (const float number : x) y.push_back(number - most);
  return y;
}

const std::vector<Exponential>& exponentials() {
  static const std::vector<Exponential> all = {
      {"expf", [](const Floats& x, float most) { return applied("expf", less(x, most)); }},
      {"__expf", [](const Floats& x, float most) { return applied("__expf", less(x, most)); }},
      {"ex2.approx.ftz of a fused argument",
       [](const Floats& x, float most) { return applied("ex2.approx.ftz.f32", scaled(x, most)); }},
      {"cubic of a fused argument", [](const Floats& x, float most) {
         Floats y = scaled(x, most);
         for (float& number : y) number = polynomial_ex2(std::max(number, -126.0F));
         return y;
       }}};
  return all;
}

/// What results are off by: the root of the mean squared relative error, the largest one, and the
/// share that is another number of BF16 than the exact result is.
Doubles errors_of(std::span<const float> results, std::span<const double> exact) {
  double squares = 0, largest = 0, others = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double error = std::abs(static_cast<double>(results[i]) / exact[i] - 1);
    squares += error * error;
    largest = std::max(largest, error);
    using emulator::scalar::rounded;
    if (rounded(formats::bf16, static_cast<double>(results[i])) != rounded(formats::bf16, exact[i]))
      ++others;
  }
  const auto count = static_cast<double>(results.size());
  return {std::sqrt(squares / count), largest, 100 * others / count};
}

Floats drawn_row(const Run& run, std::string_view name, std::int64_t row, std::int64_t columns,
                 double deviation) {
  const Draws draws = run.draws(name);
  Floats x;
  for (std::int64_t i = 0; i < columns; ++i)
    x.push_back(
        static_cast<float>(deviation * draws.draw(Distribution::normal,
                                                  static_cast<std::uint64_t>(row * columns + i))));
  return x;
}

/// Probabilities of rows of scores; the sum and the quotient are FP32's.
Doubles softmax_errors(const Run& run, const Exponential& exponential) {
  const std::int64_t rows = run.settings().integer("rows"), columns = run.settings().integer("n");
  Floats results;
  Doubles exact;
  for (std::int64_t row = 0; row < rows; ++row) {
    const Floats x = drawn_row(run, "scores", row, columns, 3);
    const float most = std::ranges::max(x);
    const Floats powers = exponential.of(x, most);
    float sum = 0;
    double exact_sum = 0;
    for (const float power : powers) sum += power;
    for (const float score : x) exact_sum += std::exp(double{score} - double{most});
    for (std::size_t i = 0; i < x.size(); ++i) {
      results.push_back(powers[i] / sum);
      exact.push_back(std::exp(double{x[i]} - double{most}) / exact_sum);
    }
  }
  return errors_of(results, exact);
}

/// (x - mean) / sqrt(variance + eps) of rows, mean and variance from FP64 and rounded: what differs
/// is the root.
Doubles norm_errors(const Run& run, bool is_approximate) {
  const std::int64_t rows = run.settings().integer("rows"), columns = run.settings().integer("n");
  Floats results;
  Doubles exact;
  for (std::int64_t row = 0; row < rows; ++row) {
    const Floats x = drawn_row(run, "activations", row, columns, 2);
    double mean = 0, variance = 0;
    for (const float number : x) mean += double{number} / static_cast<double>(columns);
    const auto centre = static_cast<float>(mean);
    for (const float number : x)
      variance += std::pow(double{number} - double{centre}, 2) / static_cast<double>(columns);
    const float square = static_cast<float>(variance) + 1e-5F;
    const float root = is_approximate ? applied("rsqrt.approx.ftz.f32", {square})[0]
                                      : static_cast<float>(1 / std::sqrt(double{square}));
    for (const float number : x) {
      const float part = number - centre;
      if (part == 0) continue;
      results.push_back(part * root);
      exact.push_back(double{part} / std::sqrt(double{square}));
    }
  }
  return errors_of(results, exact);
}

/// x / 2 (1 + tanh(u)) with u as libraries compute it, of numbers from -4 to 8: errors of tanh
/// alone.
Doubles gelu_errors(const Run& run, std::string_view tanh) {
  const std::int64_t count = run.settings().integer("rows") * run.settings().integer("n");
  Floats x, u;
  for (std::int64_t i = 0; i < count; ++i) {
    x.push_back(
        static_cast<float>(-4 + 12 * (static_cast<double>(i) + 0.5) / static_cast<double>(count)));
    const float cube = x.back() * (x.back() * x.back());
    u.push_back(0x1.988454p-1F * std::fma(cube, 0x1.6e4e26p-5F, x.back()));
  }
  const Floats t = applied(tanh, u);
  Floats results;
  Doubles exact;
  for (std::size_t i = 0; i < x.size(); ++i) {
    results.push_back(0.5F * x[i] * (1 + t[i]));
    // 1 + tanh(u) without cancellation
    exact.push_back(double{x[i]} / (1 + std::exp(-2 * double{u[i]})));
  }
  Doubles errors = errors_of(results, exact);
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    largest = std::max(largest, std::abs(double{results[i]} - exact[i]));
  return {largest, errors[2]};
}

/// The largest relative error of 2^x over every 32nd number from -1 to -1/2, and over as many
/// fractions below.
double largest_ex2_error(const std::function<Floats(Floats)>& ex2) {
  Floats x;
  for (std::uint32_t code = 0xbf000000; code < 0xbf800000; code += 32)
    x.push_back(std::bit_cast<float>(code));
  for (std::uint32_t code = 0xbf000000; code < 0xbf800000; code += 32)
    x.push_back(std::bit_cast<float>(code) + 0.5F);
  const Floats results = ex2(x);
  Doubles exact;
  for (const float number : x) exact.push_back(std::exp2(double{number}));
  return errors_of(results, exact)[1];
}

Outcome run(Run& run) {
  run.announce(exponentials().size() + 5);
  Outcome outcome;
  Curve relative{"softmax", {}, {}, Look::points};
  double place = 0;
  for (const Exponential& exponential : exponentials()) {
    const auto& errors =
        run.point("softmax, " + exponential.name, [&] { return softmax_errors(run, exponential); });
    const std::string key = "softmax by " + exponential.name;
    outcome.findings.push_back({key + ": root of the mean squared relative error", "", errors[0]});
    outcome.findings.push_back({key + ": largest relative error", "", errors[1]});
    outcome.findings.push_back({key + ": rounds to other BF16 numbers", "%", errors[2]});
    outcome.figure.categories.push_back(exponential.name);
    relative.add(place++, errors[0]);
  }
  for (const bool is_approximate : {false, true}) {
    const std::string key = std::string("layer norm by ") +
                            (is_approximate ? "rsqrt.approx.ftz" : "a correctly rounded root");
    const auto& errors = run.point(key, [&] { return norm_errors(run, is_approximate); });
    outcome.findings.push_back({key + ": root of the mean squared relative error", "", errors[0]});
    outcome.findings.push_back(
        {key + ": largest relative error", "", errors[1],
         Reference{.value = (is_approximate ? 1.52 : 0.5) * 0x1p-23 + 0x1p-24,
                   .source = "the root's largest error, and one product",
                   .relation = Reference::Relation::at_most}});
    outcome.findings.push_back({key + ": rounds to other BF16 numbers", "%", errors[2]});
  }
  for (const char* const tanh : {"tanhf", "tanh.approx.f32"}) {
    const std::string key = std::string("GELU by ") + tanh;
    const auto& errors = run.point(key, [&] { return gelu_errors(run, tanh); });
    outcome.findings.push_back({key + ": largest error", "", errors[0]});
    outcome.findings.push_back({key + ": rounds to other BF16 numbers", "%", errors[1]});
  }
  const auto& ex2 = run.point("ex2", [&] {
    return Doubles{
        largest_ex2_error([](Floats x) { return applied("ex2.approx.ftz.f32", std::move(x)); }),
        largest_ex2_error([](Floats x) {
          for (float& number : x) number = polynomial_ex2(number);
          return x;
        })};
  });
  outcome.findings.push_back({"ex2.approx.ftz: largest relative error", "", ex2[0],
                              Reference{.value = 2.06 * 0x1p-23,
                                        .source = "its largest error over all inputs, 2.055 ulp",
                                        .relation = Reference::Relation::at_most}});
  outcome.findings.push_back({"cubic: largest relative error", "", ex2[1],
                              Reference{.value = 8.8e-5,
                                        .tolerance = 5e-7,
                                        .tolerance_reason = "half a unit of the printed last digit",
                                        .source = "FlashAttention-4, arXiv 2603.05451",
                                        .certainty = Certainty::recalled}});
  outcome.figure.title = "E39: softmax by approximate exponentials";
  outcome.figure.x_label = "exponential";
  outcome.figure.y_label = "root of the mean squared relative error";
  outcome.figure.log_y = true;
  outcome.figure.curves = {relative};
  outcome.notes.emplace_back(
      "In FP32 the cubic is a hundred times less exact than the unit; rounded to BF16 about one probability in a "
      "hundred is another number. The root of layer norm hardly matters. GELU by tanh.approx is off by some 10^-6, "
      "which BF16 shows at negative numbers, where 1 + tanh cancels.");
  return outcome;
}

}  // namespace
}  // namespace e39

Experiment approximate_functions() {
  using namespace e39;
  using Kind = Parameter::Kind;
  return {
      .name = "E39",
      .slug = "approximate_functions",
      .question = "What do approximate functions cost in softmax, layer norm and GELU?",
      .method =
          "Functions as an H100 computes them, around them FP32: softmax of scores of N(0, 9) by expf, __expf, "
          "ex2.approx and the cubic of FlashAttention-4; layer norm of N(0, 4) by rsqrt.approx; GELU of numbers from "
          "-4 to 8 by tanhf and tanh.approx. Errors are against FP64.",
      .expected =
          "The cubic's largest relative error is 8.8e-5 (FlashAttention-4, arXiv 2603.05451, recalled). Errors of layer norm are within "
          "those of the root and of one product (derived).",
      .parameters = {{"rows", "rows", "256", "16", Kind::integer, false, 1, 65536},
                     {"n", "numbers of a row", "1024", "", Kind::integer, false, 2, 65536}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
