#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/training/trainer.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

// A checkpoint's tensors: the parameters by their names, `first.NAME`, `second.NAME` and
// `kept.NAME` of the optimizer, `history.NAME` of delayed scales, `range.NAME` of activations. All
// in FP32, which holds every format here.
namespace guardbit::experiments::training {

namespace {

std::string text_of(double x) {
  return std::to_string(std::bit_cast<std::uint64_t>(x));  // all bits, in decimal
}

std::uint64_t number_of(const formats::TensorFile& file, const std::string& key,
                        const std::string& where) {
  const auto found = file.metadata.find(key);
  const std::string text = found == file.metadata.end() ? "" : found->second;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw formats::Error(where, "is no checkpoint: its '" + key + "' is missing or no number");
  return number;
}

const formats::Tensor& require_tensor(const formats::TensorFile& file, const std::string& name,
                                      const Dimensions& shape, const std::string& where) {
  const formats::Tensor* const tensor = file.find(name);
  if (tensor == nullptr || tensor->format != formats::fp32 || tensor->shape != shape)
    throw formats::Error(where, "is of another model: its tensor '" + formats::printable(name) +
                                    "' is missing or of another shape");
  return *tensor;
}

}  // namespace

formats::Tensor tensor_of(std::string name, const Dimensions& shape, const Values& values) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(float));
  std::memcpy(bytes->data(), values.data(), bytes->size());
  formats::Tensor t;
  t.name = std::move(name);
  t.format = formats::fp32;
  t.shape = shape;
  t.bytes = *bytes;
  t.owner = bytes;
  return t;
}

Values values_of(const formats::Tensor& tensor) {
  Values values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(float));
  return values;
}

std::map<std::string, RunningRange> ranges_of(const formats::TensorFile& checkpoint) {
  std::map<std::string, RunningRange> ranges;
  for (const formats::Tensor& tensor : checkpoint.tensors) {
    constexpr std::string_view prefix = "range.";
    if (!tensor.name.starts_with(prefix) || tensor.format != formats::fp32 ||
        tensor.shape != Dimensions{2})
      continue;
    const Values numbers = values_of(tensor);
    ranges[tensor.name.substr(prefix.size())] = {numbers[0], numbers[1], true};
  }
  return ranges;
}

bool is_weight(const formats::Tensor& tensor) {
  return tensor.name.ends_with(".weight") && !is_state(tensor.name);
}

bool is_state(std::string_view name) {
  constexpr std::array<std::string_view, 5> prefixes = {"first.", "second.", "kept.", "history.",
                                                        "range."};
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

formats::TensorFile Trainer::checkpoint() {
  formats::TensorFile file;
  file.metadata["step"] = std::to_string(step_);
  file.metadata["optimizer_steps"] = std::to_string(optimizer_.steps());
  file.metadata["weights_hash"] = std::to_string(weights_hash());
  if (scaler_) {
    file.metadata["scale"] = text_of(scaler_->scale());
    file.metadata["scaler_run"] = std::to_string(scaler_->run());
    file.metadata["scaler_forgiven_left"] = std::to_string(scaler_->forgiven_left());
    file.metadata["scaler_ended"] = has_ended_ ? "1" : "0";
  }
  for (const Parameter* p : model_.parameters())
    file.tensors.push_back(tensor_of(p->name, p->value.shape, p->value.values));
  for (const auto& [name, state] : optimizer_.first())
    file.tensors.push_back(tensor_of("first." + name, state.shape, state.values));
  for (const auto& [name, state] : optimizer_.second())
    file.tensors.push_back(tensor_of("second." + name, state.shape, state.values));
  for (const auto& [name, state] : optimizer_.kept())
    file.tensors.push_back(tensor_of("kept." + name, state.shape, state.values));
  for (const auto& [name, scale] : context_.delayed_scales()) {
    Values numbers = scale.history();
    numbers.push_back(scale.scale());
    file.tensors.push_back(
        tensor_of("history." + name, {static_cast<std::int64_t>(numbers.size())}, numbers));
  }
  for (const auto& [name, range] : context_.ranges())
    file.tensors.push_back(tensor_of("range." + name, {2}, {range.least, range.largest}));
  return file;
}

void Trainer::start_from(const formats::TensorFile& file, const std::string& where) {
  for (Parameter* p : model_.parameters()) {
    if (p->name.ends_with("_scale") && file.find(p->name) == nullptr) continue;
    p->value.values = values_of(require_tensor(file, p->name, p->value.shape, where));
    context_.store(p->value, Role::weight);
  }
  context_.forget_counts();
}

void Trainer::restore(const formats::TensorFile& file, const std::string& where) {
  for (Parameter* p : model_.parameters()) {
    p->value.values = values_of(require_tensor(file, p->name, p->value.shape, where));
    const auto restore = [&](const std::string& prefix, const Format& format,
                             std::map<std::string, Tensor>& states) {
      if (file.find(prefix + p->name) == nullptr) return;
      Tensor state{p->value.shape, format, {}};
      state.values = values_of(require_tensor(file, prefix + p->name, state.shape, where));
      states.insert_or_assign(p->name, std::move(state));
    };
    restore("first.", rules_.optimizer.first, optimizer_.first());
    restore("second.", rules_.optimizer.second, optimizer_.second());
    restore("kept.", optimizer_.kept_format(p->value.format), optimizer_.kept());
  }
  for (const formats::Tensor& tensor : file.tensors) {
    constexpr std::string_view prefix = "history.";
    if (!tensor.name.starts_with(prefix) || tensor.format != formats::fp32) continue;
    Values numbers = values_of(tensor);
    if (numbers.size() != rules_.recipe.delayed.history + 1)
      throw formats::Error(where, "holds histories of another length");
    const float scale = numbers.back();
    numbers.pop_back();
    context_.restore_delayed(tensor.name.substr(prefix.size()), std::move(numbers), scale);
  }
  context_.ranges() = ranges_of(file);
  step_ = static_cast<std::int64_t>(number_of(file, "step", where));
  optimizer_.set_steps(static_cast<std::int64_t>(number_of(file, "optimizer_steps", where)));
  if (scaler_) {
    scaler_->set_scale(std::bit_cast<double>(number_of(file, "scale", where)));
    scaler_->set_run(static_cast<std::int64_t>(number_of(file, "scaler_run", where)));
    scaler_->set_forgiven_left(static_cast<int>(number_of(file, "scaler_forgiven_left", where)));
    has_ended_ = number_of(file, "scaler_ended", where) != 0;
  }
  if (number_of(file, "weights_hash", where) != weights_hash())
    throw formats::Error(where, "is damaged: its weights are not those of its hash");
}

std::optional<double> distance_of_weights(const formats::TensorFile& a,
                                          const formats::TensorFile& b) {
  double difference = 0, size = 0;
  for (const formats::Tensor& tensor : b.tensors) {
    if (!tensor.name.ends_with(".weight") && !tensor.name.ends_with(".bias") &&
        !tensor.name.starts_with("embedding."))
      continue;
    if (is_state(tensor.name)) continue;
    const formats::Tensor* const other = a.find(tensor.name);
    if (other == nullptr || other->shape != tensor.shape) return std::nullopt;
    const Values x = values_of(*other), y = values_of(tensor);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double d = static_cast<double>(x[i]) - static_cast<double>(y[i]);
      difference += d * d;
      size += static_cast<double>(y[i]) * static_cast<double>(y[i]);
    }
  }
  return std::sqrt(difference / size);
}

}  // namespace guardbit::experiments::training
