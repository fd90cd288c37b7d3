#include "tools/train/train_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "formats/files/atomic_output.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "tools/console/elapsed.hpp"
#include "tools/console/terminal.hpp"
#include "tools/train/train_log.hpp"

namespace guardbit::tools {

namespace {

namespace training = experiments::training;
using Clock = std::chrono::steady_clock;
using formats::Error;
using training::StepRecord;

/// One recipe's folder.
class Files {
 public:
  Files(std::string folder, std::string deciding)
      : folder_(std::move(folder)), deciding_(std::move(deciding)) {
    if (folder_.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) throw Error(formats::printable(folder_), "cannot make this folder");
  }

  bool has_checkpoint() const {
    std::error_code ignored;
    return !folder_.empty() && std::filesystem::exists(checkpoint(), ignored);
  }
  std::vector<StepRecord> resume(training::Trainer& trainer) const {
    const formats::TensorFile file = formats::read_safetensors(checkpoint());
    const auto settings = file.metadata.find("settings");
    if (settings == file.metadata.end() || settings->second != deciding_)
      throw Error(formats::printable(checkpoint()),
                  "was made with other settings; --fresh begins anew");
    trainer.restore(file, formats::printable(checkpoint()));
    return read_log(folder_ + "/log.csv", trainer.steps());
  }

  /// The log first: it may be ahead of the checkpoint, never behind.
  void keep(training::Trainer& trainer, const std::vector<StepRecord>& log) const {
    if (folder_.empty()) return;
    formats::write_file(folder_ + "/log.csv", log_text(log));
    formats::TensorFile file = trainer.checkpoint();
    file.metadata["settings"] = deciding_;
    formats::write_safetensors(checkpoint(), file.metadata, file.tensors);
  }

  bool exist() const { return !folder_.empty(); }
  void write_trace(const StepRecord& record, const std::vector<formats::Tensor>& tensors) const {
    std::error_code error;
    std::filesystem::create_directories(folder_ + "/trace", error);
    std::array<char, 40> name{};
    std::snprintf(name.data(), name.size(), "/trace/step%08lld.safetensors",
                  static_cast<long long>(record.step));
    std::array<char, 40> scale{};
    std::snprintf(scale.data(), scale.size(), "%.17g", record.scale);
    formats::write_safetensors(
        folder_ + name.data(),
        {{"step", std::to_string(record.step)}, {"loss_scale", scale.data()}}, tensors);
  }

 private:
  std::string checkpoint() const { return folder_ + "/checkpoint.safetensors"; }

  std::string folder_, deciding_;
};

/// What the layers tell of a step, but activations.
class TraceCollector {
 public:
  void begin(training::Context& context) {
    context.trace = [this](const std::string& name, std::string_view role,
                           const training::Tensor& tensor) {
      if (role == "act") return;
      const std::string full = name + "." + std::string(role);
      for (const formats::Tensor& other : tensors_)
        if (other.name == full) return;  // attention's heads: the first sequence's
      const auto bytes =
          std::make_shared<std::vector<std::byte>>(tensor.values.size() * sizeof(float));
      std::memcpy(bytes->data(), tensor.values.data(), bytes->size());
      formats::Tensor copy;
      copy.name = full;
      copy.format = formats::fp32;
      copy.shape = tensor.shape;
      copy.bytes = *bytes;
      copy.owner = bytes;
      tensors_.push_back(std::move(copy));
    };
  }
  std::vector<formats::Tensor> end(training::Context& context) {
    context.trace = {};
    return std::exchange(tensors_, {});
  }

 private:
  std::vector<formats::Tensor> tensors_;
};

/// Says how far a run is, ten times a second at most.
class Progress {
 public:
  Progress(std::string recipe, std::int64_t first, std::int64_t total)
      : recipe_(std::move(recipe)), first_(first), total_(total) {}

  void show(const StepRecord& record, std::int64_t skips, bool has_scale) {
    const auto now = Clock::now();
    if (std::chrono::duration<double>(now - shown_).count() < 0.1) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double rate = static_cast<double>((record.step - first_) * record.rows) / seconds;
    std::array<char, 200> text{};
    std::snprintf(text.data(), text.size(), "%s  step %lld/%lld  loss %.4f", recipe_.c_str(),
                  static_cast<long long>(record.step), static_cast<long long>(total_),
                  static_cast<double>(record.loss));
    std::string label = text.data();
    if (has_scale) {
      std::snprintf(text.data(), text.size(), "  scale %g  skipped %lld", record.scale,
                    static_cast<long long>(skips));
      label += text.data();
    }
    std::snprintf(text.data(), text.size(), "  %.0f/s", rate);
    line_.emplace(label + text.data(), static_cast<std::size_t>(total_));
    line_->update(static_cast<std::size_t>(record.step));
  }

  /// Leaves a line about the epoch that the log ends with, on a terminal.
  void end_epoch(const std::vector<StepRecord>& log, std::size_t steps) {
    line_.reset();
    if (isatty(STDERR_FILENO) == 0 || log.size() < steps) return;
    double loss = 0;
    std::int64_t correct = 0, rows = 0, skips = 0;
    for (std::size_t i = log.size() - steps; i < log.size(); ++i) {
      loss += static_cast<double>(log[i].loss) / static_cast<double>(steps);
      correct += log[i].correct;
      rows += log[i].rows;
      skips += log[i].skipped ? 1 : 0;
    }
    const double seconds = seconds_since(start_);
    std::fprintf(stderr, "%s  epoch %lld/%lld  loss %.4f  training accuracy %.2f%%",
                 recipe_.c_str(), static_cast<long long>(log.size() / steps),
                 static_cast<long long>((total_ + static_cast<std::int64_t>(steps) - 1) /
                                        static_cast<std::int64_t>(steps)),
                 loss, 100.0 * static_cast<double>(correct) / static_cast<double>(rows));
    if (skips != 0) std::fprintf(stderr, "  skipped %lld", static_cast<long long>(skips));
    std::fprintf(stderr, "  %.0f s\n", seconds);
  }

 private:
  std::string recipe_;
  std::int64_t first_, total_;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
  std::optional<ProgressLine> line_;
};

std::string unit_text(const training::PrecisionRecipe& recipe) {
  if (recipe.eigen) return "Eigen";
  return recipe.plans.front().unit.arch;
}

std::string engine_text(const training::Context& context) {
  std::string text;
  for (const training::Pass pass :
       {training::Pass::forward, training::Pass::input_gradient, training::Pass::weight_gradient}) {
    const std::string name(context.product_of(pass).engine());
    if (text.find(name) == std::string::npos) text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

}  // namespace

namespace {

/// The recipe begins where an earlier one ends, which is not there yet.
bool must_wait(const TrainConfig& config, const training::PrecisionRecipe& recipe,
               const std::vector<TrainResult>& earlier) {
  return recipe.quantisation && std::ranges::any_of(earlier, [&](const TrainResult& r) {
           return r.recipe == config.quantisation.from && !r.complete;
         });
}

/// Puts weights of an earlier recipe or a file into the trainer; says which they were.
std::string start_weights(const TrainConfig& config, const std::vector<TrainResult>& earlier,
                          training::Trainer& trainer) {
  const std::string& from = config.quantisation.from;
  if (from.empty()) return "";
  const auto found = std::ranges::find(earlier, from, &TrainResult::recipe);
  if (found != earlier.end()) {
    trainer.start_from(found->weights, from);
  } else {
    std::error_code error;
    if (!std::filesystem::exists(from, error))
      throw Error("[quantisation]",
                  "from: " + formats::in_quotes(from) +
                      " is no checkpoint, and no recipe that was trained before it");
    trainer.start_from(formats::read_safetensors(from), formats::printable(from));
  }
  return ", weights " + std::to_string(trainer.weights_hash());
}

/// The configuration beside what it gives, for who reads it later.
void keep_config(const TrainConfig& config, const std::string& folder) {
  if (folder.empty()) return;
  formats::write_file(folder + "/config.toml", config.source);
}

}  // namespace

TrainResult train_with(const TrainConfig& config, const training::Dataset& data,
                       const training::PrecisionRecipe& recipe,
                       const std::vector<TrainResult>& earlier, const TrainOptions& options,
                       const Interruption& interruption) {
  training::TrainingRules rules{config.model, config.optimizer, recipe, config.batch, config.seed};
  training::Trainer trainer(rules, data.training, options.threads,
                            formats::printable(options.config));
  TrainResult result;
  result.recipe = recipe.name;
  result.title = recipe.title;
  result.unit = unit_text(recipe);
  result.engine = engine_text(trainer.context());
  if (must_wait(config, recipe, earlier)) return result;
  std::string deciding = config.text;
  if (recipe.quantisation)
    deciding += "\n" + config.quantisation.text + start_weights(config, earlier, trainer);
  const Files files(options.folder.empty() ? "" : options.folder + "/" + recipe.name, deciding);
  if (files.has_checkpoint() && !options.fresh) result.log = files.resume(trainer);
  keep_config(config, options.folder);
  const std::int64_t total =
      config.steps != 0 ? config.steps : config.epochs * trainer.steps_per_epoch();
  const std::int64_t first = trainer.steps();
  std::int64_t skips = 0;
  for (const StepRecord& record : result.log) skips += record.skipped ? 1 : 0;
  Progress progress(recipe.name, first, total);
  TraceCollector collector;
  const auto start = Clock::now();
  const auto is_over = [&] {
    const bool stops = options.stop_after != 0 && trainer.steps() - first >= options.stop_after;
    return trainer.steps() >= total || trainer.has_ended() || stops || interruption.asked_for();
  };
  while (!is_over()) {
    const bool traces =
        files.exist() && config.trace_every != 0 && (trainer.steps() + 1) % config.trace_every == 0;
    if (traces) collector.begin(trainer.context());
    result.log.push_back(trainer.step());
    const StepRecord& record = result.log.back();
    if (traces) files.write_trace(record, collector.end(trainer.context()));
    skips += record.skipped ? 1 : 0;
    result.images += config.batch;
    progress.show(record, skips, trainer.scale().has_value());
    if (trainer.steps() % trainer.steps_per_epoch() == 0)
      progress.end_epoch(result.log, static_cast<std::size_t>(trainer.steps_per_epoch()));
    if (trainer.steps() % config.checkpoint_every == 0) files.keep(trainer, result.log);
  }
  result.seconds = seconds_since(start);
  if (trainer.steps() != first) files.keep(trainer, result.log);
  result.ended = trainer.has_ended();
  result.complete = trainer.steps() >= total || result.ended;
  result.weights_hash = trainer.weights_hash();
  result.memory = trainer.memory();
  result.weights = trainer.checkpoint();
  if (result.complete)
    result.test = trainer.evaluate(data.test, [&] { return interruption.asked_for(); });
  return result;
}

}  // namespace guardbit::tools
