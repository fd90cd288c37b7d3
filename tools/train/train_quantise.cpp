#include "tools/train/train_quantise.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "formats/support/words.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/terminal.hpp"
#include "tools/products/pruning_columns.hpp"

namespace guardbit::tools {

namespace {

namespace training = experiments::training;
using Json = nlohmann::ordered_json;
using training::IntegerEvaluation;
using Ranges = std::map<std::string, training::RunningRange>;

std::string percent(double share) { return number(100 * share, "%.2f%%"); }

/// A recipe of fake quantisation for networks that were trained without it.
training::TrainingRules rules_for(const TrainConfig& config,
                                  const training::PrecisionRecipe& recipe) {
  return {config.model, config.optimizer, recipe, config.batch, config.seed};
}

training::PrecisionRecipe integer_recipe(int bits, experiments::Calibrator calibrator) {
  training::PrecisionRecipe recipe = training::require_recipe("int8_qat", "", "train");
  recipe.quantisation = training::FakeQuantisation{.bits = bits};
  // Weights have too few numbers in a channel for histograms.
  if (calibrator == experiments::Calibrator::search)
    recipe.quantisation->weights = experiments::Calibrator::search;
  return recipe;
}

/// Everything about one trained network.
class Networks {
 public:
  Networks(const TrainConfig& config, const training::Dataset& data, const TrainOptions& options,
           const Interruption& interruption)
      : config_(config), data_(data), options_(options), interruption_(interruption) {}

  void calibrate(const TrainResult& network) {
    const auto plain = rules_for(config_, training::require_recipe("fp32", "", "train"));
    const training::Examples some = training::part_of(
        data_.training, 0, std::min(config_.quantisation.calibration, data_.training.count()));
    inputs_ = training::layer_inputs(plain, network.weights, some, "train");
    for (const int bits : config_.quantisation.bits)
      for (const experiments::Calibrator calibrator : config_.quantisation.calibrators)
        add(network, network.weights, bits, calibrator, false);
    if (config_.quantisation.prunes) prune(network, plain);
  }

  void add_trained(const TrainResult& network, const training::PrecisionRecipe& recipe) {
    if (interruption_.asked_for()) return;
    all_.rows.push_back({network.recipe, recipe.quantisation->bits, false, "trained",
                         evaluate(recipe, network.weights, {})});
  }

  QuantisedNetworks finish() { return std::move(all_); }

 private:
  IntegerEvaluation evaluate(const training::PrecisionRecipe& recipe,
                             const formats::TensorFile& weights, const Ranges& ranges) const {
    training::IntegerExecution execution = config_.quantisation.execution;
    execution.sparse = true;  // where the weights are
    execution.threads = options_.threads;
    return training::evaluate_integers(rules_for(config_, recipe), weights, ranges, data_.test,
                                       execution, "train");
  }

  void add(const TrainResult& network, const formats::TensorFile& weights, int bits,
           experiments::Calibrator calibrator, bool is_pruned) {
    if (interruption_.asked_for()) return;
    Ranges ranges;
    for (const auto& [layer, numbers] : inputs_)
      ranges[layer] =
          training::calibrated_range(calibrator, config_.quantisation.quirks, numbers, bits, layer);
    all_.rows.push_back({network.recipe, bits, is_pruned, std::string(formats::word_of(calibrator)),
                         evaluate(integer_recipe(bits, calibrator), weights, ranges)});
  }

  void prune(const TrainResult& network, const training::TrainingRules& plain) {
    formats::TensorFile weights = network.weights;
    all_.pruning = training::prune_layers(weights, "train");
    if (all_.pruning.empty() || interruption_.asked_for()) return;
    training::Trainer trainer(plain, data_.training, options_.threads, "train");
    trainer.start_from(weights, "train");
    all_.unpruned = network.test;
    all_.pruned = trainer.evaluate(data_.test);
    for (const int bits : config_.quantisation.bits)
      add(network, weights, bits, config_.quantisation.calibrators.front(), true);
  }

  const TrainConfig& config_;
  const training::Dataset& data_;
  const TrainOptions& options_;
  const Interruption& interruption_;
  /// of the layers, for calibrators
  std::map<std::string, training::Values> inputs_;
  QuantisedNetworks all_;
};

std::string name_of(const QuantisedRow& row) {
  return row.recipe + (row.is_pruned ? " 2:4" : "") + " INT" + std::to_string(row.bits);
}

double share(const IntegerEvaluation::Inputs& layer) {
  return layer.numbers == 0
             ? 0
             : static_cast<double>(layer.different) / static_cast<double>(layer.numbers);
}

/// "fc1 0.02%": the layer of whose input's integers the most differ.
std::string apart(const IntegerEvaluation& e) {
  const auto most = std::ranges::max_element(e.inputs, {}, share);
  if (most == e.inputs.end() || most->different == 0) return "none";
  return most->layer + number(100 * share(*most), " %.2g%%");
}

Json inputs_json(const IntegerEvaluation& e) {
  using Inputs = IntegerEvaluation::Inputs;
  static const Columns<Inputs> columns = {
      {"layer", "", Side::none, [](const Inputs& x) { return x.layer; }},
      {"integers", "", Side::none, [](const Inputs& x) { return x.numbers; }},
      {"different", "", Side::none, [](const Inputs& x) { return x.different; }},
      {"largest_difference", "", Side::none, [](const Inputs& x) { return x.largest; }}};
  return columns.json_list(e.inputs);
}

const Columns<QuantisedRow>& integer_columns() {
  using Row = QuantisedRow;
  static const Columns<Row> columns = {
      {"", "integers", Side::left, name_of},
      {"recipe", "", Side::none, [](const Row& r) { return r.recipe; }},
      {"bits", "", Side::none, [](const Row& r) { return r.bits; }},
      {"pruned", "", Side::none, [](const Row& r) { return r.is_pruned; }},
      {"ranges", "ranges", Side::left, [](const Row& r) { return r.ranges; }},
      {"fake_accuracy", "fake", Side::right, [](const Row& r) { return r.result.fake.accuracy; },
       [](const Row& r) { return percent(r.result.fake.accuracy); }},
      {"fake_loss", "", Side::none, [](const Row& r) { return r.result.fake.loss; }},
      {"executed_accuracy", "executed", Side::right,
       [](const Row& r) { return r.result.executed.accuracy; },
       [](const Row& r) { return percent(r.result.executed.accuracy); }},
      {"executed_loss", "", Side::none, [](const Row& r) { return r.result.executed.loss; }},
      {"examples", "", Side::none, [](const Row& r) { return r.result.examples; }},
      {"other_answers", "other answers", Side::right,
       [](const Row& r) { return r.result.other_answers; }},
      {"logit_difference", "logits", Side::right,
       [](const Row& r) { return r.result.logit_difference; },
       [](const Row& r) { return number(r.result.logit_difference, "%.2g"); }},
      {"largest_logit", "", Side::none, [](const Row& r) { return r.result.largest_logit; }},
      {"inputs", "codes apart", Side::left, [](const Row& r) { return inputs_json(r.result); },
       [](const Row& r) { return apart(r.result); }},
      {"instructions", "", Side::none, [](const Row& r) { return r.result.instructions; }}};
  return columns;
}

const Columns<training::LayerPruning>& pruning_columns() {
  using Layer = training::LayerPruning;
  static const Columns<Layer> columns =
      Columns<Layer>{{"layer", "2:4 pruning", Side::left, [](const Layer& x) { return x.name; }}} +
      pruning_columns_of<Layer>(
          [](const Layer& x) -> const auto& { return x.summary; }, percent);
  return columns;
}

}  // namespace

QuantisedNetworks quantised_networks(const TrainConfig& config, const training::Dataset& data,
                                     const std::vector<TrainResult>& results,
                                     const TrainOptions& options,
                                     const Interruption& interruption) {
  Networks networks(config, data, options, interruption);
  ProgressLine line("quantising", results.size());
  bool has_plain = false;
  for (std::size_t i = 0; i < results.size(); ++i) {
    line.update(i);
    const training::PrecisionRecipe& recipe = config.recipes[i];
    if (recipe.quantisation) networks.add_trained(results[i], recipe);
    if (!recipe.quantisation && !has_plain) {
      networks.calibrate(results[i]);
      has_plain = true;
    }
  }
  return networks.finish();
}

Table integer_table(const QuantisedNetworks& networks) {
  return integer_columns().table(networks.rows);
}

Table pruning_table(const QuantisedNetworks& networks) {
  return pruning_columns().table(networks.pruning);
}

std::string pruning_sentence(const QuantisedNetworks& networks) {
  return "accuracy in FP32: " + percent(networks.unpruned->accuracy) + " before pruning, " +
         percent(networks.pruned->accuracy) + " after";
}

std::vector<std::string> instructions_of(const QuantisedNetworks& networks) {
  std::vector<std::string> named;
  for (const QuantisedRow& row : networks.rows) {
    for (const std::string& instruction : row.result.instructions)
      if (std::ranges::find(named, instruction) == named.end()) named.push_back(instruction);
  }
  return named;
}

void print_quantised(std::ostream& out, const QuantisedNetworks& networks) {
  if (networks.rows.empty()) return;
  out << '\n';
  integer_table(networks).print(out);
  out << "fake: rounded in FP32; executed: on\n";
  for (const std::string& instruction : instructions_of(networks))
    out << "  " << instruction << '\n';
  out << "logits: the largest difference; codes apart: the layer whose input's integers\n"
         "differ most\n";
  if (!networks.pruned) return;
  out << '\n';
  pruning_table(networks).print(out);
  out << pruning_sentence(networks) << '\n';
}

nlohmann::ordered_json to_json(const QuantisedNetworks& networks) {
  Json json = {{"networks", integer_columns().json_list(networks.rows)}};
  if (networks.pruned)
    json["pruning"] = {{"layers", pruning_columns().json_list(networks.pruning)},
                       {"accuracy_before", networks.unpruned->accuracy},
                       {"accuracy_after", networks.pruned->accuracy}};
  return json;
}

QuantisedNetworks networks_of(const nlohmann::json& json) {
  QuantisedNetworks networks;
  for (const auto& row : json.at("networks")) {
    QuantisedRow to{row.at("recipe").get<std::string>(),
                    row.at("bits").get<int>(),
                    row.at("pruned").get<bool>(),
                    row.at("ranges").get<std::string>(),
                    {}};
    IntegerEvaluation& e = to.result;
    e.fake = {row.at("fake_loss").get<double>(), row.at("fake_accuracy").get<double>()};
    e.executed = {row.at("executed_loss").get<double>(), row.at("executed_accuracy").get<double>()};
    e.examples = row.at("examples").get<std::int64_t>();
    e.other_answers = row.at("other_answers").get<std::int64_t>();
    e.logit_difference = row.at("logit_difference").get<double>();
    e.largest_logit = row.at("largest_logit").get<double>();
    for (const auto& layer : row.at("inputs"))
      e.inputs.push_back({layer.at("layer").get<std::string>(),
                          layer.at("integers").get<std::int64_t>(),
                          layer.at("different").get<std::int64_t>(),
                          layer.at("largest_difference").get<std::int32_t>()});
    e.instructions = row.at("instructions").get<std::vector<std::string>>();
    networks.rows.push_back(std::move(to));
  }
  if (!json.contains("pruning")) return networks;
  const auto& pruning = json.at("pruning");
  for (const auto& layer : pruning.at("layers")) {
    experiments::PruningSummary s;
    s.groups = layer.at("groups").get<std::uint64_t>();
    s.ties = layer.at("ties").get<std::uint64_t>();
    s.rounded_ties = layer.at("fp32_ties").get<std::uint64_t>();
    s.all = s.all_squares = 100;
    s.kept = layer.at("kept_magnitude_percent").get<double>();
    s.kept_squares = layer.at("kept_squares_percent").get<double>();
    networks.pruning.push_back({layer.at("layer").get<std::string>(), s});
  }
  networks.unpruned = {0, pruning.at("accuracy_before").get<double>()};
  networks.pruned = {0, pruning.at("accuracy_after").get<double>()};
  return networks;
}

}  // namespace guardbit::tools
