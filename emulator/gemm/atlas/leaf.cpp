#include "emulator/gemm/atlas/leaf.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "emulator/gemm/atlas/packed_trees.hpp"
#include "emulator/gemm/atlas/scope.hpp"
#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::atlas {

namespace {

// By tools/scripts/atlas/fit_atlas.py from what record_dispatch.py recorded. Arrays: the length of
// a string_view so long cannot be computed by the compiler.
constexpr char packed_nodes[] =
#include "emulator/gemm/atlas/nodes.inc"
    ;
constexpr char packed_thresholds[] =
#include "emulator/gemm/atlas/thresholds.inc"
    ;
constexpr auto thresholds_of_feature = std::to_array<std::uint32_t>({
#include "emulator/gemm/atlas/thresholds_of_feature.inc"
});
constexpr char packed_labels[] =
#include "emulator/gemm/atlas/labels.inc"
    ;

/// Where the trees of f16, bf16, tf32 and f32 begin; after each the one that is asked where it does
/// not know: vectors, and kernels whose lanes share K.
constexpr std::array<std::uint32_t, 8> roots = {
#include "emulator/gemm/atlas/roots.inc"
};

/// A label's kind is form and unit. Its rule: how many parts. Below 200: so many. 200 + w: as many
/// as give the multiprocessors w thread blocks each, each of which computes `columns` x `rows` of
/// D. 300 + i: as many as have quotients[i] elements. Of lanes the place of their number in
/// `lane_counts`, and 16 times the place in `restarts`; of dot the blocks. Of split_lanes `columns`
/// is 8 times the place in `lane_counts`, and `rows` 8 times the logarithm of what a block computes
/// of the vector.
Form form_of(const PackedLabel& label) { return static_cast<Form>(label.kind / 4); }

constexpr std::array quotients = {4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048};
constexpr std::array lane_counts = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 24};
/// After how many elements a lane's chain is added to its sum and begins again.
constexpr std::array restarts = {0, 16, 32, 128, 256};

/// The greatest power of two, at most 16, that divides it.
double alignment(std::int64_t x) { return static_cast<double>(std::min<std::int64_t>(16, x & -x)); }

std::array<double, 28> features_of(const ProductCall& call) {
  const auto m = static_cast<double>(call.m), n = static_cast<double>(call.n),
             k = static_cast<double>(call.k), batch = static_cast<double>(call.batch);
  const auto tiles = [&](double x, double y) {
    return std::ceil(m / x) * std::ceil(n / y) * batch;
  };
  const double of_a = alignment(call.leading_of_a()), of_b = alignment(call.leading_of_b()),
               of_d = alignment(call.n);
  return {static_cast<double>(call.op),
          call.a_transposed ? 1.0 : 0.0,
          call.b_transposed ? 1.0 : 0.0,
          m,
          n,
          k,
          batch,
          of_a,
          of_b,
          of_d,
          m * n * batch,
          k / (m * n * batch),
          tiles(128, 128),
          tiles(64, 64),
          std::min(m, n),
          m / n,
          tiles(128, 64),
          tiles(64, 128),
          tiles(256, 128),
          tiles(128, 256),
          tiles(32, 32),
          m * n * k * batch,
          m * k,
          n * k,
          alignment(call.k),
          alignment(call.m),
          std::min({of_a, of_b, of_d}),
          std::max(m, n)};
}

std::int64_t parts_of(const ProductCall& call, const PackedLabel& label) {
  using formats::divided_up;
  std::int64_t parts = label.rule;
  if (label.rule >= 300) {
    parts = divided_up(call.k, quotients.at(label.rule - 300));
  } else if (label.rule >= 200) {
    // An eighth of 512 rows is one more than a digit holds: it went to the columns.
    const bool has_512 = label.rows == 0;
    const std::int64_t blocks =
        form_of(label) == Form::split_lanes
            ? divided_up(std::max(call.m, call.n), std::int64_t{1} << label.rows / 8)
            : divided_up(call.n, label.columns - (has_512 ? 8 : 0)) *
                  divided_up(call.m, has_512 ? 512 : label.rows);
    parts = scope.multiprocessors * (label.rule - 200) / (blocks * call.batch);
  }
  return std::max<std::int64_t>(1, parts);
}

/// What results say of gemvx, whose lanes each take 64 elements of K at once (their share, if that
/// is less) or one, which its launches do not tell.
void correct_gemvx(const ProductCall& call, Leaf& leaf) {
  if (leaf.form != Form::lanes_halves || (leaf.tile != 64 && leaf.tile != 1)) return;
  const bool contiguous = call.m > 1 ? !call.a_transposed : call.b_transposed;
  const bool is_fp32 = call.numbers == Numbers::f32 || call.numbers == Numbers::tf32;
  // 535 results of 32 lanes say so without exception.
  if (is_fp32 && contiguous && leaf.lanes == 32) leaf.tile = call.k <= 512 ? 64 : 1;
  // Of 57 results for which a rule spoke one had the other run: none is a rule.
  if (!is_fp32 && !contiguous) leaf.agree = std::min(leaf.agree, 995);
}

/// The leaf of the tree that begins at a node.
Leaf leaf_of(const ProductCall& call, const std::array<double, 28>& features, std::size_t root) {
  static const PackedTrees trees(packed_nodes, packed_thresholds, thresholds_of_feature,
                                 packed_labels);
  return leaf_of(call, trees.leaf(features, root));
}

}  // namespace

Leaf leaf_of(const ProductCall& call, const PackedLabel& label) {
  Leaf leaf;
  leaf.form = form_of(label);
  leaf.unit = static_cast<Unit>(label.kind % 4);
  leaf.tile = label.tile;
  leaf.agree = label.agree;
  if (leaf.form == Form::lanes_halves || leaf.form == Form::lanes_ascending) {
    leaf.lanes = lane_counts.at(label.rule % 16);
    leaf.restart = restarts.at(label.rule / 16);
    correct_gemvx(call, leaf);
    if (leaf.form == Form::lanes_ascending)
      leaf.agree = std::min(leaf.agree, most_of_ascending_lanes);
    return leaf;
  }
  leaf.parts = leaf.form == Form::dot ? label.rule : parts_of(call, label);
  if (leaf.form == Form::split_lanes)
    leaf.lanes = lane_counts.at(static_cast<std::size_t>(label.columns / 8));
  if (leaf.form == Form::split_chains) {
    leaf.lanes = 16;
    leaf.tile = 1;
    leaf.restart = 32;
  }
  return leaf;
}

Leaf leaf_of(const ProductCall& call) {
  const std::array<double, 28> features = features_of(call);
  const std::size_t tree = 2 * static_cast<std::size_t>(call.numbers);
  const Leaf leaf = leaf_of(call, features, roots.at(tree));
  return leaf.form == Form::unknown ? leaf_of(call, features, roots.at(tree + 1)) : leaf;
}

}  // namespace guardbit::emulator::atlas
