#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/scaler/scaler_log_rows.hpp"

namespace guardbit::tools {

/// One step of a recorded run of a loss scaler.
struct ScalerLogRow {
  std::uint64_t step = 0;
  std::optional<double> loss;
  /// in force during the step
  double scale = 0;
  bool overflow = false;
  std::optional<double> scale_after;
  /// false: a step between two rows of the log, of which it says nothing
  bool is_stated = true;
  /// the same of its scale: only the first step after a row has it
  bool is_scale_stated = true;
};

struct ScalerLog {
  /// the keys that lead to it, joined by dots; empty where there is one run only
  std::string run;
  std::vector<ScalerLogRow> rows;
  /// Parameters that the file states beside the rows: init_scale, growth_factor, backoff_factor,
  /// growth_interval.
  std::map<std::string, double> parameters;
  /// from falling scales, where no column says it
  bool overflow_inferred = false;
  /// Rows are several steps apart: what overflowed between two is put last.
  bool has_gaps = false;
  /// Overflows before the first row may have used up what hysteresis forgives.
  bool may_begin_after_overflow = false;
};

/// Reads the rows of one run from JSON (arrays `[step, loss, scale, overflow, scale after]`,
/// objects or columns, at any depth), JSON lines, a table with separators, the text that
/// Megatron-LM prints or an event file of TensorBoard. `run` names one of several runs: the whole
/// path or any part of it. Throws Error naming the file and the row.
ScalerLog read_scaler_log(const std::string& file, const std::string& run = {},
                          const NamedColumns& named = {});

}  // namespace guardbit::tools
