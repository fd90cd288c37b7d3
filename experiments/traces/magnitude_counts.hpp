#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "experiments/accuracy/exact_sum.hpp"
#include "experiments/traces/magnitude_cells.hpp"
#include "formats/tensors/tensor.hpp"

namespace guardbit::experiments {

/// How many elements each cell holds, and the sums of their significands and of the squares of
/// these, in integers of the cell's unit: nothing is rounded, so counts of parts add up to those of
/// the whole in any order.
struct MagnitudeCounts {
  std::uint64_t elements = 0;
  std::vector<std::uint64_t> count;
  /// meaningful for finite numbers
  std::vector<Sum192> sum, squares;
  /// magnitude of finite numbers
  std::uint64_t largest = 0;
  /// magnitude of numbers other than zero
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  /// index
  std::optional<std::uint64_t> first_nonfinite;

  explicit MagnitudeCounts(std::size_t cells = 0) : count(cells), sum(cells), squares(cells) {}

  void add(const MagnitudeCounts& other);
  /// Elements of the cells from `first` to before `last`.
  std::uint64_t between(std::size_t first, std::size_t last) const;

  friend bool operator==(const MagnitudeCounts&, const MagnitudeCounts&) = default;
};

/// Whether sums are wanted: without them, binades alone are counted several times faster.
enum class Sums : std::uint8_t { none, exact };

/// One pass over a tensor of the cells' format. threads 0: all. `progress`, if any, is called with
/// elements done, now and then, from any thread, one at a time; what it throws ends the pass.
/// Without sums `sum` and `squares` are zero.
MagnitudeCounts count_magnitudes(const MagnitudeCells& cells, const formats::Tensor& tensor,
                                 int threads = 0,
                                 const std::function<void(std::size_t done)>& progress = {},
                                 Sums sums = Sums::exact);

/// The same, one element after the other: what the tests compare with.
MagnitudeCounts count_magnitudes_one_by_one(const MagnitudeCells& cells,
                                            const formats::Tensor& tensor);

}  // namespace guardbit::experiments
