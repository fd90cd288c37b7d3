#include "emulator/gemm/atlas/leaf.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace guardbit::emulator::atlas {

namespace {

/// A node of a tree: a feature no greater than the threshold leads to the next node, another to
/// `right`. Feature 31: a leaf, `right` being what it says: form, parts, residue and unit in
/// decimal places.
struct Node {
  std::uint8_t feature;
  std::uint32_t right;
  std::uint32_t threshold;
};

constexpr std::uint8_t is_leaf = 31;

// By tools/scripts/fit_atlas.py from what record_dispatch.py recorded.
constexpr auto nodes = std::to_array<Node>({
#include "emulator/gemm/atlas/launches.inc"
});

/// Where the tree of f16, bf16, tf32 and f32 begins.
constexpr std::array<std::uint32_t, 4> roots = {
#include "emulator/gemm/atlas/roots.inc"
};

/// The greatest power of two, at most 16, that divides it.
std::int64_t alignment(std::int64_t x) { return std::min<std::int64_t>(16, x & -x); }

std::array<float, 16> features_of(const ProductCall& call) {
  const std::int64_t lda =
      call.a_leading != 0 ? call.a_leading : (call.a_transposed ? call.m : call.k);
  const std::int64_t ldb =
      call.b_leading != 0 ? call.b_leading : (call.b_transposed ? call.k : call.n);
  const auto m = static_cast<double>(call.m), n = static_cast<double>(call.n),
             k = static_cast<double>(call.k), batch = static_cast<double>(call.batch);
  const auto tiles = [&](double side) { return std::ceil(m / side) * std::ceil(n / side) * batch; };
  const std::array<double, 16> values = {static_cast<double>(call.op),
                                         call.a_transposed ? 1.0 : 0.0,
                                         call.b_transposed ? 1.0 : 0.0,
                                         m,
                                         n,
                                         k,
                                         batch,
                                         static_cast<double>(alignment(lda)),
                                         static_cast<double>(alignment(ldb)),
                                         static_cast<double>(alignment(call.n)),
                                         m * n * batch,
                                         k / (m * n * batch),
                                         tiles(128),
                                         tiles(64),
                                         std::min(m, n),
                                         m / n};
  std::array<float, 16> result{};
  std::transform(values.begin(), values.end(), result.begin(),
                 [](double x) { return static_cast<float>(x); });
  return result;
}

}  // namespace

Leaf leaf_of(const ProductCall& call) {
  const std::array<float, 16> features = features_of(call);
  std::size_t at = roots.at(static_cast<std::size_t>(call.numbers));
  while (nodes[at].feature != is_leaf) {
    const Node& node = nodes[at];
    const bool left = features.at(node.feature) <= std::bit_cast<float>(node.threshold);
    at = left ? at + 1 : node.right;
  }
  const std::uint32_t code = nodes[at].right;
  Leaf leaf;
  leaf.form = static_cast<Form>(code / 100'000'000);
  leaf.parts = static_cast<int>(code / 100'000 % 1000);
  leaf.residue = static_cast<int>(code / 10 % 10'000);
  leaf.unit = static_cast<Unit>(code % 10);
  return leaf;
}

}  // namespace guardbit::emulator::atlas
