#include <array>
#include <cmath>

#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "experiments/harness/repeats.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/recorded_products.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/codec.hpp"

namespace guardbit::experiments {

namespace e15 {
namespace {

constexpr std::int64_t recorded_size = 1024;

struct Recorded {
  std::string_view method, printed, meaning;
};
constexpr std::array recorded = {
    Recorded{"tf32", "1.97e-3", "allow_tf32 on"},
    Recorded{"fp32", "7.25e-6", "default"},
    Recorded{"tf32_inputs", "1.97e-3", "inputs rounded to TF32, multiplied in FP64"},
};

constexpr std::array products = {
    RecordedProduct{
        "cuBLAS, TF32, 64x64x256", "mm_tf32_64x64x256.safetensors",
        "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 split=8x32:ceil d=fp32"},
    RecordedProduct{"cuBLAS, FP32, 64x64x256", "mm_fp32_64x64x256.safetensors",
                    "simt/fma.fp32 split=8x32:ceil d=fp32"},
};

emulator::GemmPlan plan_of(std::string_view method) {
  emulator::GemmPlan plan;
  if (method == "tf32") plan.unit = {"sm_90", "wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32"};
  return plan;
}

std::vector<double> repeat_errors(Run& run, std::int64_t size, std::int64_t k,
                                  std::int64_t repeat) {
  const std::string name = " of repeat " + std::to_string(repeat);
  emulator::GemmProblem problem;
  problem.a =
      run.draws("A" + name).matrix(formats::fp32, size, k, Distribution::normal, run.threads());
  problem.b =
      run.draws("B" + name).matrix(formats::fp32, k, size, Distribution::normal, run.threads());
  const auto exact = values_of(run.multiply(exact_plan(), problem));
  std::vector<double> values;
  for (const Recorded& r : recorded) {
    emulator::CodeMatrix d;
    if (r.method == "tf32_inputs") {
      emulator::GemmProblem rounded = problem;
      for (const auto& [from, to] : {std::pair{&problem.a, &rounded.a}, {&problem.b, &rounded.b}}) {
        *to = emulator::make_matrix(formats::tf32, 1, from->rows, from->columns);
        for (std::int64_t i = 0; i < from->size(); ++i)
          to->set(i, formats::convert(formats::fp32, (*from)[i], formats::tf32));
      }
      d = run.multiply(exact_plan(), rounded);
    } else {
      d = run.multiply(plan_of(r.method), problem);
    }
    values.push_back(errors_of(values_of(d), exact).largest_over_mean());
  }
  return values;
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto size = s.integer("MN"), k = s.integer("K"), repeats = s.integer("repeats");
  run.announce(static_cast<std::size_t>(repeats) + products.size());
  std::array<Repeats, recorded.size()> errors;
  for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
    const auto& values = run.point("repeat " + std::to_string(repeat),
                                   [&] { return repeat_errors(run, size, k, repeat); });
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i].values.push_back(values[i]);
  }
  Outcome outcome;
  outcome.figure = {"E15: errors of matrix products, and those of an H200", "method",
                    "largest error / mean |exact|", false, true};
  Curve drawn{"emulated", {}, {}, Look::points}, known{"H200", {}, {}, Look::points, true};
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const Recorded& r = recorded[i];
    const auto row = static_cast<double>(outcome.figure.categories.size());
    outcome.figure.categories.emplace_back(r.method);
    for (const double error : errors[i].values) drawn.add(row, error);
    if (k == recorded_size && size == recorded_size) known.add(row, number_of(r.printed));
    Finding finding{std::string(r.method) + ": largest error / mean |exact|", "",
                    errors[i].median()};
    if (k == recorded_size && size == recorded_size) {
      Reference reference = reference_of_repeats(r.printed, errors[i], "recorded");
      reference.source = "torch 2.11 on an H200, " + std::string(r.meaning);
      reference.certainty = Certainty::measured;
      finding.reference = reference;
    }
    outcome.findings.push_back(finding);
  }
  outcome.figure.curves = {drawn, known};
  add_recorded_products(run, products, outcome);
  if (size != recorded_size || k != recorded_size)
    outcome.notes.emplace_back(
        "The recording is of 1024 x 1024 x 1024; the largest of fewer errors is smaller.");
  outcome.notes.emplace_back(
      "Rounding the inputs explains the error of TF32 products; how the unit adds does not matter beside it.");
  return outcome;
}

}  // namespace
}  // namespace e15

Experiment tf32_matmul() {
  using namespace e15;
  using Kind = Parameter::Kind;
  return {
      .name = "E15",
      .slug = "tf32_matmul",
      .question = "How much does TF32 lose in a matrix product, and why?",
      .method =
          "Normal FP32 matrices are multiplied as cuBLAS does on Hopper in TF32 and (one chain of multiply-adds) in FP32, "
          "and exactly after rounding the inputs to TF32; "
          "the largest error over the mean magnitude of the exact product. "
          "Recorded products of cuBLAS are computed again.",
      .expected =
          "1024 x 1024 x 1024 on an H200: 1.97e-3 in TF32, 7.25e-6 in FP32, 1.97e-3 from rounded inputs alone (measured). "
          "Recorded products: every bit (measured).",
      .parameters = {{"K", "products in each sum", "1024", "", Kind::integer, false, 8, 65536},
                     {"MN", "rows of A and columns of B", "1024", "", Kind::integer, false, 16,
                      4096},
                     {"repeats", "with other random numbers", "5", "", Kind::integer, false, 3,
                      100},
                     recordings_parameter()},
      .run = run,
  };
}

}  // namespace guardbit::experiments
