#include <utility>

#include "tools/gpu/training/device_trainer.hpp"

namespace guardbit::tools::training {

namespace {

using Kind = OperandView::Kind;

/// The tensor in the operands' format.
DeviceTensor encoded(const DeviceRules& rules, const DeviceTensor& x) {
  DeviceTensor coded = make_tensor(x.shape);
  round_into(rules.operand, x.values(), coded.values(), x.size());
  return coded;
}

OperandView by_rows(const DeviceTensor& x, std::int64_t columns) {
  return {x.values(), Kind::rows, x.size() / columns, columns, columns};
}

OperandView by_columns(const DeviceTensor& x, std::int64_t columns) {
  return {x.values(), Kind::columns, columns, x.size() / columns, columns};
}

DeviceTensor product(const DeviceRules& rules, const OperandView& a, const OperandView& b,
                     experiments::training::Dimensions shape) {
  DeviceTensor d = make_tensor(std::move(shape));
  multiply(rules.unit, a, b, d.values());
  return d;
}

/// The same, rounded into the format of results.
DeviceTensor rounded_product(const DeviceRules& rules, const OperandView& a, const OperandView& b,
                             experiments::training::Dimensions shape) {
  DeviceTensor d = product(rules, a, b, std::move(shape));
  round_into(rules.result, d.values(), d.values(), d.size());
  return d;
}

DeviceTensor product_with_bias(const DeviceRules& rules, const OperandView& a, const OperandView& b,
                               const DeviceTensor& bias, experiments::training::Dimensions shape) {
  DeviceTensor d = product(rules, a, b, std::move(shape));
  const DeviceTensor rounded_bias = make_tensor(bias.shape);
  round_into(rules.result, bias.values(), rounded_bias.values(), bias.size());
  add_bias(rules.result, d.values(), rounded_bias.values(), d.rows(), d.columns());
  return d;
}

DeviceTensor column_sums(const DeviceRules& rules, const DeviceTensor& gradient,
                         std::int64_t columns) {
  const std::int64_t rows = gradient.size() / columns;
  const std::int64_t runs =
      (rows + experiments::training::sum_run - 1) / experiments::training::sum_run;
  const DeviceTensor parts = make_tensor({runs, columns});
  DeviceTensor sums = make_tensor({columns});
  sum_rows(rules.result, gradient.values(), parts.values(), sums.values(), rows, columns);
  return sums;
}

/// Takes images as rows of all their numbers.
class DeviceLinear : public DeviceLayer {
 public:
  DeviceLinear(DeviceParameter& weight, DeviceParameter& bias) : weight_(weight), bias_(bias) {}

  DeviceTensor forward(const DeviceRules& rules, const DeviceTensor& x) override {
    const std::int64_t inputs = weight_.value.columns(), outputs = weight_.value.rows();
    x_shape_ = x.shape;
    x_ = encoded(rules, x);
    w_ = encoded(rules, weight_.value);
    return product_with_bias(rules, by_rows(x_, inputs), by_rows(w_, inputs), bias_.value,
                             {x.size() / inputs, outputs});
  }

  DeviceTensor backward(const DeviceRules& rules, const DeviceTensor& gradient,
                        bool wants_input_gradient) override {
    const std::int64_t inputs = weight_.value.columns(), outputs = weight_.value.rows();
    const DeviceTensor g = encoded(rules, gradient);
    weight_.gradient =
        rounded_product(rules, by_columns(g, outputs), by_columns(x_, inputs), weight_.value.shape);
    bias_.gradient = column_sums(rules, gradient, outputs);
    if (!wants_input_gradient) return {};
    return rounded_product(rules, by_rows(g, outputs), by_columns(w_, inputs), x_shape_);
  }

 private:
  DeviceParameter &weight_, &bias_;
  DeviceTensor x_, w_;
  experiments::training::Dimensions x_shape_;
};

class DeviceConvolution : public DeviceLayer {
 public:
  DeviceConvolution(DeviceParameter& filters, DeviceParameter& bias)
      : filters_(filters), bias_(bias) {}

  DeviceTensor forward(const DeviceRules& rules, const DeviceTensor& x) override {
    const auto& shape = filters_.value.shape;
    windows_ = {x.shape[0], x.shape[1], x.shape[2], x.shape[3], shape[1], shape[2], 0};
    x_ = encoded(rules, x);
    w_ = encoded(rules, filters_.value);
    return product_with_bias(
        rules, windows_of(x_, Kind::windows, windows_), by_rows(w_, windows_.columns()),
        bias_.value, {windows_.images, windows_.out_height(), windows_.out_width(), shape[0]});
  }

  DeviceTensor backward(const DeviceRules& rules, const DeviceTensor& gradient,
                        bool wants_input_gradient) override {
    const std::int64_t outputs = gradient.columns();
    const DeviceTensor g = encoded(rules, gradient);
    filters_.gradient =
        rounded_product(rules, by_columns(g, outputs),
                        windows_of(x_, Kind::windows_columns, windows_), filters_.value.shape);
    bias_.gradient = column_sums(rules, gradient, outputs);
    if (!wants_input_gradient) return {};
    const layout::TurnedFilters turned{outputs, windows_.window_height, windows_.window_width,
                                       windows_.channels};
    const layout::Windows over_gradient{
        windows_.images,        windows_.out_height(), windows_.out_width(),      outputs,
        windows_.window_height, windows_.window_width, windows_.window_height - 1};
    const OperandView filters{
        w_.values(), Kind::turned_filters, turned.channels, turned.columns(), 0, {}, turned};
    return rounded_product(rules, windows_of(g, Kind::windows, over_gradient), filters,
                           {windows_.images, windows_.height, windows_.width, windows_.channels});
  }

 private:
  static OperandView windows_of(const DeviceTensor& x, Kind kind, const layout::Windows& windows) {
    const bool by_rows = kind == Kind::windows;
    return {x.values(),
            kind,
            by_rows ? windows.rows() : windows.columns(),
            by_rows ? windows.columns() : windows.rows(),
            0,
            windows};
  }

  DeviceParameter &filters_, &bias_;
  DeviceTensor x_, w_;
  layout::Windows windows_;
};

class DeviceRelu : public DeviceLayer {
 public:
  DeviceTensor forward(const DeviceRules&, const DeviceTensor& x) override {
    y_ = make_tensor(x.shape);
    relu(x.values(), y_.values(), x.size());
    return y_;
  }

  DeviceTensor backward(const DeviceRules&, const DeviceTensor& gradient, bool) override {
    DeviceTensor dx = make_tensor(gradient.shape);
    relu_gradient(y_.values(), gradient.values(), dx.values(), dx.size());
    return dx;
  }

 private:
  DeviceTensor y_;
};

class DeviceMaxPool : public DeviceLayer {
 public:
  DeviceTensor forward(const DeviceRules&, const DeviceTensor& x) override {
    pooling_ = {x.shape[0], x.shape[1], x.shape[2], x.shape[3], 2};
    DeviceTensor y =
        make_tensor({x.shape[0], pooling_.out_height(), pooling_.out_width(), pooling_.channels});
    chosen_ = make_tensor(y.shape);
    max_pool(pooling_, x.values(), y.values(), chosen_.memory->as<std::int32_t>());
    return y;
  }

  DeviceTensor backward(const DeviceRules&, const DeviceTensor& gradient, bool) override {
    DeviceTensor dx =
        make_tensor({pooling_.images, pooling_.height, pooling_.width, pooling_.channels});
    dx.memory->clear();
    max_pool_gradient(pooling_, gradient.values(), chosen_.memory->as<std::int32_t>(), dx.values());
    return dx;
  }

 private:
  layout::Pooling pooling_;
  /// 32-bit integers
  DeviceTensor chosen_;
};

}  // namespace

DeviceTensor make_tensor(experiments::training::Dimensions shape) {
  DeviceTensor t{std::move(shape), nullptr};
  t.memory = std::make_shared<const gpu::DeviceBuffer>(
      sizeof(float) * static_cast<std::size_t>(t.size()), "gpu train");
  return t;
}

std::vector<std::unique_ptr<DeviceLayer>> make_layers(
    const experiments::training::ModelShape& shape,
    const std::vector<std::unique_ptr<DeviceParameter>>& parameters) {
  using Shape = experiments::training::ModelShape;
  std::vector<std::unique_ptr<DeviceLayer>> layers;
  const std::size_t convolutions = shape.kind == Shape::Kind::cnn ? shape.filters.size() : 0;
  for (std::size_t at = 0; at + 1 < parameters.size(); at += 2) {
    DeviceParameter &weight = *parameters[at], &bias = *parameters[at + 1];
    const bool is_convolution = at / 2 < convolutions, is_last = at + 2 == parameters.size();
    if (is_convolution)
      layers.push_back(std::make_unique<DeviceConvolution>(weight, bias));
    else
      layers.push_back(std::make_unique<DeviceLinear>(weight, bias));
    if (!is_last) layers.push_back(std::make_unique<DeviceRelu>());
    if (is_convolution) layers.push_back(std::make_unique<DeviceMaxPool>());
  }
  return layers;
}

}  // namespace guardbit::tools::training
