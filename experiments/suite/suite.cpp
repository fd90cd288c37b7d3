#include "experiments/suite/suite.hpp"

#include <string>

#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"

namespace guardbit::experiments {

const std::vector<Experiment>& suite() {
  static const std::vector<Experiment> experiments = {
      fp16_underflow(),
      sufficient_loss_scale(),
      weight_gradients(),
      lost_weight_updates(),
      stale_weights(),
      stochastic_weights(),
      scaler_dynamics(),
      fp8_accumulation_width(),
      promotion_interval(),
      exact_width(),
      tensor_core_fingerprint(),
      accumulation_order(),
      block_fma_bound(),
      probabilistic_bound(),
      tf32_matmul(),
      tf32_bug_report(),
      split_products(),
      bf16_pieces(),
      integer_slices(),
      fp8_formats(),
      delayed_scaling(),
      mx_scale_mode_clips(),
      rceil_is_not_ceil(),
      fp4_formats(),
      tile_scales(),
      calibrators(),
      straight_through_borders(),
      structured_pruning(),
      fused_stores(),
      reductions(),
      roofline(),
      cnn_precisions(),
      tile_padding(),
      error_by_architecture(),
      order_sensitivity(),
      units_of_a_machine(),
      online_softmax(),
      optimizer_updates(),
      approximate_functions(),
      same_unit(),
      functions_of_vendors(),
  };
  return experiments;
}

const Experiment& require_experiment(std::string_view name, std::string_view where) {
  const std::string wanted = formats::lower_case(name);
  std::vector<std::string_view> names;
  for (const Experiment& x : suite()) {
    const std::string number = formats::lower_case(x.name);
    if (wanted == number || wanted == x.slug || wanted == number + "_" + std::string(x.slug))
      return x;
    names.push_back(x.name);
    names.push_back(x.slug);
  }
  std::string valid;
  for (const Experiment& x : suite()) valid += (valid.empty() ? "" : ", ") + std::string(x.name);
  throw formats::Error(std::string(where), formats::unknown_name("experiment", name, names), valid);
}

}  // namespace guardbit::experiments
