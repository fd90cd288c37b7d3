#include "tools/plot/sum_tree_picture.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace guardbit::tools {

namespace {

using emulator::SumTree;

constexpr double size = 12, line = 38, border = 14, radius = 9, gap = 10;
/// of a chain, above and below what is left out
constexpr int chain_ends = 6;

/// What is drawn: an addition, where it has children, or words.
struct Node {
  std::string words;
  std::vector<Node> children;
  /// their dashed line stands for additions that are left out
  bool leaves_out = false;
};

std::string leaf_words(int leaf, int k) { return leaf == k ? "c" : std::to_string(leaf); }

/// The one child that is an addition; null where there are none or several.
const SumTree* next_in_chain(const SumTree& tree) {
  const SumTree* next = nullptr;
  for (const SumTree& child : tree.children) {
    if (child.is_leaf()) continue;
    if (next != nullptr) return nullptr;
    next = &child;
  }
  return next;
}

int chain_length(const SumTree& tree) {
  int length = 0;
  for (const SumTree* at = &tree; at != nullptr; at = next_in_chain(*at)) ++length;
  return length;
}

/// `chain`: how many additions of a chain stand above this one.
Node node_of(const SumTree& tree, int k, int chain) {
  Node node;
  const bool is_chain = next_in_chain(tree) != nullptr;
  for (std::size_t i = 0; i < tree.children.size(); ++i) {
    const SumTree& child = tree.children[i];
    if (!child.is_leaf()) {
      const int rest = chain_length(child);
      if (is_chain && chain + 1 == chain_ends && rest > chain_ends + 2) {
        const SumTree* below = &child;
        for (int skipped = rest - chain_ends; skipped > 0; --skipped) below = next_in_chain(*below);
        Node end = node_of(*below, k, chain_ends);
        end.words = "after " + std::to_string(rest - chain_ends) + " more";
        end.leaves_out = true;
        node.children.push_back(std::move(end));
      } else {
        node.children.push_back(node_of(child, k, is_chain ? chain + 1 : 0));
      }
      continue;
    }
    std::size_t last = i;
    while (last + 1 < tree.children.size() && tree.children[last + 1].is_leaf() &&
           tree.children[last + 1].leaf == tree.children[last].leaf + 1 &&
           tree.children[last + 1].leaf != k)
      ++last;
    const bool is_run = last >= i + 2;
    node.children.push_back(
        {leaf_words(child.leaf, k) + (is_run ? ".." + leaf_words(tree.children[last].leaf, k) : ""),
         {},
         false});
    if (is_run) i = last;
  }
  if (tree.is_leaf()) node.words = leaf_words(tree.leaf, k);
  return node;
}

int depth_of(const Node& node) {
  int depth = 0;
  for (const Node& child : node.children) depth = std::max(depth, 1 + depth_of(child));
  return depth;
}

double leaf_width(const Node& node) { return width_of(node.words, size) + gap; }

double tree_width(const Node& node) {
  if (node.children.empty()) return leaf_width(node);
  double width = 0;
  for (const Node& child : node.children) width += tree_width(child);
  // Words beside an addition need room to its right.
  return width + (node.words.empty() ? 0 : width_of(node.words, size));
}

/// Draws what begins at `left`, and says where its top stands.
Place draw(Drawing& drawing, const Node& node, double left, int depth) {
  const double y = border + radius + line * depth;
  if (node.children.empty()) {
    const Place at = {left + leaf_width(node) / 2, y};
    drawing.text({at.x, y + 4}, node.words, {size, Anchor::middle});
    return at;
  }
  std::vector<Place> tops;
  double x = left;
  for (const Node& child : node.children) {
    tops.push_back(draw(drawing, child, x, depth + 1));
    x += tree_width(child);
  }
  const Place at = {(tops.front().x + tops.back().x) / 2, y};
  for (std::size_t i = 0; i < tops.size(); ++i) {
    const Node& child = node.children[i];
    const double end = child.children.empty() ? tops[i].y - 0.9 * size : tops[i].y - radius;
    drawing.line({at.x, y + radius}, {tops[i].x, end},
                 {ink::quiet, 1, child.leaves_out ? "2 3" : ""});
  }
  drawing.marker(0, at, radius, ink::line, true);
  drawing.line({at.x - 4, y}, {at.x + 4, y});
  drawing.line({at.x, y - 4}, {at.x, y + 4});
  if (!node.words.empty()) drawing.text({at.x + radius + 5, y + 4}, node.words, {size});
  return at;
}

}  // namespace

Drawing sum_tree_picture(const SumTree& tree, int k) {
  const Node root = node_of(tree, k, 0);
  Drawing drawing(tree_width(root) + 2 * border, line * depth_of(root) + 2 * (border + radius),
                  "tree of additions: " + emulator::tree_text(tree, k));
  draw(drawing, root, border, 0);
  return drawing;
}

}  // namespace guardbit::tools
