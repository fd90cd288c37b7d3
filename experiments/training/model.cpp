#include "experiments/training/model.hpp"

#include <cmath>
#include <utility>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/random_numbers.hpp"
#include "formats/support/error.hpp"

namespace guardbit::experiments::training {

namespace {

std::vector<Layer> convolutional(const ModelShape& shape, std::string_view where) {
  std::vector<Layer> layers;
  std::int64_t height = shape.height, width = shape.width, channels = shape.channels;
  for (std::size_t i = 0; i < shape.filters.size(); ++i) {
    Convolution layer("conv" + std::to_string(i + 1), channels, shape.filters[i], 3);
    layer.needs_input_gradient = i != 0;
    layers.push_back({std::move(layer)});
    layers.push_back({Relu()});
    layers.push_back({MaxPool(2)});
    height = (height - 2) / 2;
    width = (width - 2) / 2;
    channels = shape.filters[i];
    if (height < 1 || width < 1)
      throw formats::Error(std::string(where), "images of " + std::to_string(shape.height) + "x" +
                                                   std::to_string(shape.width) +
                                                   " are too small for the convolutions");
  }
  layers.push_back({Flatten()});
  std::int64_t inputs = height * width * channels;
  std::vector<std::int64_t> sizes = shape.hidden;
  sizes.push_back(shape.classes);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    layers.push_back({Linear("fc" + std::to_string(i + 1), inputs, sizes[i])});
    if (i + 1 < sizes.size()) layers.push_back({Relu()});
    inputs = sizes[i];
  }
  return layers;
}

std::vector<Layer> perceptron(const ModelShape& shape) {
  std::vector<Layer> layers;
  std::int64_t inputs = shape.inputs;
  std::vector<std::int64_t> sizes = shape.hidden;
  sizes.push_back(shape.classes);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Linear layer("fc" + std::to_string(i + 1), inputs, sizes[i]);
    layer.needs_input_gradient = i != 0;
    layers.push_back({std::move(layer)});
    if (i + 1 < sizes.size()) layers.push_back({Relu()});
    inputs = sizes[i];
  }
  return layers;
}

std::vector<Layer> transformer(const ModelShape& shape, std::string_view where) {
  if (shape.heads < 1 || shape.columns % shape.heads != 0)
    throw formats::Error(std::string(where), "columns must be a multiple of heads");
  const std::int64_t c = shape.columns;
  std::vector<Layer> layers;
  layers.push_back({Embedding("embedding", shape.classes, shape.time, c)});
  for (std::int64_t i = 0; i < shape.blocks; ++i) {
    const std::string name = "block" + std::to_string(i + 1);
    std::vector<Layer> attention, feed_forward;
    attention.push_back({Normalisation(name + ".norm1", c, true)});
    attention.push_back({Attention(name + ".attention", c, shape.heads)});
    feed_forward.push_back({Normalisation(name + ".norm2", c, true)});
    feed_forward.push_back({Linear(name + ".fc1", c, 4 * c)});
    feed_forward.push_back({Gelu()});
    feed_forward.push_back({Linear(name + ".fc2", 4 * c, c)});
    layers.push_back({Residual(std::move(attention))});
    layers.push_back({Residual(std::move(feed_forward))});
  }
  layers.push_back({Normalisation("norm", c, true)});
  layers.push_back({Linear("head", c, shape.classes)});
  return layers;
}

/// A number rounded to FP32 and then to the format.
float rounded(const Format& format, double x) {
  return static_cast<float>(emulator::scalar::rounded(format, static_cast<float>(x)));
}

}  // namespace

Model::Model(const ModelShape& shape, std::string_view where) {
  switch (shape.kind) {
    case ModelShape::Kind::cnn: layers_ = convolutional(shape, where); break;
    case ModelShape::Kind::mlp: layers_ = perceptron(shape); break;
    case ModelShape::Kind::gpt: layers_ = transformer(shape, where); break;
  }
}

Tensor Model::forward(Context& context, Tensor x) {
  for (Layer& layer : layers_) x = training::forward(layer, context, x);
  return x;
}

void Model::backward(Context& context, Tensor gradient) {
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer)
    gradient = training::backward(*layer, context, gradient);
}

void Model::learn_scales() {
  for (Layer& layer : layers_) training::learn_scales(layer);
}

std::vector<Parameter*> Model::parameters() {
  std::vector<Parameter*> all;
  for (Layer& layer : layers_) visit_parameters(layer, [&](Parameter& p) { all.push_back(&p); });
  return all;
}

void initialise(Model& model, std::uint64_t seed, const Format& weights) {
  double bound = 0;  // of the weight that came last, whose bias follows
  for (Parameter* p : model.parameters()) {
    p->value.format = weights;
    const Draws draws(seed, p->name);
    const bool is_normalisation = p->name.find("norm") != std::string::npos;
    const bool is_embedding = p->name.starts_with("embedding");
    if (p->name.ends_with("_scale")) continue;  // zero until the first batch
    const bool is_weight = p->name.ends_with(".weight");
    const std::int64_t inputs = p->value.size() / p->value.shape[0];
    if (is_weight) bound = 1.0 / std::sqrt(static_cast<double>(inputs));
    for (std::int64_t i = 0; i < p->value.size(); ++i) {
      const auto at = static_cast<std::uint64_t>(i);
      double x = (2.0 * draws.uniform(at) - 1.0) * bound;
      if (is_normalisation) x = is_weight ? 1.0 : 0.0;
      if (is_embedding) x = 0.02 * draws.draw(Distribution::normal, at);
      p->value[i] = rounded(weights, x);
    }
  }
}

}  // namespace guardbit::experiments::training
