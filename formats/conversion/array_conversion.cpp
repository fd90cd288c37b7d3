#include "formats/conversion/array_conversion.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <mutex>

#include "formats/codec.hpp"
#include "formats/random.hpp"
#include "formats/support/first_code.hpp"
#include "formats/support/parallel.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {

namespace {

constexpr std::size_t grain = std::size_t{1} << 16;  // a whole number of bytes in every packing
constexpr std::size_t chunk = 1024;                  // elements whose words stay in the first cache
constexpr std::size_t line = 64;

/// Outputs longer than this are stored past the caches, which they would only empty.
constexpr std::size_t streamed_bytes = std::size_t{8} << 20;

bool is_power_of_two(const Value& x) { return (x.significand & (x.significand - 1)) == 0; }

int exponent_of(const Value& x) { return x.exponent + leading_bit(x.significand); }

}  // namespace

struct ArrayConversion::Buffers {
  /// where elements are counted
  kernels::LaneCounts* counts = nullptr;
  alignas(line) std::array<std::byte, chunk * kernels::word_bytes> codes;
  alignas(line) std::array<std::byte, chunk * kernels::word_bytes> words;
  alignas(line) std::array<std::byte, chunk * kernels::word_bytes> products;
  alignas(line) std::array<std::byte, chunk> results;
  alignas(line) std::array<std::uint32_t, chunk + 2 * kernels::granule> random;
};

ArrayConversion::ArrayConversion(const Format& from, Packing from_packing, const Format& to,
                                 Packing to_packing, const ConversionOptions& options,
                                 const kernels::Kernels* kernels)
    : from_(from),
      to_(to),
      from_packing_(from_packing),
      to_packing_(to_packing),
      options_(options),
      kernels_(kernels != nullptr ? kernels : kernels::available().front()),
      from_bits_(static_cast<std::size_t>(storage_bits(from, from_packing))),
      to_bits_(static_cast<std::size_t>(storage_bits(to, to_packing))) {
  check(options);
  unpacks_ = from_packing == Packing::dense && bits(from) != container_bits(from);
  packs_ = to_packing == Packing::dense && bits(to) != container_bits(to);
  choose_path();
}

void ArrayConversion::choose_path() {
  // Dense codes of more than a byte lie in no file format.
  if ((unpacks_ && bits(from_) > 8) || (packs_ && bits(to_) > 8) || container_bits(to_) > 32)
    return;
  const bool deterministic = options_.rounding != Rounding::stochastic;
  const bool in_bytes = deterministic && bits(from_) <= 8;
  if (!in_bytes || !kernels_->looks_up_quickly) {
    widening_ = kernels::widening(from_);
    if (widening_ && prepare_scale()) {
      path_ = Path::words;
      return;
    }
  }
  if (!in_bytes) return;
  path_ = Path::bytes;
  for (std::size_t code = 0; code < table_.size(); ++code) {
    table_[code] = static_cast<std::uint32_t>(convert_code(from_, code, to_, options_)
                                              << container_shift(to_));
  }
}

/// Sets what happens between the words and the codes; false where the kernels have no such steps.
bool ArrayConversion::prepare_scale() {
  if (options_.source && *options_.source != fp32 && *options_.source != fp64) return false;
  int exponent = 0;
  if (options_.scale) {
    exponent = exponent_of(*options_.scale);
    constexpr int in_fp64 = 800;  // FP32's numbers times such powers stay in FP64's normal range
    if (options_.source == fp64 &&
        (!is_power_of_two(*options_.scale) || std::abs(exponent) > in_fp64))
      return false;
    if (options_.source == fp32) {
      multiplication_ = kernels::multiplication(*options_.scale);
      exponent = 0;
    } else if (options_.scale->negative || !is_power_of_two(*options_.scale)) {
      multiplication_ = kernels::odd_multiplication(*options_.scale);
      ++exponent;  // the product takes a factor from 1/2 to 1
    }
  }
  narrowing_ =
      kernels::narrowing(to_, options_.rounding, options_.overflow, exponent, options_.random_bits);
  if (!narrowing_) return false;
  if (!multiplication_ || multiplication_->nearest) {
    prepare_counting(exponent);
    return true;
  }
  return options_.rounding != Rounding::stochastic && kernels::keeps_odd_products(to_, exponent);
}

/// Sets from which magnitudes on the narrowing's words are out of range.
void ArrayConversion::prepare_counting(int scale_exponent) {
  counting_ = kernels::counting(to_, scale_exponent);
  counting_->largest = narrowing_->largest;
  const bool is_random = options_.rounding == Rounding::stochastic;
  if (is_random) counting_->random_mask = narrowing_->random_mask;
  const ElementConversion element(fp32, to_, options_);
  const auto first_past = [&](bool negative, Rounding rounding, RandomBits random) {
    return first_word([&](std::uint32_t word) {
      Value x = decode(fp32, word);
      x.negative = negative;
      x.exponent += scale_exponent;
      return x.kind == Kind::finite && element.is_out_of_range(exactly(x), rounding, random);
    });
  };
  counting_->first_exceptional = fp32_infinity;
  for (const bool negative : {false, true}) {
    const RandomBits most = {low_bits(options_.random_bits), options_.random_bits};
    counting_->first_exceptional =
        std::min(counting_->first_exceptional, first_past(negative, options_.rounding, most));
    counting_->past[negative] =
        first_past(negative, is_random ? Rounding::toward_zero : options_.rounding, {});
  }
}

bool ArrayConversion::reads_words() const { return from_ == fp32 && !multiplication_; }

void ArrayConversion::operator()(std::span<const std::byte> input, std::span<std::byte> output,
                                 std::size_t count) const {
  assert(byte_size(from_, from_packing_, count).value() <= input.size());
  assert(byte_size(to_, to_packing_, count).value() <= output.size());
  const bool stream = count * to_bits_ / 8 >= streamed_bytes;
  std::mutex mutex;
  std::size_t done = 0;
  parallel_for(count, grain, options_.threads, [&](std::size_t begin, std::size_t end) {
    if (uses_kernels()) {
      Buffers buffers;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before read
      convert_range(input.data() + begin * from_bits_ / 8, output.data() + begin * to_bits_ / 8,
                    begin, end - begin, stream, buffers);
    } else {
      convert_by_reference(input, output, begin, end);
    }
    if (!options_.progress) return;
    const std::lock_guard lock(mutex);
    done += end - begin;
    options_.progress(done);
  });
}

void ArrayConversion::convert_and_count(std::span<const std::byte> input, std::size_t begin,
                                        std::size_t end, std::byte* output, Tally& tally) const {
  assert(counts() && begin % 8 == 0 && end - begin <= grain);
  kernels::LaneCounts counts;
  Buffers buffers;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before read
  buffers.counts = &counts;
  convert_range(input.data() + begin * from_bits_ / 8, output, begin, end - begin, false, buffers);
  tally.add(counts, end - begin);
}

void ArrayConversion::convert_by_reference(std::span<const std::byte> input,
                                           std::span<std::byte> output, std::size_t begin,
                                           std::size_t end) const {
  const bool stochastic = options_.rounding == Rounding::stochastic;
  if (packs_) {
    const std::size_t last = (end * to_bits_ + 7) / 8 - 1;
    output[last] = std::byte{0};
  }
  for (std::size_t i = begin; i < end; ++i) {
    const RandomBits random =
        stochastic ? random_bits(options_.seed, i, options_.random_bits) : RandomBits{};
    store_code(
        output, to_, to_packing_, i,
        convert_code(from_, load_code(input, from_, from_packing_, i), to_, options_, random));
  }
}

/// `input` and `output` begin with the element of index `first`.
void ArrayConversion::convert_range(const std::byte* input, std::byte* output, std::size_t first,
                                    std::size_t count, bool stream, Buffers& buffers) const {
  const auto at = [&](std::size_t index) { return input + index * from_bits_ / 8; };
  const auto to = [&](std::size_t index) { return output + index * to_bits_ / 8; };
  std::size_t begin = 0;
  // Streams begin at a line: the elements before it go alone.
  if (stream) {
    const std::size_t past =
        (line - reinterpret_cast<std::uintptr_t>(output) % line) % line;  // NOLINT
    stream = !unpacks_ && !packs_ && past % (to_bits_ / 8) == 0;
    if (stream && past != 0) {
      begin = std::min(past / (to_bits_ / 8), count);
      convert_some(input, output, first, begin, buffers);
    }
  }
  const std::size_t whole = (count - begin) / kernels::granule * kernels::granule;
  convert_granules(at(begin), to(begin), first + begin, whole, stream, buffers);
  begin += whole;
  if (begin != count) convert_some(at(begin), to(begin), first + begin, count - begin, buffers);
  if (stream) kernels_->finish_streams();
}

/// Fewer elements than a granule, among zeros.
void ArrayConversion::convert_some(const std::byte* input, std::byte* output, std::size_t first,
                                   std::size_t count, Buffers& buffers) const {
  std::array<std::byte, kernels::granule * kernels::word_bytes> inputs{};
  std::array<std::byte, kernels::granule * kernels::word_bytes> outputs{};
  std::memcpy(inputs.data(), input, (count * from_bits_ + 7) / 8);
  convert_granules(inputs.data(), outputs.data(), first, kernels::granule, false, buffers);
  const std::size_t out_bits = count * to_bits_;
  if (out_bits % 8 != 0) outputs[out_bits / 8] &= static_cast<std::byte>((1U << out_bits % 8) - 1);
  std::memcpy(output, outputs.data(), (out_bits + 7) / 8);
}

void ArrayConversion::convert_granules(const std::byte* input, std::byte* output, std::size_t first,
                                       std::size_t count, bool stream, Buffers& buffers) const {
  const bool at_once = path_ == Path::bytes
                           ? !unpacks_ && !packs_
                           : reads_words() && !packs_ && buffers.counts == nullptr &&
                                 options_.rounding != Rounding::stochastic;
  const std::size_t step = at_once ? count : chunk;
  for (std::size_t done = 0; done < count; done += step) {
    const std::size_t n = std::min(step, count - done);
    const std::byte* codes = input + done * from_bits_ / 8;
    std::byte* const out = output + done * to_bits_ / 8;
    if (unpacks_) {
      kernels_->unpack(bits(from_), codes, buffers.codes.data(), n);
      codes = buffers.codes.data();
    }
    std::byte* const results = packs_ ? buffers.results.data() : out;
    if (path_ == Path::bytes) {
      kernels_->look_up(table_, container_bits(to_), codes, results, n, stream);
    } else {
      narrow(codes, results, first + done, n, stream, buffers);
    }
    if (packs_) kernels_->pack(bits(to_), results, out, n);
  }
}

void ArrayConversion::narrow(const std::byte* codes, std::byte* results, std::size_t first,
                             std::size_t count, bool stream, Buffers& buffers) const {
  const std::byte* words = codes;
  if (from_ != fp32) {
    kernels_->widen(*widening_, words, buffers.words.data(), count);
    words = buffers.words.data();
  }
  const std::byte* const values = words;
  if (multiplication_) {
    kernels_->multiply(*multiplication_, words, buffers.products.data(), count);
    words = buffers.products.data();
  }
  const std::uint32_t* random = nullptr;
  if (options_.rounding == Rounding::stochastic) {
    const std::size_t before = first % 4;
    kernels_->random_words(options_.seed, first - before, buffers.random.data(),
                           count + kernels::granule);
    random = buffers.random.data() + before;
  }
  kernels_->narrow(*narrowing_, words, random, results, count, stream);
  if (buffers.counts != nullptr)
    kernels_->count(*counting_, values, words, random, results, count, *buffers.counts);
}

void convert_array(const Format& from, Packing from_packing, std::span<const std::byte> input,
                   const Format& to, Packing to_packing, std::span<std::byte> output,
                   std::size_t count, const ConversionOptions& options) {
  ArrayConversion(from, from_packing, to, to_packing, options)(input, output, count);
}

}  // namespace guardbit::formats
