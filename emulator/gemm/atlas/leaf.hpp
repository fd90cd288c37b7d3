#pragma once

#include <cstdint>

#include "emulator/gemm/atlas/product_call.hpp"

// The recorded launches, as decision trees over what a call says of itself.
namespace guardbit::emulator::atlas {

/// How K is cut.
enum class Form : std::uint8_t {
  /// not at all
  chain,
  /// partial sums in FP32, added by a second kernel
  parts,
  /// the blocks of a tile add to D one after the other
  in_place,
  /// partial sums rounded to D's format
  rounded_parts,
  /// tile t goes to part t modulo parts
  round_robin,
  /// runs of tiles of 64
  tiles_of_64,
  /// lanes take runs in turn; their sums are added as a warp's shuffles do
  lanes_halves,
  /// the same, added in ascending order
  lanes_ascending,
  /// a kernel whose order of K the atlas does not know
  unknown,
  /// partial sums of runs of tiles of 8, by cuBLAS' sgemm_largek
  runs_of_8,
  /// cuBLAS' dot_kernel: blocks of threads take runs in turn
  dot,
  /// K is cut into runs, and each of them divided over lanes as in lanes_halves
  split_lanes,
  /// the same with 16 lanes as in lanes_ascending, which begin again after 32 elements
  split_chains,
};

/// What multiplies: the usual instruction, a CUDA core, or mma.sync with 8 of K.
enum class Unit : std::uint8_t { usual, simt, k8 };

/// Of 1000 recorded calls so many agree with a rule, or more.
inline constexpr int rule_agrees = 998;

/// What a leaf of lanes_ascending says at most, less than a rule does: of 36,707 calls of usual
/// shapes for which a rule spoke 329 launched another kernel.
inline constexpr int most_of_ascending_lanes = 997;

struct Leaf {
  Form form = Form::unknown;
  Unit unit = Unit::usual;
  /// of K, as the library asks for them: some may get no element
  std::int64_t parts = 1;
  int lanes = 1;
  /// tile of K whose incomplete part comes first; 0: the last one is incomplete. Of round_robin:
  /// the tile that a part takes. Of lanes: the run that each takes; 0: all that it gets; 64: that,
  /// but at most 64
  int tile = 0;
  /// of lanes: after so many elements a lane's chain is added to its sum; 0: never
  int restart = 0;
  /// Of 1000 recorded calls of the leaf at least so many agree; of few calls less is said.
  int agree = 0;
};

/// The leaf of the tree that a call ends in.
Leaf leaf_of(const ProductCall& call);

/// What a label says of a call.
struct PackedLabel;
Leaf leaf_of(const ProductCall& call, const PackedLabel& label);

}  // namespace guardbit::emulator::atlas
