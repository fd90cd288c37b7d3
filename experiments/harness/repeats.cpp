#include "experiments/harness/repeats.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

namespace guardbit::experiments {

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
      " last digit, and three standard deviations of another repeat, as a share of the smaller number: it is one run with other numbers");
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
