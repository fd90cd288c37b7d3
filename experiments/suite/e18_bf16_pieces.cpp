#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "emulator/gemm/scalar.hpp"
#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e18 {
namespace {

struct Method {
  std::string_view name;
  /// 0 pieces: FP32 multiply-adds
  int pieces, ranks;
};
constexpr std::array methods = {Method{"x1", 1, 1}, Method{"x3", 2, 2}, Method{"x6", 3, 3},
                                Method{"x9", 3, 5}, Method{"sgemm", 0, 0}};

/// Where sums go on: in the unit, or in FP32 outside it after each instruction.
enum class Adding : std::uint8_t { unit, promoted };

emulator::GemmPlan plan_of(const Method& method, Adding adding) {
  emulator::GemmPlan plan;
  if (method.pieces == 0) return plan;
  plan.unit = {"sm_90", "wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16"};
  plan.input.pieces = method.pieces;
  plan.input.ranks = method.ranks;
  if (adding == Adding::promoted)
    plan.promotion.interval = 16;  // elements of K: all products of their pieces
  return plan;
}

/// Largest error over |A||B| of each method and way of adding.
std::vector<double> accuracies(Run& run, std::int64_t size, std::int64_t k) {
  emulator::GemmProblem problem;
  problem.a = run.draws("A").matrix(formats::fp32, size, k, Distribution::normal, run.threads());
  problem.b = run.draws("B").matrix(formats::fp32, k, size, Distribution::normal, run.threads());
  const auto exact = values_of(run.multiply(exact_plan(), problem));
  const auto scale = magnitude_products(run, problem);
  std::vector<double> result;
  for (const Adding adding : {Adding::unit, Adding::promoted}) {
    for (const Method& method : methods)
      result.push_back(
          largest_share(values_of(run.multiply(plan_of(method, adding), problem)), exact, scale));
  }
  return result;
}

/// Largest relative error of numbers in [1, 2) kept as two BF16 pieces; every `stride`-th of FP32.
double error_of_two_pieces(std::int64_t stride) {
  double largest = 0;
  for (std::int64_t i = 0; i < std::int64_t{1} << 23; i += stride) {
    const double x = 1 + std::ldexp(static_cast<double>(i), -23);
    const double first = emulator::scalar::rounded(formats::bf16, x);
    const double second = emulator::scalar::rounded(formats::bf16, x - first);
    largest = std::max(largest, std::abs(x - first - second) / x);
  }
  return largest;
}

double bits(double error) { return -std::log2(error); }

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto lengths = s.integers("K");
  run.announce(lengths.size() + 1);
  Outcome outcome;
  outcome.figure = {"E18: FP32 products from BF16 pieces", "K (products in each sum)",
                    "bits: -log2 of the largest |error| / (|A||B|)", true};
  const auto& pieces = run.point(
      "pieces", [&] { return std::vector<double>{error_of_two_pieces(s.integer("stride"))}; });
  outcome.findings.push_back(
      {"bits of any FP32 number that two BF16 pieces hold", "bits", bits(pieces[0]),
       Reference{.value = 16,
                 .source = "PyTorch, set_float32_matmul_precision: about 16 bits",
                 .certainty = Certainty::read,
                 .relation = Reference::Relation::at_least}});
  for (const bool promoted : {false, true})
    for (const Method& m : methods)
      outcome.figure.curves.push_back(
          {std::string(m.name) + (promoted ? ", promoted" : ", not promoted")});
  for (const std::int64_t k : lengths) {
    const std::string key = "K=" + std::to_string(k);
    const auto& errors = run.point(key, [&] { return accuracies(run, s.integer("MN"), k); });
    for (std::size_t i = 0; i < errors.size(); ++i) {
      Curve& curve = outcome.figure.curves[i];
      curve.add(static_cast<double>(k), bits(errors[i]));
      const bool again = i >= methods.size() && methods[i - methods.size()].pieces == 0;
      if (!again)
        outcome.findings.push_back(
            {key + " " + curve.name + ": accuracy", "bits", bits(errors[i])});
    }
    constexpr std::size_t x9 = 3, sgemm = 4;
    outcome.findings.push_back(
        {key + ": error of x9, promoted, over that of FP32 multiply-adds", "",
         errors[methods.size() + x9] / errors[sgemm],
         Reference{.value = 1,
                   .source = "arXiv 2605.16617, abstract: at least the accuracy of SGEMM",
                   .certainty = Certainty::read,
                   .relation = Reference::Relation::at_most,
                   .undecidable = k < 16 || s.integer("MN") < 32
                                      ? "so few and short sums are a matter of luck"
                                      : ""}});
  }
  std::erase_if(outcome.figure.curves, [](const Curve& c) { return c.name == "sgemm, promoted"; });
  outcome.notes.emplace_back(
      "Pieces alone do not give FP32's accuracy: "
      "where the tensor core also adds along K, its cuts cost several bits from K = 64 on, whatever the number of pieces. "
      "Added outside it after each instruction (promoted), nine products are as accurate as FP32 multiply-adds or more. "
      "Numbers whose pieces fall below BF16's range (FP32's subnormal ones) would need scaling, which these plans do not have.");
  return outcome;
}

}  // namespace
}  // namespace e18

Experiment bf16_pieces() {
  using namespace e18;
  using Kind = Parameter::Kind;
  return {
      .name = "E18",
      .slug = "bf16_pieces",
      .question = "How accurate are FP32 products made of BF16 pieces?",
      .method =
          "Normal FP32 numbers are cut into 1, 2 or 3 BF16 numbers; "
          "1, 3, 6 or 9 products of pieces are added by a Hopper tensor core along all of K, or (promoted) in FP32 after each instruction; "
          "the largest error over |A||B|, beside FP32 multiply-adds.",
      .expected =
          "Two pieces hold about 16 bits (PyTorch's documentation, read); nine products are at least as accurate as SGEMM (arXiv 2605.16617, abstract read).",
      .parameters = {{"K", "products in each sum", "16:4096:x4", "64,1024", Kind::integer, true, 1,
                      65536},
                     {"MN", "rows of A and columns of B", "128", "64", Kind::integer, false, 4,
                      1024},
                     {"stride", "every so many FP32 numbers of [1, 2) are cut", "1", "61",
                      Kind::integer, false, 1, 1000000}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
