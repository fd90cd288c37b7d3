#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "experiments/harness/experiment.hpp"
#include "tools/console/terminal.hpp"
#include "tools/train/train_run.hpp"

namespace guardbit::tools {

/// Time, memory, accuracy and loss; what happened to the numbers.
Table time_table(const std::vector<TrainResult>& results);
Table number_table(const std::vector<TrainResult>& results);

/// The recipes side by side: accuracy, loss, what was lost of gradients, skipped steps, the
/// distance of the weights from those of recipe fp32, images per second and their ratio to Eigen's.
void print_comparison(std::ostream& out, const std::vector<TrainResult>& results);

nlohmann::ordered_json to_json(const std::vector<TrainResult>& results);

/// The losses over the steps, each a mean of the 20 steps before.
experiments::Figure loss_curves(const std::vector<TrainResult>& results);

}  // namespace guardbit::tools
