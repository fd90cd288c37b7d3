// Kernels that are wrong on purpose, in every way that has a name and at three sizes: each must be
// named, and no right one accused.

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/emulator/faults/wrong_products.hpp"
#include "tests/formats/files/scratch.hpp"
#include "tests/places.hpp"

namespace guardbit::emulator {
namespace {

/// Rows of D by `source`.
Kernel with_rows(const std::function<std::int64_t(std::int64_t, std::int64_t)>& source) {
  return with_result([=](RealMatrix& d) {
    const RealMatrix old = d;
    for (std::int64_t i = 0; i < d.rows; ++i)
      for (std::int64_t j = 0; j < d.columns; ++j) d(i, j) = old(source(i, d.rows), j);
  });
}
Kernel with_columns(const std::function<std::int64_t(std::int64_t, std::int64_t)>& source) {
  return with_result([=](RealMatrix& d) {
    const RealMatrix old = d;
    for (std::int64_t i = 0; i < d.rows; ++i)
      for (std::int64_t j = 0; j < d.columns; ++j) d(i, j) = old(i, source(j, d.columns));
  });
}

std::vector<Plant> plants() {
  using enum FaultKind;
  const auto in_a = [](const std::function<double(double)>& change) {
    return with_operands(
        [=](Subject& x) { x.a(3, 9) = scalar::rounded(x.types.input, change(x.a(3, 9))); });
  };
  const auto in_b = [](const std::function<double(double)>& change) {
    return with_operands(
        [=](Subject& x) { x.b(9, 3) = scalar::rounded(x.types.input, change(x.b(9, 3))); });
  };
  const auto factors = [](double alpha, double beta, double constant = 0) {
    return [=](Subject x) {
      return mapped(plus(mapped(chained(x.a, x.b), [=](double v) { return alpha * v; }), x.c, beta),
                    [=](double v) { return v + constant; });
    };
  };
  const auto converted = [](const formats::Format& format, bool a, bool b) {
    return with_operands([=](Subject& x) {
      const auto round = [&](double v) { return scalar::rounded(format, v); };
      if (a) x.a = mapped(x.a, round);
      if (b) x.b = mapped(x.b, round);
    });
  };
  const auto weight = [](auto begin, auto end, double factor) {
    return with_operands([=](Subject& x) { scale_k(x, begin(x), end(x), factor); });
  };
  const auto at = [](std::int64_t k) { return [=](const Subject&) { return k; }; };
  const auto mid = [](std::int64_t more) {
    return [=](const Subject& x) { return middle(x) + more; };
  };
  const auto last = [](std::int64_t less) {
    return [=](const Subject& x) { return x.k() - less; };
  };
  return {
      {"one k in the middle is missing", {missing_k}, weight(mid(3), mid(4), 0)},
      {"eight k are missing", {missing_k}, weight(at(21), at(29), 0)},
      {"a stage is missing", {missing_k}, weight(mid(0), mid(stage), 0)},
      {"the last k is missing", {missing_k}, weight(last(1), last(0), 0)},
      {"the tail is missing", {missing_k}, weight(last(8), last(0), 0)},
      {"the first k is missing", {missing_k}, weight(at(0), at(1), 0)},
      {"the second half is missing", {missing_k}, weight(mid(0), last(0), 0)},
      {"every fourth k is missing", {missing_k}, with_operands([](Subject& x) {
         for (std::int64_t k = 3; k < x.k(); k += 4) scale_k(x, k, k + 1, 0);
       })},
      {"one k is doubled", {repeated_k}, weight(at(37), at(38), 2)},
      {"a stage is doubled", {repeated_k}, weight(at(16), at(32), 2)},
      {"the second half is doubled", {repeated_k}, weight(mid(0), last(0), 2)},
      {"one k is negated", {negated_k}, weight(at(41), at(42), -1)},
      {"a stage is negated", {negated_k}, weight(at(32), at(48), -1)},
      {"one k is halved", {weighted_k}, weight(at(5), at(6), 0.5)},
      {"a stage has the scale of another", {weighted_k}, weight(at(16), at(32), 1.5)},
      {"a stale stage", {stale_k}, with_operands([](Subject& x) {
         const RealMatrix a = x.a, b = x.b;
         for (std::int64_t k = middle(x); k < middle(x) + stage; ++k)
           copy_a(x, a, k, k - stage), copy_b(x, b, k, k - stage);
       })},
      {"a stale stage of A", {stale_k}, with_operands([](Subject& x) {
         const RealMatrix a = x.a;
         for (std::int64_t k = middle(x); k < middle(x) + stage; ++k) copy_a(x, a, k, k - stage);
       })},
      {"a stale stage of B", {stale_k}, with_operands([](Subject& x) {
         const RealMatrix b = x.b;
         for (std::int64_t k = middle(x); k < middle(x) + stage; ++k) copy_b(x, b, k, k - stage);
       })},
      {"two k are swapped in A", {permuted_k}, with_operands([](Subject& x) {
         const RealMatrix a = x.a;
         copy_a(x, a, 10, 11), copy_a(x, a, 11, 10);
       })},
      {"a stage of A is reversed", {permuted_k}, with_operands([](Subject& x) {
         const RealMatrix a = x.a;
         for (std::int64_t k = 0; k < stage; ++k) copy_a(x, a, 16 + k, 31 - k);
       })},
      {"a stage of B is rotated", {permuted_k}, with_operands([](Subject& x) {
         const RealMatrix b = x.b;
         for (std::int64_t k = 0; k < stage; ++k) copy_b(x, b, 16 + k, 16 + (k + 1) % stage);
       })},
      {"pairs of k are swapped in all of A", {permuted_k}, with_operands([](Subject& x) {
         const RealMatrix a = x.a;
         for (std::int64_t k = 0; k + 1 < x.k(); k += 2)
           copy_a(x, a, k, k + 1), copy_a(x, a, k + 1, k);
       })},
      {"all k of B are permuted", {permuted_k}, with_operands([](Subject& x) {
         const RealMatrix b = x.b;
         for (std::int64_t k = 0; k < x.k(); ++k) copy_b(x, b, k, (k * 7 + 3) % x.k());
       })},
      {"two rows are swapped", {permuted_rows}, with_rows([](auto i, auto) {
         return i == 3 ? 7 : i == 7 ? 3 : i;
       })},
      {"rows of fragments are swapped", {permuted_rows}, with_rows([](auto i, auto rows) {
         return i < rows / 16 * 16 ? i ^ 8 : i;
       })},
      {"rows of a tile are shifted", {permuted_rows}, with_rows([](auto i, auto) {
         return i < 16 ? (i + 15) % 16 : i;
       })},
      {"two columns are swapped", {permuted_columns}, with_columns([](auto j, auto) {
         return j == 1 ? 5 : j == 5 ? 1 : j;
       })},
      {"columns of fragments are permuted",
       {permuted_columns},
       with_columns([](auto j, auto columns) {
         return j < columns / 8 * 8 ? j / 8 * 8 + (j % 4) * 2 + j % 8 / 4 : j;
       })},
      {"neighbouring columns are swapped",
       {permuted_columns},
       with_columns([](auto j, auto columns) { return j < columns / 2 * 2 ? j ^ 1 : j; })},
      {"a tile is transposed", {transposed}, with_result([](RealMatrix& d) {
         const RealMatrix old = d;
         for (std::int64_t i = 0; i < 16; ++i)
           for (std::int64_t j = 0; j < 16; ++j) d(16 + i, j) = old(16 + j, i);
       })},
      {"a tile is not written", {not_written}, with_result([](RealMatrix& d) {
         for (std::int64_t i = 0; i < 16; ++i)
           for (std::int64_t j = 0; j < 16; ++j) d(16 + i, j) = 0;
       })},
      {"a row is not written", {not_written}, with_result([](RealMatrix& d) {
         for (std::int64_t j = 0; j < d.columns; ++j) d(5, j) = 0;
       })},
      {"a tile is written twice", {moved_tile}, with_result([](RealMatrix& d) {
         for (std::int64_t i = 0; i < 16; ++i)
           for (std::int64_t j = 0; j < 16; ++j) d(16 + i, j) = d(i, j);
       })},
      {"a tile is NaN", {not_a_number}, with_result([](RealMatrix& d) {
         for (std::int64_t i = 0; i < 16; ++i)
           for (std::int64_t j = 0; j < 16; ++j) d(16 + i, j) = std::nan("");
       })},
      {"one element of D is wrong", {wrong_element}, with_result([](RealMatrix& d) {
         d(5, 7) = 1.37 * d(5, 7) + 3;
       })},
      {"one element of A is wrong", {wrong_element}, in_a([](double v) { return 1.5 * v + 1; })},
      {"one element of A is zero", {wrong_element}, in_a([](double) { return 0; })},
      {"one element of A has the other sign", {wrong_element}, in_a([](double v) { return -v; })},
      {"one element of A is large", {wrong_element}, in_a([](double) { return 384; })},
      {"one element of B is wrong", {wrong_element}, in_b([](double v) { return 1.5 * v + 1; })},
      {"one element of B is zero", {wrong_element}, in_b([](double) { return 0; })},
      {"one element of B has the other sign", {wrong_element}, in_b([](double v) { return -v; })},
      {"alpha is 1.25", {alpha}, factors(1.25, 1)},
      {"alpha is -1", {alpha}, factors(-1, 1)},
      {"beta is 0.75", {beta}, factors(1, 0.75)},
      {"beta is 2", {beta}, factors(1, 2)},
      {"C is subtracted", {beta}, factors(1, -1)},
      {"C is missing", {missing_c}, factors(1, 0)},
      {"alpha and beta are both wrong", {alpha, beta}, factors(0.9, 0.6)},
      {"a constant is added", {constant}, factors(1, 1, 1)},
      {"a number for each column", {bias}, with_result([](RealMatrix& d) {
         for (std::int64_t i = 0; i < d.rows; ++i)
           for (std::int64_t j = 0; j < d.columns; ++j)
             d(i, j) += 4 * std::sin(static_cast<double>(j));
       })},
      {"a number for each row", {bias}, with_result([](RealMatrix& d) {
         for (std::int64_t i = 0; i < d.rows; ++i)
           for (std::int64_t j = 0; j < d.columns; ++j)
             d(i, j) += 4 * std::sin(static_cast<double>(i));
       })},
      {"relu", {activation}, with_function([](double v) { return std::max(v, 0.0); })},
      {"gelu", {activation}, with_function([](double v) {
         return 0.5 * v * std::erfc(-v / std::numbers::sqrt2);
       })},
      {"gelu by tanh", {activation}, with_function([](double v) {
         return 0.5 * v *
                (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
       })},
      {"silu", {activation}, with_function([](double v) { return v / (1 + std::exp(-v)); })},
      {"quick gelu", {activation}, with_function([](double v) {
         return v / (1 + std::exp(-1.702 * v));
       })},
      {"softplus", {activation}, with_function([](double v) { return std::log1p(std::exp(v)); })},
      {"hard sigmoid", {activation}, with_function([](double v) {
         return std::min(std::max(v + 3, 0.0), 6.0) / 6;
       })},
      {"tanh", {activation}, with_function([](double v) { return std::tanh(v); })},
      {"sigmoid", {activation}, with_function([](double v) { return 1 / (1 + std::exp(-v)); })},
      {"leaky relu", {activation}, with_function([](double v) { return v > 0 ? v : 0.01 * v; })},
      {"absolute values", {activation}, with_function([](double v) { return std::abs(v); })},
      {"relu with a factor", {activation}, with_function([](double v) {
         return 0.5 * std::max(v, 0.0);
       })},
      {"relu after another alpha",
       {activation},
       [=](Subject x) {
         return mapped(factors(0.5, 1)(x), [](double v) { return std::max(v, 0.0); });
       }},
      {"limited to 0 and 6", {clamped}, with_function([](double v) {
         return std::clamp(v, 0.0, 6.0);
       })},
      {"A through BF16", {converted_input}, converted(formats::bf16, true, false)},
      {"B through BF16", {converted_input}, converted(formats::bf16, false, true)},
      {"A and B through FP16", {converted_input}, converted(formats::fp16, true, true)},
      {"A and B through E4M3", {converted_input}, converted(formats::e4m3, true, true)},
      {"D through FP16", {converted_output}, with_function([](double v) {
         return scalar::rounded(formats::fp16, v);
       })},
      {"D through BF16", {converted_output}, with_function([](double v) {
         return scalar::rounded(formats::bf16, v);
       })},
      {"sums in FP16",
       {narrow_accumulator, converted_output},
       [](Subject x) { return plus(chained(x.a, x.b, 8, formats::fp16), x.c); }},
  };
}

TEST_CASE("planted faults are named") {
  Tally tally;
  tally.add(plants(), tested_sizes[0], tested_types[0]);
  check_named(tally);
}

TEST_CASE("planted faults are named at all sizes", "[sweep]") {
  Tally tally;
  for (const Size& size : tested_sizes)
    for (const Types& type : tested_types) tally.add(plants(), size, type);
  check_named(tally);
}

TEST_CASE("the documents list every kind of fault with its meaning") {
  const std::string page = formats::read_text(tests::in_source("docs/GEMM.md"));
  for (std::size_t i = 0; i < formats::words_of<FaultKind>.size(); ++i) {
    const auto kind = static_cast<FaultKind>(i);
    const std::string row = "| `" + std::string(formats::word_of(kind)) + "` | " +
                            std::string(meaning_of(kind)) + " | ";
    CAPTURE(row);
    CHECK(page.find(row) != std::string::npos);
  }
}

}  // namespace
}  // namespace guardbit::emulator
