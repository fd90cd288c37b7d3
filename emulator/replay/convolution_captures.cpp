#include "emulator/replay/convolution_captures.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/gemm/problem.hpp"

namespace guardbit::emulator::replay {
namespace {

std::array<std::int64_t, 2> two_of(const Dimensions& numbers, bool is_1d, std::int64_t absent) {
  constexpr std::int64_t most = 1 << 20;
  for (const std::int64_t number : numbers) {
    if (number < 0 || number > most)
      throw UnknownArguments{"a stride, padding or dilation of " + std::to_string(number)};
  }
  if (is_1d) return {absent, numbers.at(0)};
  return {numbers.at(0), numbers.size() > 1 ? numbers[1] : numbers[0]};
}

/// An element by its place; -1: a zero.
using Place = std::function<std::int64_t(std::int64_t row, std::int64_t column)>;

/// A matrix whose elements are those of a tensor.
CodeMatrix gathered(const Tensor& tensor, std::int64_t rows, std::int64_t columns,
                    const Place& place) {
  CodeMatrix matrix = make_matrix(tensor.type, 1, rows, columns);
  const auto width = static_cast<std::size_t>(tensor.element_bytes());
  std::byte* at = matrix.bytes.writable();
  const std::int64_t count = tensor.count();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j, at += width) {
      const std::int64_t index = place(i, j);
      if (index >= count) throw UnknownArguments{"shapes that are no convolution"};
      if (index >= 0)
        std::memcpy(at, tensor.bytes.data() + static_cast<std::size_t>(index) * width, width);
    }
  }
  return matrix;
}

std::int64_t index_of(const Tensor& t, std::int64_t a, std::int64_t b, std::int64_t c,
                      std::int64_t d) {
  return ((a * t.shape[1] + b) * t.shape[2] + c) * t.shape[3] + d;
}

std::string strided_text(const Tensor& tensor) {
  std::string text = formats::name_of(tensor.type) + "[";
  for (const std::int64_t size : tensor.shape) text += std::to_string(size) + ",";
  text += ";";
  for (const std::int64_t step : tensor.stride) text += std::to_string(step) + ",";
  return text + "]";
}

CodeMatrix line_of(const Tensor& tensor) {
  return {tensor.type, 1, 1, tensor.count(), {tensor.bytes, tensor.owner}, {}};
}

/// A product of two matrices that gave D.
GemmCapture product_of(CodeMatrix a, CodeMatrix b, const std::optional<Tensor>& bias, CodeMatrix d,
                       bool tf32) {
  GemmCapture capture;
  capture.kind = "gemm";
  capture.arch = "sm_90";
  capture.tf32 = tf32;
  capture.problem.a = std::move(a);
  capture.problem.b = std::move(b);
  if (bias) capture.problem.bias = line_of(*bias);
  capture.shape = {d.rows, d.columns};
  capture.d = std::move(d);
  return capture;
}

/// A place in K of a data gradient: output channel, or -1 for a zero, filter row and column.
struct Tap {
  std::int64_t o = 0, r = 0, s = 0;
};

std::vector<Tap> taps_of(const Tensor& weight, std::int64_t channels, const std::string& order) {
  std::vector<Tap> taps;
  const std::int64_t rows = weight.shape[2], columns = weight.shape[3];
  const bool is_descending = order.find("descending") != std::string::npos;
  const auto add_filter = [&](const auto& add) {
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const std::int64_t at = is_descending ? rows * columns - 1 - i : i;
      add(at / columns, at % columns);
    }
  };
  if (order.starts_with("channels outermost")) {
    for (std::int64_t o = 0; o < channels; ++o)
      add_filter([&](std::int64_t r, std::int64_t s) { taps.push_back({o, r, s}); });
    return taps;
  }
  const std::int64_t block = channels_of_block(order).value_or(channels);
  const bool is_padded = channels_of_block(order) || order.find("padded") != std::string::npos;
  const bool is_whole = order.find("whole blocks") != std::string::npos;
  for (std::int64_t first = 0; first < channels; first += block) {
    const std::int64_t end = std::min(channels, first + block);
    add_filter([&](std::int64_t r, std::int64_t s) {
      for (std::int64_t o = first; o < end; ++o) taps.push_back({o, r, s});
      const std::int64_t filled = is_whole ? block : padded_channels;
      for (std::int64_t o = end - first; is_padded && o % filled != 0; ++o)
        taps.push_back({-1, r, s});
    });
  }
  return taps;
}

}  // namespace

Tensor as_2d(const Tensor& tensor) {
  if (tensor.rank() == 4) return tensor;
  if (tensor.rank() != 3)
    throw UnknownArguments{"a convolution of other than one or two dimensions"};
  Tensor result = tensor;
  result.shape.insert(result.shape.begin() + 2, 1);
  result.stride.insert(result.stride.begin() + 2, tensor.stride[1]);
  return result;
}

void read_shape(const Call& call, std::size_t first, bool is_1d, ConvolutionCall& x) {
  x.stride = two_of(call.integers(first, "stride"), is_1d, 1);
  x.padding = two_of(call.integers(first + 1, "padding"), is_1d, 0);
  x.dilation = two_of(call.integers(first + 2, "dilation"), is_1d, 1);
  x.is_transposed = call.boolean(first + 3, "transposed", false);
  x.groups = call.integer(first + 5, "groups");
  if (x.groups < 1 || x.stride[0] < 1 || x.stride[1] < 1)
    throw UnknownArguments{"a convolution without groups or with a stride of 0"};
}

std::string shape_of(const std::string& kind, const ConvolutionCall& x, const Tensor& other) {
  std::string text =
      kind + " " + strided_text(x.input) + " " + strided_text(x.weight) + " " + strided_text(other);
  for (const auto& pair : {x.stride, x.padding, x.dilation})
    text += " " + std::to_string(pair[0]) + "," + std::to_string(pair[1]);
  return text + (x.is_transposed ? " transposed" : "") + (x.bias ? " bias" : "") +
         " groups=" + std::to_string(x.groups);
}

GemmCapture forward_capture(const ConvolutionCall& x, const Tensor& output, bool tf32) {
  GemmCapture capture;
  capture.kind = "conv2d";
  capture.arch = "sm_90";
  capture.tf32 = tf32;
  Convolution shape;
  shape.n = x.input.shape[0], shape.c = x.input.shape[1];
  shape.h = x.input.shape[2], shape.w = x.input.shape[3];
  shape.o = x.weight.shape[0], shape.r = x.weight.shape[2], shape.s = x.weight.shape[3];
  shape.p = output.shape[2], shape.q = output.shape[3];
  shape.stride_h = x.stride[0], shape.stride_w = x.stride[1];
  shape.padding_h = x.padding[0], shape.padding_w = x.padding[1];
  shape.dilation_h = x.dilation[0], shape.dilation_w = x.dilation[1];
  shape.groups = x.groups;
  if (x.weight.shape[1] * x.groups != shape.c || output.shape[0] != shape.n ||
      output.shape[1] != shape.o)
    throw UnknownArguments{"shapes that are no convolution"};
  capture.problem.a = line_of(x.input);
  capture.problem.b = line_of(x.weight);
  if (x.bias) capture.problem.bias = line_of(*x.bias);
  capture.d = lower_output(shape, line_of(output));
  capture.shape = output.shape;
  capture.convolution = shape;
  return capture;
}

std::optional<std::int64_t> channels_of_block(const std::string& order) {
  for (const std::string_view words : {"channels in blocks of ", "channels in whole blocks of "})
    if (order.starts_with(words)) return std::stoll(order.substr(words.size()));
  return std::nullopt;
}

GemmCapture scattered_capture(const ConvolutionCall& x, const Tensor& maps, const Tensor& image,
                              const std::string& order, bool tf32) {
  const std::vector<Tap> taps = taps_of(x.weight, maps.shape[1], order);
  const std::int64_t pixels = image.shape[2] * image.shape[3], columns = image.shape[1];
  const auto k = static_cast<std::int64_t>(taps.size());
  const auto source = [&](std::int64_t row, std::int64_t at) -> std::int64_t {
    const Tap& tap = taps[static_cast<std::size_t>(at)];
    if (tap.o < 0) return -1;
    const std::int64_t n = row / pixels, h = row % pixels / image.shape[3],
                       w = row % image.shape[3];
    const std::int64_t p = h + x.padding[0] - tap.r * x.dilation[0];
    const std::int64_t q = w + x.padding[1] - tap.s * x.dilation[1];
    if (p < 0 || q < 0 || p % x.stride[0] != 0 || q % x.stride[1] != 0) return -1;
    if (p / x.stride[0] >= maps.shape[2] || q / x.stride[1] >= maps.shape[3]) return -1;
    return index_of(maps, n, tap.o, p / x.stride[0], q / x.stride[1]);
  };
  const auto filter = [&](std::int64_t at, std::int64_t c) -> std::int64_t {
    const Tap& tap = taps[static_cast<std::size_t>(at)];
    if (tap.o < 0) return -1;
    return index_of(x.weight, tap.o, c, tap.r, tap.s);
  };
  const auto result = [&](std::int64_t row, std::int64_t c) {
    return index_of(image, row / pixels, c, row % pixels / image.shape[3], row % image.shape[3]);
  };
  const std::int64_t rows = image.shape[0] * pixels;
  return product_of(gathered(maps, rows, k, source), gathered(x.weight, k, columns, filter), x.bias,
                    gathered(image, rows, columns, result), tf32);
}

GemmCapture gathered_capture(const ConvolutionCall& x, const Tensor& output,
                             const std::string& order, bool tf32) {
  const std::vector<Tap> taps = taps_of(x.weight, x.input.shape[1], order);
  const std::int64_t pixels = output.shape[2] * output.shape[3], columns = output.shape[1];
  const std::int64_t rows = output.shape[0] * pixels;
  const auto k = static_cast<std::int64_t>(taps.size());
  const auto source = [&](std::int64_t row, std::int64_t at) -> std::int64_t {
    const Tap& tap = taps[static_cast<std::size_t>(at)];
    const std::int64_t p = row % pixels / output.shape[3], q = row % output.shape[3];
    const std::int64_t h = p * x.stride[0] - x.padding[0] + tap.r * x.dilation[0];
    const std::int64_t w = q * x.stride[1] - x.padding[1] + tap.s * x.dilation[1];
    if (tap.o < 0 || h < 0 || w < 0 || h >= x.input.shape[2] || w >= x.input.shape[3]) return -1;
    return index_of(x.input, row / pixels, tap.o, h, w);
  };
  const auto filter = [&](std::int64_t at, std::int64_t o) -> std::int64_t {
    const Tap& tap = taps[static_cast<std::size_t>(at)];
    return tap.o < 0 ? -1 : index_of(x.weight, o, tap.o, tap.r, tap.s);
  };
  const auto result = [&](std::int64_t row, std::int64_t o) {
    return index_of(output, row / pixels, o, row % pixels / output.shape[3], row % output.shape[3]);
  };
  return product_of(gathered(x.input, rows, k, source), gathered(x.weight, k, columns, filter),
                    x.bias, gathered(output, rows, columns, result), tf32);
}

GemmCapture weight_gradient_capture(const ConvolutionCall& x, const Tensor& maps,
                                    const Tensor& gradient, bool tf32) {
  const std::int64_t filter = x.weight.shape[2] * x.weight.shape[3];
  const std::int64_t columns = x.weight.shape[1] * filter, rows = x.weight.shape[0];
  const std::int64_t pixels = maps.shape[2] * maps.shape[3], k = maps.shape[0] * pixels;
  const auto of_maps = [&](std::int64_t o, std::int64_t at) {
    return index_of(maps, at / pixels, o, at % pixels / maps.shape[3], at % maps.shape[3]);
  };
  const auto of_input = [&](std::int64_t at, std::int64_t column) -> std::int64_t {
    const std::int64_t c = column / filter, r = column % filter / x.weight.shape[3];
    const std::int64_t s = column % x.weight.shape[3];
    const std::int64_t p = at % pixels / maps.shape[3], q = at % maps.shape[3];
    const std::int64_t h = p * x.stride[0] - x.padding[0] + r * x.dilation[0];
    const std::int64_t w = q * x.stride[1] - x.padding[1] + s * x.dilation[1];
    if (h < 0 || w < 0 || h >= x.input.shape[2] || w >= x.input.shape[3]) return -1;
    return index_of(x.input, at / pixels, c, h, w);
  };
  CodeMatrix result = line_of(gradient);
  result.rows = rows;
  result.columns = columns;
  return product_of(gathered(maps, rows, k, of_maps), gathered(x.input, k, columns, of_input), {},
                    std::move(result), tf32);
}

}  // namespace guardbit::emulator::replay
