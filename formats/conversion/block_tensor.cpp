#include "formats/conversion/block_tensor.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/random.hpp"
#include "formats/support/first_code.hpp"
#include "formats/support/parallel.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {

namespace {

constexpr std::size_t word_bytes = sizeof(std::uint32_t);

/// A shape seen along one of its axes.
struct Along {
  std::size_t outer = 1, length = 1, inner = 1;  ///< indices before the axis, on it, behind it

  Along(const std::vector<std::int64_t>& shape, std::size_t axis) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const auto dimension = static_cast<std::size_t>(shape[i]);
      (i < axis ? outer : i == axis ? length : inner) *= dimension;
    }
  }
  std::size_t rows() const { return outer * inner; }
  std::size_t count() const { return rows() * length; }
};

/// Where, in row-major order, the element at `column` of `row` is.
std::size_t place(const Along& along, std::size_t length, std::size_t row, std::size_t column) {
  return (row / along.inner * length + column) * along.inner + row % along.inner;
}

/// Items of the array in the order of rows along the axis, or back.
template <class Item>
std::vector<std::byte> rows_of(std::span<const std::byte> items, const Along& along,
                               std::size_t length, bool back) {
  std::vector<std::byte> result(items.size());
  for (std::size_t row = 0; row < along.rows(); ++row) {
    for (std::size_t column = 0; column < length; ++column) {
      const std::size_t there = place(along, length, row, column) * sizeof(Item);
      const std::size_t here = (row * length + column) * sizeof(Item);
      std::copy_n(items.data() + (back ? here : there), sizeof(Item),
                  result.data() + (back ? there : here));
    }
  }
  return result;
}

/// The tensor's FP32 words, `made` where they were not there.
std::span<const std::byte> words_of(const Tensor& tensor, int threads,
                                    std::vector<std::byte>& made) {
  const auto count = static_cast<std::size_t>(element_count(tensor.shape));
  if (tensor.format == fp32) return tensor.bytes.first(count * word_bytes);
  made.resize(count * word_bytes);
  ConversionOptions options;
  options.threads = threads;
  convert_array(tensor.format, tensor.packing, tensor.bytes, fp32, Packing::container, made, count,
                options);
  return made;
}

std::vector<std::int64_t> scales_shape(std::vector<std::int64_t> shape, std::size_t axis,
                                       const BlockFormat& format) {
  shape[axis] = block_count(format, shape[axis]);
  return shape;
}

Value times(const Value& x, const Value& y) {
  const Unrounded product = multiply(x, y);
  return {product.kind, product.negative, product.exponent,
          static_cast<std::uint64_t>(product.significand)};
}

double number(const Value& x) {
  if (x.kind == Kind::nan) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude = x.kind == Kind::infinity
                               ? std::numeric_limits<double>::infinity()
                               : std::ldexp(static_cast<double>(x.significand), x.exponent);
  return x.negative ? -magnitude : magnitude;
}

/// Tells of quantised rows, element by element.
class Judging {
 public:
  Judging(const BlockFormat& format, const BlockQuantisationOptions& options)
      : format_(format), options_(options) {
    for (std::uint64_t code = 0; code < numbers_.size(); ++code)
      numbers_[code] = number(decode(format.element, code & code_mask(format.element)));
    largest_ = number(decode(format.element, is_integer(format.element)
                                                 ? magnitude_mask(format.element)
                                                 : max_finite_code(format.element)));
  }

  /// A block whose first element has that index in the array.
  void add(std::span<const std::byte> words, std::span<const std::byte> codes, std::uint64_t scale,
           std::uint64_t first, BlockSummary& summary) const {
    Value unit = decode(format_.scale, scale);
    unit.exponent += format_.element_exponent;
    if (options_.tensor_scale) unit = times(unit, *options_.tensor_scale);
    const double unit_number = number(unit);
    ++summary.blocks;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const auto word = load_word<std::uint32_t>(words.data() + i * word_bytes);
      const double x = static_cast<double>(std::bit_cast<float>(word));
      const double element = numbers_[std::to_integer<std::size_t>(codes[i])];
      describe(x, element, unit_number, summary);
      if (std::abs(element) >= largest_ && std::isfinite(element) && std::isfinite(x))
        summary.saturated += is_out_of_range(word, unit, first + i) ? 1U : 0U;
    }
  }

 private:
  static void describe(double x, double element, double unit, BlockSummary& summary) {
    const double y = element * unit;
    ++summary.elements;
    summary.nans_in += std::isnan(x) ? 1U : 0U;
    summary.infinities_in += std::isinf(x) ? 1U : 0U;
    summary.nans_made += std::isnan(y) && !std::isnan(x) ? 1U : 0U;
    summary.infinities_made += std::isinf(y) && std::isfinite(x) ? 1U : 0U;
    summary.saturated += std::isinf(x) && std::isfinite(y) ? 1U : 0U;
    const bool is_zero_made = y == 0 && x != 0 && std::isfinite(x);
    summary.zeros_made += is_zero_made ? 1U : 0U;
    summary.under_no_scale += is_zero_made && unit == 0 ? 1U : 0U;
    summary.inexact += !std::isnan(x) && x != y ? 1U : 0U;
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    const double error = std::abs(x - y);
    ++summary.compared;
    summary.signal += x * x;
    summary.noise += error * error;
    if (unit == 0) return;
    ++summary.measured;
    summary.max_error = std::max(summary.max_error, error / unit);
    summary.error_sum += error / unit;
  }

  bool is_out_of_range(std::uint32_t word, const Value& unit, std::uint64_t index) const {
    const RandomBits random = options_.rounding == Rounding::stochastic
                                  ? random_bits(options_.seed, index, options_.random_bits)
                                  : RandomBits{};
    return !is_in_range(format_.element, divide(decode(fp32, word), unit), options_.rounding,
                        random);
  }

  const BlockFormat& format_;
  const BlockQuantisationOptions& options_;
  std::array<double, 256> numbers_{};
  double largest_ = 0;
};

void add(BlockSummary& sum, const BlockSummary& part) {
  sum.blocks += part.blocks;
  sum.elements += part.elements;
  sum.nans_in += part.nans_in;
  sum.infinities_in += part.infinities_in;
  sum.zeros_made += part.zeros_made;
  sum.under_no_scale += part.under_no_scale;
  sum.infinities_made += part.infinities_made;
  sum.nans_made += part.nans_made;
  sum.saturated += part.saturated;
  sum.inexact += part.inexact;
  sum.compared += part.compared;
  sum.signal += part.signal;
  sum.noise += part.noise;
  sum.measured += part.measured;
  sum.max_error = std::max(sum.max_error, part.max_error);
  sum.error_sum += part.error_sum;
}

/// Rows of words, a code in each byte, and scales: what became of them.
BlockSummary summary_of(std::span<const std::byte> words, std::span<const std::byte> codes,
                        std::span<const std::byte> scales, std::size_t rows, std::size_t length,
                        const BlockFormat& format, const BlockQuantisationOptions& options) {
  const Judging judging(format, options);
  const auto size = static_cast<std::size_t>(format.block_size);
  const std::size_t blocks_of_row = (length + size - 1) / size;
  constexpr std::size_t grain = 1024;  // blocks
  const std::size_t blocks = rows * blocks_of_row;
  std::vector<BlockSummary> parts((blocks + grain - 1) / grain);
  parallel_for(blocks, grain, options.threads, [&](std::size_t begin, std::size_t end) {
    BlockSummary part;
    for (std::size_t b = begin; b < end; ++b) {
      const std::size_t column = b % blocks_of_row * size;
      const std::size_t first = b / blocks_of_row * length + column;
      const std::size_t count = std::min(size, length - column);
      judging.add(words.subspan(first * word_bytes, count * word_bytes),
                  codes.subspan(first, count), std::to_integer<std::uint64_t>(scales[b]), first,
                  part);
    }
    parts[begin / grain] = part;
  });
  BlockSummary sum;
  for (const BlockSummary& part : parts) add(sum, part);
  return sum;
}

/// Dense codes of rows that end on whole bytes, to a code in each byte.
std::vector<std::byte> unpacked(const std::vector<std::byte>& dense, std::size_t rows,
                                std::size_t length, const BlockFormat& format, int threads) {
  std::vector<std::byte> codes(rows * length);
  ConversionOptions options;  // a format's own codes stay what they are
  options.threads = threads;
  const ArrayConversion unpack(format.element, Packing::dense, format.element, Packing::container,
                               options);
  const auto row_bytes =
      static_cast<std::size_t>(element_bytes(format, static_cast<std::int64_t>(length)));
  if (row_bytes * 8 == length * static_cast<std::size_t>(bits(format.element))) {
    unpack(dense, codes, codes.size());
    return codes;
  }
  for (std::size_t row = 0; row < rows; ++row)
    unpack(std::span(dense).subspan(row * row_bytes, row_bytes),
           std::span(codes).subspan(row * length, length), length);
  return codes;
}

}  // namespace

std::optional<double> BlockSummary::signal_to_noise() const {
  if (signal == 0 || noise == 0) return std::nullopt;
  return 10 * std::log10(signal / noise);
}

bool is_within_fp32(const Format& f) {
  if (is_integer(f)) return bits(f) <= 24;
  return f.fraction_bits <= fp32.fraction_bits && max_exponent(f) <= max_exponent(fp32) &&
         min_exponent(f) - f.fraction_bits >= min_exponent(fp32) - fp32.fraction_bits;
}

Value tensor_scale_of(const Tensor& tensor, const BlockFormat& format) {
  assert(format.tensor_scale && is_within_fp32(tensor.format));
  std::vector<std::byte> made;
  const std::span<const std::byte> words = words_of(tensor, 0, made);
  std::uint32_t largest = 0;
  for (std::size_t at = 0; at < words.size(); at += word_bytes) {
    const std::uint32_t magnitude = load_word<std::uint32_t>(words.data() + at) & 0x7FFFFFFF;
    largest = std::max(largest, magnitude < fp32_infinity ? magnitude : 0);
  }
  if (largest == 0) return {Kind::finite, false, 0, 1};
  Value most = times(decode(format.element, max_finite_code(format.element)),
                     decode(format.scale, max_finite_code(format.scale)));
  most.exponent += format.element_exponent;
  const Unrounded quotient = divide(decode(fp32, largest), most);
  const std::uint64_t code = encode(*format.tensor_scale, quotient);
  return decode(*format.tensor_scale, std::max<std::uint64_t>(code, 1));
}

BlockTensor quantise_tensor(const Tensor& tensor, const BlockFormat& format, std::size_t axis,
                            Packing packing, const BlockQuantisationOptions& options,
                            BlockSummary& summary) {
  assert(axis < tensor.shape.size() && is_within_fp32(tensor.format));
  const Along along(tensor.shape, axis);
  const auto rows = static_cast<std::int64_t>(along.rows());
  const auto length = static_cast<std::int64_t>(along.length);
  std::vector<std::byte> made;
  std::span<const std::byte> words = words_of(tensor, options.threads, made);
  if (along.inner != 1) {
    made = rows_of<std::uint32_t>(words, along, along.length, false);
    words = made;
  }
  std::vector<std::byte> dense(static_cast<std::size_t>(rows * element_bytes(format, length)));
  std::vector<std::byte> scales(static_cast<std::size_t>(rows * scale_bytes(format, length)));
  BlockQuantisation(format, options)(words, rows, length, dense, scales);
  const bool in_bytes = bits(format.element) == 8;
  std::vector<std::byte> codes =
      in_bytes ? std::move(dense)
               : unpacked(dense, along.rows(), along.length, format, options.threads);
  summary = summary_of(words, codes, scales, along.rows(), along.length, format, options);
  if (along.inner != 1) {
    codes = rows_of<std::byte>(codes, along, along.length, true);
    const auto blocks = static_cast<std::size_t>(block_count(format, length));
    scales = rows_of<std::byte>(scales, along, blocks, true);
  }
  if (packing == Packing::dense && !in_bytes) {
    std::vector<std::byte> packed(byte_size(format.element, packing, codes.size()).value());
    ConversionOptions same;
    same.threads = options.threads;
    convert_array(format.element, Packing::container, codes, format.element, packing, packed,
                  codes.size(), same);
    codes = std::move(packed);
  }
  return {owning_tensor(tensor.name, format.element, packing, tensor.shape, std::move(codes)),
          owning_tensor(tensor.name, format.scale, Packing::container,
                        scales_shape(tensor.shape, axis, format), std::move(scales)),
          options.tensor_scale};
}

Tensor restore_tensor(const BlockTensor& tensor, const BlockFormat& format, std::size_t axis,
                      const Format& to, Packing packing, const ConversionOptions& options,
                      ConversionSummary& summary) {
  const Tensor& elements = tensor.elements;
  assert(axis < elements.shape.size());
  assert(tensor.scales.shape == scales_shape(elements.shape, axis, format));
  const Along along(elements.shape, axis);
  const auto size = static_cast<std::size_t>(format.block_size);
  const auto blocks =
      static_cast<std::size_t>(block_count(format, static_cast<std::int64_t>(along.length)));
  const auto value = [&](std::size_t i) {
    const std::size_t row = i / along.inner / along.length * along.inner + i % along.inner;
    const std::size_t block = i / along.inner % along.length / size;
    const Value x =
        decode_element(format, load_code(elements.bytes, format.element, elements.packing, i),
                       load_code(tensor.scales.bytes, format.scale, tensor.scales.packing,
                                 place(along, blocks, row, block)));
    return tensor.tensor_scale ? times(x, *tensor.tensor_scale) : x;
  };
  std::vector<std::byte> output(byte_size(to, packing, along.count()).value());
  summary = convert_values(value, to, packing, output, along.count(), options);
  return owning_tensor(elements.name, to, packing, elements.shape, std::move(output));
}

}  // namespace guardbit::formats
