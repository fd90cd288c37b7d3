#include "experiments/training/trainer.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/training/arithmetic.hpp"
#include "formats/parallel.hpp"

namespace guardbit::experiments::training {

namespace {

std::uint64_t add_to_hash(std::uint64_t hash, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  for (int shift = 0; shift < 32; shift += 8)
    hash = (hash ^ (bits >> shift & 0xFFU)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

Trainer::Trainer(const TrainingRules& rules, const Examples& training, int threads,
                 std::string_view where)
    : rules_(rules),
      context_(rules.recipe, threads, where),
      model_(rules.model, where),
      optimizer_(rules.optimizer, rules.seed),
      batches_(training, rules.batch, rules.seed, where) {
  initialise(model_, rules.seed, rules.recipe.weights);
  if (rules.recipe.scaler) scaler_.emplace(*rules.recipe.scaler);
}

std::optional<double> Trainer::scale() const {
  if (!scaler_) return std::nullopt;
  return scaler_->scale();
}

bool Trainer::found_overflow() {
  for (const Parameter* p : model_.parameters()) {
    if (!std::all_of(p->gradient.values.begin(), p->gradient.values.end(), is_finite)) return true;
  }
  return false;
}

StepRecord Trainer::step() {
  const Examples batch = batches_.at(step_);
  StepRecord record;
  record.step = step_ + 1;
  record.scale = scaler_ ? scaler_->scale() : 1.0;
  const auto scale = static_cast<float>(record.scale);
  const Tensor logits = model_.forward(context_, batch.inputs);
  Loss loss = cross_entropy_loss(context_, logits, batch.labels, scale);
  record.loss = loss.loss;
  record.correct = loss.correct;
  record.rows = logits.rows();
  model_.backward(context_, std::move(loss.gradient));
  record.skipped = scaler_ && found_overflow();
  if (context_.trace) {
    for (const Parameter* p : model_.parameters()) context_.trace(p->name, "wgrad", p->gradient);
  }
  if (!record.skipped) optimizer_.step(context_, model_.parameters(), inverse_of_scale(scale));
  if (scaler_) static_cast<void>(scaler_->update(record.skipped));
  record.stores = context_.end_step();
  ++step_;
  return record;
}

Evaluation Trainer::evaluate(const Examples& test) {
  constexpr std::int64_t at_once = 256;
  // Delayed scales are the training's: what the test observes must not move them.
  const std::map<std::string, DelayedScale> kept = context_.delayed_scales();
  double loss = 0;
  std::int64_t correct = 0, rows = 0;
  for (std::int64_t begin = 0; begin < test.count(); begin += at_once) {
    const Examples part = part_of(test, begin, std::min(at_once, test.count() - begin));
    const Tensor logits = model_.forward(context_, part.inputs);
    const Loss result = cross_entropy_loss(context_, logits, part.labels, 1.0F, false);
    loss += static_cast<double>(result.loss) * static_cast<double>(logits.rows());
    correct += result.correct;
    rows += logits.rows();
  }
  context_.delayed_scales() = kept;
  context_.forget_counts();
  const auto all = static_cast<double>(std::max<std::int64_t>(1, rows));
  return {loss / all, static_cast<double>(correct) / all};
}

std::uint64_t Trainer::weights_hash() {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const Parameter* p : model_.parameters())
    for (const float x : p->value.values) hash = add_to_hash(hash, x);
  return hash;
}

}  // namespace guardbit::experiments::training
