#include "formats/conversion/conversion.hpp"

#include <array>
#include <cassert>
#include <cmath>
#include <mutex>
#include <vector>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/random.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {

namespace {

constexpr int error_bits = 63;

/// What happened to one element.
struct Outcome {
  std::uint64_t code = 0;
  std::uint64_t error = 0;  ///< of ulp_error, when compared
  bool nan_in = false;
  bool zero_made = false;
  bool infinity_made = false;
  bool nan_made = false;
  bool saturated = false;
  bool subnormal_made = false;
  bool inexact = false;
  bool compared = false;
};

/// Sums of outcomes in integers, so that their order does not matter.
struct Tally {
  ConversionSummary counts;
  uint128 error_sum = 0;
  std::uint64_t max_error = 0;

  void add(const Outcome& o, std::uint64_t times) {
    counts.elements += times;
    counts.nans_in += o.nan_in ? times : 0;
    counts.zeros_made += o.zero_made ? times : 0;
    counts.infinities_made += o.infinity_made ? times : 0;
    counts.nans_made += o.nan_made ? times : 0;
    counts.saturated += o.saturated ? times : 0;
    counts.subnormals_made += o.subnormal_made ? times : 0;
    counts.inexact += o.inexact ? times : 0;
    counts.compared += o.compared ? times : 0;
    error_sum += uint128{o.error} * times;
    if (times != 0 && o.error > max_error) max_error = o.error;
  }

  void add(const Tally& other) {
    counts.elements += other.counts.elements;
    counts.nans_in += other.counts.nans_in;
    counts.zeros_made += other.counts.zeros_made;
    counts.infinities_made += other.counts.infinities_made;
    counts.nans_made += other.counts.nans_made;
    counts.saturated += other.counts.saturated;
    counts.subnormals_made += other.counts.subnormals_made;
    counts.inexact += other.counts.inexact;
    counts.compared += other.counts.compared;
    error_sum += other.error_sum;
    if (other.max_error > max_error) max_error = other.max_error;
  }

  ConversionSummary summary() const {
    ConversionSummary result = counts;
    result.max_ulp_error = std::ldexp(static_cast<double>(max_error), -error_bits);
    if (counts.compared != 0) {
      const double sum = std::ldexp(static_cast<double>(error_sum), -error_bits);
      result.mean_ulp_error = sum / static_cast<double>(counts.compared);
    }
    return result;
  }
};

/// significand * 2^(exponent - unit) in 2^-63, rounded down.
uint128 fixed_point(uint128 significand, int exponent, int unit) {
  const int shift = exponent - unit + error_bits;
  if (shift >= 0) return significand << shift;
  return shift <= -128 ? 0 : significand >> -shift;
}

bool is_subnormal(const Format& f, const Value& v) {
  return f.encoding == Encoding::floating && v.kind == Kind::finite &&
         (v.significand >> f.fraction_bits) == 0;
}

/// The number that is rounded to the destination for an element of that value; `from` is its
/// format, where it is one's.
Unrounded operand(const std::optional<Format>& from, const Value& value,
                  const ConversionOptions& options) {
  const Unrounded x =
      options.scale && value.kind != Kind::nan ? multiply(value, *options.scale) : exactly(value);
  const bool reads_source = options.source && (options.source != from || options.scale);
  return reads_source ? exactly(as_source(*options.source, x)) : x;
}

class Converting {
 public:
  Converting(const std::optional<Format>& from, const Format& to, const ConversionOptions& options)
      : from_(from), to_(to), options_(options) {}

  Outcome operator()(const Value& value, RandomBits random) const {
    const Unrounded x = operand(from_, value, options_);
    Outcome outcome;
    outcome.code = encode(to_, x, options_.rounding, options_.overflow, random);
    describe(x, decode(to_, outcome.code), random, outcome);
    outcome.zero_made = outcome.zero_made || (value.kind == Kind::finite && x.kind == Kind::zero);
    outcome.infinity_made =
        outcome.infinity_made || (value.kind == Kind::finite && x.kind == Kind::infinity &&
                                  decode(to_, outcome.code).kind == Kind::infinity);
    return outcome;
  }

  RandomBits random(std::size_t index) const {
    if (options_.rounding != Rounding::stochastic) return {};
    return random_bits(options_.seed, index, options_.random_bits);
  }

 private:
  void describe(const Unrounded& x, const Value& result, RandomBits random,
                Outcome& outcome) const {
    outcome.nan_in = x.kind == Kind::nan;
    outcome.nan_made = x.kind != Kind::nan && result.kind == Kind::nan;
    outcome.zero_made = x.kind == Kind::finite && result.kind == Kind::zero;
    outcome.infinity_made = x.kind == Kind::finite && result.kind == Kind::infinity;
    outcome.subnormal_made = is_subnormal(to_, result);
    const bool is_number = result.kind == Kind::finite || result.kind == Kind::zero;
    outcome.inexact = x.kind != Kind::nan && x.kind != result.kind;
    if (x.kind == Kind::infinity) outcome.saturated = is_number;
    outcome.compared = x.kind == Kind::zero && result.kind == Kind::zero;
    if (x.kind != Kind::finite) return;
    Unrounded magnitude = x;
    if (!to_.has_sign && options_.overflow.negative == Overflow::Negative::magnitude)
      magnitude.negative = false;
    const bool out_of_range = !is_in_range(to_, magnitude, options_.rounding, random);
    outcome.saturated = out_of_range && is_number;
    outcome.compared = !out_of_range && is_number;
    if (outcome.compared) {
      outcome.error = ulp_error(to_, x, outcome.code);
      outcome.inexact = !same_magnitude(x, result);
    } else {
      outcome.inexact = true;
    }
  }

  static bool same_magnitude(const Unrounded& x, const Value& y) {
    if (y.kind != Kind::finite || x.sticky) return false;
    const int shift = x.exponent - y.exponent;
    if (shift >= 0)
      return leading_bit(x.significand) + shift < 128 && x.significand << shift == y.significand;
    return leading_bit(y.significand) - shift < 128 && x.significand == uint128{y.significand}
                                                                            << -shift;
  }

  std::optional<Format> from_;
  Format to_;
  const ConversionOptions& options_;
};

constexpr std::size_t grain = std::size_t{1} << 16;  // a whole number of bytes in every packing
constexpr int widest_table = 16;

}  // namespace

void check(const ConversionOptions& options) {
  if (options.scale && options.scale->kind != Kind::finite) {
    throw Error("scale", "a conversion scales by a finite number other than zero");
  }
  assert(options.random_bits >= 1 && options.random_bits <= 32);
}

std::uint64_t convert_code(const Format& from, std::uint64_t code, const Format& to,
                           const ConversionOptions& options, RandomBits random) {
  return encode(to, operand(from, decode(from, code), options), options.rounding, options.overflow,
                random);
}

int unit_exponent(const Format& f, const Unrounded& x) {
  if (is_integer(f) || x.kind != Kind::finite)
    return is_integer(f) ? 0 : min_exponent(f) - f.fraction_bits;
  const int top = x.exponent + leading_bit(x.significand);
  const int lowest = min_exponent(f);
  if (top >= lowest) return top - f.fraction_bits;
  return f.has_subnormals || f.encoding == Encoding::power_of_two ? lowest - f.fraction_bits
                                                                  : lowest;
}

bool is_in_range(const Format& f, const Unrounded& x, Rounding rounding, RandomBits random) {
  if (x.kind != Kind::finite) return x.kind == Kind::zero;
  if (x.negative && !f.has_sign && !is_integer(f)) return false;
  const int top = x.exponent + leading_bit(x.significand);
  if (is_integer(f)) {
    return top <= 64 &&
           shift_right_and_round(x.significand, -x.exponent, x.sticky, x.negative, rounding, random)
                   .significand <= integer_limit(f, x.negative);
  }
  if (top != max_exponent(f)) return top < max_exponent(f);
  const int shift = top - f.fraction_bits - x.exponent;
  return shift_right_and_round(x.significand, shift, x.sticky, x.negative, rounding, random)
             .significand <= decode(f, max_finite_code(f)).significand;
}

std::uint64_t ulp_error(const Format& format, const Unrounded& x, std::uint64_t code) {
  const int unit = unit_exponent(format, x);
  const Value y = decode(format, code);
  const uint128 exact = fixed_point(x.significand, x.exponent, unit);
  const uint128 result = y.kind == Kind::zero ? 0 : fixed_point(y.significand, y.exponent, unit);
  return static_cast<std::uint64_t>(exact > result ? exact - result : result - exact);
}

ConversionOptions options_of(const Converter& converter) {
  ConversionOptions options;
  options.rounding = converter.rounding;
  options.overflow = converter.overflow;
  options.source = converter.source;
  if (converter.random_bits != 0) options.random_bits = converter.random_bits;
  return options;
}

ConversionSummary convert_codes(const Format& from, Packing from_packing,
                                std::span<const std::byte> input, const Format& to,
                                Packing to_packing, std::span<std::byte> output, std::size_t count,
                                const ConversionOptions& options) {
  check(options);
  const Converting converting(from, to, options);
  // Of a narrow source every code's outcome is worked out once, and how often it occurs is counted.
  std::vector<Outcome> table;
  const std::size_t codes = bits(from) <= widest_table ? std::size_t{1} << bits(from) : 0;
  if (codes != 0 && codes < count && options.rounding != Rounding::stochastic) {
    table.resize(codes);
    for (std::size_t code = 0; code < codes; ++code)
      table[code] = converting(decode(from, code), {});
  }
  Tally total;
  std::mutex mutex;
  parallel_for(count, grain, options.threads, [&](std::size_t begin, std::size_t end) {
    Tally tally;
    if (table.empty()) {
      for (std::size_t i = begin; i < end; ++i) {
        const Value value = decode(from, load_code(input, from, from_packing, i));
        const Outcome outcome = converting(value, converting.random(i));
        store_code(output, to, to_packing, i, outcome.code);
        tally.add(outcome, 1);
      }
    } else {
      std::vector<std::uint32_t> occurrences(codes);
      for (std::size_t i = begin; i < end; ++i) {
        const std::uint64_t code = load_code(input, from, from_packing, i);
        ++occurrences[code];
        store_code(output, to, to_packing, i, table[code].code);
      }
      for (std::size_t code = 0; code < codes; ++code) {
        if (occurrences[code] != 0) tally.add(table[code], occurrences[code]);
      }
    }
    const std::lock_guard lock(mutex);
    total.add(tally);
    if (options.progress) options.progress(total.counts.elements);
  });
  return total.summary();
}

ConversionSummary convert_values(const std::function<Value(std::size_t)>& value, const Format& to,
                                 Packing to_packing, std::span<std::byte> output, std::size_t count,
                                 const ConversionOptions& options) {
  check(options);
  const Converting converting({}, to, options);
  Tally total;
  std::mutex mutex;
  parallel_for(count, grain, options.threads, [&](std::size_t begin, std::size_t end) {
    Tally tally;
    for (std::size_t i = begin; i < end; ++i) {
      const Outcome outcome = converting(value(i), converting.random(i));
      store_code(output, to, to_packing, i, outcome.code);
      tally.add(outcome, 1);
    }
    const std::lock_guard lock(mutex);
    total.add(tally);
    if (options.progress) options.progress(total.counts.elements);
  });
  return total.summary();
}

Tensor convert_tensor(const Tensor& tensor, const Format& to, Packing packing,
                      const ConversionOptions& options, ConversionSummary& summary) {
  const auto count = static_cast<std::size_t>(element_count(tensor.shape));
  std::vector<std::byte> output(byte_size(to, packing, count).value());
  summary = convert_codes(tensor.format, tensor.packing, tensor.bytes, to, packing, output, count,
                          options);
  return owning_tensor(tensor.name, to, packing, tensor.shape, std::move(output));
}

}  // namespace guardbit::formats
