#include "experiments/training/layers.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "experiments/harness/random_numbers.hpp"
#include "tests/catch.hpp"

// Every layer against a model of its own here, written plainly in FP64: outputs, and gradients by
// central differences of that model. Layers compute in FP32, so they agree to about 1e-5.
namespace guardbit::experiments::training {
namespace {

using Numbers = std::vector<double>;
/// Parameters in their order, the input; gives the output.
using PlainModel = std::function<Numbers(const std::vector<Numbers>&, const Numbers&)>;

constexpr double tolerance = 2e-5;

Tensor random_tensor(Dimensions shape, const std::string& name) {
  Tensor x = zeros(std::move(shape));
  Draws(7, name).fill(Distribution::normal, x.values, 1);
  return x;
}

Numbers widened(const Values& values) { return {values.begin(), values.end()}; }

bool is_near(double a, double b) { return std::abs(a - b) <= tolerance * (1 + std::abs(b)); }

/// sum_i g_i y_i: its gradient by y is g.
double weighted(const Numbers& y, const Tensor& g) {
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * static_cast<double>(g.values[i]);
  return sum;
}

void check_gradient(const Tensor& gradient, Numbers& at, const std::function<double()>& loss) {
  REQUIRE(gradient.values.size() == at.size());
  constexpr double step = 1e-5;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double kept = at[i];
    at[i] = kept + step;
    const double above = loss();
    at[i] = kept - step;
    const double below = loss();
    at[i] = kept;
    const double expected = (above - below) / (2 * step);
    INFO("element " << i << ": " << gradient.values[i] << ", expected " << expected);
    REQUIRE(is_near(static_cast<double>(gradient.values[i]), expected));
  }
}

void check_layer(Layer layer, const Tensor& x, const PlainModel& model,
                 bool has_input_gradient = true) {
  Context context(require_recipe("fp32", "", "test"), 1, "test");
  std::vector<Numbers> parameters;
  std::vector<Parameter*> of_layer;
  visit_parameters(layer, [&](Parameter& p) {
    p.value.values = random_tensor(p.value.shape, p.name).values;
    parameters.push_back(widened(p.value.values));
    of_layer.push_back(&p);
  });
  Numbers input = widened(x.values);
  const Tensor y = forward(layer, context, x);
  const Numbers expected = model(parameters, input);
  REQUIRE(y.values.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("output " << i << ": " << y.values[i] << ", expected " << expected[i]);
    REQUIRE(is_near(static_cast<double>(y.values[i]), expected[i]));
  }
  const Tensor g = random_tensor(y.shape, "gradient");
  const Tensor dx = backward(layer, context, g);
  const auto loss = [&] { return weighted(model(parameters, input), g); };
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    INFO(of_layer[p]->name);
    check_gradient(of_layer[p]->gradient, parameters[p], loss);
  }
  if (has_input_gradient) check_gradient(dx, input, loss);
}

Numbers linear(const Numbers& w, const Numbers& b, const Numbers& x) {
  const std::size_t outputs = b.size(), inputs = w.size() / outputs, rows = x.size() / inputs;
  Numbers y;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t o = 0; o < outputs; ++o) {
      double sum = b[o];
      for (std::size_t k = 0; k < inputs; ++k) sum += x[i * inputs + k] * w[o * inputs + k];
      y.push_back(sum);
    }
  }
  return y;
}

Numbers normalised(const Numbers& x, std::size_t n, bool centred) {
  Numbers y = x;
  for (std::size_t row = 0; row < x.size(); row += n) {
    double mean = 0, square = 0;
    for (std::size_t j = 0; centred && j < n; ++j) mean += x[row + j] / static_cast<double>(n);
    for (std::size_t j = 0; j < n; ++j)
      square += (x[row + j] - mean) * (x[row + j] - mean) / static_cast<double>(n);
    for (std::size_t j = 0; j < n; ++j) y[row + j] = (x[row + j] - mean) / std::sqrt(square + 1e-5);
  }
  return y;
}

Numbers attention(const std::vector<Numbers>& p, const Numbers& x, std::size_t time,
                  std::size_t columns, std::size_t heads) {
  const Numbers joint = linear(p[0], p[1], x);
  const std::size_t width = columns / heads, sequences = x.size() / (time * columns);
  Numbers y(x.size());
  const auto at = [&](std::size_t s, std::size_t i, std::size_t which, std::size_t h,
                      std::size_t j) {
    return joint[(s * time + i) * 3 * columns + which * columns + h * width + j];
  };
  for (std::size_t s = 0; s < sequences; ++s) {
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t i = 0; i < time; ++i) {
        Numbers weight;
        double all = 0;
        for (std::size_t t = 0; t <= i; ++t) {
          double score = 0;
          for (std::size_t j = 0; j < width; ++j) score += at(s, i, 0, h, j) * at(s, t, 1, h, j);
          weight.push_back(std::exp(score / std::sqrt(static_cast<double>(width))));
          all += weight.back();
        }
        for (std::size_t j = 0; j < width; ++j) {
          double sum = 0;
          for (std::size_t t = 0; t <= i; ++t) sum += weight[t] / all * at(s, t, 2, h, j);
          y[(s * time + i) * columns + h * width + j] = sum;
        }
      }
    }
  }
  return linear(p[2], p[3], y);
}

double plain_gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

}  // namespace

TEST_CASE("A linear layer's outputs and gradients are those of its definition") {
  check_layer({Linear("fc", 5, 4)}, random_tensor({3, 5}, "x"),
              [](const auto& p, const Numbers& x) { return linear(p[0], p[1], x); });
}

TEST_CASE("A convolution's outputs and gradients are those of its definition") {
  constexpr std::size_t images = 2, height = 5, width = 4, channels = 2, outputs = 3, size = 3;
  check_layer({Convolution("conv", channels, outputs, size)},
              random_tensor({images, height, width, channels}, "x"),
              [](const auto& p, const Numbers& x) {
                Numbers y;
                for (std::size_t n = 0; n < images; ++n)
                  for (std::size_t i = 0; i + size <= height; ++i)
                    for (std::size_t j = 0; j + size <= width; ++j)
                      for (std::size_t o = 0; o < outputs; ++o) {
                        double sum = p[1][o];
                        for (std::size_t r = 0; r < size; ++r)
                          for (std::size_t s = 0; s < size; ++s)
                            for (std::size_t c = 0; c < channels; ++c)
                              sum += x[((n * height + i + r) * width + j + s) * channels + c] *
                                     p[0][((o * size + r) * size + s) * channels + c];
                        y.push_back(sum);
                      }
                return y;
              });
}

TEST_CASE("Pools, ReLU and GELU are their definitions") {
  check_layer({MaxPool(2)}, random_tensor({2, 5, 4, 3}, "x"), [](const auto&, const Numbers& x) {
    Numbers y;
    for (std::size_t n = 0; n < 2; ++n)
      for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t j = 0; j < 2; ++j)
          for (std::size_t c = 0; c < 3; ++c) {
            const auto at = [&](std::size_t a, std::size_t b) {
              return x[((n * 5 + 2 * i + a) * 4 + 2 * j + b) * 3 + c];
            };
            y.push_back(std::max({at(0, 0), at(0, 1), at(1, 0), at(1, 1)}));
          }
    return y;
  });
  const Tensor x = random_tensor({4, 9}, "x");
  check_layer({Relu()}, x, [](const auto&, Numbers y) {
    for (double& v : y) v = std::max(0.0, v);
    return y;
  });
  check_layer({Gelu()}, x, [](const auto&, Numbers y) {
    for (double& v : y) v = plain_gelu(v);
    return y;
  });
}

TEST_CASE("A pool sends the gradient of equal elements to the first") {
  Context context(require_recipe("fp32", "", "test"), 1, "test");
  MaxPool pool(2);
  Tensor x = zeros({1, 2, 2, 1});
  x.values = {1, 3, 3, 3};
  static_cast<void>(pool.forward(context, x));
  Tensor g = zeros({1, 1, 1, 1});
  g[0] = 5;
  CHECK(pool.backward(context, g).values == Values{0, 5, 0, 0});
}

TEST_CASE("Normalisations are their definitions") {
  const Tensor x = random_tensor({3, 6}, "x");
  for (const bool centred : {true, false}) {
    check_layer({Normalisation("norm", 6, centred)}, x,
                [centred](const auto& p, const Numbers& from) {
                  Numbers y = normalised(from, 6, centred);
                  for (std::size_t i = 0; i < y.size(); ++i)
                    y[i] = y[i] * p[0][i % 6] + (centred ? p[1][i % 6] : 0.0);
                  return y;
                });
  }
}

TEST_CASE("An embedding's gradient adds up what its rows were used for") {
  Tensor x = zeros({2, 3});
  x.values = {1, 0, 1, 2, 1, 1};
  check_layer(
      {Embedding("embedding", 4, 3, 2)}, x,
      [](const auto& p, const Numbers& tokens) {
        Numbers y;
        for (std::size_t i = 0; i < tokens.size(); ++i)
          for (std::size_t j = 0; j < 2; ++j)
            y.push_back(p[0][static_cast<std::size_t>(tokens[i]) * 2 + j] + p[1][i % 3 * 2 + j]);
        return y;
      },
      false);
}

TEST_CASE("Attention and residuals are their definitions") {
  const Tensor x = random_tensor({2, 3, 4}, "x");
  check_layer({Attention("attention", 4, 2)}, x,
              [](const auto& p, const Numbers& from) { return attention(p, from, 3, 4, 2); });
  std::vector<Layer> body;
  body.push_back({Linear("fc", 4, 4)});
  check_layer({Residual(std::move(body))}, x, [](const auto& p, const Numbers& from) {
    Numbers y = linear(p[0], p[1], from);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += from[i];
    return y;
  });
}

TEST_CASE("The loss is the mean cross-entropy, its gradient scaled") {
  Context context(require_recipe("fp32", "", "test"), 1, "test");
  const Tensor x = random_tensor({3, 5}, "x");
  const std::vector<std::int32_t> labels = {4, 0, 2};
  const auto plain = [&](const Numbers& logits) {
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      double all = 0;
      for (std::size_t j = 0; j < 5; ++j) all += std::exp(logits[i * 5 + j]);
      sum += std::log(all) - logits[i * 5 + static_cast<std::size_t>(labels[i])];
    }
    return sum / 3;
  };
  Numbers logits = widened(x.values);
  const Loss loss = cross_entropy_loss(context, x, labels, 8.0F);
  CHECK(is_near(static_cast<double>(loss.loss), plain(logits)));
  check_gradient(loss.gradient, logits, [&] { return 8 * plain(logits); });
}

}  // namespace guardbit::experiments::training
