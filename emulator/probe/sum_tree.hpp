#pragma once

#include <string>
#include <vector>

namespace guardbit::emulator {

struct BlackBox;

/// The order in which a unit adds: a leaf is product `leaf`, or the addend when `leaf` is k; a node
/// adds its children at once.
struct SumTree {
  int leaf = -1;
  std::vector<SumTree> children;

  bool is_leaf() const { return children.empty(); }
  friend bool operator==(const SumTree&, const SumTree&) = default;
};

/// Leaves in the order they stand.
std::vector<int> leaves(const SumTree& tree);

struct TreeAnswer {
  SumTree tree;
  bool observable = false;
  std::string note;  ///< what cannot be seen and why; empty when the whole tree was
};

/// FPRev's method (arXiv 2411.00442): a large product and its negative swallow what is added
/// between them, so that counting what survives gives the leaves below their common node.
TreeAnswer reveal_tree(const BlackBox& box);

/// "(((c 0) 1) 2)", runs of neighbours as "0..15".
std::string tree_text(const SumTree& tree, int k);
/// One node per line, children indented.
std::string tree_drawing(const SumTree& tree, int k);
std::string tree_dot(const SumTree& tree, int k);
std::string tree_svg(const SumTree& tree, int k);

}  // namespace guardbit::emulator
