#include "emulator/tree_arithmetic.hpp"

#include <array>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"

namespace guardbit::emulator {

namespace {

using formats::Value;

struct Evaluation {
  const BlackBox& box;
  const TreeArithmetic& arithmetic;
  const Question& question;

  Value rounded(const formats::Unrounded& x) const {
    return formats::decode(box.d, formats::encode(box.d, x, arithmetic.rounding));
  }
  Value a(int i) const { return formats::decode(box.a, question.a[static_cast<std::size_t>(i)]); }
  Value b(int i) const { return formats::decode(box.b, question.b[static_cast<std::size_t>(i)]); }

  std::optional<Value> value(const SumTree& tree) const {
    if (tree.is_leaf()) {
      if (tree.leaf == box.k) return formats::decode(box.c, question.c);
      return rounded(formats::multiply(a(tree.leaf), b(tree.leaf)));
    }
    if (tree.children.size() != 2) return {};
    const bool down = arithmetic.rounding == Rounding::downward;
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

}  // namespace

std::optional<std::uint64_t> evaluate(const BlackBox& box, const SumTree& tree,
                                      const TreeArithmetic& arithmetic, const Question& question) {
  const auto sum = Evaluation{box, arithmetic, question}.value(tree);
  if (!sum) return {};
  return formats::encode(box.d, *sum, arithmetic.rounding);
}

std::string text_of(const TreeArithmetic& arithmetic) {
  constexpr std::array names = {"nearest even", "nearest away", "toward zero",
                                "upward",       "downward",     "to odd"};
  return std::string(arithmetic.fused ? "fused multiply-adds" : "products rounded, then added") +
         ", rounded " + names.at(static_cast<std::size_t>(arithmetic.rounding));
}

}  // namespace guardbit::emulator
