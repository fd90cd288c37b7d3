#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "formats/files/atomic_output.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/division/division.hpp"
#include "tools/console/division/launcher.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/console/words_option.hpp"
#include "tools/plot/picture_file.hpp"
#include "tools/products/verify_report.hpp"
#include "tools/trace/trace_options.hpp"
#include "tools/trace/trace_pass.hpp"
#include "tools/trace/trace_plots.hpp"
#include "tools/trace/trace_results.hpp"

namespace guardbit::tools {

namespace {

struct TraceOptions {
  std::vector<std::string> words;
  TraceSettings how;
  std::string report;
  DivisionOptions division;
  PlotOptions plot;
  bool json = false;
  bool csv = false;
};

/// As a shell takes it.
std::string this_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string command = "guardbit", word;
  std::getline(file, word, '\0');
  while (std::getline(file, word, '\0')) command += ' ' + shell_word(word);
  return command;
}

/// Everything but the files that the results depend on.
nlohmann::ordered_json question_of(const TraceSettings& how) {
  return {{"formats", how.formats},
          {"scales", how.scales},
          {"policy", how.policy},
          {"layout", how.layout},
          {"from", how.from},
          {"tolerance", how.tolerance},
          {"scale_exact", how.exact_product},
          {"histogram", how.histogram},
          {"keep_going", how.keep_going}};
}

/// Nothing where another process reports the results.
std::optional<TraceResults> traced(const TraceOptions& options, const Interruption& interruption) {
  const auto pause = [&] { interruption.check(); };
  const std::vector<std::string> files = trace_files(options.words);
  if (!is_divided(options.division, files.size())) return trace(options.words, options.how, pause);
  TraceSettings how = options.how;
  how.threads = threads_of_process(how.threads);
  const auto results =
      divide(options.division,
             {.description = {"trace", files, question_of(how)},
              .work = [&](std::size_t i) { return to_json(trace_file(files[i], how, pause)); }},
             interruption);
  if (!results) return std::nullopt;
  return joined_results(*results);
}

/// Of parts that --part made, or of what --json printed.
TraceResults merged(const std::vector<std::string>& files) {
  if (files.empty() || !is_results_file(files.front())) return merged_results(files);
  return joined_results(merged_results_of("trace", files));
}

int run(const TraceOptions& options) {
  if (options.json && options.csv) throw formats::Error("--csv", "not together with --json");
  if (options.how.histogram && (options.csv || !options.report.empty()))
    throw formats::Error("--histogram", "not together with --csv or --report");
  options.plot.require_valid();
  const Interruption interruption;
  const bool merges = options.words.front() == "merge";
  const std::optional<TraceResults> reported =
      merges ? merged({options.words.begin() + 1, options.words.end()})
             : traced(options, interruption);
  if (!reported) return 0;
  const TraceResults& results = *reported;
  require_tensors(results, options.how.keep_going);
  if (!options.report.empty()) {
    formats::write_file(options.report, trace_report(results, this_command()));
  }
  if (options.plot.asked())
    write_picture(options.plot.path, trace_picture(results, options.plot.chart()));
  const bool is_silent = options.json || options.csv;
  if (options.plot.asked() && !results.questions.recipes.empty() && !is_silent) {
    std::string names;
    for (const experiments::Recipe& recipe : results.questions.recipes)
      names += (names.empty() ? "" : ", ") + recipe.name;
    std::cout << "not in the picture, as they have scales of their own: " << names
              << "; 'guardbit recipe compare --plot' draws them\n";
  }
  if (options.json) {
    print_json(to_json(results));
  } else if (options.csv) {
    print_csv(std::cout, results);
  } else if (options.report.empty()) {
    print_trace(std::cout, results);
  }
  interruption.check(" after the results were written");
  return 0;
}

}  // namespace

void add_trace(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("trace", "What formats and loss scales would lose of recorded gradients");
  const auto options = std::make_shared<TraceOptions>();
  command
      ->add_option(
          "FILE", options->words,
          ".safetensors, .npy, .npz, .pt and .h5 files, folders or patterns of them; or the word merge and what --json printed of the parts of a trace, or what --part made of it")
      ->type_name("FILE")
      ->required();
  command
      ->add_option(
          "--formats", options->how.formats,
          "What to store numbers as (default fp16,bf16,e4m3,e5m2); formats with scales of their own too: "
          "mxfp8_e4m3, nvfp4, e4m3_tensor, e4m3_1x128, 'mxfp*' …, as in 'guardbit recipe'")
      ->type_name("FORMAT,…");
  command
      ->add_option(
          "--layout", options->how.layout,
          "Blocks and tiles of one row along the flattened tensor, or along its last dimension (default flat)")
      ->type_name(type_of_words<experiments::Layout>());
  command
      ->add_option("--scales", options->how.scales,
                   "Exponents of the loss scales 2^k: FIRST:LAST:STEP or a list (default 0:32:4)")
      ->type_name("SCALES");
  command
      ->add_option("--policy", options->how.policy,
                   "What becomes of numbers too large (default pytorch)")
      ->type_name(type_of_words<OverflowPolicy>());
  command->add_flag("--scale-exact", options->how.exact_product,
                    "Do not round the product with the scale to FP32");
  command
      ->add_option("--from", options->how.from,
                   "The format of the input, where the file does not say it")
      ->type_name("FORMAT");
  command
      ->add_option("--tolerance", options->how.tolerance,
                   "Share of underflow that a safe scale may have (default 0.001)")
      ->type_name("SHARE");
  command->add_flag("--histogram", options->how.histogram,
                    "Only zeros, binades, infinities and NaNs: no formats, no sums, in less time");
  add_threads_option(*command, options->how.threads);
  add_division_options(*command, options->division);
  command->add_flag("--keep-going", options->how.keep_going,
                    "Leave out files that cannot be read, and say so");
  command
      ->add_option("--report", options->report,
                   "Write a page with plots and all numbers, which needs no network")
      ->type_name("FILE");
  add_plot_options(
      *command, options->plot,
      "Draw numbers by binade, and below what is lost at each scale (axes and range are of these), into this file");
  command->add_flag("--json", options->json, "Print all statistics as JSON");
  command->add_flag("--csv", options->csv, "Print a row per tensor, format and scale");
  command->footer(
      "Example: guardbit trace gradients.npz --formats fp16,e4m3 --scales 0:24:8\n"
      "         guardbit trace gradients.npz --formats fp16,bf16 --plot gradients.pdf --width 336\n"
      "         guardbit trace merge rank0.json rank1.json --report trace.html\n"
      "Underflow: numbers other than zero that are stored as zero. Overflow: finite numbers that\n"
      "are stored as infinity or NaN, or clamped under a policy that clamps.");
  command->callback([options, command, &status] {
    const bool merges = options->words.front() == "merge";
    if (merges)
      refuse_unread(
          *command,
          {"--formats", "--layout", "--scales", "--policy", "--scale-exact", "--from",
           "--tolerance", "--histogram", "--keep-going", "--threads", "--part", "--results"},
          "without merge");
    if (!options->division.part.empty())
      refuse_unread(*command, {"--report", "--plot", "--json", "--csv"},
                    "without --part: 'guardbit trace merge' takes them");
    if (options->how.histogram)
      refuse_unread(
          *command,
          {"--formats", "--layout", "--scales", "--policy", "--scale-exact", "--tolerance"},
          "without --histogram");
    status = run(*options);
  });
}

}  // namespace guardbit::tools
