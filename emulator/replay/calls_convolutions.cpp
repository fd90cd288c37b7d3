#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "emulator/operators/channel_norms.hpp"
#include "emulator/operators/layers/depthwise.hpp"
#include "emulator/replay/calls.hpp"
#include "emulator/replay/product_verdict.hpp"

// Convolutions and their gradients, as products whose K walks filters, channels or pixels in an
// order that the bits tell.
namespace guardbit::emulator::replay {
namespace {

/// What a convolution call says, with 1D ones as 2D ones of height 1.
struct ConvolutionCall {
  Tensor input, weight;
  std::optional<Tensor> bias;
  std::array<std::int64_t, 2> stride{1, 1}, padding{0, 0}, dilation{1, 1};
  bool is_transposed = false;
  std::int64_t groups = 1;
};

Tensor as_2d(const Tensor& tensor) {
  if (tensor.rank() == 4) return tensor;
  if (tensor.rank() != 3)
    throw UnknownArguments{"a convolution of other than one or two dimensions"};
  Tensor result = tensor;
  result.shape.insert(result.shape.begin() + 2, 1);
  result.stride.insert(result.stride.begin() + 2, tensor.stride[1]);
  return result;
}

std::array<std::int64_t, 2> pair_of(const Dimensions& numbers, bool is_1d, std::int64_t absent) {
  constexpr std::int64_t most = 1 << 20;
  for (const std::int64_t number : numbers) {
    if (number < 0 || number > most)
      throw UnknownArguments{"a stride, padding or dilation of " + std::to_string(number)};
  }
  if (is_1d) return {absent, numbers.at(0)};
  return {numbers.at(0), numbers.size() > 1 ? numbers[1] : numbers[0]};
}

/// `first` is the position of the stride among the arguments.
void read_shape(const Call& call, std::size_t first, bool is_1d, ConvolutionCall& x) {
  x.stride = pair_of(call.integers(first, "stride"), is_1d, 1);
  x.padding = pair_of(call.integers(first + 1, "padding"), is_1d, 0);
  x.dilation = pair_of(call.integers(first + 2, "dilation"), is_1d, 1);
  x.is_transposed = call.boolean(first + 3, "transposed", false);
  x.groups = call.integer(first + 5, "groups");
  if (x.groups < 1 || x.stride[0] < 1 || x.stride[1] < 1)
    throw UnknownArguments{"a convolution without groups or with a stride of 0"};
}

/// An element by its place; -1: a zero.
using Place = std::function<std::int64_t(std::int64_t row, std::int64_t column)>;

/// A matrix whose elements are those of a tensor.
CodeMatrix gathered(const Tensor& tensor, std::int64_t rows, std::int64_t columns,
                    const Place& place) {
  CodeMatrix matrix = make_matrix(tensor.type, 1, rows, columns);
  const auto width = static_cast<std::size_t>(tensor.element_bytes());
  std::byte* at = matrix.bytes.writable();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j, at += width) {
      const std::int64_t index = place(i, j);
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

std::string tensor_text(const Tensor& tensor) {
  std::string text = formats::name_of(tensor.type) + "[";
  for (const std::int64_t size : tensor.shape) text += std::to_string(size) + ",";
  text += ";";
  for (const std::int64_t step : tensor.stride) text += std::to_string(step) + ",";
  return text + "]";
}

std::string shape_of(const std::string& kind, const ConvolutionCall& x, const Tensor& other) {
  std::string text =
      kind + " " + tensor_text(x.input) + " " + tensor_text(x.weight) + " " + tensor_text(other);
  for (const auto& pair : {x.stride, x.padding, x.dilation})
    text += " " + std::to_string(pair[0]) + "," + std::to_string(pair[1]);
  return text + (x.is_transposed ? " transposed" : "") + (x.bias ? " bias" : "") +
         " groups=" + std::to_string(x.groups);
}

CodeMatrix line_of(const Tensor& tensor) {
  return {tensor.type, 1, 1, tensor.count(), {tensor.bytes, tensor.owner}, {}};
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

/// A place in K of a data gradient: output channel, or -1 for a zero, filter row and column.
struct Tap {
  std::int64_t o = 0, r = 0, s = 0;
};

/// Kernels take their channels in such groups for the unit's blocks, the last one with zeros.
constexpr std::int64_t padded_channels = 16;

/// Of kernels that go over the whole filter with some channels, then with the next ones.
std::optional<std::int64_t> channels_of_block(const std::string& order) {
  constexpr std::string_view words = "channels in blocks of ";
  if (!order.starts_with(words)) return std::nullopt;
  return std::stoll(order.substr(words.size()));
}

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
  for (std::int64_t first = 0; first < channels; first += block) {
    const std::int64_t end = std::min(channels, first + block);
    add_filter([&](std::int64_t r, std::int64_t s) {
      for (std::int64_t o = first; o < end; ++o) taps.push_back({o, r, s});
      for (std::int64_t o = end - first; is_padded && o % padded_channels != 0; ++o)
        taps.push_back({-1, r, s});
    });
  }
  return taps;
}

/// What a transposed convolution gives, or a data gradient: rows are pixels of the image, K walks
/// output channels and filter places, columns are the image's channels. `maps` is what was
/// convolved to, `image` what comes out.
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
  GemmCapture capture;
  capture.kind = "gemm";
  capture.arch = "sm_90";
  capture.tf32 = tf32;
  capture.problem.a = gathered(maps, rows, k, source);
  capture.problem.b = gathered(x.weight, k, columns, filter);
  if (x.bias) capture.problem.bias = line_of(*x.bias);
  capture.d = gathered(image, rows, columns, result);
  capture.shape = {rows, columns};
  return capture;
}

/// A convolution whose K walks filter places and some channels at a time, as `scattered_capture`
/// has it: rows are pixels of the output, columns its channels.
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
  GemmCapture capture;
  capture.kind = "gemm";
  capture.arch = "sm_90";
  capture.tf32 = tf32;
  capture.problem.a = gathered(x.input, rows, k, source);
  capture.problem.b = gathered(x.weight, k, columns, filter);
  if (x.bias) capture.problem.bias = line_of(*x.bias);
  capture.d = gathered(output, rows, columns, result);
  capture.shape = {rows, columns};
  return capture;
}

/// A weight gradient: rows are output channels, columns channel and filter place, K walks images
/// and pixels.
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
  GemmCapture capture;
  capture.kind = "gemm";
  capture.arch = "sm_90";
  capture.tf32 = tf32;
  capture.problem.a = gathered(maps, rows, k, of_maps);
  capture.problem.b = gathered(x.input, k, columns, of_input);
  capture.d = line_of(gradient);
  capture.d.rows = rows;
  capture.d.columns = columns;
  capture.shape = {rows, columns};
  return capture;
}

constexpr std::array scattered_orders = {"channels outermost",
                                         "channels innermost, descending",
                                         "channels innermost",
                                         "channels outermost, descending",
                                         "channels in blocks of 32",
                                         "channels in blocks of 64",
                                         "channels in blocks of 32, descending",
                                         "channels in blocks of 64, descending",
                                         "channels innermost, padded to 16",
                                         "channels innermost, padded to 16, descending"};

/// In FP32 cuDNN may multiply in TF32 or not.
std::vector<bool> modes(const Tensor& tensor, const Context& context) {
  if (tensor.type != formats::fp32) return {false};
  if (!context.flag("cudnn_allow_tf32", true)) return {false};
  return {false, true};
}

ProductCall scattered_product(const ConvolutionCall& x, const Tensor& maps, const Tensor& image,
                              const Context& context, const std::string& kind) {
  ProductCall product{shape_of(kind, x, image), {}, {}};
  for (const bool tf32 : modes(image, context)) {
    for (const char* order : scattered_orders) {
      // The same as channels innermost.
      if (channels_of_block(order).value_or(0) >= maps.shape[1]) continue;
      if (std::string_view(order).find("padded") != std::string_view::npos &&
          maps.shape[1] % padded_channels == 0)
        continue;
      product.captures.push_back(scattered_capture(x, maps, image, order, tf32));
      product.orders.push_back(std::string(order) + (tf32 ? " in tf32" : ""));
    }
  }
  return product;
}

/// A convolution, or the gradient of a transposed one's input.
ProductCall convolved_product(const ConvolutionCall& x, const Tensor& output,
                              const Context& context, const std::string& kind) {
  ProductCall product{shape_of(kind, x, output), {}, {}};
  for (const bool tf32 : modes(output, context)) {
    product.captures.push_back(forward_capture(x, output, tf32));
    product.orders.emplace_back(tf32 ? "in tf32" : "");
  }
  if (x.groups != 1) return product;
  for (const bool tf32 : modes(output, context)) {
    for (const std::string order : {"channels innermost, padded to 16", "channels in blocks of 32",
                                    "channels in blocks of 64"}) {
      const std::int64_t channels = x.input.shape[1];
      if (channels_of_block(order) ? *channels_of_block(order) >= channels
                                   : channels % padded_channels == 0)
        continue;
      product.captures.push_back(gathered_capture(x, output, order, tf32));
      product.orders.push_back(order + (tf32 ? " in tf32" : ""));
    }
  }
  return product;
}

Answer with_verdict(const ProductVerdict& verdict, const Tensor& result) {
  Answer answer;
  answer.status = verdict.status;
  answer.plan = verdict.plan;
  answer.is_predicted = verdict.is_predicted;
  if (verdict.status == Status::exact) answer.results.emplace_back(result);
  return answer;
}

Answer convolution(const Call& call, Context& context) {
  const auto results = tensors_of(call.out);
  if (results.size() != 1) throw UnknownArguments{"a convolution gives one tensor"};
  ConvolutionCall x;
  const bool is_1d = call.tensor(0, "input").rank() == 3;
  x.input = as_2d(call.tensor(0, "input"));
  x.weight = as_2d(call.tensor(1, "weight"));
  if (const Tensor* bias = call.optional_tensor(2, "bias")) x.bias = *bias;
  read_shape(call, 3, is_1d, x);
  const Tensor output = as_2d(*results[0]);
  if (x.is_transposed) {
    if (x.groups != 1) return unmodelled("a transposed convolution in groups");
    return with_verdict(
        judge_product(scattered_product(x, x.input, output, context, call.op), context),
        *results[0]);
  }
  return with_verdict(judge_product(convolved_product(x, output, context, call.op), context),
                      *results[0]);
}

/// The gradient of the bias: the sum of the output's gradient over all but its channels.
std::optional<Answer> bias_gradient(const Tensor& maps, Context& context) {
  const Handler* sum = find_handler("aten.sum.dim_IntList");
  if (sum == nullptr) return std::nullopt;
  Call call;
  call.op = "aten.sum.dim_IntList";
  List dims;
  for (const std::int64_t dim : maps.rank() == 3 ? Dimensions{0, 2} : Dimensions{0, 2, 3})
    dims.push_back(Value{dim});
  call.args = {Value{maps}, Value{dims}, Value{false}};
  return sum->answer(call, context);
}

/// The recorded gradient of a depthwise convolution by the kernel that its layout asks for, or by
/// the other one: then it is explained, not predicted.
template <class Compute>
ProductVerdict depthwise_verdict(const ConvolutionCall& x, const Tensor& recorded,
                                 const Compute& compute) {
  using operators::DepthwiseKernel;
  const bool is_together = operators::is_channels_last(x.input);
  for (const bool takes_usual : {true, false}) {
    const bool is_native = is_together != takes_usual;
    const Tensor own = compute(is_native ? DepthwiseKernel::native : DepthwiseKernel::cudnn);
    if (own.bytes.size() != recorded.bytes.size() || !std::ranges::equal(own.bytes, recorded.bytes))
      continue;
    return {Status::exact,
            is_native ? "PyTorch's depthwise kernel" : "FMAs over the filter or 32 lanes",
            takes_usual, 0};
  }
  return {Status::unmodelled, "neither of the known depthwise kernels gives it", false, 0};
}

ProductVerdict depthwise_data(const ConvolutionCall& x, const Tensor& maps,
                              const Tensor& recorded) {
  const operators::DepthwiseShape shape{x.stride, x.padding, x.dilation};
  return depthwise_verdict(x, recorded, [&](operators::DepthwiseKernel kernel) {
    return operators::depthwise_data_gradient(maps, x.input, x.weight, shape, kernel);
  });
}
ProductVerdict depthwise_weights(const ConvolutionCall& x, const Tensor& maps,
                                 const Tensor& recorded) {
  const operators::DepthwiseShape shape{x.stride, x.padding, x.dilation};
  return depthwise_verdict(x, recorded, [&](operators::DepthwiseKernel kernel) {
    return operators::depthwise_weight_gradient(maps, x.input, x.weight, shape, kernel);
  });
}

ProductCall weight_product(const ConvolutionCall& x, const Tensor& maps, const Tensor& gradient,
                           const Context& context, const std::string& kind) {
  ProductCall product{shape_of(kind, x, gradient), {}, {}};
  for (const bool tf32 : modes(gradient, context)) {
    product.captures.push_back(weight_gradient_capture(x, maps, gradient, tf32));
    product.orders.emplace_back(tf32 ? "in tf32" : "");
  }
  return product;
}

Answer convolution_backward(const Call& call, Context& context) {
  const List* out = call.out.list();
  if (out == nullptr || out->size() != 3) throw UnknownArguments{"three results are needed"};
  ConvolutionCall x;
  const Tensor& given = call.tensor(0, "grad_output");
  const bool is_1d = given.rank() == 3;
  Tensor maps = as_2d(given);
  x.input = as_2d(call.tensor(1, "input"));
  x.weight = as_2d(call.tensor(2, "weight"));
  read_shape(call, 4, is_1d, x);
  const bool is_depthwise = x.groups > 1 && x.groups == x.input.shape[1] && !x.is_transposed;
  if (x.groups != 1 && !is_depthwise) return unmodelled("gradients of a convolution in groups");
  // It is the data gradient of the convolution from its output to its input.
  if (x.is_transposed) std::swap(maps, x.input);
  Answer answer;
  answer.is_predicted = true;
  std::string unknown;
  const auto add = [&](const std::string& what, const ProductVerdict& verdict,
                       const Tensor& result) {
    answer.plan += (answer.plan.empty() ? "" : "; ") + what + ": " + verdict.plan;
    answer.is_predicted = answer.is_predicted && verdict.is_predicted;
    if (verdict.status == Status::exact)
      answer.results.emplace_back(result);
    else
      answer.results.emplace_back(std::nullopt);
  };
  if (const Tensor* data = (*out)[0].tensor())
    add("data",
        is_depthwise ? depthwise_data(x, maps, *data)
        : x.is_transposed
            ? judge_product(convolved_product(x, as_2d(*data), context, call.op + " data"), context)
            : judge_product(scattered_product(x, maps, as_2d(*data), context, call.op + " data"),
                            context),
        *data);
  if (const Tensor* weights = (*out)[1].tensor())
    add("weight",
        is_depthwise
            ? depthwise_weights(x, maps, *weights)
            : judge_product(weight_product(x, maps, as_2d(*weights), context, call.op + " weight"),
                            context),
        *weights);
  if ((*out)[2].tensor() != nullptr) {
    auto sum = bias_gradient(given, context);
    const bool is_known = sum && sum->status == Status::exact && sum->results.size() == 1;
    answer.results.push_back(is_known ? sum->results[0] : std::nullopt);
    answer.plan += "; bias: " + (is_known ? sum->plan : std::string("no model of sums"));
  }
  return answer;
}

constexpr std::array handlers = {
    Handler{"aten.convolution", convolution},
    Handler{"aten.convolution_backward", convolution_backward},
};

}  // namespace

std::span<const Handler> convolution_calls() { return handlers; }

}  // namespace guardbit::emulator::replay
