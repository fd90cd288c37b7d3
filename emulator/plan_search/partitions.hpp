#pragma once

// The partitions of K that the plan search tries. Input: the length of K and what the capture says
// of the kernels' grids. Output: plans that differ in their partition alone; candidates.cpp gives
// them units and arranges them in stages.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

/// The partitions that were tried. Plans that give every accumulator the same elements of K in the
/// same order are one partition, however they are written.
class KnownPartitions {
 public:
  explicit KnownPartitions(std::int64_t k) : k_(k) {}

  /// Adds the plan's partition; true if it was not known.
  bool insert(const GemmPlan& plan);

 private:
  std::int64_t k_;
  /// digests
  std::set<std::array<std::uint64_t, 2>> seen_;
};

/// Lists of plans for one capture, likely ones first in each.
class PartitionedPlans {
 public:
  /// `k`: elements of K of the lowered product. `shown`: a split that the result itself shows
  /// (SearchOptions::split). The capture must outlive this.
  PartitionedPlans(const GemmCapture& capture, std::int64_t k, std::optional<Partition> shown);

  /// One chain over all of K.
  static std::vector<GemmPlan> whole() { return std::vector<GemmPlan>(1); }
  /// One chain, promoted at intervals (8-bit operands).
  std::vector<GemmPlan> promoted() const;
  /// One chain, promoted at each end of a scale's block of K.
  std::vector<GemmPlan> scaled_blocks() const;
  /// One chain, the incomplete tile of K first.
  std::vector<GemmPlan> residue() const;
  /// One chain, K permuted by wide loads.
  static std::vector<GemmPlan> loads();

  /// The split that the result shows, if it shows one.
  std::vector<GemmPlan> split_as_shown() const;
  /// K split over thread blocks.
  std::vector<GemmPlan> split() const;
  /// As many parts as a recorded grid has blocks in z, or in y; incomplete tiles of K last or
  /// first.
  std::vector<GemmPlan> split_as_deep() const { return split_as_recorded(2); }
  std::vector<GemmPlan> split_as_high() const { return split_as_recorded(1); }
  std::vector<GemmPlan> split_promoted() const;
  std::vector<GemmPlan> split_residue() const;

  /// K cut into slices, for the warps or threads of one block.
  std::vector<GemmPlan> sliced() const;
  /// The same, and each slice's chain is promoted at intervals (matrix times vector).
  std::vector<GemmPlan> promoted_slices() const;
  /// Split over blocks that take pieces of K in turn, each sliced over its threads (dot products).
  std::vector<GemmPlan> blocks_of_threads() const;
  /// Split over warps, each sliced over its threads (matrix times vector).
  std::vector<GemmPlan> warps_of_threads() const;
  /// Threads and warps that reduce rounded products, each with its own order of sums (XLA and
  /// Triton): a thread takes its products in order or as a tree of neighbours, then threads and
  /// warps are added as halves.
  std::vector<GemmPlan> reduced() const;
  /// Equal parts of K filled up with zeros, each with its own order of sums (XLA's split-K): added
  /// in order; as halves by the threads of a warp; or by threads and warps of which each takes
  /// every so many-th part and adds its own as neighbours.
  std::vector<GemmPlan> split_and_reduced() const;
  /// Up to 4 parts of up to 4 slices each.
  std::vector<GemmPlan> split_in_few_slices() const;
  /// Up to 16 parts, each sliced over up to 16 warps, or over the threads of one warp.
  std::vector<GemmPlan> split_in_many_slices() const;

  /// Stream-K on as many blocks as the recording names, also sliced over two or four warps; or on
  /// as many as machines have multiprocessors. Plans that cut every tile of D alike are given once.
  std::vector<GemmPlan> stream_k_as_recorded() const;
  std::vector<GemmPlan> stream_k() const;

  bool has_8_bit_operands() const { return has_8_bit_operands_; }

 private:
  using Grid = std::array<int, 3>;
  std::vector<GemmPlan> split_as_recorded(std::size_t direction) const;
  static std::vector<Grid> grids_of(const GemmCapture& capture);
  std::vector<GemmPlan> stream_k_on(std::span<const int> block_counts) const;

  const GemmCapture& capture_;
  std::int64_t k_;
  std::optional<Partition> shown_;
  bool has_8_bit_operands_;
  /// blocks in x, y and z of the kernels that the capture names
  std::vector<Grid> grids_;
};

}  // namespace guardbit::emulator
