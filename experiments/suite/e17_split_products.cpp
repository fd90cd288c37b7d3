#include <array>
#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e17 {
namespace {

namespace scalar = emulator::scalar;

constexpr std::array methods = {"fp32", "tf32x3 in the unit", "tf32x3", "fp16x3 unscaled",
                                "fp16x3 scaled"};
enum Method : std::size_t { fp32, tf32_in_unit, tf32, fp16_unscaled, fp16_scaled };

/// Sums of each instruction go on in FP32 outside the unit.
emulator::GemmPlan plan_of(std::string_view instruction, std::int64_t promotion, int pieces) {
  emulator::GemmPlan plan;
  plan.unit = {"sm_90", std::string(instruction)};
  plan.promotion.interval = promotion;
  plan.input.pieces = plan.input.ranks = pieces;
  return plan;
}
constexpr std::string_view tf32_unit = "wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32";
constexpr std::string_view fp16_unit = "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16";

/// x as FP16 numbers: round(x), and round((x - round(x)) * 2^11), which keeps the rest in range.
struct ScaledPieces {
  emulator::CodeMatrix first, rest;
};
ScaledPieces scaled_pieces(const emulator::CodeMatrix& x) {
  ScaledPieces pieces = {emulator::make_matrix(formats::fp16, 1, x.rows, x.columns),
                         emulator::make_matrix(formats::fp16, 1, x.rows, x.columns)};
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double value = scalar::decoded(formats::fp32, x[i]);
    const std::uint64_t first = scalar::encoded(formats::fp16, value);
    const double rest = value - scalar::decoded(formats::fp16, first);
    pieces.first.set(i, first);
    pieces.rest.set(i, scalar::encoded(formats::fp16, std::ldexp(rest, 11)));
  }
  return pieces;
}

/// A0 B0 + 2^-11 (A0 B1 + A1 B0), the three products added in FP32.
std::vector<double> scaled_product(Run& run, const emulator::GemmProblem& problem) {
  const ScaledPieces a = scaled_pieces(problem.a), b = scaled_pieces(problem.b);
  const emulator::GemmPlan plan = plan_of(fp16_unit, 16, 1);
  const auto product = [&](const emulator::CodeMatrix& x, const emulator::CodeMatrix& y) {
    emulator::GemmProblem part;
    part.a = x;
    part.b = y;
    return values_of(run.multiply(plan, part));
  };
  auto sum = product(a.first, b.first);
  const auto left = product(a.first, b.rest), right = product(a.rest, b.first);
  const auto f = formats::fp32;
  for (std::size_t i = 0; i < sum.size(); ++i)
    sum[i] = scalar::fma(f, scalar::add(f, left[i], right[i]), std::ldexp(1.0, -11), sum[i]);
  return sum;
}

std::vector<double> errors_at(Run& run, std::int64_t size, std::int64_t k, int exponent) {
  const auto factor = static_cast<float>(std::ldexp(1.0, exponent));
  emulator::GemmProblem problem;
  problem.a =
      run.draws("A").matrix(formats::fp32, size, k, Distribution::normal, run.threads(), factor);
  problem.b = run.draws("B").matrix(formats::fp32, k, size, Distribution::normal, run.threads());
  const auto exact = values_of(run.multiply(exact_plan(), problem));
  const auto scale = magnitude_products(run, problem);
  std::vector<double> errors;
  for (const auto& plan : {emulator::GemmPlan{}, plan_of(tf32_unit, 0, 2), plan_of(tf32_unit, 8, 2),
                           plan_of(fp16_unit, 16, 2)})
    errors.push_back(largest_share(values_of(run.multiply(plan, problem)), exact, scale));
  errors.push_back(largest_share(scaled_product(run, problem), exact, scale));
  return errors;
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto exponents = s.integers("exponent");
  run.announce(exponents.size());
  Outcome outcome;
  outcome.figure = {"E17: FP32 products from two pieces, K = " + s.word("K"),
                    "log2 of the magnitude of A", "bits: -log2 of the largest |error| / (|A||B|)"};
  for (const char* const method : methods) outcome.figure.curves.push_back({method});
  const std::string source = "Ootomo, Yokota, arXiv 2203.03341, abstract: as accurate as SIMT";
  for (const std::int64_t exponent : exponents) {
    const std::string key = "A ~ 2^" + std::to_string(exponent);
    const auto& errors = run.point(key, [&] {
      return errors_at(run, s.integer("MN"), s.integer("K"), static_cast<int>(exponent));
    });
    const auto ratio = [&](Method method, const std::string& what) {
      return Finding{std::string(key).append(", ").append(what).append(
                         ": error over that of FP32 multiply-adds"),
                     "", errors[method] / errors[fp32]};
    };
    for (std::size_t i = 0; i < methods.size(); ++i)
      outcome.figure.curves[i].add(static_cast<double>(exponent), -std::log2(errors[i]));
    // FP16 holds first pieces of all of A where these are normal; the abstract claims no more.
    const bool in_range = exponent >= -8 && exponent <= 8;
    Finding by_tf32 = ratio(tf32, "tf32x3"), by_fp16 = ratio(fp16_scaled, "fp16x3, scaled");
    const Reference as_accurate{.value = 1,
                                .source = source,
                                .certainty = Certainty::read,
                                .relation = Reference::Relation::at_most,
                                .undecidable = s.integer("K") < 64 || s.integer("MN") < 32
                                                   ? "so few and short sums are a matter of luck"
                                                   : ""};
    by_tf32.reference = as_accurate;
    if (in_range) by_fp16.reference = as_accurate;
    outcome.findings.insert(outcome.findings.end(),
                            {by_tf32, by_fp16, ratio(fp16_unscaled, "fp16x3, not scaled"),
                             ratio(tf32_in_unit, "tf32x3, added in the unit")});
  }
  outcome.notes.emplace_back(
      "Two of the abstract's points show: "
      "sums that stay in the tensor core lose bits to its cuts, and an FP16 rest that is not scaled by 2^11 falls below FP16's range.");
  return outcome;
}

}  // namespace
}  // namespace e17

Experiment split_products() {
  using namespace e17;
  using Kind = Parameter::Kind;
  return {
      .name = "E17",
      .slug = "split_products",
      .question = "Can tensor cores multiply FP32 matrices as accurately as FP32 units?",
      .method =
          "Normal FP32 matrices, A times a power of two, are cut into two TF32 or two FP16 pieces, the FP16 rest scaled by 2^11 or not; "
          "three products are added in the unit, or in FP32 after each instruction; the largest error over |A||B|.",
      .expected =
          "With scaled rests and sums outside the unit, as accurate as FP32 multiply-adds (arXiv 2203.03341, abstract read; constants recalled).",
      .parameters = {{"exponent", "log2 of the factor on A", "-24:12:4", "-16:8:8", Kind::integer,
                      true, -100, 100},
                     {"K", "products in each sum", "1024", "256", Kind::integer, false, 16, 65536},
                     {"MN", "rows of A and columns of B", "128", "64", Kind::integer, false, 4,
                      1024}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
