#include "emulator/functions/function_errors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "formats/support/parallel.hpp"

namespace guardbit::emulator {

namespace {

constexpr std::uint32_t sign = 0x80000000;
constexpr double least_normal = std::numeric_limits<float>::min();
constexpr double greatest = std::numeric_limits<float>::max();

double number_of(std::uint32_t code) { return double{std::bit_cast<float>(code)}; }

/// Results of neighbouring arguments of one sign.
struct Side {
  std::vector<std::uint32_t> x, results;
  std::vector<double> exact;
};

void compute(const Function& function, Side& side) {
  side.results.resize(side.x.size());
  side.exact.clear();
  function.run({{side.x}, {side.results}});
  for (const std::uint32_t code : side.x)
    side.exact.push_back(function.in_doubles({number_of(code)})[0]);
}

void count(FunctionErrors& errors, std::uint32_t x, std::uint32_t result, double exact) {
  const double magnitude = std::abs(exact);
  if (!(magnitude >= least_normal && magnitude <= greatest)) {
    const auto rounded = std::bit_cast<std::uint32_t>(static_cast<float>(exact));
    const bool are_nans = std::isnan(exact) && std::isnan(number_of(result));
    if (!are_nans && rounded != result && error_in_ulp(result, exact) > 1) ++errors.unlike;
    return;
  }
  const double error = error_in_ulp(result, exact);
  if (!std::isfinite(error)) {
    ++errors.unlike;
    return;
  }
  ++errors.results;
  if (std::bit_cast<std::uint32_t>(static_cast<float>(exact)) == result) ++errors.correctly_rounded;
  const double bin = std::floor(error * 8) + 32;
  ++errors.histogram[static_cast<std::size_t>(std::clamp(bin, 0.0, 63.0))];
  if (std::abs(error) > errors.largest) {
    errors.largest = std::abs(error);
    errors.largest_at = x;
  }
}

/// The first argument is the last of the part before, if there is one: only the step from it
/// counts.
void count(FunctionErrors& errors, const Side& side, bool is_first_part) {
  if (is_first_part) count(errors, side.x[0], side.results[0], side.exact[0]);
  for (std::size_t i = 1; i < side.x.size(); ++i) {
    count(errors, side.x[i], side.results[i], side.exact[i]);
    const double rise = side.exact[i] - side.exact[i - 1];
    const double step = number_of(side.results[i]) - number_of(side.results[i - 1]);
    if (rise * step < 0 && std::isfinite(step)) ++errors.not_monotonic;
  }
}

void count_symmetry(FunctionErrors& errors, const Side& positive, const Side& negative) {
  for (std::size_t i = 1; i < positive.x.size(); ++i) {
    const double x = positive.exact[i], y = negative.exact[i];
    if (std::isnan(x) || std::isnan(y) || std::abs(x) != std::abs(y) || positive.x[i] == 0)
      continue;
    const std::uint32_t turned = x == y ? 0 : sign;
    if ((positive.results[i] ^ turned) != negative.results[i]) ++errors.not_symmetric;
  }
}

void add(FunctionErrors& to, const FunctionErrors& from) {
  to.results += from.results;
  to.correctly_rounded += from.correctly_rounded;
  to.unlike += from.unlike;
  to.not_monotonic += from.not_monotonic;
  to.not_symmetric += from.not_symmetric;
  for (std::size_t i = 0; i < to.histogram.size(); ++i) to.histogram[i] += from.histogram[i];
  // Of equal errors that of the smallest code, whatever the order of the parts.
  if (from.largest > to.largest ||
      (from.largest == to.largest && from.largest_at < to.largest_at)) {
    to.largest = from.largest;
    to.largest_at = from.largest_at;
  }
}

}  // namespace

double ulp_at(double x) {
  const double magnitude = std::max(std::abs(x), least_normal);
  return std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

double error_in_ulp(std::uint32_t result, double exact) {
  const double y = number_of(result);
  if (y == exact || (std::isnan(y) && std::isnan(exact))) return 0;
  return (y - exact) / ulp_at(exact);
}

FunctionErrors function_errors(const Function& function, std::uint64_t stride, int threads,
                               const std::function<void(std::uint64_t)>& progress) {
  constexpr std::uint64_t magnitudes = 0x7f800000;  // finite ones
  constexpr std::size_t at_once = 1 << 14;
  const std::uint64_t total = (magnitudes + stride - 1) / stride;
  std::mutex mutex;
  FunctionErrors all;
  std::uint64_t done = 0;
  formats::parallel_for(total, at_once, threads, [&](std::size_t begin, std::size_t end) {
    Side positive, negative;
    for (std::size_t i = begin == 0 ? 0 : begin - 1; i < end; ++i) {
      positive.x.push_back(static_cast<std::uint32_t>(i * stride));
      negative.x.push_back(positive.x.back() | sign);
    }
    FunctionErrors part;
    for (Side* const side : {&positive, &negative}) {
      compute(function, *side);
      count(part, *side, begin == 0);
    }
    count_symmetry(part, positive, negative);
    const std::lock_guard lock(mutex);
    add(all, part);
    done += 2 * (end - begin);
    progress(done);
  });
  return all;
}

}  // namespace guardbit::emulator
