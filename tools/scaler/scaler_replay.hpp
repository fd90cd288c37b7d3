#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/scaling/scaler_ledger.hpp"
#include "experiments/traces/gradient_extremes.hpp"
#include "formats/files/tensor_file.hpp"
#include "tools/console/columns.hpp"
#include "tools/scaler/scaler_log.hpp"

namespace guardbit::tools {

/// The gradients of one step of a trace.
struct TracedStep {
  struct Gradient {
    std::string name;
    experiments::GradientExtremes extremes;
    double recorded_scale = 1;
  };
  std::uint64_t step = 0;
  std::vector<Gradient> gradients;
};

/// Steps in ascending order, from the gradients of a trace (weights, activations and updates are
/// left out). Throws Error where tensors have no step, or there are none.
std::vector<TracedStep> traced_steps(const std::vector<std::string>& words,
                                     const formats::FormatOverrides& overrides);

/// What forced a skip.
struct OverflowCause {
  std::string tensor;
  std::uint64_t index = 0;
  /// in the trace
  bool was_finite = true;
  /// largest finite magnitude of the tensor, scaled
  double scaled_amax = 0;
};

struct ReplayedStep {
  std::uint64_t step = 0;
  experiments::ScalerUpdate update;
  std::optional<ScalerLogRow> logged;
  /// what was not finite as it is first, then by magnitude
  std::vector<OverflowCause> causes;
  bool is_reproduced = true;
};

struct Replay {
  experiments::ScalerLedger ledger;
  std::vector<ReplayedStep> steps;
  bool has_log = false;
  std::vector<std::string> remarks;

  /// Where the log does not say which steps overflowed, a difference decides nothing.
  bool is_assumed = false;

  std::optional<std::size_t> first_difference() const;
  bool differs() const { return has_log && first_difference() && !is_assumed; }
};

/// What the scaler would have done of the overflows of a log; scales are compared with the log's,
/// rounded to the scaler's type.
Replay replay_log(const experiments::LossScaler& scaler, const ScalerLog& log,
                  int skips_to_warn_of);

/// What it would have done of the gradients of a trace stored in `to`.
Replay replay_trace(const experiments::LossScaler& scaler, const std::vector<TracedStep>& steps,
                    const formats::Format& to, int skips_to_warn_of);

/// The overflows of a pattern: "clean*2000,overflow*3,clean". Throws Error.
std::vector<bool> parse_pattern(const std::string& text);
Replay replay_pattern(const experiments::LossScaler& scaler, const std::vector<bool>& overflows,
                      int skips_to_warn_of);

/// What tables and JSON say of a scaler.
const Columns<experiments::ScalerRules>& columns_of_rules();
nlohmann::ordered_json to_json(const Replay& replay);
/// Steps at which something happened, alarms, and whether the log is reproduced.
void print_replay(std::ostream& out, const Replay& replay);
/// One line per scaler.
void print_comparison(std::ostream& out, const std::vector<Replay>& replays);

}  // namespace guardbit::tools
