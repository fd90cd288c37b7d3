#include "experiments/training/integer_network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "experiments/quantisation/integer_product.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments::training {

namespace {

using formats::Error;
using Codes = std::vector<std::uint8_t>;

const formats::Tensor& require(const formats::TensorFile& file, const std::string& name,
                               std::string_view where) {
  const formats::Tensor* const tensor = file.find(name);
  if (tensor == nullptr || tensor->format != formats::fp32)
    throw Error(std::string(where), "holds no weights '" + formats::printable(name) + "'");
  return *tensor;
}

/// A layer's weights as a matrix [outputs, K], each row on its grid.
IntegerTensor integers_of(const Values& numbers, const std::vector<IntegerGrid>& grids) {
  const std::size_t width = numbers.size() / grids.size();
  IntegerTensor t;
  t.shape = {std::ssize(grids), static_cast<std::int64_t>(width)};
  t.group_shape = {std::ssize(grids)};
  t.grids = grids;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    t.group.push_back(static_cast<std::int32_t>(i / width));
    t.signed_codes.push_back(static_cast<std::int8_t>(grids[i / width].quantised(numbers[i])));
  }
  return t;
}

bool is_sparse(const IntegerTensor& weights) {
  if (weights.shape[1] % 4 != 0) return false;
  for (std::size_t i = 0; i < weights.signed_codes.size(); i += 4) {
    if (std::count(weights.signed_codes.begin() + static_cast<std::ptrdiff_t>(i),
                   weights.signed_codes.begin() + static_cast<std::ptrdiff_t>(i + 4), 0) < 2)
      return false;
  }
  return true;
}

/// The windows' integers as a matrix [K, rows].
Codes gathered(const Windows& w, const Codes& codes) {
  const std::int64_t rows = w.rows();
  Codes matrix(static_cast<std::size_t>(w.columns() * rows));
  std::size_t to = 0;
  for (std::int64_t k = 0; k < w.columns(); ++k) {
    const std::int64_t c = k % w.channels, s = k / w.channels % w.window_width;
    const std::int64_t r = k / (w.channels * w.window_width);
    for (std::int64_t image = 0; image < w.images; ++image) {
      for (std::int64_t p = 0; p < w.out_height(); ++p) {
        std::int64_t from = ((image * w.height + p + r) * w.width + s) * w.channels + c;
        for (std::int64_t q = 0; q < w.out_width(); ++q, from += w.channels)
          matrix[to++] = codes[static_cast<std::size_t>(from)];
      }
    }
  }
  return matrix;
}

Codes transposed(const Codes& codes, std::int64_t rows) {
  const std::int64_t columns = std::ssize(codes) / rows;
  Codes matrix(codes.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      matrix[static_cast<std::size_t>(j * rows + i)] =
          codes[static_cast<std::size_t>(i * columns + j)];
  return matrix;
}

Codes pooled(const Pooling& pooling, const Codes& codes) {
  Codes maxima(static_cast<std::size_t>(pooling.outputs()));
  for (std::int64_t i = 0; i < pooling.outputs(); ++i) {
    std::uint8_t& maximum = maxima[static_cast<std::size_t>(i)];
    for (std::int64_t y = 0; y < pooling.size; ++y)
      for (std::int64_t x = 0; x < pooling.size; ++x)
        maximum = std::max(maximum, codes[static_cast<std::size_t>(pooling.source(i, y, x))]);
  }
  return maxima;
}

std::int32_t saturated(double x) {
  constexpr double most = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::clamp(x, -most, most));
}

std::int64_t place_of_largest(const Tensor& logits, std::int64_t row) {
  const auto first = logits.values.begin() + row * logits.columns();
  return std::max_element(first, first + logits.columns()) - first;
}

}  // namespace

IntegerNetwork::IntegerNetwork(const ModelShape& shape, const formats::TensorFile& weights,
                               const std::map<std::string, LayerGrids>& grids,
                               const IntegerExecution& execution, std::string_view where)
    : execution_(execution) {
  if (shape.kind == ModelShape::Kind::gpt)
    throw Error(std::string(where), "a gpt is not executed in integers", "cnn, mlp");
  if (shape.kind == ModelShape::Kind::cnn) {
    Windows windows;
    windows.height = shape.height;
    windows.width = shape.width;
    windows.channels = shape.channels;
    windows.window_height = windows.window_width = 3;
    for (std::size_t i = 0; i < shape.filters.size(); ++i) {
      LayerPlan layer;
      layer.name = "conv" + std::to_string(i + 1);
      layer.convolves = layer.pools = true;
      layer.windows = windows;
      add_layer(weights, grids, std::move(layer), where);
      windows.height = windows.out_height() / 2;
      windows.width = windows.out_width() / 2;
      windows.channels = shape.filters[i];
    }
  }
  for (std::size_t i = 0; i <= shape.hidden.size(); ++i) {
    LayerPlan layer;
    layer.name = "fc" + std::to_string(i + 1);
    add_layer(weights, grids, std::move(layer), where);
  }
}

void IntegerNetwork::add_layer(const formats::TensorFile& weights,
                               const std::map<std::string, LayerGrids>& grids, LayerPlan layer,
                               std::string_view where) {
  const auto found = grids.find(layer.name);
  if (found == grids.end())
    throw Error(std::string(where), "holds no range of " + layer.name + "'s input");
  layer.input = found->second.input;
  layer.weights = integers_of(values_of(require(weights, layer.name + ".weight", where)),
                              found->second.weights);
  // The sparse instruction takes two numbers of each four; of INT4 it takes pairs of each eight.
  layer.sparse = execution_.sparse && layer.input.high > 15 && is_sparse(layer.weights);
  const Values bias = values_of(require(weights, layer.name + ".bias", where));
  for (std::size_t o = 0; o < bias.size(); ++o) {
    const double unit = static_cast<double>(layer.input.scale()) *
                        static_cast<double>(layer.weights.grids[o].scale());
    layer.factors.push_back(unit);
    layer.bias.push_back(saturated(std::nearbyint(static_cast<double>(bias[o]) / unit)));
  }
  layers_.push_back(std::move(layer));
}

/// [outputs, rows]: products of weights and (input - zero point), and the bias.
std::vector<std::int32_t> IntegerNetwork::sums_of(const LayerPlan& layer, const Codes& codes,
                                                  std::int64_t rows) const {
  IntegerTensor b;
  b.shape = {layer.weights.shape[1], rows};
  b.group_shape = {1};
  b.grids = {layer.input};
  b.unsigned_codes = layer.convolves ? Codes() : transposed(codes, rows);
  if (layer.convolves) {
    Windows windows = layer.windows;
    windows.images = rows / (windows.out_height() * windows.out_width());
    b.unsigned_codes = gathered(windows, codes);
  }
  IntegerProduct product = multiply(
      layer.weights, b, {execution_.arch, "", layer.sparse, execution_.threads}, layer.name);
  if (std::ranges::find(instructions_, product.instruction) == instructions_.end())
    instructions_.push_back(product.instruction);
  for (std::size_t i = 0; i < product.sums.size(); ++i)
    product.sums[i] =
        saturated(static_cast<double>(product.sums[i]) +
                  static_cast<double>(layer.bias[i / static_cast<std::size_t>(rows)]));
  return std::move(product.sums);
}

IntegerNetwork::Result IntegerNetwork::run(const Tensor& examples) const {
  Result result;
  const std::int64_t count = examples.shape[0];
  Codes codes(examples.values.size());
  for (std::size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<std::uint8_t>(layers_.front().input.quantised(examples.values[i]));
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const LayerPlan& layer = layers_[l];
    result.inputs[layer.name] = codes;
    const Windows& w = layer.windows;
    const std::int64_t rows = layer.convolves ? count * w.out_height() * w.out_width() : count;
    const auto outputs = static_cast<std::int64_t>(layer.bias.size());
    const std::vector<std::int32_t> sums = sums_of(layer, codes, rows);
    if (l + 1 == layers_.size()) {
      result.logits = zeros({rows, outputs});
      for (std::int64_t o = 0; o < outputs; ++o)
        for (std::int64_t i = 0; i < rows; ++i)
          result.logits[i * outputs + o] =
              static_cast<float>(sums[static_cast<std::size_t>(o * rows + i)] *
                                 layer.factors[static_cast<std::size_t>(o)]);
      break;
    }
    const IntegerGrid& next = layers_[l + 1].input;
    codes.assign(static_cast<std::size_t>(rows * outputs), 0);
    for (std::int64_t o = 0; o < outputs; ++o) {
      const double ratio =
          layer.factors[static_cast<std::size_t>(o)] / static_cast<double>(next.scale());
      const Requantisation requantise(execution_.rule, static_cast<float>(ratio));
      for (std::int64_t i = 0; i < rows; ++i)  // from the zero point on: ReLU
        codes[static_cast<std::size_t>(i * outputs + o)] = static_cast<std::uint8_t>(requantise(
            sums[static_cast<std::size_t>(o * rows + i)], next.zero, next.zero, next.high));
    }
    if (layer.pools) codes = pooled({count, w.out_height(), w.out_width(), outputs, 2}, codes);
  }
  return result;
}

std::vector<std::string> IntegerNetwork::instructions() const { return instructions_; }

namespace {

/// A network in FP32 with a checkpoint's weights.
struct LoadedNetwork {
  LoadedNetwork(const TrainingRules& rules, const formats::TensorFile& checkpoint, int threads,
                std::string_view where)
      : context(rules.recipe, threads, where), model(rules.model, where) {
    const auto& quantisation = rules.recipe.quantisation;
    if (quantisation && quantisation->estimator == StraightThrough::learned_scale)
      model.learn_scales();
    for (Parameter* p : model.parameters())
      p->value.values = values_of(require(checkpoint, p->name, where));
    context.set_observes(false);
  }

  Context context;
  Model model;
};

using Inputs = std::map<std::string, Tensor>;

/// Logits, and what the layers' products take in.
Tensor forward(LoadedNetwork& network, const Tensor& x, Inputs& inputs) {
  network.context.trace = [&](const std::string& name, std::string_view role, const Tensor& t) {
    if (role == formats::word_of(Role::activation)) inputs[name] = t;
  };
  Tensor logits = network.model.forward(network.context, x);
  network.context.trace = {};
  return logits;
}

/// Sums of what `Evaluation` has means of.
void add(Context& context, const Tensor& logits, const Examples& part, Evaluation& sums) {
  const Loss loss = cross_entropy_loss(context, logits, part.labels, 1.0F, false);
  sums.loss += static_cast<double>(loss.loss) * static_cast<double>(logits.rows());
  sums.accuracy += static_cast<double>(loss.correct);
}

constexpr std::int64_t at_once = 256;

}  // namespace

IntegerEvaluation evaluate_integers(const TrainingRules& rules,
                                    const formats::TensorFile& checkpoint,
                                    const std::map<std::string, RunningRange>& ranges,
                                    const Examples& test, const IntegerExecution& execution,
                                    std::string_view where) {
  LoadedNetwork fake(rules, checkpoint, execution.threads, where);
  for (const auto& [name, range] : ranges_of(checkpoint)) fake.context.ranges()[name] = range;
  for (const auto& [name, range] : ranges) fake.context.ranges()[name] = range;
  std::unique_ptr<IntegerNetwork> integers;
  IntegerEvaluation e;
  for (std::int64_t begin = 0; begin < test.count(); begin += at_once) {
    const Examples part = part_of(test, begin, std::min(at_once, test.count() - begin));
    Inputs inputs;
    const Tensor logits = forward(fake, part.inputs, inputs);
    const auto& grids = fake.context.layer_grids();
    if (!integers) {
      integers = std::make_unique<IntegerNetwork>(rules.model, checkpoint, grids, execution, where);
      for (const auto& [name, grid] : grids) e.inputs.push_back({name, 0, 0, 0});
    }
    const IntegerNetwork::Result executed = integers->run(part.inputs);
    for (IntegerEvaluation::Inputs& layer : e.inputs) {
      const Tensor& numbers = inputs.at(layer.layer);
      const IntegerGrid& grid = grids.at(layer.layer).input;
      const Codes& codes = executed.inputs.at(layer.layer);
      layer.numbers += numbers.size();
      for (std::size_t i = 0; i < codes.size(); ++i) {
        const std::int32_t difference = std::abs(grid.quantised(numbers.values[i]) - codes[i]);
        layer.different += difference != 0 ? 1 : 0;
        layer.largest = std::max(layer.largest, difference);
      }
    }
    for (std::int64_t i = 0; i < logits.size(); ++i) {
      const double x = logits[i], y = executed.logits[i];
      e.largest_logit = std::max(e.largest_logit, std::fabs(x));
      e.logit_difference = std::max(e.logit_difference, std::fabs(x - y));
    }
    for (std::int64_t i = 0; i < logits.rows(); ++i)
      e.other_answers +=
          place_of_largest(logits, i) != place_of_largest(executed.logits, i) ? 1 : 0;
    add(fake.context, logits, part, e.fake);
    add(fake.context, executed.logits, part, e.executed);
    e.examples += part.count();
  }
  if (integers) e.instructions = integers->instructions();
  const auto all = static_cast<double>(std::max<std::int64_t>(1, e.examples));
  for (Evaluation* const x : {&e.fake, &e.executed}) {
    x->loss /= all;
    x->accuracy /= all;
  }
  return e;
}

std::map<std::string, Values> layer_inputs(const TrainingRules& rules,
                                           const formats::TensorFile& checkpoint,
                                           const Examples& examples, std::string_view where) {
  LoadedNetwork network(rules, checkpoint, 0, where);
  std::map<std::string, Values> all;
  for (std::int64_t begin = 0; begin < examples.count(); begin += at_once) {
    Inputs inputs;
    const std::int64_t count = std::min(at_once, examples.count() - begin);
    static_cast<void>(forward(network, part_of(examples, begin, count).inputs, inputs));
    for (const auto& [name, x] : inputs)
      all[name].insert(all[name].end(), x.values.begin(), x.values.end());
  }
  return all;
}

RunningRange calibrated_range(Calibrator calibrator, const CalibrationQuirks& quirks,
                              const Values& inputs, int bits, std::string_view where) {
  RunningRange range;
  range.observe(inputs, 1);
  CalibrationOptions options;
  options.bits = bits;
  options.quirks = quirks;
  options.is_unsigned = range.least >= 0;
  const float amax = calibrated_amax(calibrator, inputs, options, where);
  range.least = std::max(range.least, -amax);
  range.largest = std::min(range.largest, amax);
  return range;
}

std::optional<PruningAxis> pruned_axis(const formats::Tensor& weights) {
  if (weights.shape.size() < 2) return std::nullopt;
  const std::int64_t inputs = weights.shape.back();  // of convolutions the channels
  if (!is_pruned_by_modelopt(std::vector{weights.shape[0], inputs})) return std::nullopt;
  return PruningAxis{static_cast<std::size_t>(inputs), 1};
}

std::vector<LayerPruning> prune_layers(formats::TensorFile& checkpoint, std::string_view where) {
  std::vector<LayerPruning> all;
  for (formats::Tensor& tensor : checkpoint.tensors) {
    const auto axis = is_weight(tensor) ? pruned_axis(tensor) : std::nullopt;
    if (!axis) continue;
    Values numbers = values_of(tensor);
    all.push_back({tensor.name, prune(numbers, *axis, where)});
    tensor = tensor_of(tensor.name, tensor.shape, numbers);
  }
  return all;
}

}  // namespace guardbit::experiments::training
