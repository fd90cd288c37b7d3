#include "tools/scaler/replay_settings.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "experiments/scaling/loss_scaler.hpp"
#include "formats/files/mapped_file.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parameter_error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/console/counted.hpp"
#include "tools/scaler/scaler_log.hpp"

namespace guardbit::tools {

using experiments::LossScaler;
using experiments::ScalerRules;

std::string preset_names() {
  std::string names;
  for (const ScalerRules& rules : experiments::scaler_presets)
    names += (names.empty() ? "" : ", ") + std::string(rules.name);
  return names;
}

/// A log by its name, or a file of text: traces are none.
bool is_log(const std::string& word) {
  const std::string extension =
      formats::lower_case(std::filesystem::path(word).extension().string());
  if (word.find("tfevents") != std::string::npos) return true;
  for (const char* known : {".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".log"}) {
    if (extension == known) return true;
  }
  std::error_code error;
  const std::string path = formats::openable_path(word);
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream stream(path, std::ios::binary);
  std::array<char, 512> start{};
  stream.read(start.data(), start.size());
  const auto end = start.begin() + stream.gcount();
  return end != start.begin() && std::all_of(start.begin(), end, [](char c) {
           return static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\r' || c == '\t';
         });
}

std::string log_file(const std::string& word) {
  std::error_code error;
  std::vector<std::string> events;
  for (std::filesystem::directory_iterator file(word, error), end; !error && file != end;
       file.increment(error))
    if (file->path().filename().string().find("tfevents") != std::string::npos)
      events.push_back(file->path().string());
  return events.size() == 1 ? events.front() : word;
}

namespace {

/// A number, or a power of two as 2^16.
double scale_of(const std::string& option, const std::string& text) {
  const bool is_power = text.starts_with("2^");
  std::size_t read = 0;
  double value = 0;
  try {
    value = is_power ? std::exp2(std::stoi(text.substr(2), &read)) : std::stod(text, &read);
  } catch (const std::logic_error&) {
    read = std::string::npos;
  }
  if (std::signbit(value)) throw formats::Error(option, "below zero", "65536 or 2^16");
  if (read != text.size() - (is_power ? 2 : 0))
    throw formats::Error(option, formats::in_quotes(text) + " is not a scale", "65536 or 2^16");
  return value;
}

void set_factors(ScalerRules& rules, const ReplaySettings& options) {
  const std::string name(rules.name);
  if (options.growth_factor) {
    if (rules.fixed_factor && *options.growth_factor != rules.growth)
      throw formats::Error("--growth-factor", name + " always takes 2");
    rules.growth = *options.growth_factor;
  }
  if (!options.backoff_factor) return;
  if (rules.divides && *options.backoff_factor != 1 / rules.growth)
    throw formats::Error("--backoff-factor", name + " divides by the growth factor");
  rules.backoff = *options.backoff_factor;
}

/// The option for each field of the rules that one sets.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> options_by_field = {{
    {"initial", "--init-scale"},
    {"growth", "--growth-factor"},
    {"backoff", "--backoff-factor"},
    {"interval", "--growth-interval"},
    {"hysteresis", "--hysteresis"},
    {"floor", "--min-scale"},
    {"ceiling", "--max-scale"},
}};

/// Errors of the rules name options, here and nowhere else.
void require_valid(const ScalerRules& rules) {
  try {
    experiments::check(rules);
  } catch (const formats::ParameterError& error) {
    for (const auto& [field, option] : options_by_field)
      if (field == error.parameter()) throw formats::Error(std::string(option), error.problem());
    throw;
  }
}

/// The preset with what the options say instead.
ScalerRules rules_of(const std::string& preset, const ReplaySettings& options) {
  auto rules = experiments::find_scaler(preset);
  if (!rules) {
    std::vector<std::string_view> names;
    names.reserve(experiments::scaler_presets.size());
    for (const ScalerRules& known : experiments::scaler_presets) names.push_back(known.name);
    throw formats::Error("--preset", formats::unknown_name("scaler", preset, names),
                         preset_names());
  }
  if (options.init_scale) rules->initial = scale_of("--init-scale", *options.init_scale);
  set_factors(*rules, options);
  if (options.growth_interval) rules->interval = *options.growth_interval;
  if (options.hysteresis) rules->hysteresis = *options.hysteresis;
  if (options.consecutive_hysteresis) rules->clean_step_refills = true;
  if (options.min_scale) rules->floor = scale_of("--min-scale", *options.min_scale);
  if (options.max_scale) {
    rules->ceiling_rule = experiments::Ceiling::clamp;
    rules->ceiling = scale_of("--max-scale", *options.max_scale);
  }
  if (!options.growth_test.empty()) {
    const auto found = formats::find_word<experiments::GrowthTest>(options.growth_test);
    if (!found)
      throw formats::Error("--growth-test", formats::in_quotes(options.growth_test) + " is none",
                           formats::list_of_words<experiments::GrowthTest>());
    rules->growth_test = *found;
  }
  require_valid(*rules);
  return *rules;
}

LossScaler scaler_of(const ScalerRules& rules, const ReplaySettings& options) {
  LossScaler scaler(rules);
  if (options.growth_tracker < 0) throw formats::Error("--growth-tracker", "below zero");
  scaler.set_run(options.growth_tracker);
  if (options.forgiven_left) scaler.set_forgiven_left(*options.forgiven_left);
  return scaler;
}

/// What the log states of the scaler's parameters, where no option does.
void take_parameters(ReplaySettings& options, const ScalerLog& log) {
  for (const auto& [name, value] : log.parameters) {
    if (name == "growth_factor" && !options.growth_factor) options.growth_factor = value;
    if (name == "backoff_factor" && !options.backoff_factor) options.backoff_factor = value;
    if (name == "growth_interval" && !options.growth_interval && value == std::floor(value) &&
        value >= 1 && value < 0x1p53)
      options.growth_interval = static_cast<std::int64_t>(value);
  }
}

/// The least growth interval with which the scaler has all scales of the log, if there is one.
std::optional<std::int64_t> fitting_interval(const ScalerRules& rules,
                                             const ReplaySettings& options, const ScalerLog& log) {
  // Growth ends a run, so an interval is no longer than the log; all longer ones behave alike.
  ScalerRules tried = rules;
  for (const ScalerLogRow& row : log.rows) {
    tried.interval = static_cast<std::int64_t>(&row - log.rows.data()) + 1;
    if (tried.interval > 20000) break;
    LossScaler scaler = scaler_of(tried, options);
    bool fits = true;
    for (const ScalerLogRow& step : log.rows) {
      fits = !step.is_scale_stated || scaler.scale() == step.scale;
      if (!fits) break;
      scaler.update(step.overflow);
    }
    if (fits) return tried.interval;
  }
  return std::nullopt;
}

/// Replays with the overflows that came before the log, if some number of these gives its scales.
void fit_forgiven(ReplaySettings& options, const ScalerRules& rules, const ScalerLog& log,
                  Replay& replay) {
  for (int left = rules.hysteresis - 2; left >= 0; --left) {
    ReplaySettings tried = options;
    tried.forgiven_left = left;
    Replay again = replay_log(scaler_of(rules, tried), log, options.alarm_skips);
    if (again.first_difference()) continue;
    options = tried;
    replay = std::move(again);
    const int used = rules.hysteresis - 1 - left;
    replay.remarks.push_back("hysteresis had forgiven " + counted(used, "overflow") +
                             " before the log's first step, as its scales show");
    return;
  }
}

/// A column's title as one word.
std::string column_word(std::string_view title) {
  std::string word(title);
  std::replace(word.begin(), word.end(), ' ', '_');
  return word;
}

NamedColumns named_columns(const std::vector<std::string>& words) {
  NamedColumns named;
  std::string valid;
  for (const std::string_view title : scaler_column_titles)
    valid += (valid.empty() ? "" : ", ") + column_word(title) + "=NAME";
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const auto title = std::find_if(
        scaler_column_titles.begin(), scaler_column_titles.end(),
        [&](std::string_view known) { return column_word(known) == word.substr(0, equals); });
    if (equals == std::string::npos || title == scaler_column_titles.end())
      throw formats::Error("--column", formats::in_quotes(word) + " names none", valid);
    named[ScalerColumn(title - scaler_column_titles.begin())] = word.substr(equals + 1);
  }
  return named;
}

/// The same steps through the preset that is named.
template <class ReplayWith>
Replay replayed(const ReplaySettings& settings, ReplayWith replay_with) {
  return replay_with(scaler_of(rules_of(settings.preset, settings), settings));
}

/// The same steps through every preset.
template <class ReplayWith>
std::vector<Replay> replayed_by_all(const ReplaySettings& settings, ReplayWith replay_with) {
  std::vector<Replay> replays;
  for (const ScalerRules& preset : experiments::scaler_presets) {
    ReplaySettings own = settings;
    // What a preset cannot take stays as it is.
    if (preset.fixed_factor) own.growth_factor.reset();
    if (preset.divides) own.backoff_factor.reset();
    replays.push_back(replay_with(scaler_of(rules_of(std::string(preset.name), own), own)));
  }
  return replays;
}

/// What replays the steps of a trace by a scaler.
auto replay_by_trace(const std::vector<std::string>& words, const ReplaySettings& settings) {
  if (!settings.columns.empty())
    throw formats::Error("--column", "names a column of a log, not of a trace");
  if (!settings.mode.empty())
    throw formats::Error("--mode", "chooses a run of a log, not of a trace");
  formats::FormatOverrides overrides;
  if (!settings.from.empty()) overrides.any = require_element_format(settings.from, "--from");
  const formats::Format to = require_element_format(settings.format, "--format");
  return [steps = traced_steps(words, overrides), to, alarm = settings.alarm_skips](
             const LossScaler& scaler) { return replay_trace(scaler, steps, to, alarm); };
}

auto replay_by_pattern(const std::string& pattern, const ReplaySettings& settings) {
  return [overflows = parse_pattern(pattern), alarm = settings.alarm_skips](
             const LossScaler& scaler) { return replay_pattern(scaler, overflows, alarm); };
}

}  // namespace

Replay replay_of_log(const std::string& file, ReplaySettings options) {
  const ScalerLog log = read_scaler_log(file, options.mode, named_columns(options.columns));
  take_parameters(options, log);
  ScalerRules rules = rules_of(options.preset, options);
  // A log begins somewhere: usually, but not always, where the preset does.
  if (!options.init_scale) {
    rules.initial = log.rows.front().scale;
    require_valid(rules);
  }
  Replay replay = replay_log(scaler_of(rules, options), log, options.alarm_skips);
  if (replay.first_difference() && log.may_begin_after_overflow)
    fit_forgiven(options, rules, log, replay);
  if (replay.first_difference() && !options.growth_interval) {
    const std::int64_t usual = rules.interval;
    if (const auto interval = fitting_interval(rules, options, log)) {
      rules.interval = *interval;
      replay = replay_log(scaler_of(rules, options), log, options.alarm_skips);
      replay.remarks.push_back(
          "the growth interval follows from the log's scales: " + std::to_string(*interval) +
          " has them all, the preset's " + std::to_string(usual) + " has not");
    }
  }
  return replay;
}

Replay replay_of_trace(const std::vector<std::string>& words, const ReplaySettings& settings) {
  return replayed(settings, replay_by_trace(words, settings));
}

std::vector<Replay> replays_of_trace(const std::vector<std::string>& words,
                                     const ReplaySettings& settings) {
  return replayed_by_all(settings, replay_by_trace(words, settings));
}

Replay replay_of_pattern(const std::string& pattern, const ReplaySettings& settings) {
  return replayed(settings, replay_by_pattern(pattern, settings));
}

std::vector<Replay> replays_of_pattern(const std::string& pattern, const ReplaySettings& settings) {
  return replayed_by_all(settings, replay_by_pattern(pattern, settings));
}

}  // namespace guardbit::tools
