#include "experiments/training/precision.hpp"

#include <array>
#include <cstddef>

#include "emulator/catalogue/usual_instruction.hpp"
#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"

namespace guardbit::experiments::training {

namespace {

using emulator::MatrixInstruction;

constexpr std::array policy = {
    CastRule{Operation::linear, "linear", Cast::low_precision},
    CastRule{Operation::conv2d, "conv2d", Cast::low_precision},
    CastRule{Operation::matmul, "matmul", Cast::low_precision},
    CastRule{Operation::relu, "relu", Cast::as_it_is},
    CastRule{Operation::gelu, "gelu", Cast::as_it_is},
    CastRule{Operation::max_pool2d, "max_pool2d", Cast::as_it_is},
    CastRule{Operation::layer_norm, "layer_norm", Cast::fp32},
    CastRule{Operation::rms_norm, "rms_norm", Cast::as_it_is},
    CastRule{Operation::softmax, "softmax", Cast::fp32},
    CastRule{Operation::cross_entropy, "cross_entropy", Cast::fp32},
    CastRule{Operation::embedding, "embedding", Cast::as_it_is},
    CastRule{Operation::add, "add", Cast::widest},
};

/// A recipe without its unit.
struct RecipeRow {
  std::string_view name, title, usual_arch;
  struct {
    Format weights, low, operand, gradient;
  } formats;
  bool autocast = false;
  OperandScaling scaling = OperandScaling::none;
  bool scaler = false;
  int integer_bits = 0;
};

using formats::bf16;
using formats::e2m1;
using formats::e4m3;
using formats::e5m2;
using formats::fp16;
using formats::fp32;
using formats::tf32;
using enum OperandScaling;

constexpr std::array rows = {
    RecipeRow{"fp32", "FP32, chains of fused multiply-adds", "simt", {fp32, fp32, fp32, fp32}},
    RecipeRow{"eigen",
              "FP32 by Eigen: a yardstick for speed, no model",
              "simt",
              {fp32, fp32, fp32, fp32}},
    RecipeRow{"tf32", "FP32 tensors, products in TF32", "sm_80", {fp32, fp32, tf32, tf32}},
    RecipeRow{.name = "fp16_amp",
              .title = "FP16 by autocast, FP32 weights, loss scaler",
              .usual_arch = "sm_90",
              .formats = {fp32, fp16, fp16, fp16},
              .autocast = true,
              .scaler = true},
    RecipeRow{"fp16_amp_unscaled",
              "FP16 by autocast, FP32 weights, no loss scaler",
              "sm_90",
              {fp32, fp16, fp16, fp16},
              true},
    RecipeRow{
        "bf16_amp", "BF16 by autocast, FP32 weights", "sm_90", {fp32, bf16, bf16, bf16}, true},
    RecipeRow{"fp16", "everything in FP16", "sm_90", {fp16, fp16, fp16, fp16}},
    RecipeRow{"bf16", "everything in BF16", "sm_90", {bf16, bf16, bf16, bf16}},
    RecipeRow{"fp8_delayed",
              "BF16 by autocast, products in E4M3 and E5M2, delayed scaling",
              "sm_90",
              {fp32, bf16, e4m3, e5m2},
              true,
              delayed},
    RecipeRow{"fp8_current",
              "BF16 by autocast, products in E4M3 and E5M2, current scaling",
              "sm_90",
              {fp32, bf16, e4m3, e5m2},
              true,
              current},
    RecipeRow{.name = "int8_qat",
              .title = "FP32, products' operands fake-quantised to INT8",
              .usual_arch = "simt",
              .formats = {fp32, fp32, fp32, fp32},
              .integer_bits = 8},
    RecipeRow{.name = "int4_qat",
              .title = "FP32, products' operands fake-quantised to INT4",
              .usual_arch = "simt",
              .formats = {fp32, fp32, fp32, fp32},
              .integer_bits = 4},
    RecipeRow{"mxfp8",
              "BF16 by autocast, products in E4M3 in blocks of 32",
              "sm_100",
              {fp32, bf16, e4m3, e4m3},
              true,
              mx},
    RecipeRow{"nvfp4",
              "BF16 by autocast, products in E2M1 in blocks of 16",
              "sm_100",
              {fp32, bf16, e2m1, e2m1},
              true,
              nvfp4},
};

bool has_scales(const MatrixInstruction& instruction, OperandScaling scaling) {
  if (scaling == OperandScaling::mx)
    return instruction.scale.format == formats::e8m0 &&
           instruction.scale.count * 32 == instruction.shape.k;
  if (scaling == OperandScaling::nvfp4)
    return instruction.scale.format == formats::ue4m3 &&
           instruction.scale.count * 16 == instruction.shape.k;
  return instruction.scale.count == 0;
}

/// The unit that libraries of the architecture take to multiply a by b into FP32.
emulator::GemmUnit unit_for(std::string_view arch, const Format& a, const Format& b,
                            OperandScaling scaling, std::string_view where) {
  const std::string_view page = emulator::require_page(arch, where);
  const auto found = emulator::usual_instruction(
      page, {a, b, fp32}, emulator::newest_toolkit,
      [&](const MatrixInstruction& instruction) { return has_scales(instruction, scaling); });
  if (!found)
    throw formats::Error(std::string(where),
                         std::string(arch) + " has no unit that multiplies " + formats::name_of(a) +
                             " by " + formats::name_of(b) + " into fp32",
                         "see 'guardbit list --arch " + std::string(arch) + "'");
  return {std::string(page), std::string(std::string_view(found->name))};
}

std::array<emulator::GemmPlan, passes> plans_of(const RecipeRow& row, std::string_view arch,
                                                std::string_view where) {
  std::array<emulator::GemmPlan, passes> plans;
  if (arch == "simt") return plans;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    // The gradient by the output is the first operand of both backward products.
    const Format a =
        static_cast<Pass>(pass) == Pass::forward ? row.formats.operand : row.formats.gradient;
    plans.at(pass).unit = unit_for(arch, a, row.formats.operand, row.scaling, where);
    // Transformer Engine accumulates quickly forward and precisely backward; Hopper's precise way
    // with FP8 is a sum in FP32 of chains of 128 (EXPERIMENTS E09).
    const bool is_fp8 =
        formats::bits(row.formats.operand) == 8 && row.scaling != OperandScaling::mx;
    if (is_fp8 && static_cast<Pass>(pass) != Pass::forward && plans.at(pass).unit.arch == "sm_90")
      plans.at(pass).promotion.interval = 128;
  }
  return plans;
}

}  // namespace

std::span<const CastRule> autocast_policy() { return policy; }

const CastRule& rule_of(Operation operation) {
  return policy.at(static_cast<std::size_t>(operation));
}

PrecisionRecipe require_recipe(std::string_view name, std::string_view arch,
                               std::string_view where) {
  std::vector<std::string_view> known;
  std::string list;
  for (const RecipeRow& row : rows) {
    known.push_back(row.name);
    list += (list.empty() ? "" : ", ") + std::string(row.name);
    if (row.name != name) continue;
    PrecisionRecipe recipe;
    recipe.name = name;
    recipe.title = row.title;
    recipe.weights = row.formats.weights;
    recipe.autocast = row.autocast;
    recipe.low = row.formats.low;
    recipe.operand = row.formats.operand;
    recipe.gradient = row.formats.gradient;
    recipe.scaling = row.scaling;
    recipe.eigen = name == "eigen";
    recipe.plans = plans_of(row, arch.empty() ? row.usual_arch : arch, where);
    if (row.integer_bits != 0) recipe.quantisation = FakeQuantisation{.bits = row.integer_bits};
    if (row.scaler) recipe.scaler = find_scaler("pytorch");
    return recipe;
  }
  throw formats::Error(std::string(where), formats::unknown_name("recipe", name, known), list);
}

}  // namespace guardbit::experiments::training
