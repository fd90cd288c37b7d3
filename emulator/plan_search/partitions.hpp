#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

// The ways to deal K to accumulators that a search tries.
namespace guardbit::emulator {

/// Plans that deal K alike are one plan.
class Deals {
 public:
  explicit Deals(std::int64_t k) : k_(k) {}

  /// Is this way to deal K new?
  bool insert(const GemmPlan& plan);

 private:
  std::int64_t k_;
  std::set<std::array<std::uint64_t, 2>> seen_;  ///< digests
};

/// Plans that differ in how K is dealt, stage by stage, for one capture with that many elements of
/// K; the likely first.
class DealtPlans {
 public:
  DealtPlans(const GemmCapture& capture, std::int64_t k);

  static std::vector<GemmPlan> whole() { return std::vector<GemmPlan>(1); }
  std::vector<GemmPlan> promoted() const;
  std::vector<GemmPlan> scaled_blocks() const;
  std::vector<GemmPlan> split() const;
  /// As many slices as a recorded grid is deep, or high, with incomplete tiles last or first.
  std::vector<GemmPlan> split_as_deep() const { return split_as_recorded(2); }
  std::vector<GemmPlan> split_as_high() const { return split_as_recorded(1); }
  std::vector<GemmPlan> split_promoted() const;
  std::vector<GemmPlan> split_residue() const;
  static std::vector<GemmPlan> loads();
  std::vector<GemmPlan> residue() const;
  std::vector<GemmPlan> lanes() const;
  /// Lanes whose chains begin anew every so many elements (matrix by vector).
  std::vector<GemmPlan> promoted_lanes() const;
  /// The threads of blocks that each take a piece of K in turn (dot products).
  std::vector<GemmPlan> blocks_of_threads() const;
  /// The threads of several warps that share K: those of a warp add up first (matrix by vector).
  std::vector<GemmPlan> warps_of_threads() const;
  /// Few slices of K, and warps or threads that share each.
  std::vector<GemmPlan> split_lanes() const;
  /// More slices, and the lanes of warps, or of the threads of a warp.
  std::vector<GemmPlan> split_many_lanes() const;
  /// Tiles of libraries' kernels, on as many blocks as the recording names, also with two or four
  /// warps that share K; or as machines have multiprocessors. Those that cut no tile in a new way
  /// are left out.
  std::vector<GemmPlan> stream_k_as_recorded() const;
  std::vector<GemmPlan> stream_k() const;

  bool narrow() const { return narrow_; }

 private:
  using Grid = std::array<int, 3>;
  std::vector<GemmPlan> split_as_recorded(std::size_t direction) const;
  static std::vector<Grid> grids_of(const GemmCapture& capture);
  std::vector<GemmPlan> stream_k_on(std::span<const int> block_counts) const;

  const GemmCapture& capture_;
  std::int64_t k_;
  bool narrow_;              ///< operands of 8 bits
  std::vector<Grid> grids_;  ///< blocks in each direction, of the kernels that the capture names
};

}  // namespace guardbit::emulator
