#pragma once

#include <iosfwd>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/traces/trace_name.hpp"
#include "experiments/traces/trace_statistics.hpp"
#include "experiments/traces/update_effect.hpp"
#include "tools/trace/trace_options.hpp"

namespace guardbit::tools {

template <class Record>
class Columns;

/// One tensor of a trace and what was counted in it.
struct TracedTensor {
  std::string file, name;
  std::string format;
  std::vector<std::int64_t> shape;
  /// as in experiments::TensorPart
  std::uint64_t columns = 0;
  experiments::TraceName meaning;
  std::optional<double> loss_scale;
  experiments::TraceStatistics statistics;
  /// index
  std::optional<std::uint64_t> first_nonfinite;
  bool first_is_nan = false;
};

/// What the updates of a tensor at a step do to its weights.
struct TracedUpdate {
  std::string tensor;
  std::optional<std::uint64_t> step;
  experiments::ExactSum weight_squares{experiments::lowest_square};
  experiments::ExactSum update_squares{experiments::lowest_square};
  /// for the formats of the questions
  experiments::UpdateEffect effect;

  /// Of the root mean squares; nothing where there are no weights but zeros.
  std::optional<double> ratio() const;
};

struct TraceResults {
  TraceQuestions questions;
  std::string policy;
  bool exact_product = false;
  double tolerance = 0;
  /// whether sums of magnitudes and squares were taken
  bool sums = true;
  std::vector<TracedTensor> tensors;
  std::vector<TracedUpdate> updates;
  /// what and why
  std::vector<std::pair<std::string, std::string>> skipped;
};

/// The scales of one format for these statistics.
experiments::ScaleWindow window_of(const TraceResults& results, std::size_t format,
                                   const experiments::TraceStatistics& statistics);

/// The narrowest format that has a window, the first named of equal ones; nothing when none has.
std::optional<std::size_t> recommended_format(const TraceResults& results,
                                              const experiments::TraceStatistics& statistics);

/// Statistics of all tensors, and of those of each role.
experiments::TraceStatistics total_of(const TraceResults& results);
std::map<std::string, experiments::TraceStatistics> by_role(const TraceResults& results);
/// The same of each step of each role.
std::map<std::string, std::map<std::uint64_t, experiments::TraceStatistics>> by_role_and_step(
    const TraceResults& results);

/// The first tensor with a NaN or an infinity by step, then by order of the files; null for none.
const TracedTensor* first_nonfinite(const TraceResults& results);

/// The tensor of which the recipe keeps least, and the decibels; nothing where none has an SQNR.
std::optional<std::pair<const TracedTensor*, double>> lowest_sqnr(const TraceResults& results,
                                                                  std::size_t recipe);
/// Of all tensors but those with infinities or NaNs, which would leave no recipe an SQNR.
struct FiniteRecipes {
  experiments::RecipeStatistics statistics;
  std::vector<const TracedTensor*> left_out;
};
FiniteRecipes finite_recipes(const TraceResults& results);

/// Scales included.
double bits_per_element(const experiments::Signal& signal,
                        const experiments::RecipeOutcome& outcome);

/// Tensors that share a step, a rank or a name.
struct TraceGroup {
  std::string name;
  std::size_t tensors = 0;
  experiments::TraceStatistics statistics;
};

/// The tensors by one of these; only with two groups or more, of which one has two tensors.
struct TraceGroups {
  /// step, rank or tensor
  std::string by;
  std::vector<TraceGroup> groups;
};
std::vector<TraceGroups> groups_of(const TraceResults& results);

/// What the numbers recommend for the gradients, or for everything where no name says what is one.
struct TraceAdvice {
  /// of the questions; nothing where all overflow
  std::optional<std::size_t> format;
  std::optional<int> scale;
  /// nothing overflows and underflow is tolerable
  bool is_safe = false;
  /// sentences with the numbers that support them
  std::vector<std::string> sentences;
};
TraceAdvice advice_of(const TraceResults& results);
nlohmann::ordered_json to_json(const TraceResults& results, const TraceAdvice& advice);

/// What tensors are asked for a loss scale: the gradients, or where no name says what is one,
/// everything.
experiments::TraceStatistics gradients_of(const TraceResults& results);

/// Recorded loss scales are in the numbers already; empty where none but 1 is recorded.
std::string recorded_scale_text(const std::vector<std::optional<double>>& scales);

nlohmann::ordered_json to_json(const TraceResults& results);
/// Of updates of these results.
Columns<TracedUpdate> update_columns(const TraceResults& results);
/// Reads what to_json() printed of parts of a trace, and adds up tensors of the same name and
/// step. All parts must ask the same questions. Throws Error.
TraceResults merged_results(const std::vector<std::string>& files);
/// One trace of what traces of single files gave, in the order of the files. Throws Error.
TraceResults joined_results(const std::vector<nlohmann::ordered_json>& files);
/// A page that stands by itself: plots, and a table of every number. `command` made it.
std::string trace_report(const TraceResults& results, const std::string& command);
/// A row per tensor, format and scale.
void print_csv(std::ostream& out, const TraceResults& results);
/// What a person reads at a glance.
void print_trace(std::ostream& out, const TraceResults& results);

}  // namespace guardbit::tools
