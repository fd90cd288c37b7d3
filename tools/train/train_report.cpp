#include "tools/train/train_report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <ostream>
#include <string>

#include "experiments/harness/fingerprint.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

namespace training = experiments::training;

std::string fixed(double x, int digits) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, x);
  return text.data();
}

std::string general(double x, int digits) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, x);
  return text.data();
}

/// What a run says of itself, and beside the others.
struct Row {
  const TrainResult* run = nullptr;
  double last_loss = 0;  ///< mean over the last tenth of the steps, 20 at least
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

}  // namespace

TextRows time_rows(const std::vector<TrainResult>& results) {
  TextRows all = {
      {"recipe", "unit", "time", "images/s", "ratio", "memory", "accuracy", "test loss"}};
  for (const Row& row : rows_of(results)) {
    const TrainResult& r = *row.run;
    all.push_back({r.recipe, r.unit, row.rate ? fixed(r.seconds, 1) + " s" : "",
                   row.rate ? fixed(*row.rate, 0) : "", row.ratio ? fixed(*row.ratio, 2) : "",
                   r.memory ? fixed(static_cast<double>(*r.memory) / 0x1p20, 2) + " MiB" : "",
                   r.complete ? fixed(100 * r.test.accuracy, 2) + "%" : "-",
                   r.complete ? fixed(r.test.loss, 4) : "-"});
  }
  return all;
}

TextRows number_rows(const std::vector<TrainResult>& results) {
  TextRows all = {{"recipe", "loss", "underflow", "overflow", "skipped", "scale", "from fp32"}};
  const bool has_notes = std::ranges::any_of(results, &TrainResult::ended);
  if (has_notes) all.front().emplace_back("note");
  for (const Row& row : rows_of(results)) {
    const TrainResult& r = *row.run;
    const auto of_gradients = [&](std::int64_t part) {
      return row.gradients.numbers == 0
                 ? ""
                 : general(100 * share(part, row.gradients.numbers), 3) + "%";
    };
    all.push_back(
        {r.recipe, fixed(row.last_loss, 4), of_gradients(row.gradients.underflow),
         of_gradients(row.gradients.overflow), row.scale ? std::to_string(row.skipped) : "",
         row.scale ? general(*row.scale, 6) : "", row.distance ? general(*row.distance, 3) : ""});
    if (has_notes) all.back().emplace_back(r.ended ? "ended by the scaler" : "");
  }
  return all;
}

void print_comparison(std::ostream& out, const std::vector<TrainResult>& results) {
  TextRows number_cells = number_rows(results);
  Table times("llrrrrrr"), numbers(number_cells.front().size() == 8 ? "lrrrrrrl" : "lrrrrrr");
  for (std::vector<std::string>& row : time_rows(results)) times.add(std::move(row));
  for (std::vector<std::string>& row : number_cells) numbers.add(std::move(row));
  times.print(out);
  out << "ratio: to Eigen's images/s; memory: weights, gradients, optimizer, operands of a "
         "step\n\n";
  numbers.print(out);
  out << "loss: mean of the last steps; underflow: gradients stored as zero that are none;\n"
         "from fp32: |w - w32| / |w32|\n";
}

nlohmann::ordered_json to_json(const std::vector<TrainResult>& results) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Row& row : rows_of(results)) {
    const TrainResult& r = *row.run;
    const auto number = [](const std::optional<double>& x) {
      return x ? nlohmann::ordered_json(*x) : nlohmann::ordered_json(nullptr);
    };
    nlohmann::ordered_json j = {
        {"recipe", r.recipe},
        {"title", r.title},
        {"unit", r.unit},
        {"steps", r.log.size()},
        {"complete", r.complete},
        {"accuracy", number(r.complete ? std::optional(r.test.accuracy) : std::nullopt)},
        {"test_loss", number(r.complete ? std::optional(r.test.loss) : std::nullopt)},
        {"loss", row.last_loss},
        {"gradients", row.gradients.numbers},
        {"underflow", row.gradients.underflow},
        {"overflow", row.gradients.overflow},
        {"skipped", row.skipped},
        {"scale", number(row.scale)},
        {"distance_from_fp32", number(row.distance)},
        {"images_per_second", number(row.rate)},
        {"ratio_to_eigen", number(row.ratio)},
        {"seconds", number(row.rate ? std::optional(r.seconds) : std::nullopt)},
        {"ended_by_scaler", r.ended}};
    j["memory_bytes"] = r.memory ? nlohmann::ordered_json(*r.memory) : nlohmann::ordered_json();
    j["weights_hash"] = experiments::fingerprint_text(r.weights_hash);
    all.push_back(std::move(j));
  }
  return {{"training", all}};
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
