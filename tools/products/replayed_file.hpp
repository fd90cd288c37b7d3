#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "emulator/replay/plan_book.hpp"
#include "tools/products/replay_report.hpp"

// A replayed recording as other processes hand it over: all that reports and plan books need.
namespace guardbit::tools {

/// What became of a recording, and plans that its search found; or why it cannot be replayed.
struct ReplayOutcome {
  std::optional<ReplayedFile> file;
  emulator::replay::PlanBook found;
  std::string error;
};

nlohmann::ordered_json to_json(const ReplayOutcome& outcome);
/// formats::Error or a JSON exception for what to_json did not make.
ReplayOutcome replay_outcome_of(const nlohmann::ordered_json& json);

}  // namespace guardbit::tools
