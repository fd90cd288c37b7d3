#include "emulator/operators/reduction_shape.hpp"

#include <algorithm>
#include <bit>

#include "emulator/operators/memory_order.hpp"
#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::operators {
namespace {

std::int64_t last_power_of_two(std::int64_t n) {
  return n < 1 ? 1 : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
}

/// Whether a dimension runs slower than another one in the walk, as TensorIterator decides it:
/// reduced ones are the fastest, then the result's strides say, then the input's; strides of 0 say
/// nothing.
int walks_slower(const ReducedDimension& a, const ReducedDimension& b) {
  if ((a.result_stride == 0) != (b.result_stride == 0)) return b.result_stride == 0 ? 1 : -1;
  for (const auto stride : {&ReducedDimension::result_stride, &ReducedDimension::stride}) {
    const int verdict = runs_slower(a.*stride, b.*stride, a.size, b.size);
    if (verdict != 0) return verdict;
  }
  return 0;
}

std::vector<ReducedDimension> merged(const std::vector<ReducedDimension>& sorted) {
  std::vector<ReducedDimension> all;
  for (const ReducedDimension& next : sorted) {
    if (!all.empty()) {
      ReducedDimension& last = all.back();
      if (last.size * last.stride == next.stride &&
          last.size * last.result_stride == next.result_stride) {
        last.size *= next.size;
        continue;
      }
    }
    all.push_back(next);
  }
  return all;
}

/// The greatest of 4, 2, 1 neighbouring outputs that a thread can read at once.
int output_vector(const ReductionWalk& walk, std::int64_t input_offset) {
  int vector = 4;
  const auto limit = [&](std::int64_t n) {
    while (n % vector != 0) vector /= 2;
  };
  limit(input_offset);
  limit(walk.merged[walk.merged_reduced].size);
  for (std::size_t d = 0; d < walk.merged.size(); ++d) {
    if (d != walk.merged_reduced) limit(walk.merged[d].stride);
  }
  return vector;
}

/// Threads of a block that has `along` places to fill in its rows and `across` rows.
void set_block(ReductionShape& shape, std::int64_t along, std::int64_t across) {
  constexpr std::int64_t most_threads = 512;
  const std::int64_t most = most_threads / shape.output_vector;
  const std::int64_t most_along = along < most ? last_power_of_two(along) : most;
  const std::int64_t most_across = across < most ? last_power_of_two(across) : most;
  std::int64_t width = std::min<std::int64_t>(most_along, 32);
  const std::int64_t height = std::min(most_across, most / width);
  width = std::min(most_along, most / height);
  shape.width = static_cast<int>(width);
  shape.height = static_cast<int>(height);
}

}  // namespace

ReductionWalk walk_of_reduction(const Tensor& input, Dimensions dimensions, bool keep_dimensions) {
  const auto rank = input.shape.size();
  std::vector<bool> is_reduced(rank, dimensions.empty());
  for (const std::int64_t d : dimensions) {
    const std::size_t place = dimension_of(input, d);
    if (rank > 0) is_reduced[place] = true;
  }
  ReductionWalk walk;
  const Dimensions places = contiguous_stride(input.shape);
  std::vector<ReducedDimension> all(rank);
  std::int64_t result_stride = 1;
  for (std::size_t d = rank; d-- > 0;) {
    const std::int64_t size = input.shape[d];
    if (is_reduced[d]) {
      walk.inputs *= size;
      if (keep_dimensions) walk.result_shape.insert(walk.result_shape.begin(), 1);
    } else {
      walk.outputs *= size;
      walk.result_shape.insert(walk.result_shape.begin(), size);
    }
    all[d] = {size, input.stride[d], places[d], is_reduced[d] ? 0 : result_stride};
    if (!is_reduced[d]) result_stride *= size;
  }
  std::vector<ReducedDimension> sorted;
  for (const std::size_t d : iterated_order(
           rank, [&](std::size_t a, std::size_t b) { return walks_slower(all[a], all[b]); })) {
    if (all[d].size != 1) sorted.push_back(all[d]);
  }
  walk.merged = merged(sorted);
  for (const ReducedDimension& d : sorted)
    (d.result_stride == 0 ? walk.reduced : walk.kept).push_back(d);
  walk.merged_reduced = static_cast<std::size_t>(std::ranges::count_if(
      walk.merged, [](const ReducedDimension& d) { return d.result_stride == 0; }));
  return walk;
}

ReductionShape shape_of_reduction(const ReductionWalk& walk, std::int64_t input_offset,
                                  const ReductionKernel& kernel, const Machine& machine) {
  ReductionShape shape{.accumulators = kernel.accumulators};
  const bool is_empty = walk.merged.empty();
  const bool is_along = is_empty || walk.merged_reduced == walk.merged.size() ||
                        walk.merged[0].stride < walk.merged[walk.merged_reduced].stride;
  std::int64_t along = is_along ? walk.inputs : walk.outputs;
  const std::int64_t across = is_along ? walk.outputs : walk.inputs;
  const std::int64_t fastest =
      is_empty ? 1 : walk.merged[is_along ? 0 : walk.merged_reduced].stride;
  constexpr std::int64_t least_of_vectors = 128;
  if (fastest == 1 && !is_empty) {
    if (is_along && along >= least_of_vectors && walk.merged_reduced == 1) {
      shape.vector = kernel.vector;
      along /= kernel.vector;
    } else if (!is_along) {
      shape.output_vector = output_vector(walk, input_offset);
      along /= shape.output_vector;
    }
  }
  set_block(shape, along, across);
  shape.is_split_over_lanes = is_along;
  std::int64_t shared = is_along ? shape.width : 1, outputs_at_once = is_along ? 1 : shape.width;
  constexpr std::int64_t least_values = 16, most_values = 256;
  const std::int64_t threshold = std::min<std::int64_t>(shape.height * least_values, most_values);
  if (formats::divided_up(walk.inputs, shared) >= threshold) {
    shape.is_split_over_rows = true;
    shared *= shape.height;
  } else {
    outputs_at_once *= shape.height;
  }
  const std::int64_t values = formats::divided_up(walk.inputs, shared);
  const std::int64_t target = std::int64_t{machine.multiprocessors} *
                              (machine.threads_per_multiprocessor / (shape.width * shape.height));
  const std::int64_t grid =
      formats::divided_up(walk.outputs / shape.output_vector, outputs_at_once);
  if (shape.is_split_over_rows && values >= most_values && grid <= target) {
    const std::int64_t blocks = std::max(
        std::min(formats::divided_up(target, grid), formats::divided_up(values, least_values)),
        formats::divided_up(values, most_values));
    shape.blocks = static_cast<int>(blocks);
    shape.is_split_over_blocks = blocks > 1;
  }
  return shape;
}

std::string ReductionShape::text() const {
  std::string text = vector > 1 ? "vectors of " + std::to_string(vector)
                                : std::to_string(accumulators) + " accumulators";
  text += ", block " + std::to_string(width) + "x" + std::to_string(height);
  std::string shared;
  if (is_split_over_lanes) shared = "lanes";
  if (is_split_over_rows) shared += shared.empty() ? "rows" : " and rows";
  if (is_split_over_blocks)
    shared += (shared.empty() ? "" : " and ") + std::to_string(blocks) + " blocks";
  return text + (shared.empty() ? ", one thread an output" : ", split over " + shared);
}

namespace {

/// Where the element of that number lies, if each dimension, the first one fastest, takes such
/// steps.
std::int64_t steps_to(std::span<const ReducedDimension> dimensions, std::int64_t index,
                      std::int64_t ReducedDimension::*step) {
  std::int64_t steps = 0;
  for (const ReducedDimension& d : dimensions) {
    steps += index % d.size * (d.*step);
    index /= d.size;
  }
  return steps;
}

}  // namespace

std::int64_t place_of(std::span<const ReducedDimension> dimensions, std::int64_t index) {
  return steps_to(dimensions, index, &ReducedDimension::place);
}
std::int64_t address_of(std::span<const ReducedDimension> dimensions, std::int64_t index) {
  return steps_to(dimensions, index, &ReducedDimension::stride);
}
std::int64_t result_of(std::span<const ReducedDimension> dimensions, std::int64_t index) {
  return steps_to(dimensions, index, &ReducedDimension::result_stride);
}

}  // namespace guardbit::emulator::operators
