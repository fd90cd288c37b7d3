#include "experiments/scaling/recipes.hpp"

#include <cmath>

#include "experiments/scaling/element_grid.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments {

namespace {

std::string with_exponent(const std::string& name, int exponent) {
  return exponent == 0 ? name : name + "@2^" + std::to_string(exponent);
}

void add_tensor_recipes(std::vector<Recipe>& all, const std::string& name,
                        const formats::Format& element, const RecipeVariants& variants) {
  const auto add = [&](const std::string& suffix, Scaling scaling) -> Recipe& {
    Recipe recipe;
    recipe.name = name + suffix;
    recipe.element = element;
    recipe.scaling = scaling;
    recipe.tensor_bytes = 4;
    recipe.delayed.largest = static_cast<float>(ElementGrid(element).largest());
    all.push_back(recipe);
    return all.back();
  };
  add("_tensor", Scaling::te_current);
  add("_tensor_pow2", Scaling::te_current_power);
  add("_tensor_torchao", Scaling::torchao);
  add("_tensor_torchao_pow2", Scaling::torchao_power);
  for (const std::size_t history : variants.histories) {
    for (const auto algorithm :
         {DelayedRules::Algorithm::max, DelayedRules::Algorithm::most_recent}) {
      const bool is_max = algorithm == DelayedRules::Algorithm::max;
      // The most recent amax needs no window: its length changes nothing.
      if (!is_max && history != variants.histories.front()) continue;
      const bool is_usual = !is_max || history == DelayedRules().history;
      Recipe& recipe = add(std::string("_delayed_") + (is_max ? "max" : "most_recent") +
                               (is_usual ? "" : "_L" + std::to_string(history)),
                           Scaling::te_delayed);
      recipe.delayed.algorithm = algorithm;
      recipe.delayed.history = history;
      recipe.delayed.margin = variants.margin;
    }
  }
}

void add_tile_recipes(std::vector<Recipe>& all, const std::string& name,
                      const formats::Format& element) {
  for (const Grouping grouping : {Grouping{1, 128}, Grouping{128, 128}}) {
    const std::string tile =
        name + "_" + std::to_string(grouping.rows) + "x" + std::to_string(grouping.columns);
    for (const bool power : {false, true}) {
      for (const float floor : {0.0F, 1e-4F}) {
        Recipe recipe;
        recipe.name = tile + (power ? "_ue8m0" : "") + (floor > 0 ? "_floor1e-4" : "");
        recipe.element = element;
        recipe.scaling = power ? Scaling::deepgemm_power : Scaling::deepgemm;
        recipe.grouping = grouping;
        recipe.floor = floor;
        recipe.scale_bytes = power ? 1 : 4;
        all.push_back(recipe);
      }
    }
  }
}

void add_mx_recipes(std::vector<Recipe>& all, const std::string& name,
                    const formats::Format& element) {
  for (const MxMode mode : {MxMode::floor, MxMode::ceil, MxMode::even, MxMode::rceil}) {
    Recipe recipe;
    recipe.name = name + "_" + std::string(formats::word_of(mode));
    recipe.element = element;
    recipe.scaling = Scaling::mx;
    recipe.mx_mode = mode;
    recipe.grouping = {1, 32};
    recipe.scale_bytes = 1;
    all.push_back(recipe);
  }
}

}  // namespace

std::vector<Recipe> known_recipes(const RecipeVariants& variants) {
  std::vector<Recipe> all;
  const auto add_fixed = [&](const std::string& name, const formats::Format& element,
                             int exponent) {
    Recipe recipe;
    recipe.name = with_exponent(name, exponent);
    recipe.element = element;
    recipe.exponent = exponent;
    recipe.saturates = false;
    all.push_back(recipe);
  };
  for (const int exponent : variants.exponents) add_fixed("fp16", formats::fp16, exponent);
  add_fixed("bf16", formats::bf16, 0);
  add_tensor_recipes(all, "e4m3", formats::e4m3, variants);
  add_tensor_recipes(all, "e5m2", formats::e5m2, variants);
  add_mx_recipes(all, "mxfp8_e4m3", formats::e4m3);
  add_mx_recipes(all, "mxfp8_e5m2", formats::e5m2);
  add_mx_recipes(all, "mxfp6_e3m2", formats::e3m2);
  add_mx_recipes(all, "mxfp6_e2m3", formats::e2m3);
  add_mx_recipes(all, "mxfp4", formats::e2m1);
  add_tile_recipes(all, "e4m3", formats::e4m3);
  for (const Nvfp4Rule rule : {Nvfp4Rule::transformer_engine, Nvfp4Rule::torchao}) {
    Recipe recipe;
    recipe.name = rule == Nvfp4Rule::torchao ? "nvfp4_torchao" : "nvfp4";
    recipe.element = formats::e2m1;
    recipe.scaling = Scaling::nvfp4;
    recipe.nvfp4_rule = rule;
    recipe.grouping = {1, 16};
    recipe.scale_bytes = 1;
    recipe.tensor_bytes = 4;
    all.push_back(recipe);
  }
  return all;
}

void RecipeOutcome::add(const RecipeOutcome& other) {
  underflow += other.underflow;
  saturated += other.saturated;
  nonfinite += other.nonfinite;
  groups += other.groups;
  bytes += other.bytes;
  noise.add(other.noise);
}

std::uint64_t stored_bytes(const Recipe& recipe, std::uint64_t elements, std::uint64_t groups) {
  const auto width = static_cast<std::uint64_t>(bits(recipe.element));
  // Eight elements take `width` whole bytes.
  return elements / 8 * width + (elements % 8 * width + 7) / 8 +
         groups * static_cast<std::uint64_t>(recipe.scale_bytes) +
         static_cast<std::uint64_t>(recipe.tensor_bytes);
}

DelayedScale& RecipeState::delayed(const Recipe& recipe) {
  return delayed_.try_emplace(recipe.name, recipe.delayed).first->second;
}

void Signal::add(const Signal& other) {
  elements += other.elements;
  finite += other.finite;
  nonzero += other.nonzero;
  squares.add(other.squares);
}

std::optional<double> sqnr_db(const Signal& signal, const RecipeOutcome& outcome) {
  if (outcome.nonfinite != 0 || signal.squares.is_zero() || outcome.noise.is_zero())
    return std::nullopt;
  return 10 * std::log10(signal.squares.nearest() / outcome.noise.nearest());
}

}  // namespace guardbit::experiments
