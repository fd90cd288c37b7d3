#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/scaling/loss_scaler.hpp"
#include "formats/support/error.hpp"
#include "formats/support/words.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/words_option.hpp"
#include "tools/plot/picture_file.hpp"
#include "tools/scaler/replay_settings.hpp"
#include "tools/scaler/scaler_picture.hpp"
#include "tools/scaler/scaler_replay.hpp"

namespace guardbit::tools {

using experiments::ScalerRules;
using nlohmann::ordered_json;

namespace {

struct ScalerOptions {
  std::vector<std::string> words;
  std::string pattern;
  ReplaySettings how;
  bool compare = false;
  PlotOptions plot;
  bool json = false;
};

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

/// All presets side by side.
int print_all(const ScalerOptions& options, const std::vector<Replay>& replays) {
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

int run_replay(const CLI::App& command, const ScalerOptions& options) {
  options.plot.require_valid();
  const std::string log = log_file(options.words.front());
  if (is_log(log)) {
    refuse_unread(command, {"--from", "--format"}, "of a trace");
    if (options.words.size() > 1) throw formats::Error("scaler replay", "one log at a time");
    if (options.compare)
      throw formats::Error("--compare",
                           "a log says what overflowed at its own scales only; give a trace");
    return print(options, replay_of_log(log, options.how));
  }
  if (options.compare) return print_all(options, replays_of_trace(options.words, options.how));
  return print(options, replay_of_trace(options.words, options.how));
}

void run_schedule(const ScalerOptions& options) {
  options.plot.require_valid();
  if (options.compare) {
    print_all(options, replays_of_pattern(options.pattern, options.how));
  } else {
    print(options, replay_of_pattern(options.pattern, options.how));
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
  command.add_option("--preset", options.how.preset, "Whose scaler (default pytorch)")
      ->type_name("{" + names + "}");
  command.add_option("--init-scale", options.how.init_scale, "First scale, as 65536 or 2^16")
      ->type_name("SCALE");
  command.add_option("--growth-factor", options.how.growth_factor, "Factor of growth")
      ->type_name("FACTOR");
  command
      .add_option("--backoff-factor,--backoff", options.how.backoff_factor,
                  "Factor after an overflow")
      ->type_name("FACTOR");
  command.add_option("--growth-interval", options.how.growth_interval, "Clean steps before growth")
      ->type_name("N");
  command
      .add_option("--growth-tracker", options.how.growth_tracker,
                  "Clean steps already counted at the start, as a checkpoint has them")
      ->type_name("N");
  command
      .add_option("--growth-test", options.how.growth_test,
                  "Which clean step grows the scale, where versions differ")
      ->type_name(type_of_words<experiments::GrowthTest>());
  command
      .add_option("--hysteresis", options.how.hysteresis,
                  "The overflow from which on every one lowers the scale")
      ->type_name("N");
  command.add_flag("--consecutive-hysteresis", options.how.consecutive_hysteresis,
                   "A clean step forgets overflows (DeepSpeed's flag)");
  command.add_option("--min-scale", options.how.min_scale, "Floor of the scale")
      ->type_name("SCALE");
  command.add_option("--max-scale", options.how.max_scale, "Ceiling of the scale")
      ->type_name("SCALE");
  command
      .add_option("--alarm-skips", options.how.alarm_skips,
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
          "A log (.json, .jsonl, .csv, .tsv, .txt, .log) with rows step, loss, scale, overflow, scale after, or of the scale alone, as wandb exports it; what Megatron-LM prints; an event file of TensorBoard, or a folder with one; or a trace, as 'guardbit trace' reads it")
      ->type_name("FILE")
      ->required();
  replay->add_option("--mode", options->how.mode, "Which run of a log that holds several")
      ->type_name("RUN");
  replay
      ->add_option("--column", options->how.columns,
                   "What a column of the log is: step, loss, scale, overflow or scale_after = NAME")
      ->type_name("COLUMN=NAME")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  replay
      ->add_option("--from", options->how.from,
                   "The format of a trace, where its files do not say it")
      ->type_name("FORMAT");
  replay
      ->add_option("--format", options->how.format,
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
