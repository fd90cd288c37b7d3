#include "experiments/accuracy/errors.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <string>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/run.hpp"

namespace guardbit::experiments {

std::vector<double> values_of(const emulator::CodeMatrix& matrix) {
  std::vector<double> values(static_cast<std::size_t>(matrix.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = emulator::scalar::decoded(matrix.format, matrix[static_cast<std::int64_t>(i)]);
  return values;
}

Errors errors_of(const std::vector<double>& numbers, const std::vector<double>& exact) {
  assert(numbers.size() == exact.size());
  Errors e;
  e.count = numbers.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double difference = numbers[i] - exact[i];
    const double magnitude = std::abs(exact[i]);
    e.largest = std::max(e.largest, std::abs(difference));
    e.largest_exact = std::max(e.largest_exact, magnitude);
    if (magnitude != 0)
      e.largest_relative = std::max(e.largest_relative, std::abs(difference) / magnitude);
    e.mean_exact += magnitude;
    e.mean_signed += difference;
    e.mean_squared += difference * difference;
    e.mean_squared_exact += exact[i] * exact[i];
  }
  const auto n = static_cast<double>(std::max<std::size_t>(1, e.count));
  for (double* const sum : {&e.mean_exact, &e.mean_signed, &e.mean_squared, &e.mean_squared_exact})
    *sum /= n;
  return e;
}

emulator::GemmPlan exact_plan() {
  emulator::GemmPlan plan;
  plan.unit = {"simt", "fma.fp64"};
  plan.epilogue.compute = plan.epilogue.output = formats::fp64;
  return plan;
}

std::vector<double> magnitude_products(Run& run, const emulator::GemmProblem& problem) {
  emulator::GemmProblem absolute = problem;
  for (emulator::CodeMatrix* const m : {&absolute.a, &absolute.b}) {
    for (std::int64_t i = 0; i < m->size(); ++i)
      m->set(i, (*m)[i] & formats::magnitude_mask(m->format));
  }
  return values_of(run.multiply(exact_plan(), absolute));
}

double largest_share(const std::vector<double>& numbers, const std::vector<double>& exact,
                     const std::vector<double>& scale) {
  double largest = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    largest = std::max(largest, std::abs(numbers[i] - exact[i]) / scale[i]);
  return largest;
}

double largest_error_share(Run& run, const emulator::GemmPlan& plan, const RandomProduct& x) {
  const Distribution numbers = distribution_of(x.distribution);
  emulator::GemmProblem problem;
  problem.a = run.draws("A").matrix(x.format, x.size, x.k, numbers, run.threads());
  problem.b = run.draws("B").matrix(x.format, x.k, x.size, numbers, run.threads());
  const auto d = values_of(run.multiply(plan, problem));
  const auto exact = values_of(run.multiply(exact_plan(), problem));
  return largest_share(d, exact, magnitude_products(run, problem));
}

double Repeats::median() const {
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 != 0 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double Repeats::spread_of_one_more() const {
  const auto n = static_cast<double>(values.size());
  if (n < 2) return 0;
  double mean = 0, squares = 0;
  for (const double x : values) mean += x / n;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / (n - 1) * (1 + 1 / n));
}

Reference reference_of_repeats(std::string_view printed, const Repeats& measured,
                               std::string_view by) {
  const double value = number_of(printed), median = measured.median();
  const double smaller = std::min(1.0, std::abs(value) / std::abs(median));
  Reference reference;
  reference.value = value;
  reference.tolerance = half_digit(printed) + 3 * measured.spread_of_one_more() * smaller;
  reference.tolerance_reason = "half a unit of the ";
  reference.tolerance_reason.append(by).append(
      " last digit, and three standard deviations of another repeat, as a share of the smaller "
      "number: it is one run with other numbers");
  return reference;
}

double number_of(std::string_view printed) {
  return std::strtod(std::string(printed).c_str(), nullptr);
}

double half_digit(std::string_view printed) {
  const std::size_t e = std::min(printed.find('e'), printed.size());
  const int exponent =
      e == printed.size() ? 0 : std::atoi(std::string(printed.substr(e + 1)).c_str());
  const std::size_t dot = printed.find('.');
  const int decimals = dot == std::string_view::npos ? 0 : static_cast<int>(e - dot - 1);
  return 0.5 * std::pow(10.0, exponent - decimals);
}

}  // namespace guardbit::experiments
