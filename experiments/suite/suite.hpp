#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "experiments/harness/experiment.hpp"

namespace guardbit::experiments {

/// Every experiment, by its number.
const std::vector<Experiment>& suite();

/// The experiment of that name, slug, or both as its file is named (e08_fp8_accumulation_width), in
/// any case. Throws formats::Error, beginning with `where`.
const Experiment& require_experiment(std::string_view name, std::string_view where);

// One file each.
Experiment fp16_underflow();
Experiment sufficient_loss_scale();
Experiment weight_gradients();
Experiment lost_weight_updates();
Experiment stale_weights();
Experiment stochastic_weights();
Experiment scaler_dynamics();
Experiment fp8_accumulation_width();
Experiment promotion_interval();
Experiment exact_width();
Experiment tensor_core_fingerprint();
Experiment accumulation_order();
Experiment block_fma_bound();
Experiment probabilistic_bound();
Experiment tf32_matmul();
Experiment tf32_bug_report();
Experiment split_products();
Experiment bf16_pieces();
Experiment integer_slices();
Experiment fp8_formats();
Experiment delayed_scaling();
Experiment mx_scale_mode_clips();
Experiment rceil_is_not_ceil();
Experiment fp4_formats();
Experiment tile_scales();
Experiment calibrators();
Experiment straight_through_borders();
Experiment structured_pruning();
Experiment fused_stores();
Experiment reductions();
Experiment roofline();
Experiment cnn_precisions();
Experiment tile_padding();
Experiment error_by_architecture();
Experiment order_sensitivity();
Experiment units_of_a_machine();
Experiment online_softmax();
Experiment optimizer_updates();
Experiment approximate_functions();
Experiment same_unit();
Experiment functions_of_vendors();

}  // namespace guardbit::experiments
