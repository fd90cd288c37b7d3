#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "experiments/scaling/recipe_pass.hpp"
#include "experiments/traces/magnitude_counts.hpp"
#include "formats/codec.hpp"
#include "formats/files/array_file.hpp"
#include "formats/files/atomic_output.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/console/words_option.hpp"
#include "tools/plot/picture_file.hpp"
#include "tools/products/verify_report.hpp"
#include "tools/trace/trace_plots.hpp"
#include "tools/trace/trace_results.hpp"
#include "tools/trace/trace_sidecar.hpp"

namespace guardbit::tools {

namespace {

struct TraceOptions {
  std::vector<std::string> words;
  std::string formats = default_trace_formats;
  std::string scales = "0:32:4";
  std::string policy = "pytorch";
  std::string layout = "flat";
  std::string from;
  std::string report;
  PlotOptions plot;
  double tolerance = 1e-3;
  int threads = 0;
  bool exact_product = false;
  bool histogram = false;
  bool keep_going = false;
  bool json = false;
  bool csv = false;
};

/// Cells for each format that the tensors have.
class CellsByFormat {
 public:
  explicit CellsByFormat(const TraceQuestions& questions) : questions_(questions) {}

  const experiments::MagnitudeCells& operator()(const formats::Format& from) {
    auto& cells = made_[formats::name_of(from)];
    if (!cells) cells = std::make_unique<experiments::MagnitudeCells>(from, questions_.storings);
    return *cells;
  }

 private:
  const TraceQuestions& questions_;
  std::map<std::string, std::unique_ptr<experiments::MagnitudeCells>> made_;
};

class Pass {
 public:
  Pass(const TraceOptions& options, TraceResults& results, const Interruption& interruption)
      : options_(options),
        results_(results),
        interruption_(interruption),
        cells_(results.questions) {}

  void operator()(const std::string& file) {
    formats::FormatOverrides overrides;
    if (!options_.from.empty()) overrides.any = require_element_format(options_.from, "--from");
    const formats::TensorStreams content = formats::open_tensors(file, overrides);
    for (const auto& [name, why] : content.left_out)
      results_.skipped.emplace_back(std::string(file).append(": ").append(name), why);
    std::size_t total = 0;
    for (const formats::StreamedTensor& stream : content.tensors)
      total += static_cast<std::size_t>(formats::element_count(stream.tensor.shape));
    const bool has_recipes = !results_.questions.recipes.empty();
    ProgressLine progress(formats::printable(file), has_recipes ? 2 * total : total);
    const Sidecar sidecar(file, content.metadata);
    const std::size_t first_traced = results_.tensors.size();
    std::vector<const formats::StreamedTensor*> counted;
    std::size_t before = 0;
    for (const formats::StreamedTensor& stream : content.tensors) {
      const formats::Tensor& tensor = stream.tensor;
      if (tensor.format.encoding != formats::Encoding::floating) {
        results_.skipped.emplace_back(
            file + ": " + tensor.name,
            formats::name_of(tensor.format) + " is not a floating-point format");
      } else {
        try {
          count(file, stream, sidecar, [&](std::size_t done) {
            interruption_.check();
            progress.update(before + done);
          });
          counted.push_back(&stream);
        } catch (const formats::Error& error) {
          if (!options_.keep_going) throw;
          results_.skipped.emplace_back(file + ": " + tensor.name, error.what());
        }
      }
      before +=
          static_cast<std::size_t>(formats::element_count(tensor.shape)) * (has_recipes ? 2 : 1);
    }
    if (results_.sums) note_updates(formats::printable(file), first_traced, counted);
  }

 private:
  /// Weights and updates of one step, tensor and rank in a file: what the updates do.
  void note_updates(const std::string& where, std::size_t first_traced,
                    const std::vector<const formats::StreamedTensor*>& counted) {
    const auto traced = [&](std::size_t i) -> const TracedTensor& {
      return results_.tensors[first_traced + i];
    };
    using Key = std::tuple<std::optional<std::uint64_t>, std::optional<std::uint64_t>, std::string>;
    std::map<Key, std::size_t> weights;
    const auto key = [&](std::size_t i) {
      const experiments::TraceName& m = traced(i).meaning;
      return Key(m.step, m.rank, m.tensor);
    };
    for (std::size_t i = 0; i < counted.size(); ++i) {
      if (traced(i).meaning.role == "weight") weights.emplace(key(i), i);
    }
    for (std::size_t i = 0; i < counted.size(); ++i) {
      if (traced(i).meaning.role != "update") continue;
      const auto found = weights.find(key(i));
      if (found == weights.end()) continue;
      const formats::StreamedTensor& update = *counted[i];
      const formats::StreamedTensor& weight = *counted[found->second];
      if (update.tensor.format != formats::fp32 || weight.tensor.format != formats::fp32 ||
          update.tensor.shape != weight.tensor.shape)
        continue;
      TracedUpdate noted{traced(i).meaning.tensor,
                         traced(i).meaning.step,
                         traced(found->second).statistics.squares,
                         traced(i).statistics.squares,
                         {}};
      noted.effect = effect_of(where, weight, update);
      results_.updates.push_back(std::move(noted));
    }
  }

  experiments::UpdateEffect effect_of(const std::string& where,
                                      const formats::StreamedTensor& weight,
                                      const formats::StreamedTensor& update) const {
    std::vector<formats::Format> kept;
    for (std::size_t f = 0; f < results_.questions.formats.size(); ++f)
      kept.push_back(results_.questions.storings[results_.questions.storing(f, 0)].to);
    const formats::Tensor weights = formats::whole_tensor(where, weight);
    experiments::UpdateEffect effect = experiments::update_effect({}, {}, kept);
    update.read([&](std::span<const std::byte> bytes, std::size_t first) {
      interruption_.check();
      effect.add(
          experiments::update_effect(weights.bytes.subspan(4 * first, bytes.size()), bytes, kept));
    });
    return effect;
  }

  void count(const std::string& file, const formats::StreamedTensor& stream, const Sidecar& sidecar,
             const std::function<void(std::size_t)>& progress) {
    const formats::Tensor& tensor = stream.tensor;
    const experiments::MagnitudeCells& cells = cells_(tensor.format);
    experiments::MagnitudeCounts counts(cells.size());
    TracedTensor traced;
    stream.read([&](std::span<const std::byte> bytes, std::size_t first) {
      const formats::Tensor window = formats::window_of(tensor, bytes, first);
      experiments::MagnitudeCounts part = experiments::count_magnitudes(
          cells, window, options_.threads, [&](std::size_t done) { progress(first + done); },
          results_.sums ? experiments::Sums::exact : experiments::Sums::none);
      if (part.first_nonfinite && !counts.first_nonfinite) {
        const std::uint64_t code = formats::load_code(
            bytes, tensor.format, tensor.packing, static_cast<std::size_t>(*part.first_nonfinite));
        traced.first_is_nan = formats::decode(tensor.format, code).kind == formats::Kind::nan;
      }
      if (part.first_nonfinite) *part.first_nonfinite += first;
      counts.add(part);
    });
    traced.file = file;
    traced.name = tensor.name;
    traced.format = formats::name_of(tensor.format);
    traced.shape = tensor.shape;
    traced.meaning = meaning_of(file, tensor.name);
    sidecar.complete(tensor.name, traced.meaning, traced.loss_scale);
    traced.statistics =
        experiments::statistics_of(cells, counts, results_.questions.storings.size());
    traced.first_nonfinite = counts.first_nonfinite;
    traced.columns = tensor.shape.size() < 2 ? 0 : static_cast<std::uint64_t>(tensor.shape.back());
    if (!results_.questions.recipes.empty())
      traced.statistics.recipes = stored(stream, [&](std::size_t done) {
        progress(static_cast<std::size_t>(traced.statistics.elements) + done);
      });
    results_.tensors.push_back(std::move(traced));
  }

  experiments::RecipeStatistics stored(const formats::StreamedTensor& stream,
                                       const std::function<void(std::size_t)>& progress) const {
    std::vector<experiments::RecipeState> none;  // no recipe here remembers anything
    experiments::StoredTensor stored =
        experiments::store_tensor(results_.questions.recipes, stream, results_.questions.layout,
                                  none, options_.threads, progress);
    experiments::RecipeStatistics statistics{std::move(stored.signal), {}};
    statistics.outcomes.reserve(stored.outcomes.size());
    for (experiments::RecipeOutcome& outcome : stored.outcomes)
      statistics.outcomes.emplace_back(std::move(outcome));
    return statistics;
  }

  const TraceOptions& options_;
  TraceResults& results_;
  const Interruption& interruption_;
  CellsByFormat cells_;
};

/// As a shell takes it.
std::string this_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string command = "guardbit", word;
  std::getline(file, word, '\0');
  while (std::getline(file, word, '\0')) command += ' ' + shell_word(word);
  return command;
}

int run(const TraceOptions& options) {
  if (options.json && options.csv) throw formats::Error("--csv", "not together with --json");
  if (!(options.tolerance >= 0 && options.tolerance <= 1))
    throw formats::Error("--tolerance", "not a share", "0 to 1");
  if (options.histogram && (options.csv || !options.report.empty()))
    throw formats::Error("--histogram", "not together with --csv or --report");
  options.plot.require_valid();
  TraceResults results;
  if (!options.histogram) {
    results.questions =
        trace_questions(options.formats, options.scales, options.policy, options.exact_product);
    results.questions.layout = layout_of(options.layout);
  }
  results.sums = !options.histogram;
  results.policy = options.policy;
  results.exact_product = options.exact_product;
  results.tolerance = options.tolerance;
  const Interruption interruption;
  if (options.words.front() == "merge") {
    results = merged_results({options.words.begin() + 1, options.words.end()});
  } else {
    Pass pass(options, results, interruption);
    for (const std::string& file : trace_files(options.words)) {
      try {
        pass(file);
      } catch (const formats::Error& error) {
        if (!options.keep_going) throw;
        results.skipped.emplace_back(file, error.what());
      }
    }
  }
  if (results.tensors.empty() && !results.skipped.empty()) {
    const auto& [what, why] = results.skipped.front();
    if (options.keep_going)
      throw formats::Error("trace", "nothing was read: " + formats::printable(why));
    throw formats::Error(formats::printable(what),
                         why + ", and there is no other tensor (--from says what codes are)");
  }
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
          ".safetensors, .npy, .npz, .pt and .h5 files, folders or patterns of them; or the word merge and what --json printed of the parts of a trace")
      ->type_name("FILE")
      ->required();
  command
      ->add_option(
          "--formats", options->formats,
          "What to store numbers as (default fp16,bf16,e4m3,e5m2); formats with scales of their own too: "
          "mxfp8_e4m3, nvfp4, e4m3_tensor, e4m3_1x128, 'mxfp*' …, as in 'guardbit recipe'")
      ->type_name("FORMAT,…");
  command
      ->add_option(
          "--layout", options->layout,
          "Blocks and tiles of one row along the flattened tensor, or along its last dimension (default flat)")
      ->type_name(type_of_words<experiments::Layout>());
  command
      ->add_option("--scales", options->scales,
                   "Exponents of the loss scales 2^k: FIRST:LAST:STEP or a list (default 0:32:4)")
      ->type_name("SCALES");
  command
      ->add_option("--policy", options->policy,
                   "What becomes of numbers too large (default pytorch)")
      ->type_name("{pytorch,nvidia,saturate,ieee}");
  command->add_flag("--scale-exact", options->exact_product,
                    "Do not round the product with the scale to FP32");
  command
      ->add_option("--from", options->from,
                   "The format of the input, where the file does not say it")
      ->type_name("FORMAT");
  command
      ->add_option("--tolerance", options->tolerance,
                   "Share of underflow that a safe scale may have (default 0.001)")
      ->type_name("SHARE");
  command->add_flag("--histogram", options->histogram,
                    "Only zeros, binades, infinities and NaNs: no formats, no sums, in less time");
  add_threads_option(*command, options->threads);
  command->add_flag("--keep-going", options->keep_going,
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
      refuse_unread(*command,
                    {"--formats", "--layout", "--scales", "--policy", "--scale-exact", "--from",
                     "--tolerance", "--histogram", "--keep-going", "--threads"},
                    "without merge");
    if (options->histogram)
      refuse_unread(
          *command,
          {"--formats", "--layout", "--scales", "--policy", "--scale-exact", "--tolerance"},
          "without --histogram");
    status = run(*options);
  });
}

}  // namespace guardbit::tools
