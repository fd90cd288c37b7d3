#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace guardbit::experiments {

/// What a recorded tensor is, as its name tells.
struct TraceName {
  std::optional<std::uint64_t> step, rank;
  /// without step, rank and role
  std::string tensor;
  /// wgrad, grad_out, grad_in, act, weight or update; empty: not known
  std::string role;

  bool is_gradient() const { return role == "wgrad" || role == "grad_out" || role == "grad_in"; }
  /// "fc1 (wgrad)"
  std::string tensor_and_role() const { return role.empty() ? tensor : tensor + " (" + role + ")"; }

  /// "step 3, rank 0, " as far as they are known, and the whole name
  std::string place_text(const std::string& name) const;

  friend bool operator==(const TraceName&, const TraceName&) = default;
};

/// Reads `step0100.2.weight.grad`, `s200.7.gout`, `rank_0/iter_5/fc1.act`, `fc1.weight.grad/step3`
/// and the like: parts between dots and slashes. A part of `step`, `s`, `iter` or `iteration` and
/// digits is the step, one of `rank` or `r` and digits the rank: at the end of the name, else the
/// first of each (single letters in front only). The last of the other parts may be a role. Where
/// it is none, or only says what a parameter is called (`weight`, `bias`), the first part may:
/// `grads.fc1.weight`. What is left is the tensor.
TraceName parse_trace_name(std::string_view name);

/// Step and rank alone, of the path of a file without its extension: as above, or between other
/// words of a part, as in `grads_step100_rank2`, where the last of each counts.
TraceName places_of_path(std::string_view path);

/// The role that a word stands for: `grad`, `grads`, `gradients`, `wgrad`, `weight_grad`: wgrad;
/// `gout`, `ograd`, `agrad`, `dgrad`, `grad_out`, `grad_output`: grad_out; `gin`, `igrad`,
/// `grad_in`, `grad_input`: grad_in; `act`, `activation`: act; `weight`, `bias`, `param`: weight;
/// `update`, `updates`, `delta`: update.
std::optional<std::string_view> role_of(std::string_view word);

}  // namespace guardbit::experiments
