#include "experiments/training/optimizer.hpp"

#include <cmath>
#include <span>
#include <utility>

#include "experiments/random_numbers.hpp"
#include "experiments/training/arithmetic.hpp"
#include "formats/array_conversion.hpp"

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
                     float inverse_scale) {
  ++steps_;
  for (Parameter* p : parameters) {
    if (rules_.kind == OptimizerRules::Kind::sgd) {
      move_by_sgd(context, *p, inverse_scale);
    } else {
      move_by_adam(context, *p, inverse_scale);
    }
    round(context, p->value, rules_.weight_rounding, p->name);
  }
}

Tensor& Optimizer::state_of(std::map<std::string, Tensor>& states, const Parameter& parameter,
                            const Format& format) const {
  const auto found = states.find(parameter.name);
  if (found != states.end()) return found->second;
  return states.emplace(parameter.name, zeros(parameter.value.shape, format)).first->second;
}

void Optimizer::move_by_sgd(const Context& context, Parameter& p, float inverse_scale) {
  const SgdStep step = sgd_step(rules_, !first_.contains(p.name));
  Tensor none;
  const bool has_state = rules_.momentum != 0.0F;
  Tensor& velocity = has_state ? state_of(first_, p, rules_.first) : none;
  context.for_ranges(p.value.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const SgdStep::Result r =
          step(p.value[i], unscaled(p.gradient[i], inverse_scale), has_state ? velocity[i] : 0.0F);
      p.value[i] = r.weight;
      if (has_state) velocity[i] = r.momentum;
    }
  });
  if (has_state) round(context, velocity, rules_.state_rounding, p.name + ".first");
}

void Optimizer::move_by_adam(const Context& context, Parameter& p, float inverse_scale) {
  const AdamStep step = adam_step(rules_, steps_);
  Tensor& first = state_of(first_, p, rules_.first);
  Tensor& second = state_of(second_, p, rules_.second);
  context.for_ranges(p.value.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const AdamStep::Result r =
          step(p.value[i], unscaled(p.gradient[i], inverse_scale), first[i], second[i]);
      p.value[i] = r.weight;
      first[i] = r.first;
      second[i] = r.second;
    }
  });
  round(context, first, rules_.state_rounding, p.name + ".first");
  round(context, second, rules_.state_rounding, p.name + ".second");
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
