#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "experiments/scaling/block_scales.hpp"
#include "experiments/scaling/loss_scaler.hpp"
#include "experiments/training/fake_quantisation.hpp"
#include "formats/format.hpp"

namespace guardbit::experiments::training {

using formats::Format;

/// The operations of layers, by the names that PyTorch has for them.
enum class Operation : std::uint8_t {
  linear,
  conv2d,
  matmul,
  relu,
  gelu,
  max_pool2d,
  layer_norm,
  rms_norm,
  softmax,
  cross_entropy,
  embedding,
  add,
};

/// What autocast does to an operation's inputs.
enum class Cast : std::uint8_t {
  /// to the format that autocast is asked for
  low_precision,
  fp32,
  as_it_is,
  /// to the widest of the inputs' formats
  widest,
};

/// PyTorch 2.11's policy on CUDA (aten/src/ATen/autocast_mode.cpp), for the operations here.
struct CastRule {
  Operation operation;
  std::string_view name;
  Cast cast;
};
std::span<const CastRule> autocast_policy();
const CastRule& rule_of(Operation operation);

/// The three products of a layer.
enum class Pass : std::uint8_t { forward, input_gradient, weight_gradient };
constexpr auto words(Pass) { return std::array{"forward", "input_gradient", "weight_gradient"}; }
inline constexpr std::size_t passes = 3;

/// How the operands of products get their scales.
enum class OperandScaling : std::uint8_t {
  none,
  /// of the tensor, from the steps before (Transformer Engine)
  delayed,
  /// of the tensor, from itself
  current,
  /// of blocks of 32 along K, E8M0
  mx,
  /// of blocks of 16 along K, E4M3, and of the tensor
  nvfp4,
};

/// What decides the bits of a training run beside the model, data and optimizer.
struct PrecisionRecipe {
  std::string name, title;
  /// parameters, as the optimizer keeps them
  Format weights{};
  /// the policy is in force, with this format:
  bool autocast = false;
  /// of what runs in low precision
  Format low{};
  /// of products: activations and weights; gradients
  Format operand{}, gradient{};
  OperandScaling scaling = OperandScaling::none;
  /// Scaling::delayed; `largest` follows from the format
  DelayedRules delayed{};
  /// of each product; what leaves it is rounded by the layer
  std::array<emulator::GemmPlan, passes> plans;
  /// products by Eigen instead: a yardstick, no model
  bool eigen = false;
  /// of products' operands, before all else
  std::optional<FakeQuantisation> quantisation;
  std::optional<ScalerRules> scaler;
  /// of the loss, where there is no scaler
  double fixed_scale = 1;
};

/// A recipe on an architecture's matrix unit ("" for the recipe's usual one). formats::Error that
/// begins with `where` for an unknown recipe or an architecture without such a unit.
PrecisionRecipe require_recipe(std::string_view name, std::string_view arch,
                               std::string_view where);

}  // namespace guardbit::experiments::training
