#include "emulator/probe/sum_tree.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "emulator/probe/black_box.hpp"
#include "emulator/probe/operand_codes.hpp"
#include "formats/codec.hpp"
#include "formats/support/error.hpp"

namespace guardbit::emulator {

namespace {

using formats::Kind;
using formats::Value;

/// All pairs of this many leaves are asked at once; above, only those that the tree needs.
constexpr int all_pairs_leaves = 130;

/// Exponents of the large and the small terms: as far apart as products, addend and result can hold
/// while the result can still count the small ones.
struct Masks {
  int large = 0, small = 0;
};

std::optional<Masks> choose_masks(const BlackBox& box, int leaf_count) {
  const int greatest_product = greatest_power(box.a) + greatest_power(box.b);
  int large = std::min(greatest_product, greatest_power(box.d) - 1);
  if (box.has_addend) large = std::min(large, greatest_power(box.c) - 1);
  int low = formats::min_exponent(box.a) + formats::min_exponent(box.b);
  // Narrow formats need their subnormal numbers: all small terms together must be absorbed, too.
  constexpr int enough = 50;
  if (large - low < enough) low = least_power(box.a) + least_power(box.b);
  low = std::max(low, least_power(box.d));
  if (box.has_addend) low = std::max(low, least_power(box.c));
  // 2^0 where that is far enough: an ordinary number in every kernel.
  const int small = large >= 70 && low <= 0 ? 0 : low;
  const int counting = formats::leading_bit(static_cast<unsigned>(leaf_count)) + 1;
  if (small >= large || counting > formats::precision(box.d)) return {};
  return Masks{large, small};
}

/// Nodes first, then the addend, then products ascending: the order in which they take part.
void put_in_order(SumTree& tree, int k) {
  for (SumTree& child : tree.children) put_in_order(child, k);
  const auto rank = [k](const SumTree& child) {
    return std::pair{child.is_leaf() ? (child.leaf == k ? 1 : 2) : 0,
                     child.is_leaf() ? child.leaf : 0};
  };
  std::stable_sort(tree.children.begin(), tree.children.end(),
                   [&](const SumTree& x, const SumTree& y) { return rank(x) < rank(y); });
}

class Revealer {
 public:
  Revealer(const BlackBox& box, const Masks& masks)
      : box_(box), masks_(masks), count_(box.k + (box.has_addend ? 1 : 0)) {}

  TreeAnswer reveal() {
    std::vector<int> all(static_cast<std::size_t>(count_));
    for (int i = 0; i < count_; ++i) all[static_cast<std::size_t>(i)] = i;
    if (count_ <= all_pairs_leaves) {
      std::vector<std::pair<int, int>> pairs;
      for (int i = 0; i < count_; ++i) {
        for (int j = i + 1; j < count_; ++j) pairs.emplace_back(i, j);
      }
      ask(pairs);
      join_lossless();
    }
    TreeAnswer answer;
    answer.tree = subtree(all).first;
    put_in_order(answer.tree, box_.k);
    answer.observable = unknown_ == 0 && !all_lossless_;
    if (all_lossless_) {
      answer.note = "no sum loses any bits that the formats can hold";
    } else if (unknown_ != 0) {
      answer.note = std::to_string(unknown_) +
                    " pairs of large terms did not cancel to a count of small ones";
    } else if (lossless_) {
      answer.note = "some terms are added without loss; each group of them is drawn as one node";
    }
    return answer;
  }

 private:
  using Pair = std::pair<int, int>;

  void set(Question& q, int leaf, int exponent, bool negative) const {
    if (leaf == box_.k) {
      q.c = number_code(box_.c, negative, exponent);
      return;
    }
    const auto codes = product_codes(box_, exponent);
    q.a[static_cast<std::size_t>(leaf)] =
        codes->first | (negative ? formats::sign_mask(box_.a) : 0);
    q.b[static_cast<std::size_t>(leaf)] = codes->second;
  }

  /// The number of small terms in a result; empty if the result is no multiple of them.
  std::optional<int> survivors(std::uint64_t code, bool negative) const {
    const Value d = formats::decode(box_.d, code);
    if (d.kind == Kind::zero) return 0;
    if (d.kind != Kind::finite || d.negative != negative) return {};
    const double n = std::ldexp(static_cast<double>(d.significand), d.exponent - masks_.small);
    if (n != std::floor(n) || n > count_ - 2) return {};
    return static_cast<int>(n);
  }

  /// Counts the leaves below the common node of each pair. With directed rounding it depends on the
  /// signs whether a large term absorbs a small one. The combination of signs in which most small
  /// terms survive lost only those that were added between the large ones.
  void ask(const std::vector<Pair>& pairs) {
    std::vector<Pair> asked;
    std::vector<Question> list;
    for (const Pair& pair : pairs) {
      if (below_.contains(pair)) continue;
      asked.push_back(pair);
      for (int signs = 0; signs < 4; ++signs) {
        Question q = zero_question(box_);
        for (int leaf = 0; leaf < count_; ++leaf) set(q, leaf, masks_.small, (signs & 1) != 0);
        set(q, pair.first, masks_.large, (signs & 2) != 0);
        set(q, pair.second, masks_.large, (signs & 2) == 0);
        list.push_back(std::move(q));
      }
    }
    if (list.empty()) return;
    const std::vector<std::uint64_t> d = box_.answer(list);
    if (d.size() != list.size())
      throw formats::Error("probe", "the unit gave another number of answers than asked");
    for (std::size_t i = 0; i < asked.size(); ++i) {
      int most = -1;
      for (std::size_t signs = 0; signs < 4; ++signs) {
        most = std::max(most, survivors(d[4 * i + signs], (signs & 1) != 0).value_or(-1));
      }
      if (most < 0) ++unknown_;
      below_[asked[i]] = most < 0 ? count_ : count_ - most;
    }
  }
  int below(int i, int j) const { return below_.at(i < j ? Pair{i, j} : Pair{j, i}); }

  /// Three or more terms of which no pair absorbs another are added without loss. They become one
  /// node with the leaves below its lowest common node with a term outside.
  void join_lossless() {
    std::vector<int> group(static_cast<std::size_t>(count_), -1);
    std::vector<std::vector<int>> groups;
    for (int i = 0; i < count_; ++i) {
      if (group[static_cast<std::size_t>(i)] >= 0) continue;
      std::vector<int> members = {i};
      for (int j = i + 1; j < count_; ++j) {
        if (below(i, j) == 2) members.push_back(j);
      }
      if (members.size() < 3) continue;
      for (const int j : members)
        group[static_cast<std::size_t>(j)] = static_cast<int>(groups.size());
      groups.push_back(std::move(members));
    }
    if (groups.empty()) return;
    lossless_ = true;
    all_lossless_ = static_cast<int>(groups[0].size()) == count_;
    std::map<Pair, int> joined = below_;
    const auto size_of = [&](int leaf) {
      const int g = group[static_cast<std::size_t>(leaf)];
      return g < 0 ? 1 : static_cast<int>(groups[static_cast<std::size_t>(g)].size());
    };
    for (auto& [pair, leaves_below] : joined) {
      const int g = group[static_cast<std::size_t>(pair.first)];
      if (g >= 0 && g == group[static_cast<std::size_t>(pair.second)]) continue;
      leaves_below += std::min(size_of(pair.first), size_of(pair.second)) - 1;
    }
    for (const std::vector<int>& members : groups) {
      const bool first_block =
          std::find(members.begin(), members.end(), box_.k) != members.end() || !box_.has_addend;
      int node = static_cast<int>(members.size());
      if (!first_block) {
        node = count_;
        for (int j = 0; j < count_; ++j) {
          if (std::find(members.begin(), members.end(), j) != members.end()) continue;
          const Pair pair = j < members[0] ? Pair{j, members[0]} : Pair{members[0], j};
          node = std::min(node, joined.at(pair));
        }
      }
      for (std::size_t i = 0; i < members.size(); ++i) {
        for (std::size_t j = i + 1; j < members.size(); ++j)
          joined[{members[i], members[j]}] = node;
      }
    }
    below_ = std::move(joined);
  }

  /// The tree of some leaves, and the number of leaves below its root (0 for a leaf). The other
  /// leaves are grouped by their common node with the first leaf, lowest first.
  std::pair<SumTree, int> subtree(const std::vector<int>& set) {
    SumTree tree;
    tree.leaf = set[0];
    if (set.size() == 1) return {tree, 0};
    std::vector<Pair> pairs;
    for (std::size_t i = 1; i < set.size(); ++i) pairs.emplace_back(set[0], set[i]);
    ask(pairs);
    std::map<int, std::vector<int>> meeting;
    for (std::size_t i = 1; i < set.size(); ++i) meeting[below(set[0], set[i])].push_back(set[i]);
    int root = 0;
    for (const auto& [node, others] : meeting) {
      const auto [other, other_root] = subtree(others);
      SumTree joined;
      joined.children.push_back(tree);
      if (other_root == node) {
        joined.children.insert(joined.children.end(), other.children.begin(), other.children.end());
      } else {
        joined.children.push_back(other);
      }
      tree = std::move(joined);
      root = node;
    }
    return {tree, root};
  }

  const BlackBox& box_;
  Masks masks_;
  int count_;
  std::map<Pair, int> below_;
  int unknown_ = 0;
  bool lossless_ = false, all_lossless_ = false;
};

std::string leaf_name(int leaf, int k) { return leaf == k ? "c" : std::to_string(leaf); }

/// Children as words; runs of neighbouring products as "first..last".
std::vector<std::string> words_of(const SumTree& tree, int k, bool with_nodes) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < tree.children.size(); ++i) {
    const SumTree& child = tree.children[i];
    if (!child.is_leaf()) {
      if (with_nodes) words.push_back(tree_text(child, k));
      continue;
    }
    std::size_t last = i;
    while (last + 1 < tree.children.size() && tree.children[last + 1].is_leaf() &&
           tree.children[last + 1].leaf == tree.children[last].leaf + 1 &&
           tree.children[last + 1].leaf != k) {
      ++last;
    }
    words.push_back(last < i + 2
                        ? leaf_name(child.leaf, k)
                        : leaf_name(child.leaf, k) + ".." + leaf_name(tree.children[last].leaf, k));
    if (last >= i + 2) i = last;
  }
  return words;
}

void draw(const SumTree& tree, int k, int depth, std::ostream& out) {
  out << std::string(static_cast<std::size_t>(2 * depth), ' ');
  if (tree.is_leaf()) {
    out << leaf_name(tree.leaf, k) << '\n';
    return;
  }
  out << '+';
  for (const std::string& word : words_of(tree, k, false)) out << ' ' << word;
  out << '\n';
  for (const SumTree& child : tree.children) {
    if (!child.is_leaf()) draw(child, k, depth + 1, out);
  }
}

/// Numbers the nodes and writes them with their edges.
int dot_node(const SumTree& tree, int k, int& next, std::ostream& out) {
  const int id = next++;
  out << "  n" << id << " [label=\"" << (tree.is_leaf() ? leaf_name(tree.leaf, k) : "+")
      << "\"];\n";
  for (const SumTree& child : tree.children) {
    const int child_id = dot_node(child, k, next, out);
    out << "  n" << id << " -> n" << child_id << ";\n";
  }
  return id;
}

void collect(const SumTree& tree, std::vector<int>& list) {
  if (tree.is_leaf() && tree.leaf >= 0) list.push_back(tree.leaf);
  for (const SumTree& child : tree.children) collect(child, list);
}

}  // namespace

std::vector<int> leaves(const SumTree& tree) {
  std::vector<int> list;
  collect(tree, list);
  return list;
}

TreeAnswer reveal_tree(const BlackBox& box) {
  if (formats::is_integer(box.d)) {
    return {{}, false, "sums of integers are exact, so their order cannot be observed"};
  }
  if (box.scale.count != 0) {
    return {{},
            false,
            "a scale factor belongs to many products, so no single product can be made large"};
  }
  const auto masks = choose_masks(box, box.k + 1);
  if (!masks || !product_codes(box, masks->large) || !product_codes(box, masks->small)) {
    return {{}, false, "the formats hold no number large enough to absorb another"};
  }
  return Revealer(box, *masks).reveal();
}

std::string tree_text(const SumTree& tree, int k) {
  if (tree.is_leaf()) return tree.leaf < 0 ? "" : leaf_name(tree.leaf, k);
  std::string text = "(";
  for (const std::string& word : words_of(tree, k, true))
    text += (text.size() == 1 ? "" : " ") + word;
  return text + ")";
}

std::string tree_drawing(const SumTree& tree, int k) {
  std::ostringstream out;
  if (!leaves(tree).empty()) draw(tree, k, 0, out);
  return out.str();
}

std::string tree_dot(const SumTree& tree, int k) {
  std::ostringstream out;
  out << "digraph sum {\n  node [shape=circle];\n";
  int next = 0;
  if (!leaves(tree).empty()) dot_node(tree, k, next, out);
  out << "}\n";
  return out.str();
}

}  // namespace guardbit::emulator
