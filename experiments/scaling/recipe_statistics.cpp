#include "experiments/scaling/recipe_statistics.hpp"

#include <algorithm>
#include <bit>

namespace guardbit::experiments {

namespace {

bool is_scaled_by_tensor(const Recipe& recipe) {
  return recipe.scaling != Scaling::fixed &&
         (recipe.grouping.columns == 0 || recipe.scaling == Scaling::nvfp4);
}

/// Whether pieces of one row, put behind each other, are cut between groups: all but the last one
/// have to be whole groups, and any order has a last one.
bool is_cut_at(std::span<const TensorPart> parts, std::uint64_t length) {
  return std::count_if(parts.begin(), parts.end(),
                       [&](const TensorPart& part) { return part.elements % length != 0; }) <= 1;
}

}  // namespace

void RecipeStatistics::add(const RecipeStatistics& other) {
  signal.add(other.signal);
  if (outcomes.empty()) {
    outcomes = other.outcomes;
    return;
  }
  for (std::size_t i = 0; i < outcomes.size() && i < other.outcomes.size(); ++i) {
    if (outcomes[i] && other.outcomes[i]) {
      outcomes[i]->add(*other.outcomes[i]);
    } else {
      outcomes[i].reset();
    }
  }
}

std::optional<std::string> why_not_additive(const Recipe& recipe, Layout layout,
                                            std::span<const TensorPart> parts) {
  if (parts.size() < 2) return std::nullopt;
  const TensorPart& first = parts.front();
  const auto all_have = [&](const auto& property) {
    return std::all_of(parts.begin(), parts.end(), property);
  };
  if (is_scaled_by_tensor(recipe) && !all_have([&](const TensorPart& part) {
        return std::bit_cast<std::uint32_t>(part.amax) == std::bit_cast<std::uint32_t>(first.amax);
      }))
    return "its scale follows from the largest magnitude of the whole tensor, which parts do not share";
  if (recipe.grouping.columns == 0) return std::nullopt;

  const auto length = static_cast<std::uint64_t>(recipe.grouping.columns);
  const std::string cut =
      "parts are not cut at multiples of " + std::to_string(length) + " elements";
  const bool is_vector = all_have([](const TensorPart& part) { return part.columns == 0; });
  const bool has_rows = recipe.grouping.rows > 1;
  if (is_vector || (layout == Layout::flat && !has_rows))
    return is_cut_at(parts, length) ? std::nullopt : std::optional(cut);
  if (std::any_of(parts.begin(), parts.end(), [](const TensorPart& p) { return p.columns == 0; }))
    return "some parts are vectors and some are not";
  const bool is_by_rows =
      all_have([&](const TensorPart& part) { return part.columns == first.columns; });
  if (has_rows) {
    if (!is_by_rows) return "parts differ in their last dimension";
    return is_cut_at(parts, first.columns * static_cast<std::uint64_t>(recipe.grouping.rows))
               ? std::nullopt
               : std::optional("parts are not cut at multiples of " +
                               std::to_string(recipe.grouping.rows) + " rows");
  }
  if (is_by_rows || all_have([&](const TensorPart& p) { return p.columns % length == 0; }))
    return std::nullopt;
  return cut + " of rows";
}

void settle(RecipeOutcome& sum, const Recipe& recipe, std::uint64_t elements) {
  if (recipe.grouping.columns == 0) sum.groups = std::min<std::uint64_t>(sum.groups, 1);
  // Codes of fewer than eight bits may share a byte across parts.
  sum.bytes = elements == 0 ? 0 : stored_bytes(recipe, elements, sum.groups);
}

}  // namespace guardbit::experiments
