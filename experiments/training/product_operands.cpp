#include "experiments/training/product_operands.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <span>

#include "experiments/scaling/block_scales.hpp"
#include "formats/codec.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::experiments::training {

namespace {

std::size_t width_of(const Format& f) {
  return static_cast<std::size_t>(formats::container_bits(f) / 8);
}

emulator::ConstMatrix matrix_of(const Format& f, const std::vector<std::byte>& bytes,
                                std::int64_t row_stride, std::int64_t column_stride) {
  return {emulator::codes_of(f, bytes.data()), row_stride, column_stride};
}

/// x times the scale, rounded to FP32, then into the format; wider formats overflow to infinity,
/// scaled ones saturate.
formats::ConversionOptions options_for(const Encoding& encoding) {
  formats::ConversionOptions options;
  options.threads = 1;
  if (encoding.scaling != OperandScaling::none) {
    options.overflow = formats::overflow_saturate;
    options.source = formats::fp32;
    options.scale = formats::decode(formats::fp32, std::bit_cast<std::uint32_t>(encoding.encode));
  }
  return options;
}

/// Numbers other than zero whose code is a zero.
std::int64_t count_underflow(const Format& f, const float* values, const std::byte* codes,
                             std::size_t count) {
  std::int32_t lost = 0;
  const auto zeros = [&](auto word, unsigned ignored) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&word, codes + i * sizeof word, sizeof word);
      lost += (static_cast<decltype(word)>(word << ignored) == 0 && values[i] != 0) ? 1 : 0;
    }
  };
  const auto above = static_cast<unsigned>(formats::container_bits(f) - formats::bits(f) -
                                           formats::container_shift(f)) +
                     1U;
  if (width_of(f) == 1) zeros(std::uint8_t{}, above);
  if (width_of(f) == 2) zeros(std::uint16_t{}, above);
  if (width_of(f) == 4) zeros(std::uint32_t{}, above);
  return lost;
}

}  // namespace

CodedMatrix::CodedMatrix(const Encoding& encoding, const float* values, std::int64_t rows,
                         std::int64_t columns, int threads)
    : encoding_(encoding), rows_(rows), columns_(columns), threads_(threads) {
  if (has_blocks()) {
    values_.assign(values, values + rows * columns);
    rows_lines_ = encode_blocks(false, false);
    underflow_ = rows_lines_->underflow;
  } else {
    encode(values, threads);
  }
}

CodedMatrix CodedMatrix::same_encoding(std::int64_t rows, std::int64_t columns) const {
  CodedMatrix to;
  to.encoding_ = encoding_;
  to.rows_ = rows;
  to.columns_ = columns;
  to.threads_ = threads_;
  const auto count = static_cast<std::size_t>(rows * columns);
  if (has_blocks()) {
    to.values_.assign(count, 0.0F);
  } else {
    to.codes_.assign(count * width_of(encoding_.format), std::byte{0});
  }
  return to;
}

void CodedMatrix::encode(const float* values, int threads) {
  const auto count = static_cast<std::size_t>(rows_ * columns_);
  const std::size_t width = width_of(encoding_.format);
  codes_.resize(count * width);
  const std::span<const std::byte> source = std::as_bytes(std::span(values, count));
  if (encoding_.format == formats::fp32) {
    std::memcpy(codes_.data(), source.data(), source.size());
    return;
  }
  const formats::ArrayConversion convert(formats::fp32, formats::Packing::container,
                                         encoding_.format, formats::Packing::container,
                                         options_for(encoding_));
  std::atomic<std::int64_t> lost = 0;
  constexpr std::size_t grain = 1 << 14;
  formats::parallel_for(count, grain, threads, [&](std::size_t begin, std::size_t end) {
    convert(source.subspan(begin * 4, (end - begin) * 4),
            std::span(codes_).subspan(begin * width, (end - begin) * width), end - begin);
    // Without scales the tensor was stored in a format as narrow, and counted then.
    if (encoding_.scaling != OperandScaling::none)
      lost += count_underflow(encoding_.format, values + begin, codes_.data() + begin * width,
                              end - begin);
  });
  underflow_ = lost;
}

CodedLines CodedMatrix::encode_blocks(bool turned, bool mixed) const {
  const std::int64_t lines = turned ? columns_ : rows_, k = turned ? rows_ : columns_;
  Encoding encoding = encoding_;
  encoding.random_seed += turned ? 1 : 0;
  if (!turned) return quantise_blocks(encoding, values_.data(), lines, k, threads_);
  Values values(values_.size());
  for (std::int64_t i = 0; i < rows_; ++i)
    for (std::int64_t j = 0; j < columns_; ++j)
      values[static_cast<std::size_t>(j * rows_ + i)] =
          values_[static_cast<std::size_t>(i * columns_ + j)];
  if (mixed) {
    mix_along(values.data(), lines, k);
    encoding.tensor_amax = amax_of(values.data(), values.size());
  }
  return quantise_blocks(encoding, values.data(), lines, k, threads_);
}

Operand CodedMatrix::of_lines(const CodedLines& x, bool turned) const {
  const std::int64_t lines = turned ? columns_ : rows_, k = turned ? rows_ : columns_;
  return {lines, k, matrix_of(encoding_.format, x.codes, k, 1),
          matrix_of(scale_format(encoding_), x.scales, blocks_along(encoding_, k), 1), x.decode};
}

Operand CodedMatrix::by_rows() const {
  if (!has_blocks())
    return {
        rows_, columns_, matrix_of(encoding_.format, codes_, columns_, 1), {}, encoding_.decode};
  if (!rows_lines_) rows_lines_ = encode_blocks(false, false);
  return of_lines(*rows_lines_, false);
}

Operand CodedMatrix::by_columns() const {
  if (!has_blocks())
    return {
        columns_, rows_, matrix_of(encoding_.format, codes_, 1, columns_), {}, encoding_.decode};
  if (!column_lines_) column_lines_ = encode_blocks(true, false);
  return of_lines(*column_lines_, true);
}

Operand CodedMatrix::for_weight_gradient() const {
  if (encoding_.scaling != OperandScaling::nvfp4) return by_columns();
  if (!mixed_lines_) mixed_lines_ = encode_blocks(true, true);
  return of_lines(*mixed_lines_, true);
}

CodedMatrix CodedMatrix::gathered(const Windows& w, int threads) const {
  CodedMatrix to = same_encoding(w.rows(), w.columns());
  const std::size_t width = has_blocks() ? sizeof(float) : width_of(encoding_.format);
  const auto* const from =
      has_blocks() ? reinterpret_cast<const std::byte*>(values_.data()) : codes_.data();
  auto* const result =
      has_blocks() ? reinterpret_cast<std::byte*>(to.values_.data()) : to.codes_.data();
  // A row of a window is consecutive elements of an image, cut off at its sides.
  const auto lines = static_cast<std::size_t>(w.images * w.out_height());
  formats::parallel_for(lines, 8, threads, [&](std::size_t begin, std::size_t end) {
    for (auto line = static_cast<std::int64_t>(begin); line < static_cast<std::int64_t>(end);
         ++line) {
      const std::int64_t image = line / w.out_height(), p = line % w.out_height();
      for (std::int64_t q = 0; q < w.out_width(); ++q) {
        const std::int64_t row = line * w.out_width() + q;
        const std::int64_t left = std::max<std::int64_t>(0, w.padding - q);
        const std::int64_t right = std::min(w.window_width, w.width + w.padding - q);
        for (std::int64_t r = 0; r < w.window_height && left < right; ++r) {
          const std::int64_t y = p + r - w.padding;
          if (y < 0 || y >= w.height) continue;
          const std::int64_t source =
              ((image * w.height + y) * w.width + q + left - w.padding) * w.channels;
          const std::int64_t place = row * w.columns() + (r * w.window_width + left) * w.channels;
          std::memcpy(result + static_cast<std::size_t>(place) * width,
                      from + static_cast<std::size_t>(source) * width,
                      static_cast<std::size_t>((right - left) * w.channels) * width);
        }
      }
    }
  });
  return to;
}

CodedMatrix CodedMatrix::rearranged(
    std::int64_t rows, std::int64_t columns,
    const std::function<std::int64_t(std::int64_t, std::int64_t)>& source) const {
  CodedMatrix to = same_encoding(rows, columns);
  const std::size_t width = width_of(encoding_.format);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto place = static_cast<std::size_t>(i * columns + j);
      const auto from = static_cast<std::size_t>(source(i, j));
      if (has_blocks()) {
        to.values_[place] = values_[from];
      } else {
        std::memcpy(to.codes_.data() + place * width, codes_.data() + from * width, width);
      }
    }
  }
  return to;
}

}  // namespace guardbit::experiments::training
