#include "emulator/probe/structures.hpp"

#include <algorithm>
#include <optional>

#include "emulator/catalogue/compositions.hpp"

namespace guardbit::emulator {

namespace {

using Leaves = std::vector<int>;

/// The selection of smallest modulus whose elements below `k` are exactly these; empty if there is
/// none.
std::optional<Selection> selection_of(const Leaves& set, int k) {
  for (int modulus = 1; modulus <= 32 && modulus <= k; ++modulus) {
    Selection s{modulus, 0};
    for (const int leaf : set) s.residues |= 1U << (leaf % modulus);
    int count = 0;
    for (int i = 0; i < k; ++i) count += s.contains(i) ? 1 : 0;
    if (count == static_cast<int>(set.size())) return s;
  }
  return {};
}

/// Turns a tree into steps. `ok_` becomes false if no list of steps adds in that order.
class StepBuilder {
 public:
  StepBuilder(const BlackBox& box, const Format& result) : box_(box), result_(result) {}

  bool build(const SumTree& tree) {
    source_of(tree);
    if (ok_) put_accumulations_first();
    return ok_ && !steps_.empty() && steps_.size() <= Steps{}.list.size();
  }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  bool is_product(const SumTree& t) const { return t.is_leaf() && t.leaf != box_.k; }

  Source last() const { return static_cast<Source>(static_cast<int>(steps_.size()) - 1); }

  void push(const Step& step) {
    if (steps_.size() < Steps{}.list.size()) {
      steps_.push_back(step);
    } else {
      ok_ = false;
    }
  }

  Source source_of(const SumTree& tree) {
    if (!ok_) return Source::c;
    if (tree.is_leaf() && tree.leaf == box_.k) return Source::c;
    // Down the chain of blocks: each adds products to at most one thing before it.
    std::vector<Leaves> blocks;
    const SumTree* at = &tree;
    Source base = Source::positive_zero;
    while (at != nullptr) {
      Leaves products;
      std::vector<const SumTree*> others;
      if (is_product(*at)) {
        products.push_back(at->leaf);
      } else if (at->is_leaf()) {
        base = Source::c;
        break;
      }
      for (const SumTree& child : at->children) {
        if (is_product(child)) {
          products.push_back(child.leaf);
        } else {
          others.push_back(&child);
        }
      }
      if (products.empty() && others.size() == 2) {
        base = addition_of(*others[0], *others[1]);
        break;
      }
      if (others.size() > 1) {
        ok_ = false;
        return base;
      }
      blocks.insert(blocks.begin(), products);
      at = others.empty() ? nullptr : others[0];
    }
    if (blocks.empty()) return base;
    return chain_of(split_first(std::move(blocks), base), base);
  }

  Source addition_of(const SumTree& x, const SumTree& y) {
    const Source first = source_of(x);
    const Source second = source_of(y);
    // The operand that contains C comes first, as in the catalogue.
    const Leaves of_second = leaves(y);
    const bool swapped = std::find(of_second.begin(), of_second.end(), box_.k) != of_second.end();
    push(swapped ? add_step(second, first, result_) : add_step(first, second, result_));
    return last();
  }

  /// Accumulations that depend on no addition go first, as in the catalogue.
  void put_accumulations_first() {
    std::vector<std::size_t> order;
    std::vector<bool> waits(steps_.size());
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const int addend = static_cast<int>(steps_[i].addend);
      waits[i] = steps_[i].operation != Operation::dot ||
                 (addend >= 0 && waits[static_cast<std::size_t>(addend)]);
      if (!waits[i]) order.push_back(i);
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (waits[i]) order.push_back(i);
    }
    std::vector<Step> sorted;
    for (const std::size_t i : order) {
      Step step = steps_[i];
      for (Source* source : {&step.addend, &step.other}) {
        const int from = static_cast<int>(*source);
        if (from < 0) continue;
        const auto to = std::find(order.begin(), order.end(), static_cast<std::size_t>(from));
        *source = static_cast<Source>(to - order.begin());
      }
      sorted.push_back(step);
    }
    steps_ = std::move(sorted);
  }

  /// A chain of single products from zero begins with a node of two.
  static std::vector<Leaves> split_first(std::vector<Leaves> blocks, Source base) {
    const bool singles = blocks.size() == 1 || blocks[1].size() == 1;
    if (base == Source::positive_zero && blocks[0].size() == 2 && singles) {
      const Leaves first = blocks[0];
      blocks[0] = {first[1]};
      blocks.insert(blocks.begin(), {first[0]});
    }
    return blocks;
  }

  /// Ascending blocks of one length become one step if their k form a selection.
  Source chain_of(const std::vector<Leaves>& blocks, Source base) {
    std::size_t begin = 0;
    while (begin < blocks.size() && ok_) {
      std::size_t best = 0;
      Selection selection;
      Leaves set;
      for (std::size_t end = begin; end < blocks.size(); ++end) {
        const bool ascending = set.empty() || blocks[end].front() > set.back();
        const bool alike = blocks[end].size() <= blocks[begin].size() &&
                           (end == begin || blocks[end - 1].size() == blocks[begin].size());
        if (!ascending || !alike) break;
        set.insert(set.end(), blocks[end].begin(), blocks[end].end());
        if (const auto s = selection_of(set, box_.k)) {
          best = end + 1;
          selection = *s;
        }
      }
      if (best == 0) {
        ok_ = false;
        return base;
      }
      Step step = dot_step({}, selection, base, result_);
      const bool one_block = best == begin + 1;
      step.spec.terms =
          one_block && blocks[begin].size() > 1 ? 0 : static_cast<int>(blocks[begin].size());
      push(step);
      base = last();
      begin = best;
    }
    return base;
  }

  const BlackBox& box_;
  Format result_;
  std::vector<Step> steps_;
  bool ok_ = true;
};

/// Is the tree the balanced one over its leaves in order (NUMERICS 4.1, CDNA2)?
bool is_balanced(const SumTree& tree, int first, int count) {
  if (count == 1) return tree.is_leaf() && tree.leaf == first;
  int half = 1;
  while (2 * half < count) half *= 2;
  if (tree.children.size() != 2) return false;
  const SumTree* x = &tree.children[0];
  const SumTree* y = &tree.children[1];
  if (leaves(*x).front() > leaves(*y).front()) std::swap(x, y);
  return is_balanced(*x, first, half) && is_balanced(*y, first + half, count - half);
}

/// The length of the balanced groups that are added to C one after the other; 0 for any other tree.
int balanced_groups(const SumTree& tree, int k) {
  if (tree.is_leaf()) return 0;
  int length = 0;
  int end = k;
  const SumTree* at = &tree;
  while (!at->is_leaf()) {
    if (at->children.size() != 2) return 0;
    const std::vector<int> first = leaves(at->children[0]);
    const bool addend_first = std::find(first.begin(), first.end(), k) != first.end();
    const SumTree& group = at->children[addend_first ? 1 : 0];
    const int size = static_cast<int>(leaves(group).size());
    if (length != 0 && size != length) return 0;
    length = size;
    if (size > end || !is_balanced(group, end - size, size)) return 0;
    end -= size;
    at = &at->children[addend_first ? 0 : 1];
  }
  return at->leaf == k && end == 0 ? length : 0;
}

/// The tree in which each group of products joins the sum that it is added to. Short blocks without
/// loss look like separate groups, since no pair of their products absorbs another.
SumTree with_groups_joined(const SumTree& tree, int k) {
  SumTree joined = tree;
  joined.children.clear();
  for (const SumTree& child : tree.children) {
    const bool group = !child.is_leaf() &&
                       std::all_of(child.children.begin(), child.children.end(),
                                   [k](const SumTree& x) { return x.is_leaf() && x.leaf != k; });
    if (group) {
      joined.children.insert(joined.children.end(), child.children.begin(), child.children.end());
    } else {
      joined.children.push_back(with_groups_joined(child, k));
    }
  }
  return joined;
}

MatrixInstruction instruction_of(const BlackBox& box, std::span<const Step> steps) {
  MatrixInstruction instruction;
  instruction.name = "probed";
  instruction.arch = "unknown";
  instruction.shape = {1, 1, box.k};
  instruction.a = box.a;
  instruction.b = box.b;
  instruction.c = box.c;
  instruction.d = box.d;
  instruction.scale = box.scale;
  for (const Step& step : steps)
    instruction.steps.list.at(static_cast<std::size_t>(instruction.steps.count++)) = step;
  instruction.evidence = {Basis::measured, "probed from outside"};
  return instruction;
}

/// Instructions that compute in the format `inside`, with conversions of C before and of the result
/// after where formats differ.
std::vector<MatrixInstruction> with_conversions(const BlackBox& box, const SumTree& tree,
                                                const Format& inside) {
  std::vector<MatrixInstruction> instructions;
  StepBuilder builder(box, inside);
  if (!builder.build(tree)) return instructions;
  std::vector<Step> steps = builder.steps();
  const std::size_t most = Steps{}.list.size();
  if (inside != box.d) {
    if (steps.size() == most) return instructions;
    steps.push_back(convert_step(static_cast<Source>(static_cast<int>(steps.size()) - 1), box.d));
  }
  instructions.push_back(instruction_of(box, steps));
  if (box.has_addend && box.c != inside && steps.size() < most) {
    std::vector<Step> widened = {convert_step(Source::c, inside)};
    for (Step step : steps) {
      for (Source* source : {&step.addend, &step.other}) {
        if (*source == Source::c) {
          *source = Source::step_0;
        } else if (static_cast<int>(*source) >= 0) {
          *source = static_cast<Source>(static_cast<int>(*source) + 1);
        }
      }
      widened.push_back(step);
    }
    instructions.push_back(instruction_of(box, widened));
  }
  return instructions;
}

void for_dots(MatrixInstruction& instruction, auto change) {
  for (int i = 0; i < instruction.steps.count; ++i) {
    Step& step = instruction.steps.list[static_cast<std::size_t>(i)];
    if (step.operation == Operation::dot) change(step);
  }
}

bool single_products(const MatrixInstruction& instruction) {
  return std::all_of(instruction.steps.begin(), instruction.steps.end(), [](const Step& step) {
    return step.operation != Operation::dot || step.spec.terms == 1;
  });
}

}  // namespace

std::vector<MatrixInstruction> structures_of(const BlackBox& box, const TreeAnswer& tree) {
  std::vector<MatrixInstruction> instructions;
  const auto add = [&instructions](MatrixInstruction instruction, Summation summation) {
    bool may_be_cut = summation == Summation::two_stage || summation == Summation::two_grids;
    for_dots(instruction, [&](Step& step) {
      step.spec.summation = summation;
      if (summation == Summation::fma_chain) step.spec.terms = 0;
      may_be_cut = may_be_cut && step.result == formats::bf16;
    });
    instructions.push_back(instruction);
    if (!may_be_cut) return;
    // BF16 as the upper half of FP32: no single field leads from one to the other.
    for_dots(instruction,
             [](Step& step) { step.spec.result_fraction_bits = formats::fp32.fraction_bits; });
    instructions.push_back(instruction);
  };
  const Source addend = box.has_addend ? Source::c : Source::positive_zero;
  const Step whole = dot_step({}, every_k, addend, box.d);
  const auto in_blocks_of = [&](int length, Summation summation) {
    MatrixInstruction instruction = instruction_of(box, std::span(&whole, 1));
    instruction.steps.list[0].spec.terms = length;
    add(instruction, summation);
  };
  if (formats::is_integer(box.d)) {
    in_blocks_of(0, Summation::integer);
    for (int length = 1; length < box.k; length *= 2) in_blocks_of(length, Summation::integer);
    return instructions;
  }
  // The sums of fp32 factors are wider than the exact accumulators of the model.
  const bool narrow = box.a.exponent_bits <= 8 && box.a.fraction_bits <= 10;
  if (!tree.observable) {
    in_blocks_of(0, Summation::fused);
    for (int length = box.k; length >= 4; length /= 2) {
      if (length < box.k) in_blocks_of(length, Summation::fused);
      if (box.scale.count == 0) in_blocks_of(length, Summation::two_stage);
    }
    // Inverted bits leave a unit behind when two large terms cancel, which hides the tree.
    for (int length = box.k; narrow && box.scale.count == 0 && length >= 1; length /= 2)
      in_blocks_of(length, Summation::two_grids);
    if (narrow && box.scale.count == 0) in_blocks_of(0, Summation::exact);
    return instructions;
  }
  // Groups of one product are a chain, which the tree below gives.
  if (const int length = balanced_groups(tree.tree, box.k); length > 1)
    in_blocks_of(length, Summation::pairwise);
  std::vector<Format> inside = {box.d};
  if (formats::bits(box.d) < 32) inside.push_back(formats::fp32);
  for (const Format& format : inside) {
    for (const MatrixInstruction& instruction : with_conversions(box, tree.tree, format)) {
      if (single_products(instruction)) {
        add(instruction, Summation::fma_chain);
        MatrixInstruction rounded = instruction;
        add(rounded, Summation::pairwise);
      }
      if (!narrow) continue;
      for (const Summation s : {Summation::fused, Summation::exact, Summation::two_stage}) {
        add(instruction, s);
        if (formats::bits(box.a) > 8 || s != Summation::fused) continue;
        MatrixInstruction unpacked = instruction;
        for_dots(unpacked, [](Step& step) { step.widened = formats::fp16; });
        add(unpacked, s);
      }
    }
  }
  if (const SumTree joined = with_groups_joined(tree.tree, box.k); narrow && joined != tree.tree) {
    for (const MatrixInstruction& instruction : with_conversions(box, joined, box.d)) {
      for (const Summation s : {Summation::exact, Summation::fused}) add(instruction, s);
    }
  }
  // A chain from zero may also begin with -0, as plain products do.
  const std::size_t count = instructions.size();
  for (std::size_t i = 0; i < count; ++i) {
    MatrixInstruction instruction = instructions[i];
    bool from_zero = false;
    for_dots(instruction, [&](Step& step) {
      if (step.addend != Source::positive_zero) return;
      step.addend = Source::negative_zero;
      from_zero = true;
    });
    if (from_zero) instructions.push_back(instruction);
  }
  return instructions;
}

}  // namespace guardbit::emulator
