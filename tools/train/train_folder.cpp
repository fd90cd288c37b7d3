#include "tools/train/train_folder.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/files/mapped_file.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/console/read_json.hpp"
#include "tools/plot/chart.hpp"
#include "tools/products/verify_report.hpp"
#include "tools/train/train_log.hpp"
#include "tools/train/train_report.hpp"

namespace guardbit::tools {

namespace {

namespace files = std::filesystem;
using experiments::Curve;
using experiments::Figure;
using experiments::Look;
using experiments::training::Role;
using experiments::training::StepRecord;
using nlohmann::json;

std::string text_of(const std::string& path) {
  const formats::MappedFile file = formats::map_file(path);
  return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
}

bool is_training(const files::path& folder) {
  std::error_code error;
  if (!files::is_regular_file(folder / "config.toml", error)) return false;
  files::directory_iterator at(folder, error);
  for (; !error && at != files::directory_iterator(); at.increment(error))
    if (files::is_regular_file(at->path() / "log.csv", error)) return true;
  return false;
}

/// Recipes with a log: in the order of results.json, the others by their names.
std::vector<std::string> recipes_of(const std::string& path, const json& entries) {
  std::vector<std::string> recipes, others;
  for (const json& entry : entries) recipes.push_back(entry.at("recipe").get<std::string>());
  std::error_code error;
  files::directory_iterator at(path, error);
  for (; !error && at != files::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (files::is_regular_file(at->path() / "log.csv", error) &&
        std::ranges::find(recipes, name) == recipes.end())
      others.push_back(name);
  }
  std::ranges::sort(others);
  recipes.insert(recipes.end(), others.begin(), others.end());
  return recipes;
}

/// The hash that a checkpoint keeps; 0 without one.
std::uint64_t weights_hash_of(const formats::TensorFile& checkpoint) {
  const auto found = checkpoint.metadata.find("weights_hash");
  return found == checkpoint.metadata.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 10);
}

/// What results.json says of a recipe whose log is as long as it was then.
void take(const json& entry, TrainResult& result) {
  result.title = entry.at("title").get<std::string>();
  result.unit = entry.at("unit").get<std::string>();
  result.engine = entry.value("engine", std::string());
  if (entry.at("steps").get<std::size_t>() != result.log.size() ||
      !entry.at("complete").get<bool>())
    return;
  result.complete = true;
  result.ended = entry.at("ended_by_scaler").get<bool>();
  result.test.accuracy = entry.at("accuracy").get<double>();
  result.test.loss = entry.at("test_loss").get<double>();
  if (entry.at("images_per_second").is_number()) {
    result.seconds = entry.at("seconds").get<double>();
    result.images = std::llround(entry.at("images_per_second").get<double>() * result.seconds);
  }
  if (entry.at("memory_bytes").is_number())
    result.memory = entry.at("memory_bytes").get<std::int64_t>();
}

/// A curve of `value` over the steps, each point a mean of what the steps since the last one say.
template <class Value>
Curve mean_curve(const std::string& name, const std::vector<StepRecord>& log, Value value) {
  constexpr std::size_t points = 100;
  const std::size_t every = std::max<std::size_t>(1, (log.size() + points - 1) / points);
  Curve curve{name};
  for (std::size_t begin = 0; begin + every <= log.size(); begin += every) {
    double sum = 0;
    for (std::size_t i = begin; i < begin + every; ++i) sum += value(i);
    curve.add(static_cast<double>(begin + every), sum / static_cast<double>(every));
  }
  return curve;
}

bool has_scale(const TrainResult& r) {
  return std::ranges::any_of(r.log, [](const StepRecord& s) { return s.scale != 1 || s.skipped; });
}

Figure scale_figure(const ReportedTraining& training) {
  Figure figure{"Loss scale", "step", "loss scale", false, true, {}};
  std::vector<Curve> skipped;
  for (const TrainResult& r : training.results) {
    // Every recipe has its curve, and so its colour, in all of the plots.
    figure.curves.push_back({r.recipe});
    if (!has_scale(r)) continue;
    Curve &scale = figure.curves.back(), skip{r.recipe + ", skipped", {}, {}, Look::points};
    scale.look = Look::steps;
    for (std::size_t i = 0; i < r.log.size(); ++i) {
      const StepRecord& s = r.log[i];
      const bool changes = i == 0 || i + 1 == r.log.size() || s.scale != r.log[i - 1].scale ||
                           s.scale != r.log[i + 1].scale;
      if (changes) scale.add(static_cast<double>(s.step), s.scale);
      if (s.skipped) skip.add(static_cast<double>(s.step), s.scale);
    }
    if (!skip.x.empty()) skipped.push_back(std::move(skip));
  }
  figure.curves.insert(figure.curves.end(), skipped.begin(), skipped.end());
  return figure;
}

Figure underflow_figure(const ReportedTraining& training) {
  Figure figure{
      "Gradients stored as zero that are none", "step", "share of gradients (%)", false, true, {}};
  for (const TrainResult& r : training.results) {
    Curve curve = mean_curve(r.recipe, r.log, [&](std::size_t i) {
      const auto& g = r.log[i].stores.at(static_cast<std::size_t>(Role::gradient));
      return g.numbers == 0
                 ? 0.0
                 : 100 * static_cast<double>(g.underflow) / static_cast<double>(g.numbers);
    });
    figure.curves.push_back(std::move(curve));
  }
  return figure;
}

Figure distance_figure(const ReportedTraining& training) {
  Figure figure{
      "Loss apart from the FP32 run's", "step", "mean |loss - FP32's loss|", false, true, {}};
  const auto fp32 = std::ranges::find(training.results, "fp32", &TrainResult::recipe);
  if (fp32 == training.results.end()) return figure;
  for (const TrainResult& r : training.results) {
    const bool is_fp32 = &r == &*fp32;
    const std::size_t steps = is_fp32 ? 0 : std::min(r.log.size(), fp32->log.size());
    const std::vector<StepRecord> both(r.log.begin(),
                                       r.log.begin() + static_cast<std::ptrdiff_t>(steps));
    figure.curves.push_back(mean_curve(r.recipe, both, [&](std::size_t i) {
      return std::fabs(static_cast<double>(both[i].loss) - static_cast<double>(fp32->log[i].loss));
    }));
  }
  return figure;
}

}  // namespace

std::vector<std::string> training_folders(const std::string& path) {
  std::vector<std::string> folders;
  if (is_training(path)) folders.push_back(path);
  std::error_code error;
  files::recursive_directory_iterator at(path, error);
  for (; !error && at != files::recursive_directory_iterator(); at.increment(error))
    if (at->is_directory(error) && is_training(at->path())) folders.push_back(at->path().string());
  std::ranges::sort(folders);
  return folders;
}

ReportedTraining read_training(const std::string& path, const std::string& shown) {
  ReportedTraining training{path, shown, text_of(path + "/config.toml"), false, {}, {}};
  const std::string results = path + "/results.json";
  json all = json::object();
  std::error_code error;
  try {
    if (files::exists(results, error))
      all = json::parse(text_of(results), limited_depth(formats::printable(results)));
    const json entries = all.value("training", json::array());
    for (const std::string& recipe : recipes_of(path, entries)) {
      TrainResult result;
      result.recipe = result.title = recipe;
      std::string log = path, checkpoint = path;
      result.log = read_log(log.append("/").append(recipe).append("/log.csv"));
      checkpoint.append("/").append(recipe).append("/checkpoint.safetensors");
      if (files::exists(checkpoint, error)) result.weights = formats::read_safetensors(checkpoint);
      result.weights_hash = weights_hash_of(result.weights);
      for (const json& entry : entries)
        if (entry.at("recipe") == recipe) take(entry, result);
      training.results.push_back(std::move(result));
    }
    if (all.contains("integers")) training.integers = networks_of(all.at("integers"));
  } catch (const json::exception&) {
    throw formats::Error(formats::printable(results), "is damaged: no results of train");
  }
  training.is_complete = std::ranges::all_of(training.results, &TrainResult::complete);
  if (!training.is_complete) training.integers = {};
  return training;
}

std::string command_of(const ReportedTraining& training) {
  return "guardbit train " + shell_word(training.path + "/config.toml") + " -o " +
         shell_word(training.path);
}

std::vector<Figure> figures_of(const ReportedTraining& training) {
  std::vector<Figure> all = {loss_curves(training.results), scale_figure(training),
                             underflow_figure(training), distance_figure(training)};
  std::erase_if(all, [](const Figure& f) { return drawn_part(f).curves.empty(); });
  return all;
}

}  // namespace guardbit::tools
