#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "formats/files/atomic_output.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/plot/picture_file.hpp"
#include "tools/train/train_quantise.hpp"
#include "tools/train/train_report.hpp"
#include "tools/train/train_run.hpp"

namespace guardbit::tools {

namespace {

namespace training = experiments::training;
using formats::Error;

void write_images(const TrainOptions& options, std::int64_t images, std::int64_t test,
                  std::uint64_t seed) {
  if (!options.config.empty()) throw Error("--write-digits", "not together with a configuration");
  training::write_digits(options.digits, images, test, seed);
  if (options.json)
    print_json({{"folder", options.digits}, {"images", images}, {"test_images", test}});
  else
    std::cout << images << " images to train with and " << test
              << " to test: " << formats::printable(options.digits) << '\n';
}

int train(const TrainOptions& options) {
  if (options.config.empty())
    throw Error("train", "needs a configuration, or --write-digits; see 'guardbit train --help'");
  TrainConfig config = read_train_config(options.config);
  const training::Dataset data = load_data(config);
  const Interruption interruption;
  std::vector<TrainResult> results;
  for (const training::PrecisionRecipe& recipe : config.recipes) {
    results.push_back(train_with(config, data, recipe, results, options, interruption));
    interruption.check(options.folder.empty() ? "" : "; the same command goes on from here");
  }
  nlohmann::ordered_json json = to_json(results);
  QuantisedNetworks integers;
  const auto is_complete = [](const TrainResult& r) { return r.complete; };
  if (config.quantisation.is_asked_for && std::ranges::all_of(results, is_complete)) {
    integers = quantised_networks(config, data, results, options, interruption);
    interruption.check();
    json["integers"] = to_json(integers);
  }
  if (!options.folder.empty()) {
    formats::write_file(options.folder + "/results.json", json.dump(2) + "\n");
    const experiments::Figure figure = loss_curves(results);
    // A few steps have no mean yet.
    if (!drawn_part(figure).curves.empty())
      write_picture(options.folder + "/loss.svg", chart(figure));
  }
  if (options.json) {
    print_json(json);
  } else {
    print_comparison(std::cout, results);
    print_quantised(std::cout, integers);
  }
  return 0;
}

}  // namespace

void add_train(CLI::App& app, int& status) {
  CLI::App* const command = app.add_subcommand(
      "train", "Train a network on an emulated matrix unit, in several precisions side by side");
  const auto options = std::make_shared<TrainOptions>();
  const auto images = std::make_shared<std::int64_t>(12000);
  const auto test = std::make_shared<std::int64_t>(2000);
  const auto seed = std::make_shared<std::uint64_t>(1);
  command->add_option("CONFIG", options->config,
                      "What to train, in TOML (docs/TRAINING.md has every key)");
  command
      ->add_option(
          "-o,--output", options->folder,
          "Folder of results.json, loss.svg and, for each recipe, log.csv, checkpoint and trace; a run that was interrupted goes on from its checkpoint")
      ->type_name("DIR");
  command->add_flag("--fresh", options->fresh, "With -o: begin anew");
  command
      ->add_option("--stop-after", options->stop_after,
                   "End each recipe after this many steps of this call, as an interruption would")
      ->check(CLI::Range(1, 1000000000));
  add_threads_option(*command, options->threads);
  command->add_flag("--json", options->json, "Print JSON");
  command
      ->add_option("--write-digits", options->digits,
                   "Train nothing: write images of digits as IDX files of MNIST's names")
      ->type_name("DIR");
  command->add_option("--images", *images, "With --write-digits: of the training part (12000)")
      ->check(CLI::Range(1, 10000000));
  command->add_option("--test-images", *test, "With --write-digits: of the test part (2000)")
      ->check(CLI::Range(1, 10000000));
  command->add_option("--seed", *seed, "With --write-digits (default 1)")->check(below_zero);
  command->footer(
      "Example: guardbit train --write-digits digits\n"
      "Example: guardbit train docs/training/cnn.toml -o runs/cnn");
  command->callback([=, &status] {
    if (!options->digits.empty()) {
      write_images(*options, *images, *test, *seed);
    } else {
      refuse_unread(*command, {"--images", "--test-images", "--seed"}, "with --write-digits");
      status = train(*options);
    }
  });
}

}  // namespace guardbit::tools
