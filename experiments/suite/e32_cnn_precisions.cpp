#include <cmath>
#include <optional>

#include "experiments/harness/run.hpp"
#include "experiments/scaling/loss_scaler.hpp"
#include "experiments/suite/digit_training.hpp"
#include "experiments/suite/suite.hpp"
#include "experiments/training/trainer.hpp"

namespace guardbit::experiments {

namespace e32 {
namespace {

/// of the runs on the H200
constexpr std::int64_t recorded_steps = 600;
/// steps whose mean loss the plot shows
constexpr std::int64_t loss_interval = 10;

/// Accuracy and loss on the test images, the last loss scale, steps that were skipped; then the
/// mean training loss of every ten steps.
std::vector<double> train(Run& run, const std::string& recipe, const Digits& digits) {
  const Settings& s = run.settings();
  training::TrainingRules rules;
  rules.model.filters = s.integers("filters");
  rules.model.hidden = {s.integer("hidden")};
  rules.optimizer.learning_rate = static_cast<float>(s.number("learning_rate"));
  rules.optimizer.momentum = static_cast<float>(s.number("momentum"));
  rules.recipe = training::require_recipe(recipe, "", "E32");
  if (rules.recipe.scaler) rules.recipe.scaler->interval = s.integer("interval");
  rules.batch = s.integer("batch");
  rules.seed = run.seed();
  for (const emulator::GemmPlan& plan : rules.recipe.plans) run.uses(plan);
  training::Trainer trainer(rules, digits.training, run.threads(), "E32");
  std::vector<double> losses;
  double sum = 0, skipped = 0;
  for (std::int64_t step = 1; step <= s.integer("steps"); ++step) {
    run.check_stop();
    const training::StepRecord record = trainer.step();
    if (record.skipped) ++skipped;
    sum += static_cast<double>(record.loss) / static_cast<double>(loss_interval);
    if (step % loss_interval != 0) continue;
    losses.push_back(sum);
    sum = 0;
  }
  std::vector<double> result = {trainer.evaluate(digits.test).loss, trainer.scale().value_or(1),
                                skipped};
  for (std::int64_t i = 0; i < digits.test.count(); ++i) {
    run.check_stop();
    result.push_back(trainer.evaluate(training::part_of(digits.test, i, 1)).accuracy);
  }
  result.insert(result.end(), losses.begin(), losses.end());
  return result;
}

/// Of PyTorch's scaler at that interval: where it ends after clean steps, and at how many places a
/// single overflow ends at `wanted`.
std::vector<double> single_overflows(std::int64_t interval, std::int64_t steps, double wanted) {
  ScalerRules rules = find_scaler("pytorch").value();
  rules.interval = interval;
  const auto end_with = [&](std::optional<std::int64_t> overflow) {
    LossScaler scaler(rules);
    for (std::int64_t i = 0; i < steps; ++i) scaler.update(overflow == i);
    return scaler.scale();
  };
  double places = 0;
  for (std::int64_t i = 0; i < steps; ++i) places += end_with(i) == wanted ? 1 : 0;
  return {end_with(std::nullopt), places};
}

void add_recorded_scale(Run& run, Outcome& outcome) {
  constexpr std::int64_t steps = recorded_steps, interval = 200;
  constexpr double recorded = 131072;
  const auto& x =
      run.point("recorded scale", [&] { return single_overflows(interval, steps, recorded); });
  outcome.findings.push_back(
      {"2^16 after 600 clean steps at an interval of 200: scale", "", x[0],
       Reference{.value = 8 * 65536, .source = "it doubles after 200, 400 and 600"}});
  outcome.findings.push_back(
      {"places of one overflow in 600 steps that end at the recorded 131072", "", x[1],
       Reference{
           .value = steps,
           .source =
               "torch 2.11 on an H200 ended at 131072; one overflow halves once and leaves two whole intervals wherever it comes",
           .certainty = Certainty::measured}});
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto& recipes = s.words("recipe");
  const std::int64_t test_images = s.integer("test");
  run.announce(recipes.size() + 1);
  Outcome outcome;
  outcome.figure = {"E32: a CNN on generated digits, every product on an emulated tensor core",
                    "step", "training loss (mean of ten steps)", false, true};
  std::optional<Digits> digits;
  std::vector<double> first;
  for (const std::string& recipe : recipes) {
    const auto& x = run.point(recipe, [&] {
      if (!digits) digits = digits_for(run, s.integer("images"), test_images);
      return train(run, recipe, *digits);
    });
    const auto images = static_cast<std::size_t>(test_images);
    const std::vector<double> correct(x.begin() + 3,
                                      x.begin() + 3 + static_cast<std::ptrdiff_t>(images));
    Curve curve{recipe};
    for (std::size_t i = 3 + images; i < x.size(); ++i)
      curve.add(static_cast<double>(static_cast<std::int64_t>(i - images - 2) * loss_interval),
                x[i]);
    outcome.figure.curves.push_back(curve);
    double recognised = 0;
    for (const double c : correct) recognised += c;
    outcome.findings.insert(
        outcome.findings.end(),
        {{recipe + ": test accuracy", "%", 100 * recognised / static_cast<double>(test_images)},
         {recipe + ": test loss", "", x[0]},
         {recipe + ": loss scale in the end", "", x[1]},
         {recipe + ": skipped steps", "", x[2]}});
    if (first.empty()) {
      first = correct;
      continue;
    }
    const PairedDifference difference = paired_difference(correct, first);
    outcome.findings.push_back(
        {recipe + ": test accuracy over that of " + recipes.front(), "points",
         100 * difference.share,
         Reference{
             .value = 0,
             .tolerance = 400 * difference.error,
             .tolerance_reason =
                 "four standard errors, from the images that only one of the two recognises",
             .source =
                 "torch 2.11 on an H200, a CNN on scikit-learn's digits: 92.9 % in FP32, 93.3 to 93.6 % in the others, equal within noise",
             .certainty = Certainty::measured,
             .undecidable =
                 s.integer("steps") < recorded_steps
                     ? "networks that still learn differ by more than test images tell (a step skipped early, say)"
                     : ""}});
  }
  add_recorded_scale(run, outcome);
  outcome.notes.emplace_back(
      "The digits are drawn by this program, so accuracies are not those of scikit-learn's; "
      "what is compared is that no precision differs from the first one by more than noise.");
  return outcome;
}

}  // namespace
}  // namespace e32

Experiment cnn_precisions() {
  using namespace e32;
  using Kind = Parameter::Kind;
  return {
      .name = "E32",
      .slug = "cnn_precisions",
      .question = "Does a small CNN learn as well in half precision as in FP32?",
      .method =
          "A CNN (3x3 convolutions with ReLU and pools, two linear layers) is trained on generated digits from the same weights and batches; "
          "every matrix product of forward and backward runs on the recipe's unit, bit for bit. "
          "PyTorch's loss scaler is also run over every place of one overflow.",
      .expected =
          "Accuracies equal within noise, and a loss scale that ends at 2^17 after 600 steps at an interval of 200, "
          "which one overflow explains (measured, torch 2.11 on an H200).",
      .parameters =
          {{"recipe", "precision; the first is compared with",
            "fp32,tf32,fp16_amp,fp16_amp_unscaled,fp16,bf16", "fp32,fp16_amp,bf16", Kind::word,
            true, 0, 0,
            "fp32,tf32,fp16_amp,fp16_amp_unscaled,bf16_amp,fp16,bf16,fp8_delayed,fp8_current,mxfp8,nvfp4"},
           {"steps", "", "600", "", Kind::integer, false, 10, 1000000},
           {"images", "to train on", "6000", "2000", Kind::integer, false, 64, 1000000},
           {"test", "images", "2000", "1000", Kind::integer, false, 10, 1000000},
           {"filters", "of the convolutions", "8,16", "", Kind::integer, true, 1, 1024},
           {"hidden", "numbers of the linear layer between", "64", "", Kind::integer, false, 1,
            4096},
           {"batch", "images of a step", "64", "16", Kind::integer, false, 1, 4096},
           {"learning_rate", "", "0.02", "", Kind::number, false, 1e-6, 10},
           {"momentum", "", "0.9", "", Kind::number, false, 0, 1},
           {"interval", "clean steps until the loss scale grows", "200", "", Kind::integer, false,
            1, 1000000}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
