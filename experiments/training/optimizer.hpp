#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "experiments/training/context.hpp"
#include "experiments/training/training_arithmetic.hpp"
#include "experiments/training/training_tensor.hpp"
#include "formats/rounding.hpp"

namespace guardbit::experiments::training {

/// How weights move, and in which formats what they move by is kept.
struct OptimizerRules {
  enum class Kind : std::uint8_t { sgd, adam, adamw };
  friend constexpr auto words(Kind) { return std::array{"sgd", "adam", "adamw"}; }
  Kind kind = Kind::sgd;
  float learning_rate = 0.01F, momentum = 0.0F, weight_decay = 0.0F;
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;
  /// momentum, Adam's first moment
  Format first = formats::fp32;
  /// Adam's second moment
  Format second = formats::fp32;
  /// or stochastic
  formats::Rounding state_rounding = formats::Rounding::nearest_even;
  /// or stochastic
  formats::Rounding weight_rounding = formats::Rounding::nearest_even;
  /// What is kept beside a weight.
  enum class Keeping : std::uint8_t {
    nothing,
    /// what rounding took from its updates, in the weight's format (Kahan)
    rest,
    /// an FP32 weight, which updates move and the weight is rounded from
    master,
  };
  friend constexpr auto words(Keeping) { return std::array{"nothing", "rest", "master"}; }
  Keeping keeping = Keeping::nothing;
};

/// What the rules do to an element: in the first step that moves the weights or a later one, and
/// in step `steps`, counted from 1.
SgdStep sgd_step(const OptimizerRules& rules, bool first);
AdamStep adam_step(const OptimizerRules& rules, std::int64_t steps);

/// The optimizer's state between steps: a momentum, or two moments, for each parameter.
class Optimizer {
 public:
  Optimizer(const OptimizerRules& rules, std::uint64_t seed) : rules_(rules), seed_(seed) {}

  const OptimizerRules& rules() const { return rules_; }
  /// Moves the parameters by their gradients, unscaled. Arithmetic in FP32 (arithmetic.hpp);
  /// results are rounded once into their formats.
  void step(const Context& context, const std::vector<Parameter*>& parameters,
            const Unscale& unscale);

  std::int64_t steps() const { return steps_; }
  /// States by the parameters' names (`kept`: rests or masters), and the number of steps: for
  /// checkpoints.
  std::map<std::string, Tensor>& first() { return first_; }
  std::map<std::string, Tensor>& second() { return second_; }
  std::map<std::string, Tensor>& kept() { return kept_; }
  /// The format that `kept` has for a weight.
  Format kept_format(const Format& weight) const {
    return rules_.keeping == OptimizerRules::Keeping::master ? formats::fp32 : weight;
  }
  void set_steps(std::int64_t steps) { steps_ = steps; }

 private:
  /// Both give the moved weights, or with rests what is taken off them.
  Values moved_by_sgd(const Context& context, const Parameter& parameter, const Tensor& from,
                      const Unscale& unscale);
  Values moved_by_adam(const Context& context, const Parameter& parameter, const Tensor& from,
                       const Unscale& unscale);
  void add_compensated(const Context& context, Parameter& parameter, const Values& update);
  Tensor& state_of(std::map<std::string, Tensor>& states, const Parameter& parameter,
                   const Format& format) const;
  void round(const Context& context, Tensor& tensor, formats::Rounding rounding,
             const std::string& stream) const;

  OptimizerRules rules_;
  std::uint64_t seed_;
  std::int64_t steps_ = 0;
  std::map<std::string, Tensor> first_, second_, kept_;
};

}  // namespace guardbit::experiments::training
