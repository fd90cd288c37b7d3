#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "emulator/operators/layers/depthwise.hpp"
#include "emulator/operators/layers/placed_gradient.hpp"
#include "emulator/operators/layers/tiled_gradient.hpp"
#include "emulator/operators/layers/transformed_gradient.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/replay/calls.hpp"
#include "emulator/replay/convolution_captures.hpp"
#include "emulator/replay/planned_product.hpp"
#include "emulator/replay/usual_convolutions.hpp"

// Convolutions and their gradients, as products whose K walks filters, channels or pixels in an
// order that the bits tell.
namespace guardbit::emulator::replay {
namespace {

constexpr std::array scattered_orders = {"channels outermost",
                                         "channels innermost, descending",
                                         "channels innermost",
                                         "channels outermost, descending",
                                         "channels in blocks of 16",
                                         "channels in blocks of 32",
                                         "channels in blocks of 64",
                                         "channels in blocks of 16, descending",
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

/// Rows of pixels and columns of channels in the order of an image's elements.
CodeMatrix as_image(const CodeMatrix& d, const Tensor& image) {
  CodeMatrix pixels = d;
  pixels.batch = image.shape[0];
  pixels.rows = image.shape[2] * image.shape[3];
  return pixels.transposed().contiguous();
}

OrderOfK scattered_order(const ConvolutionCall& x, const Tensor& maps, const Tensor& image,
                         const std::string& order, bool tf32) {
  return {order + (tf32 ? " in tf32" : ""),
          [=] { return scattered_capture(x, maps, image, order, tf32); },
          [=](const CodeMatrix& d) { return as_image(d, image); }};
}

OrderOfK gathered_order(const ConvolutionCall& x, const Tensor& output, const std::string& order,
                        bool tf32) {
  return {order + (tf32 ? " in tf32" : ""),
          [=] { return gathered_capture(x, output, order, tf32); },
          [=](const CodeMatrix& d) { return as_image(d, output); }};
}

/// Adds the order of the usual plan, where it is none of those that are tried for all calls.
/// make(order, tf32)
template <class Make>
void add_usual_order(ProductCall& product, const Make& make) {
  if (!product.usual) return;
  std::string words = product.usual->order;
  for (const OrderOfK& order : product.orders)
    if (order.words == words) return;
  constexpr std::string_view ending = " in tf32";
  const bool tf32 = words.ends_with(ending);
  if (tf32) words.resize(words.size() - ending.size());
  product.orders.push_back(make(words, tf32));
}

ProductCall scattered_product(const ConvolutionCall& x, const Tensor& maps, const Tensor& image,
                              const Context& context, const std::string& kind) {
  ProductCall product{shape_of(kind, x, image), {}};
  for (const bool tf32 : modes(image, context)) {
    for (const char* order : scattered_orders) {
      // The same as channels innermost.
      if (channels_of_block(order).value_or(0) >= maps.shape[1]) continue;
      if (std::string_view(order).find("padded") != std::string_view::npos &&
          maps.shape[1] % padded_channels == 0)
        continue;
      product.orders.push_back(scattered_order(x, maps, image, order, tf32));
    }
  }
  return product;
}

ProductCall data_product(const ConvolutionCall& x, const Tensor& maps, const Tensor& data,
                         const Context& context, const std::string& op) {
  ProductCall product = scattered_product(x, maps, data, context, op + " data");
  product.usual = usual_data(x, maps, data, context);
  add_usual_order(product, [&](const std::string& order, bool tf32) {
    return scattered_order(x, maps, data, order, tf32);
  });
  return product;
}

/// A convolution, or the gradient of a transposed one's input.
ProductCall convolved_product(const ConvolutionCall& x, const Tensor& output,
                              const Context& context, const std::string& kind) {
  ProductCall product{shape_of(kind, x, output), {}};
  for (const bool tf32 : modes(output, context)) {
    product.orders.push_back(
        {tf32 ? "in tf32" : "", [=] { return forward_capture(x, output, tf32); }});
  }
  if (x.groups != 1) return product;
  for (const bool tf32 : modes(output, context)) {
    for (const std::string order : {"channels innermost, padded to 16", "channels in blocks of 16",
                                    "channels in blocks of 32", "channels in blocks of 64"}) {
      const std::int64_t channels = x.input.shape[1];
      if (channels_of_block(order) ? *channels_of_block(order) >= channels
                                   : channels % padded_channels == 0)
        continue;
      product.orders.push_back(gathered_order(x, output, order, tf32));
    }
  }
  return product;
}

/// The gradient of a transposed convolution's input; `x.input` is the gradient of its output.
ProductCall transposed_data_product(const ConvolutionCall& x, const Tensor& data,
                                    const Context& context, const std::string& op) {
  ProductCall product = convolved_product(x, data, context, op + " data");
  product.usual = usual_forward(x, data, context);
  add_usual_order(product, [&](const std::string& order, bool tf32) {
    return gathered_order(x, data, order, tf32);
  });
  return product;
}

/// What an operator of our own gives in place of a product with a plan, if that is what was
/// recorded.
std::optional<ProductVerdict> verdict_of_own(const Tensor& own, const Tensor& recorded,
                                             std::string words, int agree, const Context& context) {
  if (context.has_results && !std::ranges::equal(own.bytes, recorded.bytes)) return std::nullopt;
  ProductVerdict verdict{Status::exact, std::move(words), true, 0};
  verdict.agree = agree;
  if (!context.has_results)
    verdict.computed = CodeMatrix{own.type, 1, 1, own.count(), {own.bytes, own.owner}, {}};
  return verdict;
}

/// A product of which K is cut where the last wave of thread blocks computes D, and nowhere else:
/// computed by both plans. `result`: [images, channels, rows, columns].
std::optional<ProductVerdict> last_wave_verdict(ProductCall product,
                                                const std::optional<LastWave>& last,
                                                const Tensor& result, Context& context) {
  if (!last || (!context.has_results && is_in_the_book(product, context))) return std::nullopt;
  Context own = context;
  own.has_results = false;
  const ProductVerdict whole = computed_product(product, own);
  product.usual = last->plan;
  const ProductVerdict cut = computed_product(product, own);
  if (!whole.computed || !cut.computed) {
    if (context.has_results) return std::nullopt;
    return ProductVerdict{Status::unmodelled, "no plan is known for this shape", false, 0};
  }
  const std::int64_t channels = result.shape[1], pixels = result.shape[2] * result.shape[3];
  const std::int64_t rows = result.shape[0] * pixels;
  const operators::Tensor own_result = operators::uninitialised_tensor(result.type, result.shape);
  const std::span<std::byte> bytes = operators::writable_bytes(own_result);
  const std::size_t size = bytes.size() / static_cast<std::size_t>(result.count());
  for (std::int64_t i = 0; i < result.count(); ++i) {
    const std::int64_t row = i / (channels * pixels) * pixels + i % pixels;
    const bool is_cut = last->wave.is_in_last(row, i / pixels % channels, rows, channels);
    const auto at = static_cast<std::size_t>(i) * size;
    std::memcpy(bytes.data() + at, (is_cut ? cut : whole).computed->bytes.data() + at, size);
  }
  return verdict_of_own(own_result, result, whole.plan + "; in the last wave " + cut.plan,
                        whole.agree, context);
}

/// A gradient of data by a product for each place of the filter, where the pixels are more than one
/// chunk.
std::optional<ProductVerdict> placed_verdict(const ConvolutionCall& x, const Tensor& maps,
                                             const Tensor& recorded, const Context& context) {
  if (recorded.type != formats::fp32) return std::nullopt;
  const auto leaf = leaf_of(x, atlas::ConvolutionPass::data, context);
  if (!leaf || leaf->form != atlas::ConvolutionForm::per_place || leaf->tile == 0)
    return std::nullopt;
  return verdict_of_own(operators::placed_data_gradient(maps, recorded, x.weight, x.stride,
                                                        x.padding, leaf->tile, context.threads),
                        recorded, "a product for each place of the filter", leaf->agree, context);
}

/// A transposed convolution, which cuDNN takes for the gradient of the convolution from its output
/// to its input.
ProductVerdict transposed_verdict(const ConvolutionCall& x, const Tensor& output, const Call& call,
                                  Context& context) {
  ProductCall product = scattered_product(x, x.input, output, context, call.op);
  ConvolutionCall of_output = x;
  of_output.input = output;
  product.usual = usual_data(of_output, x.input, output, context);
  add_usual_order(product, [&](const std::string& order, bool tf32) {
    return scattered_order(x, x.input, output, order, tf32);
  });
  if (auto last = last_wave_verdict(product, last_wave_of_data(of_output, x.input, output, context),
                                    output, context))
    return *last;
  if (!x.bias && (context.has_results || !is_in_the_book(product, context))) {
    if (auto placed = placed_verdict(of_output, x.input, output, context)) return *placed;
  }
  return verdict_of_product(product, context);
}

/// No library's choice for other types, FP64 above all, has been measured.
void require_measured_type(const Tensor& input, const Context& context) {
  if (!context.has_results && !operators::is_working_type(input.type))
    throw UnknownArguments{"a convolution of a type that was not measured"};
}

Answer convolution(const Call& call, Context& context) {
  const auto results = tensors_of(call.out);
  if (results.size() != 1) throw UnknownArguments{"a convolution gives one tensor"};
  require_measured_type(call.tensor(0, "input"), context);
  ConvolutionCall x;
  const bool is_1d = call.tensor(0, "input").rank() == 3;
  x.input = as_2d(call.tensor(0, "input"));
  x.weight = as_2d(call.tensor(1, "weight"));
  if (const Tensor* bias = call.optional_tensor(2, "bias")) x.bias = *bias;
  read_shape(call, 3, is_1d, x);
  const Tensor output = as_2d(*results[0]);
  if (x.is_transposed) {
    if (x.groups != 1) return unmodelled("a transposed convolution in groups");
    return answer_of(transposed_verdict(x, output, call, context), *results[0]);
  }
  ProductCall product = convolved_product(x, output, context, call.op);
  product.usual = usual_forward(x, output, context);
  add_usual_order(product, [&](const std::string& order, bool tf32) {
    return gathered_order(x, output, order, tf32);
  });
  if (auto last =
          last_wave_verdict(product, last_wave_of_forward(x, output, context), output, context))
    return answer_of(*last, *results[0]);
  return answer_of(verdict_of_product(product, context), *results[0]);
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
                                 const Context& context, const Compute& compute) {
  using operators::DepthwiseKernel;
  const bool is_together = operators::says_channels_last(x.input);
  if (!context.has_results) {
    const Tensor own = compute(is_together ? DepthwiseKernel::cudnn : DepthwiseKernel::native);
    ProductVerdict verdict{Status::exact, "the depthwise kernel of that layout", true, 0};
    verdict.computed = CodeMatrix{own.type, 1, 1, own.count(), {own.bytes, own.owner}, {}};
    return verdict;
  }
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

/// Where cuDNN may compute it, as for channels that lie together and for FP16, what it takes
/// besides the known kernels is not known: a guess.
ProductVerdict guessed_of_cudnn(ProductVerdict verdict, const ConvolutionCall& x,
                                const Tensor& recorded, const Context& context) {
  constexpr int unsure = 750;
  if (!context.has_results &&
      (operators::says_channels_last(x.input) || recorded.type == formats::fp16))
    verdict.agree = std::min(verdict.agree, unsure);
  return verdict;
}

ProductVerdict depthwise_data(const ConvolutionCall& x, const Tensor& maps, const Tensor& recorded,
                              const Context& context) {
  const operators::DepthwiseShape shape{x.stride, x.padding, x.dilation};
  ProductVerdict verdict =
      depthwise_verdict(x, recorded, context, [&](operators::DepthwiseKernel kernel) {
        return operators::depthwise_data_gradient(maps, x.input, x.weight, shape, kernel);
      });
  // Of one output a channel and two dimensions all of cuDNN's kernels give the same bits.
  const bool is_usual = maps.shape[1] == x.input.shape[1] && x.input.shape[2] > 1;
  return is_usual ? verdict : guessed_of_cudnn(std::move(verdict), x, recorded, context);
}

ProductVerdict depthwise_weights(const ConvolutionCall& x, const Tensor& maps,
                                 const Tensor& recorded, const Context& context) {
  const operators::DepthwiseShape shape{x.stride, x.padding, x.dilation};
  return guessed_of_cudnn(depthwise_verdict(x, recorded, context,
                                            [&](operators::DepthwiseKernel kernel) {
                                              return operators::depthwise_weight_gradient(
                                                  maps, x.input, x.weight, shape, kernel);
                                            }),
                          x, recorded, context);
}

ProductVerdict transposed_data_verdict(const ConvolutionCall& x, const Tensor& data,
                                       const Call& call, Context& context) {
  const ProductCall product = transposed_data_product(x, data, context, call.op);
  if (auto last = last_wave_verdict(product, last_wave_of_forward(x, data, context), data, context))
    return *last;
  return verdict_of_product(product, context);
}

/// The recorded gradient of weights by cuDNN's tiles or transforms, where the atlas says that it
/// takes them, and they give it.
std::optional<ProductVerdict> special_verdict(const ConvolutionCall& x, const Tensor& maps,
                                              const Tensor& recorded, const Context& context) {
  using atlas::ConvolutionForm;
  const auto leaf = leaf_of(x, atlas::ConvolutionPass::weight, context);
  if (!leaf) return std::nullopt;
  const bool is_wide = leaf->form == ConvolutionForm::tiled_wide;
  const bool is_transformed = leaf->form == ConvolutionForm::transformed;
  if (!is_wide && !is_transformed && leaf->form != ConvolutionForm::tiled_narrow)
    return std::nullopt;
  const Tensor own = is_transformed ? operators::transformed_weight_gradient(
                                          maps, x.input, x.weight, x.padding, context.threads)
                                    : operators::tiled_weight_gradient(
                                          maps, x.input, x.weight, x.stride, x.padding,
                                          is_wide ? operators::GradientTiling::wide
                                                  : operators::GradientTiling::narrow,
                                          context.threads);
  return verdict_of_own(own, recorded,
                        is_transformed ? "Winograd's transforms of 4 x 4"
                        : is_wide      ? "tiles of wide runs"
                                       : "tiles of narrow runs",
                        leaf->agree, context);
}

ProductVerdict data_verdict(const ConvolutionCall& x, const Tensor& maps, const Tensor& data,
                            const Call& call, Context& context) {
  const ProductCall product = data_product(x, maps, data, context, call.op);
  if (auto last =
          last_wave_verdict(product, last_wave_of_data(x, maps, data, context), data, context))
    return *last;
  // What was recorded of this very program comes before what similar calls do.
  if (context.has_results || !is_in_the_book(product, context)) {
    if (auto placed = placed_verdict(x, maps, data, context)) return *placed;
  }
  return verdict_of_product(product, context);
}

Tensor widened(const Tensor& tensor) {
  return operators::tensor_of_numbers(formats::fp32, tensor.shape, tensor.stride,
                                      operators::numbers_of(tensor));
}

ProductCall weight_product(const ConvolutionCall& x, const Tensor& maps, const Tensor& gradient,
                           const Context& context, const std::string& kind) {
  ProductCall product{shape_of(kind, x, gradient), {}};
  for (const bool tf32 : modes(gradient, context)) {
    product.orders.push_back(
        {tf32 ? "in tf32" : "", [=] { return weight_gradient_capture(x, maps, gradient, tf32); }});
  }
  product.usual = usual_weights(x, maps, gradient, context);
  if (product.usual && product.usual->order == widened_order)
    product.orders.push_back({std::string(widened_order), [=] {
                                ConvolutionCall of_numbers = x;
                                of_numbers.input = widened(x.input);
                                return weight_gradient_capture(of_numbers, widened(maps), gradient,
                                                               true);
                              }});
  product.is_usual_alone = true;
  return product;
}

ProductVerdict weight_verdict(const ConvolutionCall& x, const Tensor& maps, const Tensor& gradient,
                              const Call& call, Context& context) {
  const ProductCall product = weight_product(x, maps, gradient, context, call.op + " weight");
  // What was recorded of this very program comes before what similar calls do.
  if (context.has_results || !is_in_the_book(product, context)) {
    if (auto special = special_verdict(x, maps, gradient, context)) return *special;
  }
  return verdict_of_product(product, context);
}

Answer convolution_backward(const Call& call, Context& context) {
  const List* out = call.out.list();
  if (out == nullptr || out->size() != 3) throw UnknownArguments{"three results are needed"};
  ConvolutionCall x;
  const Tensor& given = call.tensor(0, "grad_output");
  require_measured_type(given, context);
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
    answer.agree = std::min(answer.agree, verdict.agree);
    answer.results.push_back(result_of(verdict, result));
  };
  if (const Tensor* data = (*out)[0].tensor())
    add("data",
        is_depthwise      ? depthwise_data(x, maps, *data, context)
        : x.is_transposed ? transposed_data_verdict(x, as_2d(*data), call, context)
                          : data_verdict(x, maps, as_2d(*data), call, context),
        *data);
  if (const Tensor* weights = (*out)[1].tensor())
    add("weight",
        is_depthwise ? depthwise_weights(x, maps, *weights, context)
                     : weight_verdict(x, maps, as_2d(*weights), call, context),
        *weights);
  if ((*out)[2].tensor() != nullptr) {
    auto sum = bias_gradient(given, context);
    const bool is_known = sum && sum->status == Status::exact && sum->results.size() == 1;
    answer.results.push_back(is_known ? sum->results[0] : std::nullopt);
    answer.plan += "; bias: " + (is_known ? sum->plan : std::string("no model of sums"));
  }
  return answer;
}

constexpr std::array convolution_handlers = {
    Handler{"aten.convolution", convolution},
    Handler{"aten.convolution_backward", convolution_backward},
};

}  // namespace

std::span<const Handler> convolution_calls() { return convolution_handlers; }

}  // namespace guardbit::emulator::replay
