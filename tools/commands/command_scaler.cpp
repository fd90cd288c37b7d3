#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/scaling/loss_scaler.hpp"
#include "formats/files/mapped_file.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parameter_error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/words_option.hpp"
#include "tools/plot/picture_file.hpp"
#include "tools/scaler/scaler_log.hpp"
#include "tools/scaler/scaler_picture.hpp"
#include "tools/scaler/scaler_replay.hpp"

namespace guardbit::tools {

using experiments::LossScaler;
using experiments::ScalerRules;
using nlohmann::ordered_json;

namespace {

struct ScalerOptions {
  std::vector<std::string> words;
  std::vector<std::string> columns;
  std::string pattern;
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
  bool compare = false;
  PlotOptions plot;
  bool json = false;
};

std::string preset_names() {
  std::string names;
  for (const ScalerRules& rules : experiments::scaler_presets)
    names += (names.empty() ? "" : ", ") + std::string(rules.name);
  return names;
}

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

void set_factors(ScalerRules& rules, const ScalerOptions& options) {
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
ScalerRules rules_of(const std::string& preset, const ScalerOptions& options) {
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

LossScaler scaler_of(const ScalerRules& rules, const ScalerOptions& options) {
  LossScaler scaler(rules);
  if (options.growth_tracker < 0) throw formats::Error("--growth-tracker", "below zero");
  scaler.set_run(options.growth_tracker);
  if (options.forgiven_left) scaler.set_forgiven_left(*options.forgiven_left);
  return scaler;
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

/// What the log states of the scaler's parameters, where no option does.
void take_parameters(ScalerOptions& options, const ScalerLog& log) {
  for (const auto& [name, value] : log.parameters) {
    if (name == "growth_factor" && !options.growth_factor) options.growth_factor = value;
    if (name == "backoff_factor" && !options.backoff_factor) options.backoff_factor = value;
    if (name == "growth_interval" && !options.growth_interval && value == std::floor(value) &&
        value >= 1 && value < 0x1p53)
      options.growth_interval = static_cast<std::int64_t>(value);
  }
}

/// The least growth interval with which the scaler has all scales of the log, if there is one.
std::optional<std::int64_t> fitting_interval(const ScalerRules& rules, const ScalerOptions& options,
                                             const ScalerLog& log) {
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
void fit_forgiven(ScalerOptions& options, const ScalerRules& rules, const ScalerLog& log,
                  Replay& replay) {
  for (int left = rules.hysteresis - 2; left >= 0; --left) {
    ScalerOptions tried = options;
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

void draw(const ScalerOptions& options, const std::vector<Replay>& replays) {
  if (options.plot.asked())
    write_picture(options.plot.path, chart(scale_figure(replays), options.plot.chart()));
}

/// Returns the exit status.
int print(const ScalerOptions& options, const Replay& replay) {
  constexpr int status_differs = 1;
  draw(options, {replay});
  if (options.json) {
    print_json(to_json(replay));
  } else {
    print_replay(std::cout, replay);
  }
  return replay.differs() ? status_differs : 0;
}

/// A column's title as one word.
std::string column_word(std::string_view title) {
  std::string word(title);
  std::replace(word.begin(), word.end(), ' ', '_');
  return word;
}

/// The same steps through every preset; `replay_with` makes one.
template <class ReplayWith>
int compare(const ScalerOptions& options, ReplayWith replay_with) {
  std::vector<Replay> replays;
  for (const ScalerRules& preset : experiments::scaler_presets) {
    ScalerOptions own = options;
    // What a preset cannot take stays as it is.
    if (preset.fixed_factor) own.growth_factor.reset();
    if (preset.divides) own.backoff_factor.reset();
    replays.push_back(replay_with(scaler_of(rules_of(std::string(preset.name), own), own)));
  }
  draw(options, replays);
  if (options.json) {
    ordered_json document = {{"scalers", ordered_json::array()}};
    for (const Replay& replay : replays) document["scalers"].push_back(to_json(replay));
    print_json(document);
  } else {
    print_comparison(std::cout, replays);
  }
  return 0;
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

int run_log(ScalerOptions options) {
  if (options.compare)
    throw formats::Error("--compare",
                         "a log says what overflowed at its own scales only; give a trace");
  const ScalerLog log =
      read_scaler_log(options.words.front(), options.mode, named_columns(options.columns));
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
  return print(options, replay);
}

int run_replay(const CLI::App& command, const ScalerOptions& options) {
  options.plot.require_valid();
  if (is_log(options.words.front())) {
    refuse_unread(command, {"--from", "--format"}, "of a trace");
    if (options.words.size() > 1) throw formats::Error("scaler replay", "one log at a time");
    return run_log(options);
  }
  if (!options.columns.empty())
    throw formats::Error("--column", "names a column of a log, not of a trace");
  if (!options.mode.empty())
    throw formats::Error("--mode", "chooses a run of a log, not of a trace");
  formats::FormatOverrides overrides;
  if (!options.from.empty()) overrides.any = require_element_format(options.from, "--from");
  const formats::Format to = require_element_format(options.format, "--format");
  const std::vector<TracedStep> steps = traced_steps(options.words, overrides);
  const auto replay_with = [&](const LossScaler& scaler) {
    return replay_trace(scaler, steps, to, options.alarm_skips);
  };
  if (options.compare) return compare(options, replay_with);
  return print(options, replay_with(scaler_of(rules_of(options.preset, options), options)));
}

void run_schedule(const ScalerOptions& options) {
  options.plot.require_valid();
  const std::vector<bool> overflows = parse_pattern(options.pattern);
  const auto replay_with = [&](const LossScaler& scaler) {
    return replay_pattern(scaler, overflows, options.alarm_skips);
  };
  if (options.compare) {
    compare(options, replay_with);
  } else {
    print(options, replay_with(scaler_of(rules_of(options.preset, options), options)));
  }
}

void run_presets(bool as_json) {
  const Columns<ScalerRules> columns =
      columns_of_rules() +
      Columns<ScalerRules>{
          {"source", "read in", Side::left, [](const ScalerRules& r) { return r.source; }, {}, 2}};
  if (as_json) {
    const ordered_json document = {{"presets", columns.json_list(experiments::scaler_presets)}};
    print_json(document);
  } else {
    columns.print(std::cout, experiments::scaler_presets);
  }
}

void add_scaler_options(CLI::App& command, ScalerOptions& options) {
  std::string names = preset_names();
  std::erase(names, ' ');
  command.add_option("--preset", options.preset, "Whose scaler (default pytorch)")
      ->type_name("{" + names + "}");
  command.add_option("--init-scale", options.init_scale, "First scale, as 65536 or 2^16")
      ->type_name("SCALE");
  command.add_option("--growth-factor", options.growth_factor, "Factor of growth")
      ->type_name("FACTOR");
  command
      .add_option("--backoff-factor,--backoff", options.backoff_factor, "Factor after an overflow")
      ->type_name("FACTOR");
  command.add_option("--growth-interval", options.growth_interval, "Clean steps before growth")
      ->type_name("N");
  command
      .add_option("--growth-tracker", options.growth_tracker,
                  "Clean steps already counted at the start, as a checkpoint has them")
      ->type_name("N");
  command
      .add_option("--growth-test", options.growth_test,
                  "Which clean step grows the scale, where versions differ")
      ->type_name(type_of_words<experiments::GrowthTest>());
  command
      .add_option("--hysteresis", options.hysteresis,
                  "The overflow from which on every one lowers the scale")
      ->type_name("N");
  command.add_flag("--consecutive-hysteresis", options.consecutive_hysteresis,
                   "A clean step forgets overflows (DeepSpeed's flag)");
  command.add_option("--min-scale", options.min_scale, "Floor of the scale")->type_name("SCALE");
  command.add_option("--max-scale", options.max_scale, "Ceiling of the scale")->type_name("SCALE");
  command
      .add_option("--alarm-skips", options.alarm_skips,
                  "Skipped steps in a row that raise an alarm (default 4)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000));
  command.add_flag("--compare", options.compare, "All presets side by side");
  add_plot_options(command, options.plot, "Draw the scale by step into this file");
  command.add_flag("--json", options.json, "Print JSON");
}

}  // namespace

void add_scaler(CLI::App& app, int& status) {
  CLI::App* scaler = app.add_subcommand("scaler", "Dynamic loss scalers, step by step");
  scaler->require_subcommand(1);
  scaler->footer("Example: guardbit scaler replay --preset pytorch run.json");
  const auto options = std::make_shared<ScalerOptions>();

  CLI::App* replay =
      scaler->add_subcommand("replay", "What a scaler does of a recorded log or of a trace");
  replay
      ->add_option(
          "LOG", options->words,
          "A log (.json, .jsonl, .csv, .tsv, .txt, .log) with rows step, loss, scale, overflow, scale after, or of the scale alone, as wandb exports it; what Megatron-LM prints; an event file of TensorBoard; or a trace, as 'guardbit trace' reads it")
      ->type_name("FILE")
      ->required();
  replay->add_option("--mode", options->mode, "Which run of a log that holds several")
      ->type_name("RUN");
  replay
      ->add_option("--column", options->columns,
                   "What a column of the log is: step, loss, scale, overflow or scale_after = NAME")
      ->type_name("COLUMN=NAME")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  replay
      ->add_option("--from", options->from, "The format of a trace, where its files do not say it")
      ->type_name("FORMAT");
  replay
      ->add_option("--format", options->format,
                   "What gradients of a trace are stored in (default fp16)")
      ->type_name("FORMAT");
  add_scaler_options(*replay, *options);
  replay->footer(
      "Example: guardbit scaler replay --preset pytorch --growth-interval 25 log.json --mode amp\n"
      "         guardbit scaler replay wandb.csv --column 'scale=run 7 - train/scaler'\n"
      "         guardbit scaler replay --compare --init-scale 2^24 gradients.npz\n"
      "         guardbit scaler replay log.json --mode amp --plot scale.pdf --range 256:131072\n"
      "The exit status is 1 where a scale of the log is not reproduced.\n"
      "Of a log the first scale is the log's own unless --init-scale says another.");
  replay->callback([options, replay, &status] { status = run_replay(*replay, *options); });

  CLI::App* schedule = scaler->add_subcommand("schedule", "What a scaler does of given overflows");
  schedule
      ->add_option("PATTERN", options->pattern,
                   "clean and overflow, each with *N for N steps, and commas between")
      ->type_name("PATTERN")
      ->required();
  add_scaler_options(*schedule, *options);
  schedule->footer(
      "Example: guardbit scaler schedule --preset apex 'clean*2000,overflow*3'\n"
      "Example: guardbit scaler schedule --compare 'overflow*30' --plot scales.svg");
  schedule->callback([options] { run_schedule(*options); });

  CLI::App* presets = scaler->add_subcommand("presets", "The scalers that are known");
  presets->add_flag("--json", options->json, "Print JSON");
  presets->footer("Example: guardbit scaler presets");
  presets->callback([options] { run_presets(options->json); });
}

}  // namespace guardbit::tools
