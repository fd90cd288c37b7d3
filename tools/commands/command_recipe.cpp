#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/support/error.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/console/words_option.hpp"
#include "tools/plot/picture_file.hpp"
#include "tools/trace/recipe_comparison.hpp"
#include "tools/trace/recipe_identify.hpp"
#include "tools/trace/recipe_results.hpp"
#include "tools/trace/trace_options.hpp"
#include "tools/trace/trace_plots.hpp"

namespace guardbit::tools {

namespace {

struct CompareOptions {
  std::vector<std::string> words, trace;
  RecipeSettings how;
  PlotOptions plot;
  bool json = false;
};

int run_compare(const CompareOptions& options) {
  options.plot.require_valid();
  std::vector<std::string> words = options.words;
  words.insert(words.end(), options.trace.begin(), options.trace.end());
  RecipeResults results;
  {
    const EndAtOnce at_once;
    results = compared_recipes(words, options.how, [] {});
  }
  if (options.plot.asked() && results.total().signal.nonzero == 0)
    throw formats::Error("--plot", "every number is zero, so there is no noise to draw");
  if (options.plot.asked())
    write_picture(options.plot.path, chart(sqnr_figure(results), options.plot.chart()));
  if (options.json) {
    print_json(to_json(results));
  } else {
    print_recipes(std::cout, results);
  }
  return 0;
}

}  // namespace

void add_recipe(CLI::App& app, int& status) {
  CLI::App* recipe =
      app.add_subcommand("recipe", "Scaling recipes of FP8, MX, NVFP4 and tiles on the same trace");
  recipe->require_subcommand(1);
  recipe->footer("Example: guardbit recipe compare gradients.npz");
  CLI::App* compare = recipe->add_subcommand(
      "compare", "What each recipe loses, saturates and costs, and its noise");
  const auto options = std::make_shared<CompareOptions>();
  compare->add_option("FILE", options->words, "A trace, as 'guardbit trace' reads it")
      ->type_name("FILE");
  compare->add_option("--trace", options->trace, "The same")->type_name("FILE");
  compare
      ->add_option("--recipes", options->how.recipes,
                   "Names of recipes, or patterns of names, with commas between (default all)")
      ->type_name("RECIPE,…");
  compare
      ->add_option(
          "--scales", options->how.scales,
          "Exponents of the loss scales 2^k of FP16: FIRST:LAST:STEP or a list (default 0:24:8)")
      ->type_name("SCALES");
  compare
      ->add_option("--amax-history", options->how.histories,
                   "Lengths of delayed scaling's window, with commas between (default 1024)")
      ->type_name("N,…")
      ->delimiter(',')
      ->check(CLI::Range(1, 1000000));
  compare
      ->add_option("--margin", options->how.margin,
                   "Delayed scaling leaves room for amaxes 2^MARGIN times as large (default 0)")
      ->type_name("MARGIN")
      ->check(CLI::Range(-100, 100));
  compare
      ->add_option(
          "--layout", options->how.layout,
          "Blocks and tiles of one row along the flattened tensor, or along its last dimension (default flat)")
      ->type_name(type_of_words<experiments::Layout>());
  compare
      ->add_option("--from", options->how.from,
                   "The format of the input, where the file does not say it")
      ->type_name("FORMAT");
  compare->add_option("--role", options->how.role, "Only tensors of this role")
      ->type_name("{wgrad,grad_out,grad_in,act,weight,update}");
  add_threads_option(*compare, options->how.threads);
  add_plot_options(
      *compare, options->plot,
      "Draw the signal to noise ratio of each tensor and recipe into this file (across it is what --y and --range say)");
  compare->add_flag("--json", options->json, "Print every tensor and recipe as JSON");
  compare->footer(
      "Example: guardbit recipe compare --trace gradients.npz --role grad_out --recipes 'fp16*,e4m3_1x128*,mxfp8_e4m3_*'\n"
      "Example: guardbit recipe compare gradients.npz --recipes 'e4m3*' --plot recipes.pdf");
  compare->callback([options, &status] { status = run_compare(*options); });
  add_recipe_identify(*recipe);
}

}  // namespace guardbit::tools
