#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulator/operators/machine.hpp"
#include "emulator/operators/operator_tensor.hpp"

// How PyTorch's general reduction kernel cuts a reduction among vectors, threads, warps and blocks.
namespace guardbit::emulator::operators {

/// One dimension of the input.
struct ReducedDimension {
  std::int64_t size = 1;
  /// in elements of the GPU's memory, and of the elements as a Tensor has them
  std::int64_t stride = 0, place = 0;
  /// in elements of the result; 0 where the dimension is reduced
  std::int64_t result_stride = 0;
};

/// The input's dimensions in the order in which the kernel walks them, those of size 1 left out.
struct ReductionWalk {
  /// fastest first
  std::vector<ReducedDimension> reduced, kept;
  /// the same with neighbours merged that lie together in memory, reduced ones first
  std::vector<ReducedDimension> merged;
  std::size_t merged_reduced = 0;
  std::int64_t inputs = 1, outputs = 1;
  Dimensions result_shape;
};

/// `dimensions` may count from the end; none means all.
ReductionWalk walk_of_reduction(const Tensor& input, Dimensions dimensions, bool keep_dimensions);

/// What a kernel was compiled for.
struct ReductionKernel {
  /// independent accumulators of a thread that reads single elements
  int accumulators = 4;
  /// elements of a vector that a thread reads where the input lies in a row
  int vector = 4;
};

/// Which lanes of a warp meet first.
enum class LaneOrder : std::uint8_t {
  /// lane t and t + 16, then t + 8, ...: PyTorch 2.11
  descending,
  /// neighbours, then pairs of them, ...: older versions
  ascending,
};

/// Element i of an output's inputs goes to thread i mod `threads`, there to its accumulators in
/// turn; of vectors, element k of each to accumulator k.
struct ReductionShape {
  /// vectors of so many elements; 1: single elements
  int vector = 1;
  int accumulators = 4;
  /// neighbouring outputs of one thread, which do not change bits
  int output_vector = 1;
  int width = 1, height = 1, blocks = 1;
  /// threads of a row, of a column and blocks share one output
  bool is_split_over_lanes = false, is_split_over_rows = false, is_split_over_blocks = false;
  LaneOrder lane_order = LaneOrder::descending;

  /// that share one output
  std::int64_t threads() const {
    return (is_split_over_lanes ? width : 1) * (is_split_over_rows ? height : 1) *
           std::int64_t{is_split_over_blocks ? blocks : 1};
  }
  std::string text() const;
};

ReductionShape shape_of_reduction(const ReductionWalk& walk, std::int64_t input_offset,
                                  const ReductionKernel& kernel, const Machine& machine);

/// The place of element `index` of a walk over these dimensions, the first one fastest.
std::int64_t place_of(std::span<const ReducedDimension> dimensions, std::int64_t index);
/// The same in the GPU's memory.
std::int64_t address_of(std::span<const ReducedDimension> dimensions, std::int64_t index);
std::int64_t result_of(std::span<const ReducedDimension> dimensions, std::int64_t index);

}  // namespace guardbit::emulator::operators
