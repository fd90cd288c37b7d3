#include "formats/outcome_counts.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <mutex>

#include "formats/catalogue.hpp"
#include "formats/codec.hpp"
#include "formats/conversion.hpp"
#include "formats/error.hpp"
#include "formats/first_word.hpp"
#include "formats/parallel.hpp"
#include "formats/storage.hpp"

namespace guardbit::formats {

namespace {

constexpr std::size_t chunk = 1024;
constexpr std::size_t grain = std::size_t{1} << 18;
constexpr std::size_t group = 8;  // thresholds that a kernel takes
constexpr std::size_t word_bytes = sizeof(std::uint32_t);

bool is_symmetric(const CountedConversion& c) {
  return c.to.encoding == Encoding::floating && c.to.has_sign &&
         (c.rounding == Rounding::nearest_even || c.rounding == Rounding::nearest_away ||
          c.rounding == Rounding::toward_zero || c.rounding == Rounding::to_odd);
}

Value scaled(std::uint32_t word, int exponent) {
  Value x = decode(fp32, word);
  if (x.kind == Kind::finite) x.exponent += exponent;
  return x;
}

Kind result_kind(const CountedConversion& c, const Value& x) {
  return decode(c.to, encode(c.to, x, c.rounding, c.overflow)).kind;
}

}  // namespace

OutcomeCounting::OutcomeCounting(const Format& from, std::span<const CountedConversion> conversions,
                                 const kernels::Kernels* kernels)
    : from_(from),
      kernels_(kernels != nullptr ? kernels : kernels::available().front()),
      widening_(kernels::widening(from)),
      thresholds_{1, fp32_infinity, fp32_infinity + 1} {
  if (!widening_) throw Error("outcomes", "FP32 does not hold every " + name_of(from));
  for (const CountedConversion& c : conversions) {
    if (!is_symmetric(c))
      throw Error("outcomes", "to " + name_of(c.to) + " they do not depend on magnitudes alone");
    Case counted;
    counted.first_threshold = thresholds_.size();
    const auto in_range = [&](std::uint32_t word) {
      return is_in_range(c.to, exactly(scaled(word, c.scale_exponent)), c.rounding);
    };
    const auto code = [&](std::uint32_t word) {
      return encode(c.to, scaled(word, c.scale_exponent), c.rounding, c.overflow) &
             magnitude_mask(c.to);
    };
    const std::uint32_t out = first_word([&](std::uint32_t word) { return !in_range(word); });
    // What is out of range may have any code, so it is left out of the other searches.
    for (const std::uint64_t least : {std::uint64_t{1}, min_normal_code(c.to)}) {
      thresholds_.push_back(
          first_word([&](std::uint32_t word) { return word >= out || code(word) >= least; }));
    }
    thresholds_.push_back(out);
    if (out < fp32_infinity) {
      const Kind kind = result_kind(c, scaled(out, c.scale_exponent));
      counted.overflow_is_nan = kind == Kind::nan;
      counted.overflow_is_infinity = kind == Kind::infinity;
    }
    const Kind kind = result_kind(c, infinity_value(false));
    counted.infinity_is_nan = kind == Kind::nan;
    counted.infinity_stays = kind == Kind::infinity;
    cases_.push_back(counted);
  }
}

void OutcomeCounting::count_range(std::span<const std::byte> codes, std::size_t begin,
                                  std::size_t end, std::vector<std::uint64_t>& reached) const {
  const auto bytes = static_cast<std::size_t>(container_bits(from_) / 8);
  alignas(64) std::array<std::byte, chunk * word_bytes> buffer;  // written before read
  for (std::size_t i = begin; i < end; i += chunk) {
    const std::size_t count = std::min(chunk, end - i);
    const std::size_t whole = (count + kernels::granule - 1) / kernels::granule * kernels::granule;
    const std::byte* words = codes.data() + i * bytes;
    std::array<std::byte, kernels::granule * word_bytes> rest{};
    const std::size_t direct = count / kernels::granule * kernels::granule;
    std::memcpy(rest.data(), words + direct * bytes, (count - direct) * bytes);
    if (from_ != fp32) {
      kernels_->widen(*widening_, words, buffer.data(), direct);
      if (whole != direct) {
        kernels_->widen(*widening_, rest.data(), buffer.data() + direct * word_bytes,
                        kernels::granule);
      }
      words = buffer.data();
    } else if (whole != direct) {
      std::memcpy(buffer.data(), words, direct * word_bytes);
      std::memcpy(buffer.data() + direct * word_bytes, rest.data(), rest.size());
      words = buffer.data();
    }
    // Zeros that fill the last granule reach no threshold.
    for (std::size_t first = 0; first < thresholds_.size(); first += group) {
      kernels::Thresholds<group> few;
      few.fill(~std::uint32_t{0});
      std::array<std::uint64_t, group> counts{};
      const std::size_t n = std::min(group, thresholds_.size() - first);
      std::copy_n(thresholds_.begin() + static_cast<std::ptrdiff_t>(first), n, few.begin());
      kernels_->count_at_least(words, few, counts, whole);
      for (std::size_t k = 0; k < n; ++k) reached[first + k] += counts[k];
    }
  }
}

std::vector<OutcomeCounts> OutcomeCounting::operator()(std::span<const std::byte> codes,
                                                       std::size_t count, int threads) const {
  assert(byte_size(from_, Packing::container, count).value() <= codes.size());
  std::vector<std::uint64_t> reached(thresholds_.size());
  std::mutex mutex;
  parallel_for(count, grain, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint64_t> part(thresholds_.size());
    count_range(codes, begin, end, part);
    const std::lock_guard lock(mutex);
    for (std::size_t k = 0; k < part.size(); ++k) reached[k] += part[k];
  });
  std::vector<OutcomeCounts> all;
  all.reserve(cases_.size());
  for (const Case& counted : cases_) {
    const std::uint64_t numbers = reached[0];
    const std::uint64_t infinities = reached[1] - reached[2];
    const std::uint64_t nonzero = reached[counted.first_threshold];
    const std::uint64_t normal = reached[counted.first_threshold + 1];
    OutcomeCounts o;
    o.elements = count;
    o.zeros_in = count - numbers;
    o.nans_in = reached[2];
    o.infinities_in = infinities;
    o.zeros_made = numbers - nonzero;
    o.subnormals_made = nonzero - normal;
    o.out_of_range = reached[counted.first_threshold + 2] - reached[1];
    o.infinities_made = counted.overflow_is_infinity ? o.out_of_range : 0;
    o.nans_made =
        (counted.overflow_is_nan ? o.out_of_range : 0) + (counted.infinity_is_nan ? infinities : 0);
    o.saturated = o.out_of_range + infinities - o.infinities_made - o.nans_made -
                  (counted.infinity_stays ? infinities : 0);
    all.push_back(o);
  }
  return all;
}

}  // namespace guardbit::formats
