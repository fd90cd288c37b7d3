#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/train/train_report.hpp"
#include "tools/train/train_run.hpp"

namespace guardbit::tools {

/// A trained network on integers.
struct QuantisedRow {
  /// that trained it
  std::string recipe;
  int bits = 8;
  bool is_pruned = false;
  /// of activations: a calibrator, or "trained"
  std::string ranges;
  experiments::training::IntegerEvaluation result;
};

struct QuantisedNetworks {
  std::vector<QuantisedRow> rows;
  /// The FP32 network 2:4 pruned: what that kept, and its accuracy.
  std::vector<experiments::training::LayerPruning> pruning;
  std::optional<experiments::training::Evaluation> unpruned, pruned;
};

/// Quantises the first network that was trained without fake quantisation, by every calibrator and
/// number of bits, evaluates those that were trained with it, and prunes. Ends early when asked to.
QuantisedNetworks quantised_networks(const TrainConfig& config,
                                     const experiments::training::Dataset& data,
                                     const std::vector<TrainResult>& results,
                                     const TrainOptions& options, const Interruption& interruption);

/// Accuracy fake-quantised and executed side by side, and where the two differ.
void print_quantised(std::ostream& out, const QuantisedNetworks& networks);
nlohmann::ordered_json to_json(const QuantisedNetworks& networks);
/// What that says. nlohmann::json::exception where it says nothing of the kind.
QuantisedNetworks networks_of(const nlohmann::json& json);

/// The same as tables.
Table integer_table(const QuantisedNetworks& networks);
Table pruning_table(const QuantisedNetworks& networks);
std::string pruning_sentence(const QuantisedNetworks& networks);
std::vector<std::string> instructions_of(const QuantisedNetworks& networks);

}  // namespace guardbit::tools
