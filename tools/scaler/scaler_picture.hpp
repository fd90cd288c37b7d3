#pragma once

#include <vector>

#include "experiments/harness/experiment.hpp"
#include "tools/scaler/scaler_replay.hpp"

namespace guardbit::tools {

/// The scale of each scaler by step, the steps that it skips, and the scales of its log.
experiments::Figure scale_figure(const std::vector<Replay>& replays);

}  // namespace guardbit::tools
