#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/harness/settings.hpp"

namespace guardbit::experiments {

class Run;
struct Outcome;

/// The trace in the repository: gradients of layer outputs at steps 200 and 599 of FP32 training of
/// a small MLP on scikit-learn's digits, on an H200.
inline constexpr std::string_view own_trace = "tests/golden/traces/digits_mlp_grad_out.npz";
inline constexpr std::string_view own_trace_source =
    "NumPy counts of the same trace (digits MLP, H200)";

/// Evenly spaced samples of a transformer's gradients at steps 40 and 1199 of FP32 training, of
/// weights, too (tests/golden/traces/README.md).
inline constexpr std::string_view transformer_trace =
    "tests/golden/traces/transformer_fp32.safetensors";

/// Numbers of the tensors of one step and role, tensor after tensor; those of FP64 as they are.
struct StepGradients {
  std::vector<std::vector<double>> tensors;
  double nonzero() const;
};
StepGradients gradients_of(Run& run, const std::string& path, std::int64_t step,
                           std::string_view role);

/// The parameters `trace` and `step` that these experiments share.
std::vector<Parameter> trace_parameters();

/// Where the trace is; nothing, which the outcome then says, if it is the project's own and absent.
std::optional<std::string> trace_at(const std::string& name, Outcome& outcome);

}  // namespace guardbit::experiments
