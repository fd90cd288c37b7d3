#include "formats/conversion/block_tensor.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <mutex>
#include <utility>
#include <vector>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/conversion/block_judgement.hpp"
#include "formats/conversion/counted_conversion.hpp"
#include "formats/conversion/dense_codes.hpp"
#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/first_code.hpp"
#include "formats/support/parallel.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {

namespace {

/// A shape seen along one of its axes.
struct Along {
  /// indices before the axis, on it, behind it
  std::size_t outer = 1, length = 1, inner = 1;

  Along(const std::vector<std::int64_t>& shape, std::size_t axis) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const auto dimension = static_cast<std::size_t>(shape[i]);
      (i < axis ? outer : i == axis ? length : inner) *= dimension;
    }
  }
  std::size_t rows() const { return outer * inner; }
  std::size_t count() const { return rows() * length; }
};

/// Items of the array in the order of rows along the axis, or back: every matrix of length x
/// inner items is transposed.
template <class Item>
std::vector<std::byte> rows_of(std::span<const std::byte> items, const Along& along,
                               std::size_t length, bool back, int threads) {
  std::vector<std::byte> result(items.size());
  const std::size_t rows = back ? along.inner : length;  // of what is read
  const std::size_t columns = back ? length : along.inner;
  constexpr std::size_t tile = 64;
  const std::size_t bands = (rows + tile - 1) / tile;
  parallel_for(along.outer * bands, 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t band = begin; band < end; ++band) {
      const std::size_t matrix = band / bands * rows * columns;
      const std::size_t first = band % bands * tile;
      const std::size_t last = std::min(rows, first + tile);
      for (std::size_t left = 0; left < columns; left += tile) {
        for (std::size_t column = left; column < std::min(columns, left + tile); ++column) {
          for (std::size_t row = first; row < last; ++row)
            std::copy_n(items.data() + (matrix + row * columns + column) * sizeof(Item),
                        sizeof(Item),
                        result.data() + (matrix + column * rows + row) * sizeof(Item));
        }
      }
    }
  });
  return result;
}

/// The tensor's FP32 words, `made` where they were not there.
std::span<const std::byte> packed_words(const Tensor& tensor, int threads,
                                        std::vector<std::byte>& made) {
  const auto count = static_cast<std::size_t>(element_count(tensor.shape));
  if (tensor.format == fp32) return tensor.bytes.first(count * kernels::word_bytes);
  made.resize(count * kernels::word_bytes);
  ConversionOptions options;
  options.threads = threads;
  convert_array(tensor.format, tensor.packing, tensor.bytes, fp32, Packing::container, made, count,
                options);
  return made;
}

std::uint32_t largest_finite(const std::byte* words, std::size_t count) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude =
        load_word<std::uint32_t>(words + i * kernels::word_bytes) & 0x7FFFFFFF;
    largest = std::max(largest, magnitude < fp32_infinity ? magnitude : 0);
  }
  return largest;
}

std::vector<std::int64_t> scales_shape(std::vector<std::int64_t> shape, std::size_t axis,
                                       const BlockFormat& format) {
  shape[axis] = block_count(format, shape[axis]);
  return shape;
}

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

/// Where the parts of blocks go.
struct BlockWriters {
  const ByteWriter& elements;
  const ByteWriter& scales;
};

/// FP32 rows to blocks and what became of them, a part of the blocks at a time, while it is in
/// the cache. The sums of the parts are added in order.
class RowQuantisation {
 public:
  RowQuantisation(const BlockFormat& format, std::size_t rows, std::size_t length,
                  const BlockQuantisationOptions& options)
      : format_(format),
        options_(options),
        quantisation_(format, options),
        judgement_(format, options),
        size_(static_cast<std::size_t>(format.block_size)),
        blocks_of_row_((length + size_ - 1) / size_),
        rows_(rows),
        length_(length) {}

  /// `words` gives those of [first, first + count), or makes them in the memory. A dense part
  /// must begin at a byte.
  template <class Words>
  BlockSummary operator()(const Words& words, Packing packing, const BlockWriters& write) const {
    constexpr std::size_t grain = 1024;  // blocks
    const std::size_t blocks = rows_ * blocks_of_row_;
    std::vector<BlockSummary> parts((blocks + grain - 1) / grain);
    std::mutex mutex;
    std::size_t done = 0;
    parallel_for(blocks, grain, options_.threads, [&](std::size_t begin, std::size_t end) {
      const std::size_t first = first_of_block(begin);
      const std::size_t count = first_of_block(end) - first;
      std::vector<std::byte> made;
      std::vector<std::byte> codes(count);
      std::vector<std::byte> scales(end - begin);
      part(words(first, count, made), begin, end, codes, scales, parts[begin / grain]);
      write.scales(begin, scales);
      const int width = bits(format_.element);
      if (packing == Packing::dense && width < 8) {
        std::vector<std::byte> dense(byte_size(format_.element, packing, count).value());
        pack_dense(width, codes.data(), dense.data(), count);
        write.elements(first * static_cast<std::size_t>(width) / 8, dense);
      } else {
        write.elements(first, codes);
      }
      if (!options_.progress) return;
      const std::lock_guard lock(mutex);
      done += count;
      options_.progress(done);
    });
    BlockSummary sum;
    for (const BlockSummary& part : parts) add(sum, part);
    return sum;
  }

  /// Do parts begin at bytes when `width` bits follow each other?
  bool parts_begin_at_bytes(int width) const {
    return length_ * static_cast<std::size_t>(width) % 8 == 0;
  }

 private:
  std::size_t first_of_block(std::size_t block) const {
    return block / blocks_of_row_ * length_ + block % blocks_of_row_ * size_;
  }

  /// The blocks [begin, end), row by row; rows of whole blocks are as if cut from one.
  void part(const std::byte* words, std::size_t begin, std::size_t end, std::span<std::byte> codes,
            std::span<std::byte> scales, BlockSummary& summary) const {
    const std::size_t origin = first_of_block(begin);
    const bool is_one_instruction = length_ % size_ == 0;
    for (std::size_t block = begin; block < end;) {
      const std::size_t next =
          is_one_instruction ? end : std::min(end, (block / blocks_of_row_ + 1) * blocks_of_row_);
      const std::size_t first = first_of_block(block);
      quantisation_.codes(words + (first - origin) * kernels::word_bytes, first,
                          first_of_block(next) - first, codes.data() + (first - origin),
                          scales.data() + (block - begin));
      block = next;
    }
    BlockSummary sum;
    for (std::size_t block = begin; block < end; ++block) {
      const std::size_t first = first_of_block(block);
      judgement_.add(words + (first - origin) * kernels::word_bytes,
                     codes.data() + (first - origin), first_of_block(block + 1) - first,
                     std::to_integer<std::uint64_t>(scales[block - begin]), first, sum);
    }
    summary = sum;
  }

  const BlockFormat& format_;
  const BlockQuantisationOptions& options_;
  BlockQuantisation quantisation_;
  BlockJudgement judgement_;
  std::size_t size_, blocks_of_row_, rows_, length_;
};

/// Codes that lie in bytes, as they are to be written.
void write_codes(std::span<const std::byte> codes, const Format& format, Packing packing,
                 const ByteWriter& write) {
  if (packing == Packing::container || bits(format) == 8) return write(0, codes);
  std::vector<std::byte> dense(byte_size(format, packing, codes.size()).value());
  pack_dense(bits(format), codes.data(), dense.data(), codes.size());
  write(0, dense);
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

Value tensor_scale_of(const Tensor& tensor, const BlockFormat& format, int threads) {
  assert(format.tensor_scale && is_within_fp32(tensor.format));
  constexpr int shift = 10;
  constexpr std::size_t group = std::size_t{1} << shift;  // of which a kernel finds the largest
  std::vector<std::byte> made;
  const std::span<const std::byte> words = packed_words(tensor, threads, made);
  const kernels::Kernels& kernels = *kernels::available().front();
  std::atomic<std::uint32_t> largest = 0;
  parallel_for(words.size() / kernels::word_bytes, 64 * group, threads,
               [&](std::size_t begin, std::size_t end) {
                 std::uint32_t most = 0;
                 for (std::size_t at = begin; at < end; at += group) {
                   const std::byte* const here = words.data() + at * kernels::word_bytes;
                   const std::size_t count = std::min(group, end - at);
                   std::uint32_t found = fp32_infinity;
                   if (count == group) kernels.block_maxima(here, shift, &found, group);
                   if (found >= fp32_infinity) found = largest_finite(here, count);
                   most = std::max(most, found);
                 }
                 std::uint32_t before = largest;
                 while (before < most && !largest.compare_exchange_weak(before, most)) {
                 }
               });
  if (largest == 0) return {Kind::finite, false, 0, 1};
  Value most = scaled(decode(format.element, max_finite_code(format.element)),
                      decode(format.scale, max_finite_code(format.scale)));
  most.exponent += format.element_exponent;
  const Unrounded quotient = divide(decode(fp32, largest), most);
  const std::uint64_t code = encode(*format.tensor_scale, quotient);
  return decode(*format.tensor_scale, std::max<std::uint64_t>(code, 1));
}

BlockTensor described_blocks(const Tensor& tensor, const BlockFormat& format, std::size_t axis,
                             Packing packing) {
  return {{tensor.name, format.element, packing, tensor.shape, {}, nullptr},
          {tensor.name,
           format.scale,
           Packing::container,
           scales_shape(tensor.shape, axis, format),
           {},
           nullptr},
          {}};
}

BlockSummary quantise(const Tensor& tensor, const BlockFormat& format, std::size_t axis,
                      Packing packing, const BlockQuantisationOptions& options,
                      const ByteWriter& write_elements, const ByteWriter& write_scales) {
  assert(axis < tensor.shape.size() && is_within_fp32(tensor.format));
  const Along along(tensor.shape, axis);
  const RowQuantisation rows(format, along.rows(), along.length, options);
  std::vector<std::byte> made;
  std::span<const std::byte> words;
  const bool in_parts = along.inner == 1 && tensor.format != fp32 &&
                        storage_bits(tensor.format, tensor.packing) % 8 == 0;
  if (!in_parts) words = packed_words(tensor, options.threads, made);
  if (along.inner != 1) {
    made = rows_of<std::uint32_t>(words, along, along.length, false, options.threads);
    words = made;
  }
  ConversionOptions alone;
  alone.threads = 1;
  const ArrayConversion widen(tensor.format, tensor.packing, fp32, Packing::container, alone);
  const auto words_of_part = [&](std::size_t first, std::size_t count,
                                 std::vector<std::byte>& memory) {
    if (!in_parts) return words.data() + first * kernels::word_bytes;
    memory.resize(count * kernels::word_bytes);
    const auto width = static_cast<std::size_t>(storage_bits(tensor.format, tensor.packing)) / 8;
    widen(tensor.bytes.subspan(first * width, count * width), memory, count);
    return static_cast<const std::byte*>(memory.data());
  };
  const bool is_dense = packing == Packing::dense && bits(format.element) < 8;
  if (along.inner == 1 && (!is_dense || rows.parts_begin_at_bytes(bits(format.element))))
    return rows(words_of_part, packing, {write_elements, write_scales});
  const auto blocks =
      static_cast<std::size_t>(block_count(format, static_cast<std::int64_t>(along.length)));
  std::vector<std::byte> codes(along.count());
  std::vector<std::byte> scales(along.rows() * blocks);
  const BlockSummary summary =
      rows(words_of_part, Packing::container, {writer_to(codes), writer_to(scales)});
  if (along.inner != 1) {
    codes = rows_of<std::byte>(codes, along, along.length, true, options.threads);
    scales = rows_of<std::byte>(scales, along, blocks, true, options.threads);
  }
  write_codes(codes, format.element, packing, write_elements);
  write_scales(0, scales);
  return summary;
}

BlockTensor quantise_tensor(const Tensor& tensor, const BlockFormat& format, std::size_t axis,
                            Packing packing, const BlockQuantisationOptions& options,
                            BlockSummary& summary) {
  BlockTensor blocks = described_blocks(tensor, format, axis, packing);
  const auto memory_of = [](const Tensor& part) {
    const auto count = static_cast<std::size_t>(element_count(part.shape));
    return std::vector<std::byte>(byte_size(part.format, part.packing, count).value());
  };
  std::vector<std::byte> elements = memory_of(blocks.elements);
  std::vector<std::byte> scales = memory_of(blocks.scales);
  summary =
      quantise(tensor, format, axis, packing, options, writer_to(elements), writer_to(scales));
  return {owning_tensor(tensor.name, format.element, packing, tensor.shape, std::move(elements)),
          owning_tensor(tensor.name, format.scale, Packing::container, blocks.scales.shape,
                        std::move(scales)),
          options.tensor_scale};
}

ConversionSummary restore(const BlockTensor& tensor, const BlockFormat& format, std::size_t axis,
                          const Format& to, Packing packing, const ConversionOptions& options,
                          const ByteWriter& write) {
  const Tensor& elements = tensor.elements;
  assert(axis < elements.shape.size());
  assert(tensor.scales.shape == scales_shape(elements.shape, axis, format));
  const Along along(elements.shape, axis);
  const auto size = static_cast<std::size_t>(format.block_size);
  const auto blocks =
      static_cast<std::size_t>(block_count(format, static_cast<std::int64_t>(along.length)));
  const int width = bits(format.element);
  const auto scale_at = [&](std::size_t index) {
    return load_code(tensor.scales.bytes, format.scale, tensor.scales.packing, index) << width;
  };
  IndexedValues values;
  values.width = width + bits(format.scale);
  values.value = [&](std::uint64_t index) {
    const Value x = decode_element(format, index & low_bits(width), index >> width);
    return tensor.tensor_scale ? scaled(x, *tensor.tensor_scale) : x;
  };
  values.indices = [&](std::size_t begin, std::size_t end, std::uint16_t* indices) {
    for (std::size_t i = begin; i < end;) {
      // Elements side by side whose scales are one, or lie side by side.
      const std::size_t column = i / along.inner % along.length;
      const std::size_t scale =
          (i / along.inner / along.length * blocks + column / size) * along.inner + i % along.inner;
      const std::size_t run = along.inner == 1
                                  ? std::min(size - column % size, along.length - column)
                                  : along.inner - i % along.inner;
      const std::size_t last = std::min(end, i + run);
      std::uint64_t above = scale_at(scale);
      for (std::size_t at = i; at < last; ++at) {
        if (along.inner != 1) above = scale_at(scale + at - i);
        indices[at - begin] = static_cast<std::uint16_t>(
            above | load_code(elements.bytes, format.element, elements.packing, at));
      }
      i = last;
    }
  };
  return convert_values(values, to, packing, write, along.count(), options);
}

Tensor restore_tensor(const BlockTensor& tensor, const BlockFormat& format, std::size_t axis,
                      const Format& to, Packing packing, const ConversionOptions& options,
                      ConversionSummary& summary) {
  const Tensor& elements = tensor.elements;
  const auto count = static_cast<std::size_t>(element_count(elements.shape));
  std::vector<std::byte> output(byte_size(to, packing, count).value());
  summary = restore(tensor, format, axis, to, packing, options, writer_to(output));
  return owning_tensor(elements.name, to, packing, elements.shape, std::move(output));
}
}  // namespace guardbit::formats
