#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/training/layers.hpp"

namespace guardbit::experiments::training {

/// What kind of network, and its sizes.
struct ModelShape {
  enum class Kind : std::uint8_t { cnn, mlp, gpt };
  friend constexpr auto words(Kind) { return std::array{"cnn", "mlp", "gpt"}; }
  Kind kind = Kind::cnn;
  /// of gpt: distinct tokens
  std::int64_t classes = 10;
  /// of cnn
  std::int64_t height = 28, width = 28, channels = 1;
  /// of mlp
  std::int64_t inputs = 784;
  /// of mlp; of cnn the one before the classes
  std::vector<std::int64_t> hidden = {128};
  /// of cnn: 3x3, each followed by a pool
  std::vector<std::int64_t> filters = {32, 64};
  /// of gpt
  std::int64_t columns = 64, heads = 4, blocks = 2, time = 64;
};

/// Layers one after the other.
class Model {
 public:
  /// Weights of zero; formats::Error, beginning with `where`, for sizes that leave nothing.
  Model(const ModelShape& shape, std::string_view where);

  Tensor forward(Context& context, Tensor x);
  /// Writes every parameter's gradient.
  void backward(Context& context, Tensor gradient);
  /// The scales of fake quantisation become parameters.
  void learn_scales();
  /// Every parameter, in the layers' order. Valid as long as the model stays where it is.
  std::vector<Parameter*> parameters();

 private:
  std::vector<Layer> layers_;
};

/// Weights as PyTorch initialises these layers, from Draws(seed, the parameter's name), rounded to
/// FP32 and then to the weights' format: uniform in +-1/sqrt(fan in) for linear layers and
/// convolutions, 1 and 0 for normalisations, for embeddings normal with a deviation of 0.02.
void initialise(Model& model, std::uint64_t seed, const Format& weights);

}  // namespace guardbit::experiments::training
