#include "experiments/training/optimizer.hpp"

#include <cmath>
#include <span>
#include <utility>

#include "experiments/harness/random_numbers.hpp"
#include "experiments/training/training_arithmetic.hpp"
#include "formats/conversion/array_conversion.hpp"

namespace guardbit::experiments::training {

SgdStep sgd_step(const OptimizerRules& rules, bool first) {
  return {rules.learning_rate, rules.momentum, rules.weight_decay, first};
}

AdamStep adam_step(const OptimizerRules& rules, std::int64_t steps) {
  AdamStep step;
  step.learning_rate = rules.learning_rate;
  step.beta1 = rules.beta1;
  step.beta2 = rules.beta2;
  step.epsilon = rules.epsilon;
  step.weight_decay = rules.weight_decay;
  step.decoupled = rules.kind == OptimizerRules::Kind::adamw;
  // Powers by multiplication, so that every machine has the same.
  double power1 = 1.0, power2 = 1.0;
  for (std::int64_t i = 0; i < steps; ++i) {
    power1 *= static_cast<double>(rules.beta1);
    power2 *= static_cast<double>(rules.beta2);
  }
  step.step_size = static_cast<float>(static_cast<double>(rules.learning_rate) / (1.0 - power1));
  step.root_correction = static_cast<float>(std::sqrt(1.0 - power2));
  return step;
}

void Optimizer::step(const Context& context, const std::vector<Parameter*>& parameters,
                     const Unscale& unscale) {
  using Keeping = OptimizerRules::Keeping;
  ++steps_;
  for (Parameter* p : parameters) {
    const bool has_master = rules_.keeping == Keeping::master && p->value.format != formats::fp32;
    if (has_master && !kept_.contains(p->name))
      kept_.emplace(p->name, Tensor{p->value.shape, formats::fp32, p->value.values});
    const Tensor& from = has_master ? kept_.at(p->name) : p->value;
    Values moved = rules_.kind == OptimizerRules::Kind::sgd
                       ? moved_by_sgd(context, *p, from, unscale)
                       : moved_by_adam(context, *p, from, unscale);
    if (rules_.keeping == Keeping::rest) {
      add_compensated(context, *p, moved);
      continue;
    }
    if (has_master) kept_.at(p->name).values = moved;
    p->value.values = std::move(moved);
    round(context, p->value, rules_.weight_rounding, p->name);
  }
}

Tensor& Optimizer::state_of(std::map<std::string, Tensor>& states, const Parameter& parameter,
                            const Format& format) const {
  const auto found = states.find(parameter.name);
  if (found != states.end()) return found->second;
  return states.emplace(parameter.name, zeros(parameter.value.shape, format)).first->second;
}

Values Optimizer::moved_by_sgd(const Context& context, const Parameter& p, const Tensor& from,
                               const Unscale& unscale) {
  const SgdStep step = sgd_step(rules_, !first_.contains(p.name));
  const bool compensates = rules_.keeping == OptimizerRules::Keeping::rest;
  Tensor none;
  const bool has_state = rules_.momentum != 0.0F;
  Tensor& velocity = has_state ? state_of(first_, p, rules_.first) : none;
  Values moved(from.values.size());
  context.for_ranges(from.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float g = unscale(p.gradient[i]), v = has_state ? velocity[i] : 0.0F;
      const SgdStep::Result r = compensates ? step.update(from[i], g, v) : step(from[i], g, v);
      moved[static_cast<std::size_t>(i)] = r.weight;
      if (has_state) velocity[i] = r.momentum;
    }
  });
  if (has_state) round(context, velocity, rules_.state_rounding, p.name + ".first");
  return moved;
}

Values Optimizer::moved_by_adam(const Context& context, const Parameter& p, const Tensor& from,
                                const Unscale& unscale) {
  const AdamStep step = adam_step(rules_, steps_);
  const bool compensates = rules_.keeping == OptimizerRules::Keeping::rest;
  Tensor& first = state_of(first_, p, rules_.first);
  Tensor& second = state_of(second_, p, rules_.second);
  Values moved(from.values.size());
  context.for_ranges(from.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float g = unscale(p.gradient[i]);
      AdamStep::Result r{};
      if (compensates) {
        r = step.update(from[i], g, first[i], second[i]);
        r.weight += step.decay(from[i]);
      } else {
        r = step(from[i], g, first[i], second[i]);
      }
      moved[static_cast<std::size_t>(i)] = r.weight;
      first[i] = r.first;
      second[i] = r.second;
    }
  });
  round(context, first, rules_.state_rounding, p.name + ".first");
  round(context, second, rules_.state_rounding, p.name + ".second");
  return moved;
}

void Optimizer::add_compensated(const Context& context, Parameter& p, const Values& update) {
  Tensor& rest = state_of(kept_, p, p.value.format);
  const Values before = p.value.values;
  for (std::int64_t i = 0; i < p.value.size(); ++i) {
    rest[i] = rest[i] - update[static_cast<std::size_t>(i)];  // what is wanted
    p.value[i] = p.value[i] + rest[i];
  }
  round(context, p.value, rules_.weight_rounding, p.name);
  for (std::int64_t i = 0; i < p.value.size(); ++i)
    rest[i] = compensated_rest(before[static_cast<std::size_t>(i)], rest[i], p.value[i]);
  round(context, rest, formats::Rounding::nearest_even, p.name + ".rest");
}

void Optimizer::round(const Context& context, Tensor& tensor, formats::Rounding rounding,
                      const std::string& stream) const {
  if (tensor.format == formats::fp32) return;
  constexpr auto container = formats::Packing::container;
  formats::ConversionOptions options;
  options.rounding = rounding;
  options.seed = Draws(seed_, stream).word(static_cast<std::uint64_t>(steps_));
  options.threads = context.threads();
  const auto count = tensor.values.size();
  std::vector<std::byte> codes(
      count * static_cast<std::size_t>(formats::container_bits(tensor.format) / 8));
  formats::convert_array(formats::fp32, container, std::as_bytes(std::span(tensor.values)),
                         tensor.format, container, codes, count, options);
  options.rounding = formats::Rounding::nearest_even;
  formats::convert_array(tensor.format, container, codes, formats::fp32, container,
                         std::as_writable_bytes(std::span(tensor.values)), count, options);
}

}  // namespace guardbit::experiments::training
