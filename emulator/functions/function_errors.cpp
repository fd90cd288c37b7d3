#include "emulator/functions/function_errors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator {

namespace {

double least_normal(const formats::Format& format) {
  return std::ldexp(1.0, formats::min_exponent(format));
}

bool is_in_normal_range(const formats::Format& format, double x) {
  const double magnitude = std::abs(x);
  return magnitude >= least_normal(format) &&
         magnitude <= double_of(format, formats::max_finite_code(format));
}

/// The nearest code to a double.
std::uint64_t rounded_code(const formats::Format& format, double x) {
  if (format == formats::fp32) return std::bit_cast<std::uint32_t>(static_cast<float>(x));
  return formats::convert(formats::fp64, std::bit_cast<std::uint64_t>(x), format);
}

/// Results of neighbouring arguments of one sign.
struct Side {
  std::vector<std::uint32_t> x, results;
  std::vector<double> exact;
};

void compute(const Function& function, Side& side) {
  side.results.resize(side.x.size());
  side.exact.clear();
  std::vector<std::uint32_t> second(function.results > 1 ? side.x.size() : 0);
  function.run({{side.x}, {side.results, second}});
  for (const std::uint32_t code : side.x)
    side.exact.push_back(function.in_doubles({double_of(function.formats.operands[0], code)})[0]);
}

void count(FunctionErrors& errors, const formats::Format& format, std::uint32_t x,
           std::uint32_t result, double exact) {
  const std::uint64_t rounded = rounded_code(format, exact);
  if (!is_in_normal_range(format, exact)) {
    const bool are_nans = std::isnan(exact) && std::isnan(double_of(format, result));
    if (!are_nans && rounded != result && !(std::abs(error_in_ulp(format, result, exact)) <= 1))
      ++errors.unlike;
    return;
  }
  const std::optional<double> error = counted_error(format, result, exact);
  if (!error) {
    ++errors.unlike;
    return;
  }
  ++errors.results;
  if (rounded == result) ++errors.correctly_rounded;
  const double bin = std::floor(*error * 8) + 32;
  ++errors.histogram[static_cast<std::size_t>(std::clamp(bin, 0.0, 63.0))];
  if (std::abs(*error) > errors.largest) {
    errors.largest = std::abs(*error);
    errors.largest_at = x;
  }
}

/// The first argument is the last of the part before, if there is one: only the step from it
/// counts.
void count(FunctionErrors& errors, const formats::Format& format, const Side& side,
           bool is_first_part) {
  if (is_first_part) count(errors, format, side.x[0], side.results[0], side.exact[0]);
  for (std::size_t i = 1; i < side.x.size(); ++i) {
    count(errors, format, side.x[i], side.results[i], side.exact[i]);
    const double rise = side.exact[i] - side.exact[i - 1];
    const double step = double_of(format, side.results[i]) - double_of(format, side.results[i - 1]);
    if (rise * step < 0 && std::isfinite(step)) ++errors.not_monotonic;
  }
}

void count_symmetry(FunctionErrors& errors, std::uint32_t sign, const Side& positive,
                    const Side& negative) {
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

double double_of(const formats::Format& format, std::uint64_t code) {
  if (format == formats::fp32)
    return double{std::bit_cast<float>(static_cast<std::uint32_t>(code))};
  return std::bit_cast<double>(formats::convert(format, code, formats::fp64));
}

double ulp_at(const formats::Format& format, double x) {
  if (format.encoding == formats::Encoding::integer) return 1;
  const double magnitude = std::max(std::abs(x), least_normal(format));
  return std::ldexp(1.0, std::ilogb(magnitude) - format.fraction_bits);
}

double error_in_ulp(const formats::Format& format, std::uint64_t result, double exact) {
  const double y = double_of(format, result);
  if (y == exact || (std::isnan(y) && std::isnan(exact))) return 0;
  if (std::isnan(exact)) return exact;
  return (y - exact) / ulp_at(format, exact);
}

std::optional<double> counted_error(const formats::Format& format, std::uint64_t result,
                                    double exact) {
  if (!is_in_normal_range(format, exact)) return std::nullopt;
  const double error = error_in_ulp(format, result, exact);
  return std::isfinite(error) ? std::optional(error) : std::nullopt;
}

double exact_result(const Function& function, const OperandCodes& codes) {
  std::array<double, most_operands> numbers{};
  for (std::size_t i = 0; i < function.operands; ++i)
    numbers.at(i) = double_of(function.formats.operands.at(i), codes.at(i));
  return function.in_doubles(numbers)[0];
}

std::optional<double> counted_error(const Function& function, const OperandCodes& codes,
                                    std::uint64_t result) {
  for (std::size_t i = 0; i < function.operands; ++i)
    if (!std::isfinite(double_of(function.formats.operands.at(i), codes.at(i))))
      return std::nullopt;
  return counted_error(function.formats.results[0], result, exact_result(function, codes));
}

FunctionErrors function_errors(const Function& function, std::uint64_t stride, int threads,
                               const std::function<void(std::uint64_t)>& progress) {
  const formats::Format& format = function.formats.operands[0];
  const auto sign = static_cast<std::uint32_t>(formats::sign_mask(format));
  const std::uint64_t magnitudes = formats::infinity_code(format);  // finite ones
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
      count(part, function.formats.results[0], *side, begin == 0);
    }
    count_symmetry(part, sign, positive, negative);
    const std::lock_guard lock(mutex);
    add(all, part);
    done += 2 * (end - begin);
    progress(done);
  });
  return all;
}

}  // namespace guardbit::emulator
