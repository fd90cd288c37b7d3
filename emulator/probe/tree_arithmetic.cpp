#include "emulator/probe/tree_arithmetic.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "emulator/model/result.hpp"
#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/words.hpp"

namespace guardbit::emulator {

namespace {

using formats::Value;

struct Evaluation {
  const BlackBox& box;
  const TreeArithmetic& arithmetic;
  const Question& question;
  AccumulatorSpec spec{};

  Evaluation(const BlackBox& asked, const TreeArithmetic& how, const Question& q)
      : box(asked), arithmetic(how), question(q) {
    spec.summation = Summation::fma_chain;
    spec.result = how.rounding;
    spec.input = how.input;
    spec.output = how.output;
  }

  Value read(const Format& f, std::uint64_t code) const { return decode_input(spec, f, code); }
  Value rounded(const formats::Unrounded& x) const {
    return read(arithmetic.sums, encode_result(spec, arithmetic.sums, x));
  }
  Value a(int i) const { return read(box.a, question.a[static_cast<std::size_t>(i)]); }
  Value b(int i) const { return read(box.b, question.b[static_cast<std::size_t>(i)]); }

  std::optional<Value> value(const SumTree& tree) const {
    const bool down = arithmetic.rounding == Rounding::downward;
    if (tree.is_leaf()) {
      if (tree.leaf == box.k) return read(box.c, question.c);
      const Value zero = formats::zero_value(false);
      if (arithmetic.from_zero && arithmetic.fused)
        return rounded(formats::fused_multiply_add(a(tree.leaf), b(tree.leaf), zero, down));
      const Value product = rounded(formats::multiply(a(tree.leaf), b(tree.leaf)));
      if (!arithmetic.from_zero) return product;
      return rounded(formats::add(formats::exactly(product), formats::exactly(zero), down));
    }
    if (tree.children.size() != 2) return {};
    const SumTree& last = tree.children[1];
    const std::optional<Value> x = value(tree.children[0]);
    if (!x) return {};
    if (arithmetic.fused && last.is_leaf() && last.leaf != box.k) {
      return rounded(formats::fused_multiply_add(a(last.leaf), b(last.leaf), *x, down));
    }
    const std::optional<Value> y = value(last);
    if (!y) return {};
    return rounded(formats::add(formats::exactly(*x), formats::exactly(*y), down));
  }
};

/// Mismatches up to the limit; the limit where the tree gives no number.
std::size_t count(const BlackBox& box, const SumTree& tree, const TreeArithmetic& arithmetic,
                  std::span<const Answered> answers, std::size_t limit) {
  const auto is_nan = [&](std::uint64_t code) {
    return formats::decode(box.d, code).kind == formats::Kind::nan;
  };
  std::size_t wrong = 0;
  for (const Answered& x : answers) {
    const auto d = evaluate(box, tree, arithmetic, x.question);
    if (!d) return limit;
    if (*d != x.d && !(is_nan(*d) && is_nan(x.d)) && ++wrong >= limit) break;
  }
  return wrong;
}

/// The arithmetic with subnormal numbers kept that gives most of the answers, if nearly all: a few
/// may have met subnormal sums.
std::optional<TreeArithmetic> ordinary_arithmetic(const BlackBox& box, const SumTree& tree,
                                                  std::span<const Answered> ordinary) {
  std::vector<Format> formats_of_sums = {box.d};
  for (const Format& wider : {formats::fp32, formats::fp64})
    if (wider.fraction_bits > box.d.fraction_bits) formats_of_sums.push_back(wider);
  std::optional<TreeArithmetic> best;
  std::size_t least = ordinary.size() / 20 + 1;
  for (const Format& sums : formats_of_sums) {
    for (const bool fused : {true, false}) {
      for (const Rounding rounding :
           {Rounding::nearest_even, Rounding::toward_zero, Rounding::upward, Rounding::downward,
            Rounding::nearest_away}) {
        const TreeArithmetic arithmetic{fused, rounding, sums};
        const std::size_t wrong = count(box, tree, arithmetic, ordinary, least);
        if (wrong >= least) continue;
        best = arithmetic;
        least = wrong;
        if (wrong == 0) return best;
      }
    }
  }
  return best;
}

}  // namespace

std::optional<std::uint64_t> evaluate(const BlackBox& box, const SumTree& tree,
                                      const TreeArithmetic& arithmetic, const Question& question) {
  const Evaluation evaluation(box, arithmetic, question);
  const auto sum = evaluation.value(tree);
  if (!sum) return {};
  return encode_result(evaluation.spec, box.d, formats::exactly(*sum));
}

std::size_t mismatches(const BlackBox& box, const SumTree& tree, const TreeArithmetic& arithmetic,
                       std::span<const Answered> answers) {
  return count(box, tree, arithmetic, answers, answers.size());
}

std::optional<TreeArithmetic> arithmetic_of_tree(const BlackBox& box, const SumTree& tree,
                                                 std::span<const Answered> ordinary,
                                                 std::span<const Answered> all) {
  std::optional<TreeArithmetic> best = ordinary_arithmetic(box, tree, ordinary);
  if (!best) return {};
  std::size_t least = mismatches(box, tree, *best, all);
  constexpr std::array subnormals = {Subnormals::keep, Subnormals::flush, Subnormals::daz_ftz};
  const TreeArithmetic first = *best;
  for (const bool from_zero : {false, true}) {
    for (const Subnormals input : subnormals) {
      for (const Subnormals output : subnormals) {
        if (least == 0) break;
        TreeArithmetic other = first;
        other.from_zero = from_zero;
        other.input = input;
        other.output = output;
        const std::size_t wrong = count(box, tree, other, all, least);
        if (wrong >= least) continue;
        least = wrong;
        best = other;
      }
    }
  }
  if (mismatches(box, tree, *best, ordinary) != 0) return {};
  return best;
}

std::string text_of(const TreeArithmetic& arithmetic, const Format& d) {
  constexpr std::array inputs = {"", ", subnormal operands flushed to +0", ", DAZ"};
  constexpr std::array outputs = {"", ", subnormal results flushed", ", FTZ"};
  std::string text = arithmetic.fused ? "fused multiply-adds" : "products rounded, then added";
  if (arithmetic.from_zero) text += " from +0";
  std::string rounding(formats::word_of(arithmetic.rounding));
  std::replace(rounding.begin(), rounding.end(), '_', ' ');
  text += ", rounded " + rounding;
  if (arithmetic.sums != d)
    text += " to " + formats::name_of(arithmetic.sums) + ", in the end to " + formats::name_of(d);
  return text + inputs.at(static_cast<std::size_t>(arithmetic.input)) +
         outputs.at(static_cast<std::size_t>(arithmetic.output));
}

}  // namespace guardbit::emulator
