#include "tests/recorders/largest_error_search.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/function_errors.hpp"
#include "emulator/functions/rounded_instruction.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::tests {

namespace {

using emulator::ErrorInputs;
using emulator::Function;
using emulator::LargestError;
using emulator::OperandCodes;

/// Keeps the larger error, of equal ones that of the smaller code.
void keep(LargestError& kept, double ulp, const OperandCodes& at) {
  if (ulp < kept.ulp || (ulp == kept.ulp && !(at < kept.at))) return;
  kept.ulp = ulp;
  kept.at = at;
}

// ---- One operand ----

/// How a run of neighbouring codes stands to a polynomial of the fifth degree.
enum class Fit { good, poor, does_not_count };

/// Codes are numbered as digests number them: of FP64 by the high word.
class CodeSearch {
 public:
  static constexpr std::size_t at_once = 4096, least = 64, nodes = 6;

  CodeSearch(const Function& function, std::atomic<double>& best)
      : function_(function),
        low_bits_(formats::bits(function.formats.operands[0]) - emulator::input_bits(function)),
        sign_(formats::sign_mask(function.formats.operands[0]) >> low_bits_),
        best_(best) {}

  /// Both signs of the magnitudes [begin, begin + at_once).
  LargestError search(std::uint64_t begin) {
    origin_ = begin;
    function_.run ? run<std::uint32_t>(function_.run) : run<std::uint64_t>(function_.run_wide);
    both_sides(begin, at_once);
    return found_;
  }

 private:
  std::uint64_t code_of(std::uint64_t magnitude, bool negative) const {
    return (magnitude | (negative ? sign_ : 0)) << low_bits_;
  }
  template <class Word>
  void run(const std::function<void(const emulator::CodeArrays<Word>&)>& function) {
    std::vector<Word> codes(at_once), codes_of_results(at_once);
    std::vector<Word> second(function_.results > 1 ? at_once : 0);
    for (const bool negative : {false, true}) {
      const Word first = static_cast<Word>(code_of(origin_, negative)),
                 step = static_cast<Word>(Word{1} << low_bits_);
      for (std::size_t i = 0; i < at_once; ++i) codes[i] = static_cast<Word>(first + i * step);
      function({{codes}, {codes_of_results, second}});
      const formats::Format& format = function_.formats.results[0];
      auto& results = results_.at(negative ? 1 : 0);
      if (format == formats::fp32) {
        for (std::size_t i = 0; i < at_once; ++i)
          results[i] = std::bit_cast<float>(static_cast<std::uint32_t>(codes_of_results[i]));
      } else {
        for (std::size_t i = 0; i < at_once; ++i)
          results[i] = emulator::double_of(format, codes_of_results[i]);
      }
    }
  }
  double number_of(std::uint64_t magnitude, bool negative) const {
    return emulator::double_of(function_.formats.operands[0], code_of(magnitude, negative));
  }
  double exact_at(std::uint64_t magnitude, bool negative) const {
    return emulator::exact_result(function_, {code_of(magnitude, negative)});
  }

  /// Where a run is interpolated, and where the interpolation is compared with the function: its
  /// ends, and between the nodes.
  static std::array<std::uint64_t, nodes> places_of_nodes(std::uint64_t begin, std::size_t count) {
    std::array<std::uint64_t, nodes> places{};
    for (std::size_t i = 0; i < nodes; ++i) {
      const double angle = std::acos(-1.0) * static_cast<double>(2 * i + 1) / (2 * nodes);
      places.at(i) = begin + static_cast<std::uint64_t>(static_cast<double>(count - 1) *
                                                        (1 - std::cos(angle)) / 2);
    }
    return places;
  }
  static std::vector<std::uint64_t> places_of_checks(std::uint64_t begin, std::size_t count) {
    const auto at = places_of_nodes(begin, count);
    std::vector<std::uint64_t> places = {begin, begin + count - 1};
    for (std::size_t i = 1; i < nodes; ++i) places.push_back(std::midpoint(at.at(i - 1), at.at(i)));
    return places;
  }

  bool counts(double exact) const {
    const formats::Format& format = function_.formats.results[0];
    return emulator::counted_error(format, 0, exact).has_value();
  }

  /// Fills exact_ with the function of a run, unless it does not count there.
  Fit interpolate(std::uint64_t begin, std::size_t count, bool negative) {
    const auto at = places_of_nodes(begin, count);
    const double low = number_of(begin, negative), high = number_of(begin + count - 1, negative);
    const double middle = (low + high) / 2, half = (high - low) / 2;
    const auto place = [&](std::uint64_t magnitude) {
      return (number_of(magnitude, negative) - middle) / half;
    };
    std::array<double, nodes> x{}, c{};
    std::size_t counted = 0, sampled = 0;
    const auto sample = [&](double exact) {
      ++sampled;
      counted += counts(exact) ? 1U : 0U;
      return exact;
    };
    for (std::size_t i = 0; i < nodes; ++i) {
      x.at(i) = place(at.at(i));
      c.at(i) = sample(exact_at(at.at(i), negative));
    }
    for (std::size_t order = 1; order < nodes; ++order)
      for (std::size_t i = nodes - 1; i >= order; --i)
        c.at(i) = (c.at(i) - c.at(i - 1)) / (x.at(i) - x.at(i - order));
    const auto polynomial = [&](double t) {
      double sum = c[nodes - 1];
      for (std::size_t i = nodes - 1; i-- > 0;) sum = sum * (t - x[i]) + c[i];
      return sum;
    };
    bool is_good = true;
    for (const std::uint64_t magnitude : places_of_checks(begin, count)) {
      const double exact = sample(exact_at(magnitude, negative));
      const double miss = std::abs(polynomial(place(magnitude)) - exact);
      is_good = is_good && miss <= 0x1p-44 * std::abs(exact);
    }
    if (counted == 0) return Fit::does_not_count;
    if (counted < sampled || !is_good) return Fit::poor;
    // A run lies in one binade, where neighbours are equally far apart.
    const double first = place(begin),
                 step = (place(begin + count - 1) - first) / static_cast<double>(count - 1);
    double* const to = exact_.data();
    for (int i = 0; i < static_cast<int>(count); ++i) to[i] = polynomial(first + i * step);
    return Fit::good;
  }
  /// The same, exactly where runs are short.
  Fit fill(std::uint64_t begin, std::size_t count, bool negative) {
    const Fit fit = interpolate(begin, count, negative);
    if (fit != Fit::poor || count > least) return fit;
    for (std::size_t i = 0; i < count; ++i) exact_[i] = exact_at(begin + i, negative);
    return Fit::good;
  }

  /// f(-x) over f(x), if that is 1 or -1 wherever it is asked.
  std::optional<double> symmetry(std::uint64_t begin, std::size_t count) const {
    double factor = 0;
    for (const std::uint64_t magnitude : places_of_checks(begin, count)) {
      const double x = exact_at(magnitude, false), y = exact_at(magnitude, true);
      if (std::isnan(x) || std::abs(x) != std::abs(y)) return std::nullopt;
      const double this_factor = x == y ? 1 : -1;
      if (x != 0 && factor != 0 && factor != this_factor) return std::nullopt;
      if (x != 0) factor = this_factor;
    }
    return factor == 0 ? 1 : factor;
  }

  void both_sides(std::uint64_t begin, std::size_t count) {
    const Fit fit = fill(begin, count, false);
    if (fit == Fit::poor) {
      for (std::size_t i = 0; i < 4; ++i) both_sides(begin + i * count / 4, count / 4);
      return;
    }
    if (fit == Fit::good) compare(begin, count, false, 1);
    const std::optional<double> factor = symmetry(begin, count);
    if (!factor) return one_side(begin, count);
    if (fit == Fit::good) compare(begin, count, true, *factor);
  }
  /// Negative numbers.
  void one_side(std::uint64_t begin, std::size_t count) {
    const Fit fit = fill(begin, count, true);
    if (fit == Fit::good) compare(begin, count, true, 1);
    if (fit != Fit::poor) return;
    for (std::size_t i = 0; i < 4; ++i) one_side(begin + i * count / 4, count / 4);
  }

  /// Results of a run with exact_ times a factor.
  void compare(std::uint64_t begin, std::size_t count, bool negative, double factor) {
    const formats::Format& format = function_.formats.results[0];
    const double* const results =
        results_.at(negative ? 1 : 0).data() + static_cast<std::ptrdiff_t>(begin - origin_);
    const double scale = std::ldexp(1.0, format.fraction_bits);
    std::array<double, least> is_large;
    for (std::size_t i = 0; i < count; i += least) {
      const double inverse = scale / limit();
      double large = 0;
      for (std::size_t k = 0; k < least; ++k) {
        const double exact = exact_[i + k] * factor;
        // The power of 2 at or below the exact result.
        const double binade =
            std::bit_cast<double>(std::bit_cast<std::uint64_t>(exact) & binade_bits);
        const double error = std::abs(results[i + k] - exact) * inverse - binade;
        is_large[k] = error < 0 ? 0 : 1;
        large += is_large[k];
      }
      if (large == 0) continue;
      for (std::size_t k = 0; k < least; ++k)
        if (is_large[k] != 0) compute(begin + i + k, results[i + k], negative);
    }
  }
  void compute(std::uint64_t magnitude, double result, bool negative) {
    const formats::Format& format = function_.formats.results[0];
    const double exact = exact_at(magnitude, negative);
    if (!counts(exact)) return;
    const double error = std::abs(result - exact) / emulator::ulp_at(format, exact);
    if (!std::isfinite(error) || error == 0) return;
    keep(found_, error, {code_of(magnitude, negative)});
    if (found_.ulp > best_.load()) best_.store(found_.ulp);
  }
  /// What errors must reach before they are computed: about the largest one so far, and more than
  /// the interpolation's own.
  double limit() const {
    return std::max(1e-5, std::max(best_.load(), found_.ulp) * (1 - 1e-5) - 1e-5);
  }

  static constexpr std::uint64_t binade_bits = 0x7ff0000000000000;

  const Function& function_;
  int low_bits_;
  std::uint64_t sign_, origin_ = 0;
  std::atomic<double>& best_;
  LargestError found_;
  std::array<std::array<double, at_once>, 2> results_{};
  std::array<double, at_once> exact_{};
};

LargestError search_codes(const Function& function, int threads) {
  const formats::Format& format = function.formats.operands[0];
  const int low_bits = formats::bits(format) - emulator::input_bits(function);
  const std::uint64_t magnitudes = formats::infinity_code(format) >> low_bits;
  std::mutex mutex;
  std::atomic<double> best = 0;
  LargestError all;
  formats::parallel_for(magnitudes, CodeSearch::at_once, threads,
                        [&](std::size_t begin, std::size_t) {
                          const LargestError part = CodeSearch(function, best).search(begin);
                          const std::lock_guard lock(mutex);
                          keep(all, part.ulp, part.at);
                        });
  return all;
}

LargestError search_by_function_errors(const Function& function, std::uint64_t stride,
                                       int threads) {
  const emulator::FunctionErrors errors = emulator::function_errors(function, stride, threads);
  LargestError found;
  found.ulp = errors.largest;
  found.at = {errors.largest_at};
  return found;
}

// ---- Drawn operands, and rounding ----

LargestError search_draws(const Function& function, int threads) {
  std::mutex mutex;
  LargestError all;
  formats::parallel_for(
      emulator::drawn_error_inputs, 1 << 12, threads, [&](std::size_t begin, std::size_t end) {
        std::vector<std::vector<std::uint64_t>> operands(function.operands);
        for (std::size_t i = begin; i < end; ++i) {
          const OperandCodes codes = emulator::drawn_inputs(function, i);
          for (std::size_t k = 0; k < operands.size(); ++k) operands[k].push_back(codes.at(k));
        }
        const auto results = emulator::function_results(function, operands, 1);
        LargestError part;
        for (std::size_t i = 0; i < end - begin; ++i) {
          OperandCodes codes{};
          for (std::size_t k = 0; k < operands.size(); ++k) codes.at(k) = operands[k][i];
          const auto error = emulator::counted_error(function, codes, results[0][i]);
          if (error && *error != 0) keep(part, std::abs(*error), codes);
        }
        const std::lock_guard lock(mutex);
        keep(all, part.ulp, part.at);
      });
  return all;
}

LargestError by_definition(const Function& function) {
  LargestError found;
  const auto& all = emulator::rounded_instructions();
  const auto named = std::ranges::find(all, function.name, &emulator::NamedInstruction::name);
  const bool is_nearest =
      named != all.end() && named->instruction.rounding == formats::Rounding::nearest_even;
  found.ulp = is_nearest ? 0.5 : 1;
  return found;
}

}  // namespace

LargestError search_largest_error(const Function& function, ErrorInputs asked, int threads) {
  const auto found = [&] {
    switch (asked) {
      case ErrorInputs::all:
        return emulator::input_bits(function) == 32
                   ? search_codes(function, threads)
                   : search_by_function_errors(function, 1, threads);
      case ErrorInputs::every_1009th:
        return search_by_function_errors(function, emulator::error_stride, threads);
      case ErrorInputs::drawn: return search_draws(function, threads);
      case ErrorInputs::definition: return by_definition(function);
    }
    return LargestError{};
  };
  LargestError error = found();
  if (error.ulp == 0) error.at = {};
  error.function = function.name;
  error.compile = function.compile;
  error.asked = asked;
  return error;
}

}  // namespace guardbit::tests
