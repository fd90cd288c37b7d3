#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "experiments/accuracy/square_sums.hpp"
#include "experiments/scaling/element_grid.hpp"
#include "experiments/scaling/recipes.hpp"
#include "formats/files/tensor_stream.hpp"

namespace guardbit::experiments {

/// A tensor's elements in row-major order, as a matrix of its last dimension.
struct Extent {
  std::size_t count = 0;
  /// not zero where there are elements
  std::size_t columns = 1;

  /// Elements after which runs begin anew.
  std::size_t row_length(Layout layout) const { return layout == Layout::flat ? count : columns; }
};
Extent extent_of(const formats::Tensor& tensor);

/// Lengths of runs, and sides of tiles, divide it.
inline constexpr std::size_t longest_run = 128;

/// The largest magnitudes of the whole tensor and of tiles, which scales depend on before the first
/// element is stored. Pieces come in any order and of any size.
class GroupMagnitudes {
 public:
  GroupMagnitudes(const Extent& extent, bool with_tiles);

  /// Elements from index `first` on.
  void look(std::span<const float> values, std::size_t first);
  float whole() const;
  /// Of the tile of 128 x 128 elements that the element of this index lies in.
  float tile(std::size_t index) const { return tiles_[tile_of(index)]; }
  std::size_t tiles() const { return tiles_.size(); }

 private:
  std::size_t tile_of(std::size_t index) const;

  Extent extent_;
  std::size_t tiles_across_;
  std::vector<float> tiles_;
  float whole_ = 0;
};

/// One recipe, applied to a tensor piece by piece. A piece begins and ends where a run of 128
/// elements of a row would; pieces come in any order.
class RecipePass {
 public:
  /// `magnitudes` have seen the whole tensor, with tiles if the recipe has some, and live as long.
  /// A recipe without scales of tensors or tiles needs none of them. `state` moves on by a step.
  RecipePass(const Recipe& recipe, const Extent& extent, Layout layout,
             const GroupMagnitudes& magnitudes, RecipeState& state);

  void store(std::span<const float> values, std::size_t first);
  /// After the last piece.
  RecipeOutcome outcome() const;

 private:
  GroupScale scale_of(float amax) const;
  void store(float x, const GroupScale& scale);

  Recipe recipe_;
  Extent extent_;
  std::size_t row_length_;
  const GroupMagnitudes& magnitudes_;
  ElementGrid grid_;
  Nvfp4Scales nvfp4_;
  GroupScale whole_;
  RecipeOutcome outcome_;
  SquareSums noise_;
};

/// Whether scales depend on what lies outside a run: the tensor has to be read beforehand.
bool needs_magnitudes(const Recipe& recipe);
bool has_tiles(const Recipe& recipe);

/// Calls visit(values, first) with the tensor's numbers in FP32, piece by piece, in their order;
/// pieces as RecipePass takes them. Throws what `stream.read` throws.
void read_pieces(
    const formats::StreamedTensor& stream, Layout layout,
    const std::function<void(std::span<const float> values, std::size_t first)>& visit);

/// What several recipes do to a tensor, or to several together.
struct StoredTensor {
  Signal signal;
  /// by recipe
  std::vector<RecipeOutcome> outcomes;

  void add(const StoredTensor& other);
};

/// Reads the tensor once, or twice where scales need it. `states` are the tensor's, by recipe, and
/// move on by a step. `progress`, if any, is called with elements stored; what it throws ends it.
StoredTensor store_tensor(std::span<const Recipe> recipes, const formats::StreamedTensor& stream,
                          Layout layout, std::vector<RecipeState>& states, int threads,
                          const std::function<void(std::size_t done)>& progress = {});

}  // namespace guardbit::experiments
