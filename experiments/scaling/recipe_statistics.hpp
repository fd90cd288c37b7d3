#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/scaling/recipes.hpp"

namespace guardbit::experiments {

/// What recipes do to a tensor or to any number of them.
struct RecipeStatistics {
  Signal signal;
  /// by recipe; nothing where it is not known
  std::vector<std::optional<RecipeOutcome>> outcomes;

  /// Of other tensors, by the same recipes.
  void add(const RecipeStatistics& other);
  friend bool operator==(const RecipeStatistics&, const RecipeStatistics&) = default;
};

/// A part of a tensor that was counted alone.
struct TensorPart {
  std::uint64_t elements = 0;
  /// its last dimension; 0 for a vector or a scalar
  std::uint64_t columns = 0;
  /// as amax_of gives it
  float amax = 0;
};

/// Why outcomes of these parts do not add up to that of the whole; nothing where they do: every
/// scale is that of a group which lies in one part. Parts that have the same last dimension are
/// taken for rows of the whole, vectors for pieces of a vector, one that is no whole number of
/// groups for the last; parts of different last dimensions for columns of the whole.
std::optional<std::string> why_not_additive(const Recipe& recipe, Layout layout,
                                            std::span<const TensorPart> parts);

/// The sum of the parts' outcomes as that of the whole: scales and codes are stored once.
void settle(RecipeOutcome& sum, const Recipe& recipe, std::uint64_t elements);

}  // namespace guardbit::experiments
