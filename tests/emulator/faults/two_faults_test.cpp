// Kernels that are wrong in two ways at once: both are named, and nothing else.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/emulator/faults/wrong_products.hpp"

namespace guardbit::emulator {
namespace {

/// What is planted: each fault is to be named by one of its kinds.
struct Pair {
  std::string name;
  std::vector<std::vector<FaultKind>> faults;
  Kernel kernel;
};

/// A tile of D of 16 x 16.
void set_tile(RealMatrix& d, std::int64_t row, std::int64_t column,
              const std::function<double(std::int64_t, std::int64_t)>& value) {
  for (std::int64_t i = row; i < row + 16; ++i)
    for (std::int64_t j = column; j < column + 16; ++j) d(i, j) = value(i, j);
}

void scale(RealMatrix& x, double factor) {
  for (double& value : x.values) value *= factor;
}

RealMatrix asked(const Subject& x) { return plus(chained(x.a, x.b), x.c); }

/// Rows of x by `source`.
RealMatrix with_rows_of(const RealMatrix& x,
                        const std::function<std::int64_t(std::int64_t)>& source) {
  RealMatrix result = x;
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.columns; ++j) result(i, j) = x(source(i), j);
  return result;
}

RealMatrix without_stage(Subject x) {
  scale_k(x, middle(x), middle(x) + stage, 0);
  return chained(x.a, x.b);
}

double wrong_number(const Subject& x, double right) {
  return scalar::rounded(x.types.input, 1.5 * right + 1);
}

std::vector<Pair> pairs() {
  using enum FaultKind;
  const auto relu = [](double v) { return std::max(v, 0.0); };
  const auto zero = [](auto, auto) { return 0.0; };
  return {
      {"a stage of K is missing and a tile of D is not written",
       {{missing_k}, {not_written}},
       [=](const Subject& x) {
         RealMatrix d = plus(without_stage(x), x.c);
         set_tile(d, 16, 0, zero);
         return d;
       }},
      {"a stage of K is missing and C is",
       {{missing_k}, {missing_c}},
       [](const Subject& x) { return without_stage(x); }},
      {"a stage of K is missing and C is that of the next column",
       {{missing_k}, {misplaced_c}},
       [](const Subject& x) {
         RealMatrix c = x.c;
         for (std::int64_t i = 0; i < c.rows; ++i)
           for (std::int64_t j = 0; j + 1 < c.columns; ++j) c(i, j) = x.c(i, j + 1);
         return plus(without_stage(x), c);
       }},
      {"a stage of K is missing and a tile of D is another",
       {{missing_k}, {moved_tile}},
       [](const Subject& x) {
         RealMatrix d = plus(without_stage(x), x.c);
         const RealMatrix old = d;
         set_tile(d, 16, 0, [&](auto i, auto j) { return old(i + 16, j + 32); });
         return d;
       }},
      {"a stage of K is missing and an element of A is wrong",
       {{missing_k}, {wrong_element}},
       [](Subject x) {
         x.a(5, 2) = wrong_number(x, x.a(5, 2));
         return plus(without_stage(x), x.c);
       }},
      {"a stage of K is missing and rows are exchanged",
       {{missing_k}, {permuted_rows}},
       [](const Subject& x) {
         return with_rows_of(plus(without_stage(x), x.c), [](auto i) { return i ^ 8; });
       }},
      {"a stage of K is missing and D went through ReLU",
       {{missing_k}, {activation}},
       [=](const Subject& x) { return mapped(plus(without_stage(x), x.c), relu); }},
      {"a stage of K is missing and A and B went through BF16",
       {{missing_k}, {converted_input}},
       [](Subject x) {
         const auto round = [](double v) { return scalar::rounded(formats::bf16, v); };
         x.a = mapped(x.a, round), x.b = mapped(x.b, round);
         return plus(without_stage(x), x.c);
       }},
      {"a stage of K is missing and each column has a number of its own",
       {{missing_k}, {bias}},
       [](const Subject& x) {
         RealMatrix d = plus(without_stage(x), x.c);
         for (std::int64_t i = 0; i < d.rows; ++i)
           for (std::int64_t j = 0; j < d.columns; ++j)
             d(i, j) += 4 * std::sin(static_cast<double>(j));
         return d;
       }},
      {"alpha is wrong and rows are exchanged",
       {{alpha}, {permuted_rows}},
       [](const Subject& x) {
         RealMatrix d = with_rows_of(chained(x.a, x.b), [](auto i) { return i ^ 8; });
         scale(d, 0.75);
         return plus(d, x.c);
       }},
      {"alpha is wrong and columns are one further on",
       {{alpha}, {permuted_columns}},
       [](const Subject& x) {
         RealMatrix d = chained(x.a, x.b);
         const RealMatrix old = d;
         for (std::int64_t i = 0; i < d.rows; ++i)
           for (std::int64_t j = 0; j + 1 < d.columns; ++j) d(i, j) = old(i, j + 1);
         scale(d, 0.75);
         return plus(d, x.c);
       }},
      {"alpha is wrong and a tile of D is not written",
       {{alpha}, {not_written}},
       [=](const Subject& x) {
         RealMatrix d = chained(x.a, x.b);
         scale(d, 0.75);
         d = plus(d, x.c);
         set_tile(d, 16, 0, zero);
         return d;
       }},
      {"alpha is wrong and an element of B is",
       {{alpha}, {wrong_element}},
       [](Subject x) {
         x.b(2, 5) = wrong_number(x, x.b(2, 5));
         RealMatrix d = chained(x.a, x.b);
         scale(d, 0.75);
         return plus(d, x.c);
       }},
      {"C is missing and an element of A is wrong",
       {{missing_c}, {wrong_element}},
       [](Subject x) {
         x.a(5, 2) = wrong_number(x, x.a(5, 2));
         return chained(x.a, x.b);
       }},
      {"C is missing and a tile of D is not written",
       {{missing_c}, {not_written}},
       [=](const Subject& x) {
         RealMatrix d = chained(x.a, x.b);
         set_tile(d, 16, 0, zero);
         return d;
       }},
      {"rows are exchanged and a tile of D is not written",
       {{permuted_rows}, {not_written}},
       [=](const Subject& x) {
         RealMatrix d = with_rows_of(asked(x), [](auto i) { return i ^ 8; });
         set_tile(d, 16, 0, zero);
         return d;
       }},
      {"an element of A and one of B are wrong",
       {{wrong_element}, {wrong_element}},
       [](Subject x) {
         x.a(5, 2) = wrong_number(x, x.a(5, 2));
         x.b(7, 9) = wrong_number(x, x.b(7, 9));
         return asked(x);
       }},
      {"two elements of one row of A are wrong",
       {{wrong_element}, {wrong_element}},
       [](Subject x) {
         x.a(5, 2) = wrong_number(x, x.a(5, 2));
         x.a(5, 40) = wrong_number(x, x.a(5, 40));
         return asked(x);
       }},
      {"two elements of A are wrong",
       {{wrong_element}, {wrong_element}},
       [](Subject x) {
         x.a(5, 2) = wrong_number(x, x.a(5, 2));
         x.a(30, 40) = wrong_number(x, x.a(30, 40));
         return asked(x);
       }},
      {"an element of A is wrong and D went through ReLU",
       {{wrong_element}, {activation}},
       [=](Subject x) {
         x.a(5, 2) = scalar::rounded(x.types.input, x.a(5, 2) + 40);
         return mapped(asked(x), relu);
       }},
      {"an element of A is wrong and a tile of D is not written",
       {{wrong_element}, {not_written}},
       [=](Subject x) {
         x.a(20, 2) = wrong_number(x, x.a(20, 2));
         RealMatrix d = asked(x);
         set_tile(d, 16, 0, zero);
         return d;
       }},
      {"beta is wrong and a tile of D is another",
       {{beta}, {moved_tile}},
       [](const Subject& x) {
         RealMatrix d = plus(chained(x.a, x.b), x.c, 2);
         const RealMatrix old = d;
         set_tile(d, 16, 0, [&](auto i, auto j) { return old(i + 16, j + 32); });
         return d;
       }},
      {"a constant is added and an element of A is wrong",
       {{constant}, {wrong_element}},
       [](Subject x) {
         x.a(5, 2) = wrong_number(x, x.a(5, 2));
         return mapped(asked(x), [](double v) { return v + 1; });
       }},
      {"D is limited and an element of B is wrong",
       {{clamped}, {wrong_element}},
       [](Subject x) {
         x.b(7, 9) = wrong_number(x, x.b(7, 9));
         return mapped(asked(x), [](double v) { return std::clamp(v, -6.0, 6.0); });
       }},
      {"a stage of A is stale and C is missing",
       {{stale_k}, {missing_c}},
       [](Subject x) {
         const RealMatrix a = x.a;
         for (std::int64_t k = middle(x); k < middle(x) + stage; ++k) copy_a(x, a, k, k - stage);
         return chained(x.a, x.b);
       }},
      {"B has another leading dimension and a tile of D is not written",
       {{wrong_stride}, {not_written}},
       [=](Subject x) {
         const RealMatrix b = x.b;
         for (std::size_t at = 0; at < b.values.size(); ++at) {
           const std::size_t from = at + at / static_cast<std::size_t>(b.columns);
           x.b.values[at] = from < b.values.size() ? b.values[from] : 0;
         }
         RealMatrix d = asked(x);
         set_tile(d, 16, 0, zero);
         return d;
       }},
      {"C is that of the next row and an element of A is wrong",
       {{misplaced_c}, {wrong_element}},
       [](Subject x) {
         x.a(5, 2) = wrong_number(x, x.a(5, 2));
         x.c = with_rows_of(x.c, [&](auto i) { return (i + 1) % x.a.rows; });
         return asked(x);
       }},
      {"A went through BF16 and a tile of D is another",
       {{moved_tile}, {converted_input}},
       [](Subject x) {
         x.a = mapped(x.a, [](double v) { return scalar::rounded(formats::bf16, v); });
         RealMatrix d = asked(x);
         const RealMatrix old = d;
         set_tile(d, 16, 0, [&](auto i, auto j) { return old(i + 16, j + 32); });
         return d;
       }},
      {"a tile of D is another and an element of B that reaches it is wrong",
       {{moved_tile}, {wrong_element}},
       [](Subject x) {
         RealMatrix d = asked(x);
         const RealMatrix old = d;
         x.b(7, 40) = wrong_number(x, x.b(7, 40));
         d = asked(x);
         set_tile(d, 32, 32, [&](auto i, auto j) { return old(i - 16, j - 16); });
         return d;
       }},
      {"a tile of D is zero and one is another",
       {{not_written}, {moved_tile}},
       [=](const Subject& x) {
         RealMatrix d = asked(x);
         const RealMatrix old = d;
         set_tile(d, 16, 0, zero);
         set_tile(d, 16, 32, [&](auto i, auto j) { return old(i + 16, j + 16); });
         return d;
       }},
      {"a tile of D is zero and the one beside it another",
       {{not_written}, {moved_tile}},
       [=](const Subject& x) {
         RealMatrix d = asked(x);
         const RealMatrix old = d;
         set_tile(d, 16, 0, zero);
         set_tile(d, 16, 16, [&](auto i, auto j) { return old(i + 16, j + 16); });
         return d;
       }},
      {"sums are not set to zero from one tile of D to a second and a third",
       {{stale_accumulator}, {stale_accumulator}},
       [](const Subject& x) {
         RealMatrix d = chained(x.a, x.b);
         set_tile(d, 16, 32, [&](auto i, auto j) { return d(i, j) + d(i - 16, j - 32); });
         set_tile(d, 48, 0, [&](auto i, auto j) { return d(i, j) + d(i - 32, j + 32); });
         return plus(d, x.c);
       }},
      {"a tile of D is NaN and one lacks a stage of K",
       {{not_a_number}, {missing_k}},
       [](const Subject& x) {
         RealMatrix d = asked(x);
         const RealMatrix other = plus(without_stage(x), x.c);
         set_tile(d, 16, 0, [](auto, auto) { return std::nan(""); });
         set_tile(d, 32, 32, [&](auto i, auto j) { return other(i, j); });
         return d;
       }},
  };
}

/// The words of a judgement that does not name each fault and nothing else; empty if it does.
std::string missed(const Pair& pair, const Judgement& judgement) {
  const auto is_of = [](const Fault& fault, const std::vector<FaultKind>& kinds) {
    return std::find(kinds.begin(), kinds.end(), fault.kind) != kinds.end();
  };
  const bool are_named =
      std::all_of(pair.faults.begin(), pair.faults.end(), [&](const auto& kinds) {
        return std::count_if(judgement.faults.begin(), judgement.faults.end(),
                             [&](const Fault& fault) { return is_of(fault, kinds); }) >=
               std::count(pair.faults.begin(), pair.faults.end(), kinds);
      });
  if (are_named && judgement.faults.size() == pair.faults.size()) return "";
  std::string words = pair.name + ": " + std::string(formats::word_of(judgement.verdict));
  for (const Fault& fault : judgement.faults)
    words += "; " + std::string(formats::word_of(fault.kind)) + ": " + fault.text;
  return words + '\n';
}

/// Every pair of faults in products of three sizes and formats; `is_judged` says which of the
/// three.
void check_pairs(const std::function<bool(std::size_t pair, std::size_t product)>& is_judged) {
  const std::array products = {std::pair{Size{64, 64, 64}, tested_types[0]},
                               std::pair{Size{96, 80, 112}, tested_types[1]},
                               std::pair{Size{80, 96, 64}, tested_types[2]}};
  const std::vector<Pair> all_pairs = pairs();
  for (std::size_t product = 0; product < products.size(); ++product) {
    const auto& [size, type] = products[product];
    const Subject x = subject_of(size, type, 1);
    std::string all;
    for (std::size_t at = 0; at < all_pairs.size(); ++at) {
      const Pair& pair = all_pairs[at];
      // FP16 and BF16 operands change nothing in BF16.
      if (pair.faults[1][0] == FaultKind::converted_input && type.input != formats::fp32) continue;
      if (is_judged(at, product)) all += missed(pair, judge(numbers(x, pair.kernel(x))));
    }
    CAPTURE(size.m, formats::name_of(type.input));
    INFO(all);
    CHECK(all.empty());
  }
}

TEST_CASE("two faults at once are both named", "[long]") {
  check_pairs([](std::size_t pair, std::size_t product) { return pair % 6 == product; });
}

TEST_CASE("two faults at once are both named whatever the size and the format", "[sweep]") {
  check_pairs([](std::size_t, std::size_t) { return true; });
}

}  // namespace
}  // namespace guardbit::emulator
