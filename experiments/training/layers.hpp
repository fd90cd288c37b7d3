#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "experiments/training/context.hpp"
#include "experiments/training/layer_quantiser.hpp"
#include "experiments/training/layout.hpp"
#include "experiments/training/training_tensor.hpp"

// Layers of networks. forward() keeps what backward() needs, and gives the output; backward() takes
// the gradient by the output, in the output's format, adds nothing but writes each parameter's
// gradient, and gives the gradient by the input, in the input's format.
namespace guardbit::experiments::training {

using ParameterVisitor = std::function<void(Parameter&)>;

/// y = x W^T + b of the last dimension; W [outputs, inputs], b [outputs].
class Linear {
 public:
  Linear(std::string name, std::int64_t inputs, std::int64_t outputs);

  Tensor forward(Context& context, const Tensor& x);
  Tensor backward(Context& context, const Tensor& gradient);
  void visit(const ParameterVisitor& f);
  void learn_scales() { quantiser_.learn_scales(weight_.value.shape[0]); }
  bool needs_input_gradient = true;

 private:
  std::string name_;
  Parameter weight_, bias_;
  LayerQuantiser quantiser_;
  CodedMatrix x_, w_;
  Dimensions x_shape_;
  Format x_format_;
};

/// Cross-correlation with stride 1 and no padding: x [images, height, width, channels], filters
/// [outputs, size, size, channels], bias [outputs].
class Convolution {
 public:
  Convolution(std::string name, std::int64_t channels, std::int64_t outputs, std::int64_t size);

  Tensor forward(Context& context, const Tensor& x);
  Tensor backward(Context& context, const Tensor& gradient);
  void visit(const ParameterVisitor& f);
  void learn_scales() { quantiser_.learn_scales(filters_.value.shape[0]); }
  bool needs_input_gradient = true;

 private:
  std::string name_;
  Parameter filters_, bias_;
  LayerQuantiser quantiser_;
  Windows windows_;
  /// x_: of the windows
  CodedMatrix x_, w_;
  Format x_format_;
};

/// The largest of each square of x [images, height, width, channels].
class MaxPool {
 public:
  explicit MaxPool(std::int64_t size) : size_(size) {}

  Tensor forward(Context& context, const Tensor& x);
  Tensor backward(Context& context, const Tensor& gradient);

 private:
  std::int64_t size_;
  Pooling pooling_;
  /// y * size + x of each output's maximum
  std::vector<std::int32_t> chosen_;
};

class Relu {
 public:
  Tensor forward(Context& context, const Tensor& x);
  Tensor backward(Context& context, const Tensor& gradient);

 private:
  Tensor y_;
};

class Gelu {
 public:
  Tensor forward(Context& context, const Tensor& x);
  Tensor backward(Context& context, const Tensor& gradient);

 private:
  Tensor x_;
};

/// The last two or more dimensions of each image or sequence as one.
class Flatten {
 public:
  Tensor forward(Context& context, const Tensor& x);
  Tensor backward(Context& context, const Tensor& gradient);

 private:
  Dimensions shape_;
};

/// (x - mean) / sqrt(variance + epsilon) * weight + bias over the last dimension; without `centred`
/// x / sqrt(mean square + epsilon) * weight.
class Normalisation {
 public:
  Normalisation(const std::string& name, std::int64_t columns, bool centred);

  Tensor forward(Context& context, const Tensor& x);
  Tensor backward(Context& context, const Tensor& gradient);
  void visit(const ParameterVisitor& f);

 private:
  bool centred_;
  Parameter weight_, bias_;
  /// before weight and bias
  Tensor normalised_;
  /// of each row
  Values inverse_deviation_;
  Format x_format_;
};

/// Rows of two tables by number, one for the token and one for its place: x [batch, time] of
/// tokens.
class Embedding {
 public:
  Embedding(const std::string& name, std::int64_t tokens, std::int64_t places,
            std::int64_t columns);

  Tensor forward(Context& context, const Tensor& x);
  Tensor backward(Context& context, const Tensor& gradient);
  void visit(const ParameterVisitor& f);

 private:
  Parameter tokens_, places_;
  Tensor x_;
};

/// Causal self-attention of several heads: x [batch, time, columns].
class Attention {
 public:
  Attention(std::string name, std::int64_t columns, std::int64_t heads);

  Tensor forward(Context& context, const Tensor& x);
  Tensor backward(Context& context, const Tensor& gradient);
  void visit(const ParameterVisitor& f);
  void learn_scales();

 private:
  /// What one head of one sequence keeps for its gradient.
  struct Head {
    CodedMatrix query, key, value, weights_coded;
    /// after softmax
    Tensor weights;
  };
  Tensor part(const Tensor& joint, std::int64_t sequence, std::int64_t which,
              std::int64_t head) const;
  void put(const Tensor& from, Tensor& joint, std::int64_t sequence, std::int64_t which,
           std::int64_t head) const;
  std::string head_name(std::int64_t head, std::string_view what) const;

  std::string name_;
  std::int64_t columns_, heads_;
  std::int64_t time_ = 0;
  /// queries, keys and values at once; what the heads give
  Linear joint_, out_;
  std::vector<Head> kept_;
  Format format_;
};

struct Layer;

/// x + body(x).
class Residual {
 public:
  explicit Residual(std::vector<Layer> body);

  Tensor forward(Context& context, const Tensor& x);
  Tensor backward(Context& context, const Tensor& gradient);
  void visit(const ParameterVisitor& f);
  void learn_scales();

 private:
  std::vector<Layer> body_;
  Format x_format_, y_format_;
};

struct Layer {
  std::variant<Linear, Convolution, MaxPool, Relu, Gelu, Flatten, Normalisation, Embedding,
               Attention, Residual>
      kind;
};

Tensor forward(Layer& layer, Context& context, const Tensor& x);
Tensor backward(Layer& layer, Context& context, const Tensor& gradient);
/// The layer's parameters, in the order of its members.
void visit_parameters(Layer& layer, const ParameterVisitor& f);
/// The scales of fake quantisation become parameters.
void learn_scales(Layer& layer);

/// Mean cross-entropy of logits [rows, classes] against labels, and the gradient by the logits
/// times the loss scale, in their format.
struct Loss {
  float loss = 0;
  /// rows whose largest logit is their label's
  std::int64_t correct = 0;
  /// empty where none is asked for
  Tensor gradient;
};
Loss cross_entropy_loss(Context& context, const Tensor& logits,
                        const std::vector<std::int32_t>& labels, float loss_scale,
                        bool with_gradient = true);

}  // namespace guardbit::experiments::training
