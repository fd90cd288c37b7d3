#include "experiments/training/integer_network.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "experiments/harness/random_numbers.hpp"
#include "formats/support/words.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/training/small_network.hpp"

namespace guardbit::experiments::training {
namespace {

/// Whole numbers from -high to high times `unit`, with both ends in each of the rows.
Values whole_numbers(const std::string& stream, std::int64_t rows, std::int64_t columns, int high,
                     float unit) {
  const Draws draws(1, stream);
  Values values;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const auto k = static_cast<float>(
        std::floor((2 * high + 1) * draws.uniform(static_cast<std::uint64_t>(i))) - high);
    values.push_back((i % columns == 0 ? static_cast<float>(high) : k) * unit);
  }
  return values;
}

/// A network, weights, ranges and examples whose scales are powers of two, so that every number of
/// the fake-quantised network is exact in FP32 but for what its next layer's input is rounded to.
struct ExactNetwork {
  TrainingRules rules;
  formats::TensorFile weights;
  std::map<std::string, RunningRange> ranges;
  Examples test;
};

ExactNetwork exact_network(bool convolves, int bits) {
  const int high = (1 << (bits - 1)) - 1, codes = (1 << bits) - 1;
  ExactNetwork n;
  n.rules.model.kind = convolves ? ModelShape::Kind::cnn : ModelShape::Kind::mlp;
  n.rules.model.height = n.rules.model.width = 9;  // 7 x 7 before the pool, which drops one
  n.rules.model.filters = {4};
  n.rules.model.inputs = 16;
  n.rules.model.hidden = {8};
  n.rules.model.classes = 3;
  n.rules.recipe = require_recipe(bits == 8 ? "int8_qat" : "int4_qat", "", "test");
  std::vector<std::pair<std::string, Dimensions>> layers;
  if (convolves) layers.push_back({"conv1", {4, 3, 3, 1}});
  layers.push_back({"fc1", {8, convolves ? 36 : 16}});
  layers.push_back({"fc2", {3, 8}});
  const float inner = bits == 8 ? 1.0F : 0.25F;  // a unit of inner layers' inputs
  for (const auto& [name, shape] : layers) {
    const bool is_first = name == layers[0].first;
    const std::int64_t columns = formats::element_count(shape) / shape[0];
    n.weights.tensors.push_back(
        tensor_of(name + ".weight", shape, whole_numbers(name, shape[0], columns, high, 0x1p-6F)));
    n.weights.tensors.push_back(tensor_of(
        name + ".bias", {shape[0]},
        whole_numbers(name + "b", shape[0], 1, 500, (is_first ? 0x1p-4F : inner) * 0x1p-6F)));
    // Inputs of inner layers: ReLU's, from zero on.
    n.ranges[name] = {0, static_cast<float>(codes) * inner, true};
  }
  const float least = -3;
  n.ranges[layers[0].first] = {least * 0x1p-4F, static_cast<float>(codes - 3) * 0x1p-4F, true};
  const std::int64_t count = convolves ? 40 : 3000, width = convolves ? 81 : 16;
  n.test.inputs = zeros(convolves ? Dimensions{count, 9, 9, 1} : Dimensions{count, width});
  const Draws draws(2, "examples");
  for (std::int64_t i = 0; i < n.test.inputs.size(); ++i)
    n.test.inputs[i] =
        static_cast<float>(std::floor((codes + 1) * draws.uniform(static_cast<std::uint64_t>(i)))) *
            0x1p-4F +
        least * 0x1p-4F;
  for (std::int64_t i = 0; i < count; ++i)
    n.test.labels.push_back(static_cast<std::int32_t>(i % 3));
  return n;
}

IntegerEvaluation evaluate(const ExactNetwork& n, const IntegerExecution& execution) {
  return evaluate_integers(n.rules, n.weights, n.ranges, n.test, execution, "test");
}

}  // namespace

TEST_CASE(
    "Executed in integers, a network gives the fake-quantised one's bits where FP32 is exact") {
  for (const bool convolves : {false, true}) {
    for (const int bits : {8, 4}) {
      INFO(convolves << " " << bits);
      const ExactNetwork n = exact_network(convolves, bits);
      IntegerExecution execution;
      execution.rule = RequantisationRule::exact;
      const IntegerEvaluation e = evaluate(n, execution);
      REQUIRE(e.inputs.size() == (convolves ? 3U : 2U));
      for (const IntegerEvaluation::Inputs& layer : e.inputs) {
        INFO(layer.layer);
        CHECK(layer.numbers > 0);
        CHECK(layer.different == 0);
      }
      CHECK(e.largest_logit > 0);
      CHECK(e.logit_difference == 0);
      CHECK(e.other_answers == 0);
      CHECK(e.fake.accuracy == e.executed.accuracy);
      CHECK(e.fake.loss == e.executed.loss);
      const std::string s = bits == 8 ? "k32.row.col.s32.s8.u8" : "k64.row.col.s32.s4.u4";
      REQUIRE(e.instructions.size() == 1);
      CHECK(e.instructions[0] == "mma.sync.aligned.m16n8" + s + ".s32");

      // gemmlowp's rule takes ties up, fake quantisation to the even integer: half the ties differ.
      execution.rule = RequantisationRule::double_rounding;
      const IntegerEvaluation other = evaluate(n, execution);
      CHECK(other.inputs.front().different == 0);
      std::int64_t different = 0;
      for (const IntegerEvaluation::Inputs& layer : other.inputs) different += layer.different;
      CHECK(different > 0);
      CHECK(other.inputs[1].largest == 1);
    }
  }
}

TEST_CASE("2:4 pruned layers take the sparse instruction and give the same integers") {
  ExactNetwork n = exact_network(false, 8);
  n.rules.model.hidden = {16};
  n.weights.tensors[0] = tensor_of("fc1.weight", {16, 16}, whole_numbers("w", 16, 16, 127, 1));
  n.weights.tensors[1] = tensor_of("fc1.bias", {16}, Values(16, 0.0F));
  n.weights.tensors[2] = tensor_of("fc2.weight", {3, 16}, whole_numbers("v", 3, 16, 127, 1));
  n.weights.tensors.push_back(tensor_of("first.fc1.weight", {16, 16}, Values(256, 1.0F)));
  const auto pruned = prune_layers(n.weights, "test");
  REQUIRE(pruned.size() == 1);  // three outputs are not a multiple of 8, and momentum is no weight
  CHECK(pruned[0].name == "fc1.weight");
  CHECK(pruned[0].summary.groups == 64);
  const Values w = values_of(n.weights.tensors[0]);
  for (std::size_t i = 0; i < w.size(); i += 4)
    CHECK(std::count(w.begin() + static_cast<std::ptrdiff_t>(i),
                     w.begin() + static_cast<std::ptrdiff_t>(i + 4), 0.0F) >= 2);
  CHECK(values_of(n.weights.tensors.back()) == Values(256, 1.0F));

  std::map<std::string, LayerGrids> grids;
  for (const char* name : {"fc1", "fc2"})
    grids[name] = {
        activation_grid(n.ranges.at(name), 8),
        std::vector<IntegerGrid>(*name == 'f' && name[2] == '1' ? 16 : 3, weight_grid(127, 8))};
  IntegerExecution dense, sparse;
  sparse.sparse = true;
  const IntegerNetwork a(n.rules.model, n.weights, grids, dense, "test");
  const IntegerNetwork b(n.rules.model, n.weights, grids, sparse, "test");
  const auto x = a.run(n.test.inputs), y = b.run(n.test.inputs);
  CHECK(x.logits.values == y.logits.values);
  CHECK(x.inputs == y.inputs);
  CHECK(a.instructions() ==
        std::vector<std::string>{"mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32"});
  REQUIRE(b.instructions().size() == 2);
  CHECK(b.instructions()[0].starts_with("mma.sp"));
}

TEST_CASE("Pruning says where equal magnitudes leave a choice") {
  formats::TensorFile file;
  Values w(8 * 16, 0.0F);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = i % 4 == 0 ? 3.0F : 1.0F;
  file.tensors.push_back(tensor_of("fc1.weight", {8, 16}, w));
  const auto pruned = prune_layers(file, "test");
  REQUIRE(pruned.size() == 1);
  CHECK(pruned[0].summary.ties == 32);
  CHECK(values_of(file.tensors[0])[1] == 1.0F);  // of equal ones the first stays
  CHECK(values_of(file.tensors[0])[2] == 0.0F);
}

TEST_CASE("Ranges of activations move by a share of each batch, and calibrators clip them") {
  RunningRange range;
  range.observe({-1, 0, 3}, 0.25F);
  CHECK(range == RunningRange{-1, 3, true});
  range.observe({-5, 1, INFINITY, NAN}, 0.25F);
  CHECK(range == RunningRange{-2, 2.5F, true});

  const IntegerGrid grid = activation_grid({-1, 3, true}, 8);
  CHECK(grid.low == 0);
  CHECK(grid.high == 255);
  CHECK(grid.quantised(0) == grid.zero);
  CHECK(grid.zero == 64);
  CHECK(weight_grid(2, 4).low == -7);

  Values x(10000);
  Draws(1, "x").fill(Distribution::normal, x);
  x.push_back(1000);
  const RunningRange all = calibrated_range(Calibrator::max, {}, x, 8, "test");
  const RunningRange most = calibrated_range(Calibrator::percentile, {}, x, 8, "test");
  CHECK(all.largest == 1000);
  CHECK(most.largest < 10);
  CHECK(most.least == std::max(all.least, -most.largest));
}

TEST_CASE("Fake quantisation passes gradients as its estimator says") {
  const auto by = [](StraightThrough estimator, bool learns) {
    PrecisionRecipe recipe = require_recipe("int8_qat", "", "test");
    recipe.quantisation->estimator = estimator;
    Context context(recipe, 1, "test");
    LayerQuantiser quantiser("fc1");
    if (learns) quantiser.learn_scales(1);
    Parameter* scale = nullptr;
    const auto visit = [&](Parameter& p) {
      if (p.name == "fc1.input_scale") scale = &p;
    };
    quantiser.visit(visit);
    context.ranges()["fc1"] = {0, 25.5F, true};
    if (scale != nullptr) scale->value[0] = 0.1F;
    context.set_observes(false);
    Tensor x{{1, 5}, formats::fp32, {-1.0F, 0.26F, 25.5F, 25.53F, 30.0F}};
    const Tensor y = quantiser.input(context, x);
    CHECK(y[0] == 0.0F);
    CHECK(std::fabs(y[1] - 0.3F) < 1e-6F);
    CHECK(y[4] == y[2]);
    Tensor g{{1, 5}, formats::fp32, {1, 2, 3, 4, 5}};
    Values values = quantiser.input_gradient(context, g).values;
    if (scale != nullptr) values.push_back(scale->gradient[0]);
    return values;
  };
  // 25.53 is 255.3 units, rounded into the range: PyTorch passes it, |x| <= amax does not.
  CHECK(by(StraightThrough::pytorch, false) == Values{0, 2, 3, 4, 0});
  CHECK(by(StraightThrough::modelopt, false) == Values{1, 2, 3, 0, 0});
  CHECK(by(StraightThrough::pass_through, false) == Values{1, 2, 3, 4, 5});
  const Values learned = by(StraightThrough::learned_scale, true);
  CHECK(Values(learned.begin(), learned.begin() + 5) == Values{0, 2, 3, 4, 0});
  // Inside (value - x) / s, outside the range's end: 2 * 0.4 + 4 * (-0.3) + 5 * 255, over
  // sqrt(5 * 255).
  CHECK(std::fabs(learned[5] - (2 * 0.4F - 4 * 0.3F + 5 * 255.0F) / std::sqrt(5 * 255.0F)) < 1e-3F);
}

TEST_CASE(
    "Training with fake quantisation learns, goes on from a checkpoint, and starts from one") {
  const Examples all = draw_teacher(320, 16, 3, 5, false);
  const auto trained = [&](const TrainingRules& rules, std::int64_t steps, std::int64_t stop,
                           const formats::TensorFile* start = nullptr) {
    auto trainer = std::make_unique<Trainer>(rules, all, 1, "test");
    if (start != nullptr) trainer->start_from(*start, "start");
    for (std::int64_t i = 0; i < steps; ++i) {
      if (i == stop && i != 0) {
        const formats::TensorFile checkpoint = trainer->checkpoint();
        trainer = std::make_unique<Trainer>(rules, all, 2, "test");
        trainer->restore(checkpoint, "checkpoint");
      }
      trainer->step();
    }
    return trainer;
  };
  TrainingRules rules = small_network("fp32");
  const formats::TensorFile fp32 = trained(rules, 60, 0)->checkpoint();
  for (const char* recipe : {"int8_qat", "int4_qat"}) {
    for (const char* estimator : {"pytorch", "modelopt", "pass_through", "learned_scale"}) {
      INFO(recipe << " " << estimator);
      rules.recipe = require_recipe(recipe, "", "test");
      rules.recipe.quantisation->estimator =
          formats::require_word<StraightThrough>("straight-through estimator", estimator, "test");
      CHECK(trained(rules, 7, 4)->weights_hash() == trained(rules, 7, 0)->weights_hash());
      const auto scratch = trained(rules, 60, 0);
      CHECK(scratch->evaluate(all).loss < 0.6);
      const auto tuned = trained(rules, 10, 0, &fp32);
      CHECK(tuned->evaluate(all).loss < 0.6);
      // What training learned is what is executed.
      const IntegerEvaluation e =
          evaluate_integers(rules, scratch->checkpoint(), {}, all, {}, "test");
      CHECK(e.fake.loss == scratch->evaluate(all).loss);
      CHECK(std::fabs(e.fake.accuracy - e.executed.accuracy) < 0.03);
      CHECK(e.inputs[0].different == 0);
      CHECK(e.inputs[1].largest <= 1);
    }
  }
}

}  // namespace guardbit::experiments::training
