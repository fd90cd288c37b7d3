#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/scaler/scaler_replay.hpp"

// Which scaler replays what: the options of `scaler replay` and `scaler schedule`.
namespace guardbit::tools {

/// As the options say it.
struct ReplaySettings {
  std::vector<std::string> columns;
  std::string preset = "pytorch";
  std::string mode, from;
  std::string format = "fp16";
  std::optional<std::string> init_scale, min_scale, max_scale;
  std::optional<double> growth_factor, backoff_factor;
  std::optional<std::int64_t> growth_interval;
  std::optional<int> hysteresis;
  std::string growth_test;
  std::int64_t growth_tracker = 0;
  /// Overflows that hysteresis still forgives where a log begins.
  std::optional<int> forgiven_left;
  int alarm_skips = 4;
  bool consecutive_hysteresis = false;
};

/// "pytorch, apex, ..."
std::string preset_names();

/// A log by its name, or a file of text: traces are none.
bool is_log(const std::string& word);
/// The word itself; of a folder with one file of TensorBoard's events, that file.
std::string log_file(const std::string& word);

/// The scaler's steps over a log, over the gradients of a trace, over a pattern of overflows.
/// formats::Error for what cannot be read or set.
Replay replay_of_log(const std::string& file, ReplaySettings settings);
Replay replay_of_trace(const std::vector<std::string>& words, const ReplaySettings& settings);
Replay replay_of_pattern(const std::string& pattern, const ReplaySettings& settings);

/// The same by every preset.
std::vector<Replay> replays_of_trace(const std::vector<std::string>& words,
                                     const ReplaySettings& settings);
std::vector<Replay> replays_of_pattern(const std::string& pattern, const ReplaySettings& settings);

}  // namespace guardbit::tools
