#include "formats/conversion/block_tensor.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/random.hpp"
#include "formats/tensors/storage.hpp"
#include "formats/text.hpp"
#include "tests/catch.hpp"

namespace guardbit::formats {
namespace {

Value number(std::string_view text) {
  return decode(fp64, encode(fp64, parse_value(text, "test").value));
}

double as_double(const Value& x) {
  const double magnitude = std::ldexp(static_cast<double>(x.significand), x.exponent);
  return x.negative ? -magnitude : magnitude;
}

/// FP32 numbers of a few binades with zeros, specials and far smaller ones among them.
Tensor some_tensor(std::vector<std::int64_t> shape, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(element_count(shape)));
  for (std::uint32_t& word : words) {
    const auto any = static_cast<std::uint32_t>(random());
    word = (any & 0x81FFFFFF) + 0x3E800000;
    if (any % 11 == 0) word = any & 0x80000000;
    if (any % 13 == 0) word = any & 0xBFFFFFFF;
    if (any % 67 == 0) word = 0x7F800000 | (any & 0x80000000);
    if (any % 71 == 0) word = 0x7FC00000;
  }
  return tensor_of_codes("x", fp32, Packing::container, std::move(shape), words);
}

/// What quantise_tensor should say, one element at a time.
struct Expected {
  std::vector<std::uint64_t> elements, scales;
  BlockSummary summary;
};

void count(const Value& x, const Value& y, const Value& unit, bool is_out_of_range,
           BlockSummary& s) {
  const bool is_number = y.kind == Kind::finite || y.kind == Kind::zero;
  s.elements += 1;
  s.nans_in += x.kind == Kind::nan ? 1U : 0U;
  s.infinities_in += x.kind == Kind::infinity ? 1U : 0U;
  s.infinities_made += x.kind == Kind::finite && y.kind == Kind::infinity ? 1U : 0U;
  s.nans_made += x.kind != Kind::nan && y.kind == Kind::nan ? 1U : 0U;
  if (x.kind == Kind::nan) return;
  s.saturated += is_out_of_range && is_number ? 1U : 0U;
  if (x.kind == Kind::infinity) {
    s.inexact += y.kind == Kind::infinity ? 0U : 1U;
    return;
  }
  const bool zero_made = x.kind == Kind::finite && y.kind == Kind::zero;
  s.zeros_made += zero_made ? 1U : 0U;
  s.under_no_scale += zero_made && unit.kind == Kind::zero ? 1U : 0U;
  s.inexact += !is_number || as_double(x) != as_double(y) ? 1U : 0U;
  if (!is_number) return;
  const double error = std::abs(as_double(x) - as_double(y));
  s.compared += 1;
  s.signal += as_double(x) * as_double(x);
  s.noise += error * error;
  if (unit.kind == Kind::zero) return;
  s.measured += 1;
  s.max_error = std::max(s.max_error, error / as_double(unit));
  s.error_sum += error / as_double(unit);
}

Expected by_definition(const Tensor& tensor, const BlockFormat& format, std::size_t axis,
                       const BlockQuantisationOptions& options) {
  std::size_t outer = 1;
  std::size_t inner = 1;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (i < axis) outer *= static_cast<std::size_t>(tensor.shape[i]);
    if (i > axis) inner *= static_cast<std::size_t>(tensor.shape[i]);
  }
  const auto length = static_cast<std::size_t>(tensor.shape[axis]);
  const auto blocks = static_cast<std::size_t>(block_count(format, tensor.shape[axis]));
  const auto size = static_cast<std::size_t>(format.block_size);
  const std::vector<std::uint64_t> words = codes_of(tensor);
  Expected expected;
  expected.elements.resize(words.size());
  expected.scales.resize(outer * blocks * inner);
  for (std::size_t o = 0; o < outer; ++o) {
    for (std::size_t i = 0; i < inner; ++i) {
      for (std::size_t b = 0; b < blocks; ++b) {
        const auto at = [&](std::size_t column) { return (o * length + column) * inner + i; };
        const std::size_t end = std::min(length, (b + 1) * size);
        std::uint64_t largest = 0;
        for (std::size_t column = b * size; column < end; ++column) {
          const std::uint64_t magnitude = words[at(column)] & 0x7FFFFFFF;
          if (magnitude < 0x7F800000) largest = std::max(largest, magnitude);
        }
        const std::uint64_t scale = block_scale(format, decode(fp32, largest), options);
        expected.scales[(o * blocks + b) * inner + i] = scale;
        expected.summary.blocks += 1;
        const Value one = {Kind::finite, false, 0, 1};
        Value unit = decode(format.scale, scale);
        unit.exponent += format.element_exponent;
        const Unrounded product = multiply(unit, options.tensor_scale.value_or(one));
        unit = {product.kind, false, product.exponent,
                static_cast<std::uint64_t>(product.significand)};
        for (std::size_t column = b * size; column < end; ++column) {
          const Value x = decode(fp32, words[at(column)]);
          const RandomBits random = random_bits(options.seed, (o * inner + i) * length + column);
          const std::uint64_t code = block_element(format, x, scale, options, random);
          expected.elements[at(column)] = code;
          const Value y = decode_element(format, code, scale, options.tensor_scale.value_or(one));
          const bool past =
              x.kind == Kind::infinity ||
              (x.kind == Kind::finite && unit.kind == Kind::finite &&
               !is_in_range(format.element, divide(x, unit), options.rounding, random));
          count(x, y, unit, past, expected.summary);
        }
      }
    }
  }
  return expected;
}

void check_equal(const Tensor& tensor, const BlockFormat& format, std::size_t axis,
                 const BlockQuantisationOptions& options) {
  const Expected expected = by_definition(tensor, format, axis, options);
  for (const Packing packing : {Packing::container, Packing::dense}) {
    BlockSummary summary;
    const BlockTensor made = quantise_tensor(tensor, format, axis, packing, options, summary);
    CHECK(made.elements.shape == tensor.shape);
    CHECK(codes_of(made.elements) == expected.elements);
    CHECK(codes_of(made.scales) == expected.scales);
    // The sums are in another order; everything else is the same.
    CHECK(summary.signal == Approx(expected.summary.signal));
    CHECK(summary.noise == Approx(expected.summary.noise));
    CHECK(summary.error_sum == Approx(expected.summary.error_sum));
    CHECK(summary.max_error == Approx(expected.summary.max_error));
    BlockSummary counts = expected.summary;
    counts.signal = summary.signal;
    counts.noise = summary.noise;
    counts.error_sum = summary.error_sum;
    counts.max_error = summary.max_error;
    CHECK(counts == summary);
  }
}

}  // namespace

TEST_CASE("tensors are quantised along every axis, and the summary is what happened") {
  const Tensor tensor = some_tensor({3, 35, 5}, 1);
  for (const BlockFormatEntry& entry : block_format_catalogue) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      CAPTURE(entry.name, axis);
      BlockQuantisationOptions options;
      if (axis == 1) options.rounding = Rounding::stochastic;
      if (axis == 2) options.overflow = overflow_ieee;
      options.seed = 3;
      if (entry.format.tensor_scale) options.tensor_scale = tensor_scale_of(tensor, entry.format);
      check_equal(tensor, entry.format, axis, options);
    }
  }
}

TEST_CASE("a summary does not depend on threads") {
  const Tensor tensor = some_tensor({40, 4096}, 2);
  for (const BlockFormat& format : {mxfp4, nvfp4}) {
    BlockQuantisationOptions options;
    BlockSummary one, three;
    options.threads = 1;
    quantise_tensor(tensor, format, 1, Packing::dense, options, one);
    options.threads = 3;
    quantise_tensor(tensor, format, 1, Packing::dense, options, three);
    CHECK(one == three);
    CHECK(one.blocks == static_cast<std::uint64_t>(40 * 4096 / format.block_size));
  }
}

TEST_CASE("tensors without elements have neither blocks nor scales") {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{0, 8}, {8, 0}, std::vector<std::int64_t>{0}}) {
    BlockSummary summary;
    const BlockTensor made = quantise_tensor(some_tensor(shape, 3), mxfp4, shape.size() - 1,
                                             Packing::dense, {}, summary);
    CHECK(summary == BlockSummary{});
    CHECK(made.elements.shape == shape);
    CHECK(element_count(made.scales.shape) == 0);
    ConversionSummary back;
    CHECK(restore_tensor(made, mxfp4, shape.size() - 1, fp32, Packing::container, {}, back).shape ==
          shape);
  }
}

TEST_CASE("the tensor scale of a tensor takes its largest magnitude to the largest number") {
  const auto scale_of = [](const std::vector<float>& values) {
    std::vector<std::uint32_t> words;
    words.reserve(values.size());
    for (const float x : values) words.push_back(std::bit_cast<std::uint32_t>(x));
    return tensor_scale_of(tensor_of_codes("x", fp32, Packing::container,
                                           {static_cast<std::int64_t>(values.size())}, words),
                           nvfp4);
  };
  CHECK(as_double(scale_of({1, -2688, 3})) == 1);
  CHECK(as_double(scale_of({-1344})) == 0.5);
  CHECK(as_double(scale_of({1})) == static_cast<double>(static_cast<float>(1.0 / 2688)));
  CHECK(as_double(scale_of({0, -0.0F})) == 1);
  CHECK(as_double(scale_of({})) == 1);
  CHECK(as_double(scale_of({INFINITY, NAN, 2688})) == 1);
  CHECK(as_double(scale_of({0x1p-149F})) == 0x1p-149);  // the quotient is below half of that
}

TEST_CASE("a tensor of blocks stands for the products of elements and scales, rounded once") {
  const Tensor tensor = some_tensor({7, 33, 2}, 4);
  for (const BlockFormatEntry& entry : block_format_catalogue) {
    CAPTURE(entry.name);
    const BlockFormat& format = entry.format;
    BlockQuantisationOptions options;
    if (format.tensor_scale) options.tensor_scale = number("0.0123");
    BlockSummary quantised;
    const BlockTensor blocks =
        quantise_tensor(tensor, format, 1, Packing::dense, options, quantised);
    const std::vector<std::uint64_t> elements = codes_of(blocks.elements);
    const std::vector<std::uint64_t> scales = codes_of(blocks.scales);
    for (const Format& to : {fp32, bf16}) {
      ConversionSummary summary;
      const Tensor made = restore_tensor(blocks, format, 1, to, Packing::container, {}, summary);
      const std::vector<std::uint64_t> codes = codes_of(made);
      std::size_t wrong = 0;
      std::size_t inexact = 0;
      for (std::size_t i = 0; i < codes.size(); ++i) {
        const auto blocks_of_row = static_cast<std::size_t>(block_count(format, 33));
        const std::size_t block =
            (i / 66 * blocks_of_row + i / 2 % 33 / static_cast<std::size_t>(format.block_size)) *
                2 +
            i % 2;
        const Value one = {Kind::finite, false, 0, 1};
        const Value x =
            decode_element(format, elements[i], scales[block], options.tensor_scale.value_or(one));
        wrong += codes[i] != encode(to, x) ? 1U : 0U;
        const Value y = decode(to, codes[i]);
        inexact += x.kind == Kind::finite && as_double(x) != as_double(y) ? 1U : 0U;
      }
      CHECK(wrong == 0);
      CHECK(summary.inexact == inexact);
      CHECK(summary.elements == codes.size());
    }
  }
}

TEST_CASE("FP32 holds what is_within_fp32 says, code by code") {
  for (const FormatEntry& entry : format_catalogue) {
    const Format& f = entry.format;
    CAPTURE(entry.name);
    if (bits(f) > 16) {
      CHECK(is_within_fp32(f) == (f == fp32 || f == tf32));
      continue;
    }
    CHECK(is_within_fp32(f));
    std::size_t changed = 0;
    for (std::uint64_t code = 0; code <= code_mask(f); ++code) {
      const Value x = decode(f, code);
      if (x.kind != Kind::finite) continue;
      const Value y = decode(fp32, encode(fp32, x));
      changed += as_double(x) != as_double(y) ? 1U : 0U;
    }
    CHECK(changed == 0);
  }
}

}  // namespace guardbit::formats
