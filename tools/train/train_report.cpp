#include "tools/train/train_report.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>

#include "experiments/harness/fingerprint.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

namespace training = experiments::training;

/// What a run says of itself, and beside the others.
struct Row {
  const TrainResult* run = nullptr;
  /// mean over the last tenth of the steps, 20 at least
  double last_loss = 0;
  std::int64_t skipped = 0;
  training::StoreCounts gradients;
  std::optional<double> scale, distance, rate, ratio;
};

std::optional<double> rate_of(const TrainResult& r) {
  if (r.images == 0 || r.seconds <= 0) return std::nullopt;
  return static_cast<double>(r.images) / r.seconds;
}

std::vector<Row> rows_of(const std::vector<TrainResult>& results) {
  const TrainResult *fp32 = nullptr, *eigen = nullptr;
  for (const TrainResult& r : results) {
    if (r.recipe == "fp32") fp32 = &r;
    if (r.recipe == "eigen") eigen = &r;
  }
  std::vector<Row> rows;
  for (const TrainResult& r : results) {
    Row row;
    row.run = &r;
    const std::size_t last = std::min(r.log.size(), std::max<std::size_t>(20, r.log.size() / 10));
    for (std::size_t i = r.log.size() - last; i < r.log.size(); ++i)
      row.last_loss += static_cast<double>(r.log[i].loss) / static_cast<double>(last);
    for (const training::StepRecord& step : r.log) {
      const auto& g = step.stores.at(static_cast<std::size_t>(training::Role::gradient));
      row.skipped += step.skipped ? 1 : 0;
      row.gradients.numbers += g.numbers;
      row.gradients.underflow += g.underflow;
      row.gradients.overflow += g.overflow;
    }
    if (!r.log.empty() && r.weights.metadata.contains("scale")) row.scale = r.log.back().scale;
    if (fp32 != nullptr && fp32 != &r && fp32->log.size() == r.log.size() &&
        !fp32->weights.tensors.empty())
      row.distance = training::distance_of_weights(r.weights, fp32->weights);
    row.rate = rate_of(r);
    const auto yardstick = eigen == nullptr ? std::nullopt : rate_of(*eigen);
    if (row.rate && yardstick) row.ratio = *row.rate / *yardstick;
    rows.push_back(row);
  }
  return rows;
}

double share(std::int64_t part, std::int64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
}

std::string if_complete(const Row& row, const std::string& text) {
  return row.run->complete ? text : "-";
}

std::string of_gradients(const Row& row, std::int64_t part) {
  if (row.gradients.numbers == 0) return "";
  return number(100 * share(part, row.gradients.numbers), "%.3g") + "%";
}

/// Beside one another: what a recipe takes and what it gives.
const Columns<Row>& time_columns() {
  static const Columns<Row> columns = {
      {"recipe", "recipe", Side::left, [](const Row& r) { return r.run->recipe; }},
      {"title", "", Side::none, [](const Row& r) { return r.run->title; }},
      {"unit", "unit", Side::left, [](const Row& r) { return r.run->unit; }},
      {"engine", "engine", Side::left, [](const Row& r) { return r.run->engine; }},
      {"steps", "", Side::none, [](const Row& r) { return r.run->log.size(); }},
      {"complete", "", Side::none, [](const Row& r) { return r.run->complete; }},
      {"seconds", "time", Side::right,
       [](const Row& r) { return or_null(r.rate ? std::optional(r.run->seconds) : std::nullopt); },
       [](const Row& r) { return r.rate ? fixed(r.run->seconds, 1) + " s" : ""; }, 6},
      {"images_per_second", "images/s", Side::right, [](const Row& r) { return or_null(r.rate); },
       [](const Row& r) { return r.rate ? fixed(*r.rate, 0) : ""; }, 4},
      {"ratio_to_eigen", "ratio", Side::right, [](const Row& r) { return or_null(r.ratio); },
       [](const Row& r) { return r.ratio ? fixed(*r.ratio, 2) : ""; }, 5},
      {"memory_bytes", "memory", Side::right, [](const Row& r) { return or_null(r.run->memory); },
       [](const Row& r) {
         if (!r.run->memory) return std::string();
         const auto bytes = static_cast<double>(*r.run->memory);
         return bytes < 0x1p20 ? fixed(bytes / 0x1p10, 1) + " KiB"
                               : fixed(bytes / 0x1p20, 2) + " MiB";
       },
       8},
      {"accuracy", "accuracy", Side::right,
       [](const Row& r) {
         return or_null(r.run->complete ? std::optional(r.run->test.accuracy) : std::nullopt);
       },
       [](const Row& r) { return if_complete(r, fixed(100 * r.run->test.accuracy, 2) + "%"); }, 1},
      {"test_loss", "test loss", Side::right,
       [](const Row& r) {
         return or_null(r.run->complete ? std::optional(r.run->test.loss) : std::nullopt);
       },
       [](const Row& r) { return if_complete(r, fixed(r.run->test.loss, 4)); }, 1},
      {"weights_hash",
       "",
       Side::none,
       [](const Row& r) { return experiments::fingerprint_text(r.run->weights_hash); },
       {},
       9}};
  return columns;
}

/// What became of a recipe's numbers.
const Columns<Row>& number_columns() {
  static const Columns<Row> columns = {
      {"", "recipe", Side::left, [](const Row& r) { return r.run->recipe; }},
      {"loss", "loss", Side::right, [](const Row& r) { return r.last_loss; },
       [](const Row& r) { return std::isnan(r.last_loss) ? "nan" : fixed(r.last_loss, 4); }, 2},
      {"gradients", "", Side::none, [](const Row& r) { return r.gradients.numbers; }, {}, 2},
      {"underflow", "underflow", Side::right, [](const Row& r) { return r.gradients.underflow; },
       [](const Row& r) { return of_gradients(r, r.gradients.underflow); }, 2},
      {"overflow", "overflow", Side::right, [](const Row& r) { return r.gradients.overflow; },
       [](const Row& r) { return of_gradients(r, r.gradients.overflow); }, 2},
      {"skipped", "skipped", Side::right, [](const Row& r) { return r.skipped; },
       [](const Row& r) { return r.scale ? std::to_string(r.skipped) : ""; }, 2},
      {"scale", "scale", Side::right, [](const Row& r) { return or_null(r.scale); },
       [](const Row& r) { return r.scale ? number(*r.scale, "%.6g") : ""; }, 2},
      {"distance_from_fp32", "from fp32", Side::right,
       [](const Row& r) { return or_null(r.distance); },
       [](const Row& r) { return r.distance ? number(*r.distance, "%.3g") : ""; }, 3},
      {"ended_by_scaler", "note", Side::left, [](const Row& r) { return r.run->ended; },
       [](const Row& r) {
         if (r.run->ended) return "ended by the scaler";
         return r.run->log.empty() || std::isfinite(r.last_loss) ? "" : "diverged";
       },
       7, false, true}};
  return columns;
}

}  // namespace

Table time_table(const std::vector<TrainResult>& results) {
  return time_columns().table(rows_of(results));
}

Table number_table(const std::vector<TrainResult>& results) {
  return number_columns().table(rows_of(results));
}

void print_comparison(std::ostream& out, const std::vector<TrainResult>& results) {
  const bool is_new = std::ranges::any_of(results, [](const auto& r) { return r.images != 0; });
  if (!is_new) out << "nothing was left to do: the folder holds every step\n";
  time_table(results).print(out);
  out << "ratio: to Eigen's images/s; memory: weights, gradients, optimizer, operands of a step\n\n";
  number_table(results).print(out);
  out << "loss: mean of the last steps; underflow: gradients stored as zero that are none;\n"
         "from fp32: |w - w32| / |w32|\n";
}

nlohmann::ordered_json to_json(const std::vector<TrainResult>& results) {
  return {{"training", (time_columns() + number_columns()).json_list(rows_of(results))}};
}

experiments::Figure loss_curves(const std::vector<TrainResult>& results) {
  constexpr std::size_t window = 20;
  experiments::Figure figure{
      "Loss by precision recipe", "step", "loss (mean of 20 steps)", false, true, {}};
  for (const TrainResult& r : results) {
    experiments::Curve curve{r.recipe};
    const std::size_t every = std::max<std::size_t>(1, r.log.size() / 200);
    double sum = 0;
    for (std::size_t i = 0; i < r.log.size(); ++i) {
      sum += static_cast<double>(r.log[i].loss);
      if (i >= window) sum -= static_cast<double>(r.log[i - window].loss);
      if (i + 1 >= window && i % every == 0)
        curve.add(static_cast<double>(i + 1), sum / static_cast<double>(window));
    }
    figure.curves.push_back(std::move(curve));
  }
  return figure;
}

}  // namespace guardbit::tools
