#include "experiments/recipes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "experiments/element_grid.hpp"
#include "formats/catalogue.hpp"

namespace guardbit::experiments {

namespace {

/// Squares of doubles, exactly: integers of 106 bits, added up by their exponents.
class Squares {
 public:
  /// x is zero or normal: numbers of FP32 and differences of such with what comes back are.
  void add(double x) {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
    const std::uint64_t exponent = (bits >> 52) & 0x7FFU;
    if (exponent == 0) return;
    const std::uint64_t one = std::uint64_t{1} << 52;
    const std::uint64_t significand = (bits & (one - 1)) | one;
    by_exponent_[exponent].add(formats::uint128{significand} * significand);
  }

  void add_to(ExactSum& sum) const {
    for (std::size_t exponent = 0; exponent < by_exponent_.size(); ++exponent) {
      if (by_exponent_[exponent] != Sum192{})
        sum.add(by_exponent_[exponent], 2 * (static_cast<int>(exponent) - 1075));
    }
  }

 private:
  std::vector<Sum192> by_exponent_ = std::vector<Sum192>(2048);
};

/// Codes back to back, and the scales.
std::uint64_t stored_bytes(const Recipe& recipe, std::uint64_t elements, std::uint64_t groups) {
  const auto width = static_cast<std::uint64_t>(bits(recipe.element));
  // Eight elements take `width` whole bytes.
  return elements / 8 * width + (elements % 8 * width + 7) / 8 +
         groups * static_cast<std::uint64_t>(recipe.scale_bytes) +
         static_cast<std::uint64_t>(recipe.tensor_bytes);
}

class Pass {
 public:
  Pass(const Recipe& recipe, const TensorValues& tensor)
      : recipe_(recipe), tensor_(tensor), grid_(recipe.element) {}

  RecipeOutcome outcome;
  std::uint64_t groups = 0;

  /// Elements [begin, end) with one scale.
  void store(std::size_t begin, std::size_t end, const GroupScale& scale) {
    for (std::size_t i = begin; i < end; ++i) store(tensor_.values[i], scale);
  }

  /// After the last element.
  void finish() {
    noise_.add_to(outcome.noise);
    outcome.bytes = stored_bytes(recipe_, tensor_.values.size(), groups);
  }

  float amax(std::size_t begin, std::size_t end) const {
    return amax_of(tensor_.values.data() + begin, end - begin);
  }

 private:
  void store(float x, const GroupScale& scale) {
    if (!std::isfinite(x)) return;
    const double y = static_cast<double>(scale.divides ? x / scale.encode : x * scale.encode);
    bool is_past = false;
    double stored = y;
    if (std::isfinite(y)) {
      const ElementGrid::Rounded rounded = grid_.nearest(y);
      stored = rounded.value;
      is_past = rounded.is_past_largest;
    } else if (std::isinf(y)) {
      stored = std::copysign(grid_.largest(), y);
      is_past = true;
    }
    const double back = stored * scale.decode;
    // What a scale of zero takes away was not clamped, though its code is the largest.
    const bool is_lost = x != 0 && back == 0;
    if (is_past && !is_lost) ++outcome.saturated;
    if ((is_past && !recipe_.saturates) || !std::isfinite(back)) {
      ++outcome.nonfinite;
      return;
    }
    if (is_lost) ++outcome.underflow;
    noise_.add(static_cast<double>(x) - back);
  }

  const Recipe& recipe_;
  const TensorValues& tensor_;
  ElementGrid grid_;
  Squares noise_;
};

/// Calls body(begin, end) for each run of `length` elements.
void for_runs(const TensorValues& tensor, std::size_t length, Layout layout,
              const std::function<void(std::size_t, std::size_t)>& body) {
  const std::size_t count = tensor.values.size();
  const std::size_t row = layout == Layout::flat ? count : tensor.columns;
  for (std::size_t start = 0; start < count; start += row) {
    for (std::size_t begin = start; begin < start + row; begin += length)
      body(begin, std::min(begin + length, start + row));
  }
}

GroupScale run_scale(const Recipe& recipe, const Nvfp4Scales& nvfp4, float amax) {
  const auto largest = static_cast<float>(ElementGrid(recipe.element).largest());
  switch (recipe.scaling) {
    case Scaling::fixed:
      return {std::ldexp(1.0F, recipe.exponent), std::ldexp(1.0, -recipe.exponent), false};
    case Scaling::te_current: return te_current_scale(amax, largest, false);
    case Scaling::te_current_power: return te_current_scale(amax, largest, true);
    case Scaling::torchao: return torchao_scale(amax, largest, false);
    case Scaling::torchao_power: return torchao_scale(amax, largest, true);
    case Scaling::te_delayed: break;  // does not depend on this step's amax
    case Scaling::mx: return mx_scale(recipe.mx_mode, recipe.element, amax);
    case Scaling::nvfp4: return nvfp4.block(amax);
    case Scaling::deepgemm: return deepgemm_scale(amax, largest, recipe.floor, false);
    case Scaling::deepgemm_power: return deepgemm_scale(amax, largest, recipe.floor, true);
  }
  return {};
}

/// Tiles of several rows: the tensor as a matrix of its last dimension.
void store_tiles(Pass& pass, const Recipe& recipe, const TensorValues& tensor) {
  const Nvfp4Scales none(recipe.nvfp4_rule, 1);
  const std::size_t columns = tensor.columns;
  const std::size_t rows = columns == 0 ? 0 : tensor.values.size() / columns;
  const auto tile_rows = static_cast<std::size_t>(recipe.grouping.rows);
  const auto tile_columns = static_cast<std::size_t>(recipe.grouping.columns);
  for (std::size_t r = 0; r < rows; r += tile_rows) {
    for (std::size_t c = 0; c < columns; c += tile_columns) {
      const std::size_t below = std::min(r + tile_rows, rows);
      const std::size_t after = std::min(c + tile_columns, columns);
      std::vector<float> amaxes;
      for (std::size_t row = r; row < below; ++row)
        amaxes.push_back(pass.amax(row * columns + c, row * columns + after));
      const GroupScale scale = run_scale(recipe, none, amax_of(amaxes.data(), amaxes.size()));
      for (std::size_t row = r; row < below; ++row)
        pass.store(row * columns + c, row * columns + after, scale);
      ++pass.groups;
    }
  }
}

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
    recipe.name = name + "_" + std::string(name_of(mode));
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
  bytes += other.bytes;
  noise.add(other.noise);
}

DelayedScale& RecipeState::delayed(const Recipe& recipe) {
  return delayed_.try_emplace(recipe.name, recipe.delayed).first->second;
}

RecipeOutcome apply(const Recipe& recipe, const TensorValues& tensor, Layout layout,
                    RecipeState& state) {
  Pass pass(recipe, tensor);
  const std::size_t count = tensor.values.size();
  if (count == 0) return pass.outcome;
  const float amax = pass.amax(0, count);
  const Nvfp4Scales nvfp4(recipe.nvfp4_rule, amax);
  if (recipe.scaling == Scaling::te_delayed) {
    DelayedScale& delayed = state.delayed(recipe);
    pass.store(0, count, delayed.group());
    ++pass.groups;
    delayed.observe(amax);
    delayed.update();
  } else if (recipe.grouping.columns == 0) {
    pass.store(0, count, run_scale(recipe, nvfp4, amax));
    ++pass.groups;
  } else if (recipe.grouping.rows > 1) {
    store_tiles(pass, recipe, tensor);
  } else {
    for_runs(tensor, static_cast<std::size_t>(recipe.grouping.columns), layout,
             [&](std::size_t begin, std::size_t end) {
               pass.store(begin, end, run_scale(recipe, nvfp4, pass.amax(begin, end)));
               ++pass.groups;
             });
  }
  pass.finish();
  return pass.outcome;
}

void Signal::add(const Signal& other) {
  elements += other.elements;
  finite += other.finite;
  nonzero += other.nonzero;
  squares.add(other.squares);
}

Signal signal_of(std::span<const float> values) {
  Signal signal;
  Squares squares;
  signal.elements = values.size();
  for (const float x : values) {
    if (!std::isfinite(x)) continue;
    ++signal.finite;
    signal.nonzero += x != 0 ? 1 : 0;
    squares.add(static_cast<double>(x));
  }
  squares.add_to(signal.squares);
  return signal;
}

std::optional<double> sqnr_db(const Signal& signal, const RecipeOutcome& outcome) {
  if (outcome.nonfinite != 0 || signal.squares.is_zero() || outcome.noise.is_zero())
    return std::nullopt;
  return 10 * std::log10(signal.squares.nearest() / outcome.noise.nearest());
}

}  // namespace guardbit::experiments
