#include "emulator/gemm/atlas/leaf.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::atlas {

namespace {

// By tools/scripts/atlas/fit_atlas.py from what record_dispatch.py recorded.

// Arrays of digits of base 64: the length of a string_view so long cannot be computed by the
// compiler.

/// The nodes of all trees, each before its left and then its right subtree, in three or four
/// digits. The first one has a feature or `is_leaf`, and its lowest bit whether there are four; the
/// others which of the feature's thresholds, or which label.
constexpr char packed_nodes[] =
#include "emulator/gemm/atlas/nodes.inc"
    ;

/// Of feature 0, then of feature 1, ...: the exponent and 16 bits of the fraction of an FP32
/// number, in four digits.
constexpr char packed_thresholds[] =
#include "emulator/gemm/atlas/thresholds.inc"
    ;

constexpr auto thresholds_of_feature = std::to_array<std::uint32_t>({
#include "emulator/gemm/atlas/thresholds_of_feature.inc"
});

/// Nine digits each: form and unit, tile (2), rule (2), columns / 8 (2), rows / 8, place in
/// `shares`.
constexpr char packed_labels[] =
#include "emulator/gemm/atlas/labels.inc"
    ;

/// Where the trees of f16, bf16, tf32 and f32 begin; after each the one that is asked where it does
/// not know: kernels whose lanes share K.
constexpr std::array<std::uint32_t, 8> roots = {
#include "emulator/gemm/atlas/roots.inc"
};

struct Label {
  Form form = Form::unknown;
  Unit unit = Unit::usual;
  int tile = 0;
  /// How many parts. Below 200: so many. 200 + w: as many as give the multiprocessors w thread
  /// blocks each. 300 + i: as many as have quotients[i] elements.
  /// Of lanes the logarithm of their number, and 16 times the place in `restarts`.
  std::uint32_t rule = 0;
  /// the part of D that a thread block computes, where the rule counts thread blocks
  int columns = 0, rows = 0;
  /// as in Leaf
  int agree = 0;
};

constexpr std::array quotients = {4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048};
/// After how many elements a lane's chain is added to its sum and begins again.
constexpr std::array restarts = {0, 16, 32, 128, 256};
/// Of 1000 recorded calls of a leaf at least so many agree.
constexpr std::array shares = {998, 995, 990, 980, 950, 900, 750, 0};
constexpr std::int64_t multiprocessors = 132;

/// A feature no greater than the threshold leads to the next node, another to `right`. `value` is
/// the threshold, an FP32 number, or the number of a leaf's label.
struct Node {
  std::uint32_t feature() const { return feature_and_right % 64; }
  std::uint32_t right() const { return feature_and_right / 64; }

  std::uint32_t feature_and_right;
  std::uint32_t value;
};

constexpr std::uint32_t is_leaf = 31;

constexpr std::array<std::uint8_t, 128> digits = [] {
  std::array<std::uint8_t, 128> result{};
  std::uint8_t value = 0;
  for (const char c : "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    if (c != 0) result.at(static_cast<std::size_t>(c)) = value++;
  return result;
}();

/// Reads numbers of digits one after the other.
class Digits {
 public:
  template <std::size_t size>
  explicit Digits(const char (&text)[size]) : next_(text), end_(text + size - 1) {}

  bool at_end() const { return next_ == end_; }
  std::uint32_t number(std::uint32_t count) {
    std::uint32_t result = 0;
    for (std::uint32_t i = 0; i < count; ++i)
      result = result << 6 | digits[static_cast<unsigned char>(*next_++)];
    return result;
  }

 private:
  const char *next_, *end_;
};

/// Of each feature its thresholds, as FP32 codes.
std::array<std::vector<std::uint32_t>, is_leaf> unpacked_thresholds() {
  std::array<std::vector<std::uint32_t>, is_leaf> result;
  Digits packed(packed_thresholds);
  for (std::size_t feature = 0; feature < thresholds_of_feature.size(); ++feature)
    for (std::uint32_t i = 0; i < thresholds_of_feature.at(feature); ++i)
      result.at(feature).push_back(packed.number(4) << 7);
  return result;
}

std::vector<Label> unpacked_labels() {
  std::vector<Label> labels;
  for (Digits packed(packed_labels); !packed.at_end();) {
    const std::uint32_t kind = packed.number(1);
    Label label;
    label.form = static_cast<Form>(kind / 4);
    label.unit = static_cast<Unit>(kind % 4);
    label.tile = static_cast<int>(packed.number(2));
    label.rule = packed.number(2);
    label.columns = static_cast<int>(8 * packed.number(2));
    label.rows = static_cast<int>(8 * packed.number(1));
    label.agree = shares.at(packed.number(1));
    labels.push_back(label);
  }
  return labels;
}

std::vector<Node> unpacked_nodes() {
  const auto thresholds = unpacked_thresholds();
  std::vector<Node> nodes;
  nodes.reserve(sizeof packed_nodes / 3);
  // Inner nodes whose right subtree is still to come.
  std::vector<std::size_t> open;
  for (Digits packed(packed_nodes); !packed.at_end();) {
    const std::uint32_t head = packed.number(1), number = packed.number(2 + head % 2);
    const std::uint32_t feature = head / 2;
    if (feature != is_leaf) {
      open.push_back(nodes.size());
      nodes.push_back({feature, thresholds.at(feature).at(number)});
      continue;
    }
    nodes.push_back({feature, number});
    if (open.empty()) continue;
    nodes[open.back()].feature_and_right += 64 * static_cast<std::uint32_t>(nodes.size());
    open.pop_back();
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
    parts = divided_up(call.k, quotients.at(label.rule - 300));
  } else if (label.rule >= 200) {
    const std::int64_t blocks =
        divided_up(call.n, label.columns) * divided_up(call.m, label.rows) * call.batch;
    parts = multiprocessors * (label.rule - 200) / blocks;
  }
  return std::max<std::int64_t>(1, parts);
}

/// How many parts of K cuBLAS' sgemm_largek makes: as many as give each multiprocessor two thread
/// blocks, but five where D has fewer than 42 tiles. It was recorded for K up to 640 and one tile
/// for each multiprocessor, or fewer.
std::int64_t parts_of_largek(const ProductCall& call) {
  const std::int64_t tiles = formats::divided_up(call.m, 32) * formats::divided_up(call.n, 32);
  const std::int64_t parts =
      tiles < 42 ? 5 : std::max<std::int64_t>(1, 2 * multiprocessors / tiles);
  const std::int64_t run = std::max<std::int64_t>(8, formats::rounded_up(call.k / parts, 8));
  return formats::divided_up(call.k, run);
}

/// The leaf of the tree that begins at a node.
Leaf leaf_of(const ProductCall& call, const std::array<double, 28>& features, std::size_t at) {
  static const std::vector<Node> nodes = unpacked_nodes();
  static const std::vector<Label> labels = unpacked_labels();
  while (nodes[at].feature() != is_leaf) {
    const Node& node = nodes[at];
    const double threshold{std::bit_cast<float>(node.value)};
    at = features.at(node.feature()) <= threshold ? at + 1 : node.right();
  }
  const Label& label = labels.at(nodes[at].value);
  Leaf leaf;
  leaf.form = label.form;
  leaf.unit = label.unit;
  leaf.tile = label.tile;
  leaf.agree = label.agree;
  if (leaf.form == Form::lanes_halves || leaf.form == Form::lanes_ascending) {
    leaf.parts = std::int64_t{1} << label.rule % 16;
    leaf.restart = restarts.at(label.rule / 16);
  } else {
    leaf.parts = leaf.form == Form::runs_of_8 ? parts_of_largek(call) : parts_of(call, label);
  }
  return leaf;
}

}  // namespace

Leaf leaf_of(const ProductCall& call) {
  const std::array<double, 28> features = features_of(call);
  const std::size_t tree = 2 * static_cast<std::size_t>(call.numbers);
  const Leaf leaf = leaf_of(call, features, roots.at(tree));
  return leaf.form == Form::unknown ? leaf_of(call, features, roots.at(tree + 1)) : leaf;
}

}  // namespace guardbit::emulator::atlas
