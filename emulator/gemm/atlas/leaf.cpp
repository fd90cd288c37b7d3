#include "emulator/gemm/atlas/leaf.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::atlas {

namespace {

// By tools/scripts/atlas/fit_atlas.py from what record_dispatch.py recorded.

/// The nodes of all trees, each before its left and then its right subtree, in four digits of
/// base 64: a feature and which of its thresholds, or `is_leaf` and which label.
// An array: the length of a string_view so long cannot be computed by the compiler.
constexpr char packed_nodes[] =
#include "emulator/gemm/atlas/nodes.inc"
    ;

/// Of feature 0, then of feature 1, ...
constexpr auto thresholds = std::to_array<double>({
#include "emulator/gemm/atlas/thresholds.inc"
});

constexpr auto thresholds_of_feature = std::to_array<int>({
#include "emulator/gemm/atlas/thresholds_of_feature.inc"
});

/// Where the trees of f16, bf16, tf32 and f32 begin; after each the one that is asked where it does
/// not know: kernels whose lanes share K.
constexpr std::array<std::uint32_t, 8> roots = {
#include "emulator/gemm/atlas/roots.inc"
};

struct Label {
  int form, unit, tile;
  /// How many parts. Below 200: so many. 200 + w: as many as give the multiprocessors w thread
  /// blocks each. 300 + i: as many as have quotients[i] elements.
  /// Of lanes the logarithm of their number, and 16 times the place in `restarts`.
  int rule;
  /// the part of D that a thread block computes, where the rule counts thread blocks
  int columns, rows;
};

constexpr auto labels = std::to_array<Label>({
#include "emulator/gemm/atlas/labels.inc"
});

constexpr std::array quotients = {4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048};
/// After how many elements a lane's chain is added to its sum and begins again.
constexpr std::array restarts = {0, 16, 32, 128, 256};
constexpr std::int64_t multiprocessors = 132;

/// A feature no greater than thresholds[at] leads to the next node, another to `right`. Of a leaf
/// `at` is twice its label, and 1 more where it is a rule.
struct Node {
  std::uint32_t feature : 5, at : 27;
  std::uint32_t right;
};

constexpr std::uint32_t is_leaf = 31;

constexpr std::array<std::uint8_t, 128> digits = [] {
  std::array<std::uint8_t, 128> result{};
  std::uint8_t value = 0;
  for (const char c : "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    if (c != 0) result.at(static_cast<std::size_t>(c)) = value++;
  return result;
}();

std::vector<Node> unpacked() {
  std::array<std::uint32_t, 32> first{};
  for (std::size_t i = 1; i < thresholds_of_feature.size(); ++i)
    first.at(i) = first.at(i - 1) + static_cast<std::uint32_t>(thresholds_of_feature.at(i - 1));
  std::vector<Node> nodes((sizeof packed_nodes - 1) / 4);
  // Inner nodes whose right subtree is still to come.
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::uint32_t word = 0;
    for (std::size_t digit = 0; digit < 4; ++digit)
      word = word << 6 | digits[static_cast<unsigned char>(packed_nodes[4 * i + digit])];
    Node& node = nodes[i];
    node.feature = word >> 19 & 31;
    node.at = (first[node.feature] + (word & ((1U << 19) - 1))) & ((1U << 27) - 1);
    if (node.feature != is_leaf) {
      open.push_back(i);
    } else if (!open.empty()) {
      nodes[open.back()].right = static_cast<std::uint32_t>(i + 1);
      open.pop_back();
    }
  }
  return nodes;
}

/// The greatest power of two, at most 16, that divides it.
double alignment(std::int64_t x) { return static_cast<double>(std::min<std::int64_t>(16, x & -x)); }

std::array<double, 28> features_of(const ProductCall& call) {
  const std::int64_t lda =
      call.a_leading != 0 ? call.a_leading : (call.a_transposed ? call.m : call.k);
  const std::int64_t ldb =
      call.b_leading != 0 ? call.b_leading : (call.b_transposed ? call.k : call.n);
  const auto m = static_cast<double>(call.m), n = static_cast<double>(call.n),
             k = static_cast<double>(call.k), batch = static_cast<double>(call.batch);
  const auto tiles = [&](double x, double y) {
    return std::ceil(m / x) * std::ceil(n / y) * batch;
  };
  const double of_a = alignment(lda), of_b = alignment(ldb), of_d = alignment(call.n);
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

std::int64_t parts_of(const ProductCall& call, const Label& label) {
  using formats::divided_up;
  std::int64_t parts = label.rule;
  if (label.rule >= 300) {
    parts = divided_up(call.k, quotients.at(static_cast<std::size_t>(label.rule - 300)));
  } else if (label.rule >= 200) {
    const std::int64_t blocks =
        divided_up(call.n, label.columns) * divided_up(call.m, label.rows) * call.batch;
    parts = multiprocessors * (label.rule - 200) / blocks;
  }
  return std::max<std::int64_t>(1, parts);
}

/// The leaf of the tree that begins at a node.
Leaf leaf_of(const ProductCall& call, const std::array<double, 28>& features, std::size_t at) {
  static const std::vector<Node> nodes = unpacked();
  while (nodes[at].feature != is_leaf) {
    const Node& node = nodes[at];
    at = features.at(node.feature) <= thresholds.at(node.at) ? at + 1 : node.right;
  }
  const Label& label = labels.at(std::size_t{nodes[at].at} / 2);
  Leaf leaf;
  leaf.form = static_cast<Form>(label.form);
  leaf.unit = static_cast<Unit>(label.unit);
  leaf.parts = parts_of(call, label);
  leaf.tile = label.tile;
  if (leaf.form == Form::lanes_halves || leaf.form == Form::lanes_ascending) {
    leaf.parts = std::int64_t{1} << label.rule % 16;
    leaf.restart = restarts.at(static_cast<std::size_t>(label.rule / 16));
  }
  leaf.is_rule = nodes[at].at % 2 == 1;
  return leaf;
}

/// Parts of D of 32 x 32 elements.
std::int64_t tiles_of(const ProductCall& call) {
  return formats::divided_up(call.m, 32) * formats::divided_up(call.n, 32);
}

/// Where the trees do not know an FP32 linear layer of a few features, it is cuBLAS' sgemm_largek:
/// in 58,008 of 58,008 recorded calls. None has more tiles than there are multiprocessors.
bool is_largek(const ProductCall& call) {
  constexpr std::int64_t most_k = 640;
  return call.op == Operator::addmm && call.numbers == Numbers::f32 && !call.a_transposed &&
         call.b_transposed && call.m > 1 && call.n > 1 && call.k <= most_k &&
         tiles_of(call) <= multiprocessors;
}

/// How many parts of K it makes, in 118,127 of 118,127 recorded calls: as many as give each
/// multiprocessor two thread blocks, but five where D has fewer than 42 tiles.
Leaf largek(const ProductCall& call) {
  const std::int64_t tiles = tiles_of(call), parts = tiles < 42 ? 5 : 2 * multiprocessors / tiles;
  const std::int64_t run = std::max<std::int64_t>(8, formats::rounded_up(call.k / parts, 8));
  Leaf leaf;
  leaf.form = Form::runs_of_8;
  leaf.parts = formats::divided_up(call.k, run);
  return leaf;
}

}  // namespace

Leaf leaf_of(const ProductCall& call) {
  const std::array<double, 28> features = features_of(call);
  const std::size_t tree = 2 * static_cast<std::size_t>(call.numbers);
  Leaf leaf = leaf_of(call, features, roots.at(tree));
  if (leaf.form == Form::unknown) leaf = leaf_of(call, features, roots.at(tree + 1));
  return leaf.form == Form::unknown && is_largek(call) ? largek(call) : leaf;
}

}  // namespace guardbit::emulator::atlas
