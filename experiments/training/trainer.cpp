#include "experiments/training/trainer.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/harness/fingerprint.hpp"
#include "experiments/harness/random_numbers.hpp"
#include "experiments/training/training_arithmetic.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::experiments::training {

Trainer::Trainer(const TrainingRules& rules, const Examples& training, int threads,
                 std::string_view where)
    : rules_(rules),
      context_(rules.recipe, threads, where),
      model_(rules.model, where),
      optimizer_(rules.optimizer, rules.seed),
      batches_(training, rules.batch, rules.seed, where) {
  const auto& quantisation = rules.recipe.quantisation;
  if (quantisation && quantisation->estimator == StraightThrough::learned_scale)
    model_.learn_scales();
  initialise(model_, rules.seed, rules.recipe.weights);
  if (rules.recipe.scaler) scaler_.emplace(*rules.recipe.scaler);
}

std::optional<double> Trainer::scale() const {
  if (!scaler_) return std::nullopt;
  return scaler_->scale();
}

Tensor Trainer::input_of(const Examples& examples) {
  const bool are_tokens = rules_.model.kind == ModelShape::Kind::gpt;
  if (are_tokens || rules_.recipe.autocast) return examples.inputs;
  return context_.cast(examples.inputs, rules_.recipe.weights, Role::activation);
}

Unscale unscale_of(const PrecisionRecipe& recipe, double scale) {
  // A reciprocal of an FP32 scale that is rounded to FP64 and then to FP32 is the one that is
  // rounded once: 53 bits are at least 2 * 24 + 2.
  return {static_cast<float>(scale), static_cast<float>(1.0 / scale),
          recipe.scaler && recipe.scaler->unscaling == Unscaling::division};
}

bool Trainer::found_overflow(const Unscale& unscale) {
  const bool looks_at_scaled = rules_.recipe.scaler->finite_test == FiniteTest::scaled;
  const auto is_sound = [&](float g) { return is_finite(looks_at_scaled ? g : unscale(g)); };
  for (const Parameter* p : model_.parameters()) {
    if (!std::all_of(p->gradient.values.begin(), p->gradient.values.end(), is_sound)) return true;
  }
  return false;
}

StepRecord Trainer::step() {
  const Examples batch = batches_.at(step_);
  context_.begin_step(Draws(rules_.seed, "step").word(static_cast<std::uint64_t>(step_)));
  StepRecord record;
  record.step = step_ + 1;
  record.scale = scaler_ ? scaler_->scale() : rules_.recipe.fixed_scale;
  const auto scale = static_cast<float>(record.scale);
  const Tensor logits = model_.forward(context_, input_of(batch));
  Loss loss = cross_entropy_loss(context_, logits, batch.labels, scale);
  record.loss = loss.loss;
  record.correct = loss.correct;
  record.rows = logits.rows();
  model_.backward(context_, std::move(loss.gradient));
  const Unscale unscale = unscale_of(rules_.recipe, record.scale);
  record.skipped = scaler_ && found_overflow(unscale);
  if (context_.trace) {
    for (const Parameter* p : model_.parameters()) context_.trace(p->name, "wgrad", p->gradient);
  }
  // Where the original divides by the scale, there is nothing to step with at a scale of zero.
  const bool divides_by_zero =
      scaler_ && scaler_->rules().raises_at_zero && scaler_->scale() == 0.0;
  if (!record.skipped && !divides_by_zero) optimizer_.step(context_, model_.parameters(), unscale);
  if (scaler_) {
    has_ended_ = scaler_->update(record.skipped).change == ScaleChange::raised || divides_by_zero;
  }
  record.stores = context_.end_step();
  ++step_;
  return record;
}

Evaluation Trainer::evaluate(const Examples& test, const std::function<bool()>& interrupted) {
  constexpr std::int64_t at_once = 256;
  // Delayed scales are the training's: what the test observes must not move them.
  const std::map<std::string, DelayedScale> kept = context_.delayed_scales();
  context_.set_observes(false);
  double loss = 0;
  std::int64_t correct = 0, rows = 0;
  for (std::int64_t begin = 0; begin < test.count(); begin += at_once) {
    const Examples part = part_of(test, begin, std::min(at_once, test.count() - begin));
    const Tensor logits = model_.forward(context_, input_of(part));
    const Loss result = cross_entropy_loss(context_, logits, part.labels, 1.0F, false);
    loss += static_cast<double>(result.loss) * static_cast<double>(logits.rows());
    correct += result.correct;
    rows += logits.rows();
    if (interrupted && interrupted()) break;
  }
  context_.delayed_scales() = kept;
  context_.set_observes(true);
  context_.forget_counts();
  const auto all = static_cast<double>(std::max<std::int64_t>(1, rows));
  return {loss / all, static_cast<double>(correct) / all};
}

std::optional<std::int64_t> Trainer::memory() {
  if (context_.operand_bytes() == 0) return std::nullopt;
  std::int64_t bits = 0;
  for (const Parameter* p : model_.parameters())
    bits += p->value.size() * 2 * formats::bits(p->value.format);
  for (const auto* states : {&optimizer_.first(), &optimizer_.second(), &optimizer_.kept()})
    for (const auto& [name, state] : *states) bits += state.size() * formats::bits(state.format);
  return bits / 8 + context_.operand_bytes();
}

std::uint64_t Trainer::weights_hash() {
  // The order of bytes in memory is that of every machine that the kernels are written for.
  Fingerprint fingerprint;
  for (const Parameter* p : model_.parameters())
    fingerprint.add(std::as_bytes(std::span(p->value.values)));
  return fingerprint.value();
}

}  // namespace guardbit::experiments::training
