#pragma once

// The order in which a unit adds its products, found by questions alone, and its drawing as text
// and DOT.

#include <string>
#include <vector>

namespace guardbit::emulator {

struct BlackBox;

/// A tree of additions. A leaf is product number `leaf`, or the addend if `leaf` is k; a node adds
/// its children at once.
struct SumTree {
  int leaf = -1;
  std::vector<SumTree> children;

  bool is_leaf() const { return children.empty(); }
  friend bool operator==(const SumTree&, const SumTree&) = default;
};

/// The leaves from left to right.
std::vector<int> leaves(const SumTree& tree);

struct TreeAnswer {
  SumTree tree;
  bool observable = false;
  /// what cannot be observed, and why; empty for a whole tree
  std::string note;
};

/// Finds the tree by FPRev's method (arXiv 2411.00442): a large product and its negative absorb all
/// small products that are added between them. Counting those that survive gives the number of
/// leaves below the common node of the two. Throws formats::Error if the unit gives a wrong number
/// of answers.
TreeAnswer reveal_tree(const BlackBox& box);

/// The tree in one line: "(((c 0) 1) 2)", with runs of neighbours as "0..15".
std::string tree_text(const SumTree& tree, int k);
/// The tree with one node per line and children indented.
std::string tree_drawing(const SumTree& tree, int k);
/// The tree as a Graphviz graph.
std::string tree_dot(const SumTree& tree, int k);

}  // namespace guardbit::emulator
