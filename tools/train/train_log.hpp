#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/training/trainer.hpp"

namespace guardbit::tools {

/// A run's steps as log.csv has them: a line for each, after a head.
std::string log_text(const std::vector<experiments::training::StepRecord>& log);

/// The steps of a log as far as they follow each other.
std::vector<experiments::training::StepRecord> read_log(const std::string& path);
/// Those up to and with `last`; formats::Error when one is missing.
std::vector<experiments::training::StepRecord> read_log(const std::string& path, std::int64_t last);

}  // namespace guardbit::tools
