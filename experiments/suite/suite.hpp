#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "experiments/experiment.hpp"

namespace guardbit::experiments {

/// Every experiment, by its number.
const std::vector<Experiment>& suite();

/// The experiment of that name, slug, or both as its file is named (e08_fp8_accumulation_width), in
/// any case. Throws formats::Error, beginning with `where`.
const Experiment& require_experiment(std::string_view name, std::string_view where);

// One file each.
Experiment fp8_accumulation_width();
Experiment promotion_interval();

}  // namespace guardbit::experiments
