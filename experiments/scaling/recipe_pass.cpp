#include "experiments/scaling/recipe_pass.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>

#include "formats/conversion/array_conversion.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/parallel.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::experiments {

namespace {

constexpr std::size_t piece_length = std::size_t{1} << 20;

std::size_t quotient_up(std::size_t x, std::size_t y) { return x / y + (x % y != 0 ? 1 : 0); }

/// Calls body(begin, end) for the parts of runs of `length` elements, counted from the start of
/// each row, that the `count` elements from index `first` on are.
template <class Body>
void for_runs(std::size_t first, std::size_t count, std::size_t row_length, std::size_t length,
              const Body& body) {
  std::size_t column = first % row_length;
  for (std::size_t begin = 0; begin < count;) {
    const std::size_t some =
        std::min({length - column % length, row_length - column, count - begin});
    body(begin, begin + some);
    column = column + some == row_length ? 0 : column + some;
    begin += some;
  }
}

float larger(float a, float b) {
  const std::array both = {a, b};
  return amax_of(both.data(), both.size());
}

}  // namespace

Extent extent_of(const formats::Tensor& tensor) {
  Extent extent;
  extent.count = static_cast<std::size_t>(formats::element_count(tensor.shape));
  if (!tensor.shape.empty()) extent.columns = static_cast<std::size_t>(tensor.shape.back());
  return extent;
}

GroupMagnitudes::GroupMagnitudes(const Extent& extent, bool with_tiles)
    : extent_(extent), tiles_across_(quotient_up(extent.columns, longest_run)) {
  if (!with_tiles || extent.count == 0) return;
  tiles_.resize(tiles_across_ * quotient_up(extent.count / extent.columns, longest_run));
}

std::size_t GroupMagnitudes::tile_of(std::size_t index) const {
  const std::size_t row = index / extent_.columns;
  return row / longest_run * tiles_across_ + index % extent_.columns / longest_run;
}

void GroupMagnitudes::look(std::span<const float> values, std::size_t first) {
  if (tiles_.empty()) {
    whole_ = larger(whole_, amax_of(values.data(), values.size()));
    return;
  }
  for_runs(first, values.size(), extent_.columns, longest_run,
           [&](std::size_t begin, std::size_t end) {
             float& tile = tiles_[tile_of(first + begin)];
             tile = larger(tile, amax_of(values.data() + begin, end - begin));
           });
}

float GroupMagnitudes::whole() const {
  return larger(whole_, amax_of(tiles_.data(), tiles_.size()));
}

bool has_tiles(const Recipe& recipe) { return recipe.grouping.rows > 1; }

bool needs_magnitudes(const Recipe& recipe) {
  if (recipe.scaling == Scaling::fixed) return false;
  return recipe.grouping.columns == 0 || has_tiles(recipe) || recipe.scaling == Scaling::nvfp4;
}

RecipePass::RecipePass(const Recipe& recipe, const Extent& extent, Layout layout,
                       const GroupMagnitudes& magnitudes, RecipeState& state)
    : recipe_(recipe),
      extent_(extent),
      row_length_(has_tiles(recipe) ? extent.columns : extent.row_length(layout)),
      magnitudes_(magnitudes),
      grid_(recipe.element),
      nvfp4_(recipe.nvfp4_rule, magnitudes.whole()) {
  assert(!has_tiles(recipe) || magnitudes.tiles() != 0 || extent.count == 0);
  if (recipe.scaling == Scaling::te_delayed && extent.count != 0) {
    DelayedScale& delayed = state.delayed(recipe);
    whole_ = delayed.group();
    delayed.observe(magnitudes.whole());
    delayed.update();
  } else if (recipe.grouping.columns == 0) {
    whole_ = scale_of(magnitudes.whole());
  }
}

GroupScale RecipePass::scale_of(float amax) const {
  const auto largest = static_cast<float>(grid_.largest());
  switch (recipe_.scaling) {
    case Scaling::fixed:
      return {std::ldexp(1.0F, recipe_.exponent), std::ldexp(1.0, -recipe_.exponent), false};
    case Scaling::te_current: return te_current_scale(amax, largest, false);
    case Scaling::te_current_power: return te_current_scale(amax, largest, true);
    case Scaling::torchao: return torchao_scale(amax, largest, false);
    case Scaling::torchao_power: return torchao_scale(amax, largest, true);
    case Scaling::te_delayed: break;  // does not depend on this step's amax
    case Scaling::mx: return mx_scale(recipe_.mx_mode, recipe_.element, amax);
    case Scaling::nvfp4: return nvfp4_.block(amax);
    case Scaling::deepgemm: return deepgemm_scale(amax, largest, recipe_.floor, false);
    case Scaling::deepgemm_power: return deepgemm_scale(amax, largest, recipe_.floor, true);
  }
  return {};
}

void RecipePass::store(float x, const GroupScale& scale) {
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
  if (is_past && !is_lost) ++outcome_.saturated;
  if ((is_past && !recipe_.saturates) || !std::isfinite(back)) {
    ++outcome_.nonfinite;
    return;
  }
  if (is_lost) ++outcome_.underflow;
  noise_.add(static_cast<double>(x) - back);
}

void RecipePass::store(std::span<const float> values, std::size_t first) {
  if (values.empty()) return;
  if (recipe_.grouping.columns == 0) {
    for (const float x : values) store(x, whole_);
    outcome_.groups = recipe_.scaling == Scaling::fixed ? 0 : 1;
    return;
  }
  for_runs(first, values.size(), row_length_, static_cast<std::size_t>(recipe_.grouping.columns),
           [&](std::size_t begin, std::size_t end) {
             const float amax = has_tiles(recipe_) ? magnitudes_.tile(first + begin)
                                                   : amax_of(values.data() + begin, end - begin);
             const GroupScale scale = scale_of(amax);
             for (std::size_t i = begin; i < end; ++i) store(values[i], scale);
             ++outcome_.groups;
           });
}

RecipeOutcome RecipePass::outcome() const {
  RecipeOutcome all = outcome_;
  if (extent_.count == 0) return all;
  noise_.add_to(all.noise);
  if (has_tiles(recipe_)) all.groups = magnitudes_.tiles();
  all.bytes = stored_bytes(recipe_, extent_.count, all.groups);
  return all;
}

void read_pieces(
    const formats::StreamedTensor& stream, Layout layout,
    const std::function<void(std::span<const float> values, std::size_t first)>& visit) {
  const formats::Tensor& tensor = stream.tensor;
  const Extent extent = extent_of(tensor);
  if (extent.count == 0) return;
  const std::size_t row = extent.row_length(layout);
  std::vector<float> buffer(std::min(extent.count, piece_length + longest_run));
  std::size_t first = 0;  // index of the first number in the buffer
  std::size_t held = 0;
  stream.read([&](std::span<const std::byte> bytes, std::size_t begin) {
    const formats::Tensor window = formats::window_of(tensor, bytes, begin);
    const auto count = static_cast<std::size_t>(window.shape[0]);
    const auto width =
        static_cast<std::size_t>(formats::storage_bits(tensor.format, tensor.packing));
    for (std::size_t done = 0; done < count;) {
      const std::size_t some = std::min(piece_length, count - done);
      // A piece's length is a multiple of 8, so that it begins with a whole byte.
      formats::convert_array(tensor.format, tensor.packing, bytes.subspan(done * width / 8),
                             formats::fp32, formats::Packing::container,
                             std::as_writable_bytes(std::span(buffer).subspan(held, some)), some);
      done += some;
      held += some;
      const std::size_t behind = first + held;
      const std::size_t incomplete =
          behind == extent.count ? 0 : std::min(held, behind % row % longest_run);
      const std::size_t whole = held - incomplete;
      visit(std::span(buffer).first(whole), first);
      std::copy_n(buffer.begin() + static_cast<std::ptrdiff_t>(whole), incomplete, buffer.begin());
      first += whole;
      held = incomplete;
    }
  });
}

void StoredTensor::add(const StoredTensor& other) {
  signal.add(other.signal);
  outcomes.resize(std::max(outcomes.size(), other.outcomes.size()));
  for (std::size_t i = 0; i < other.outcomes.size(); ++i) outcomes[i].add(other.outcomes[i]);
}

StoredTensor store_tensor(std::span<const Recipe> recipes, const formats::StreamedTensor& stream,
                          Layout layout, std::vector<RecipeState>& states, int threads,
                          const std::function<void(std::size_t done)>& progress) {
  const Extent extent = extent_of(stream.tensor);
  GroupMagnitudes magnitudes(extent, std::any_of(recipes.begin(), recipes.end(), has_tiles));
  if (std::any_of(recipes.begin(), recipes.end(), needs_magnitudes)) {
    read_pieces(stream, layout, [&](std::span<const float> values, std::size_t first) {
      magnitudes.look(values, first);
      if (progress) progress(0);
    });
  }
  states.resize(recipes.size());
  std::vector<RecipePass> passes;
  passes.reserve(recipes.size());
  for (std::size_t r = 0; r < recipes.size(); ++r)
    passes.emplace_back(recipes[r], extent, layout, magnitudes, states[r]);
  StoredTensor stored;
  read_pieces(stream, layout, [&](std::span<const float> values, std::size_t first) {
    // The last task is the signal.
    formats::parallel_for(recipes.size() + 1, 1, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t r = begin; r < end; ++r) {
        if (r == recipes.size()) {
          stored.signal.add(signal_of(values));
        } else {
          passes[r].store(values, first);
        }
      }
    });
    if (progress) progress(first + values.size());
  });
  stored.outcomes.reserve(recipes.size());
  for (const RecipePass& pass : passes) stored.outcomes.push_back(pass.outcome());
  return stored;
}

Signal signal_of(std::span<const float> values) {
  Signal signal;
  SquareSums squares;
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

RecipeOutcome apply(const Recipe& recipe, const TensorValues& tensor, Layout layout,
                    RecipeState& state) {
  const Extent extent = {tensor.values.size(), tensor.columns};
  GroupMagnitudes magnitudes(extent, has_tiles(recipe));
  magnitudes.look(tensor.values, 0);
  RecipePass pass(recipe, extent, layout, magnitudes, state);
  pass.store(tensor.values, 0);
  return pass.outcome();
}

}  // namespace guardbit::experiments
