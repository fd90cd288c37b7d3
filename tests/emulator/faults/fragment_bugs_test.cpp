// Bugs of one warp, of a fragment, of a tail and of an epilogue, from 33 x 65 x 100 to
// 256 x 256 x 512 and in all formats of operands.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/catch.hpp"
#include "tests/emulator/faults/wrong_products.hpp"

namespace guardbit::emulator {
namespace {

/// Where element (row, k) of A, or (row, column) of D, comes from.
using Source = std::pair<std::int64_t, std::int64_t>;
using Map = std::function<Source(std::int64_t, std::int64_t)>;

RealMatrix taken(const RealMatrix& old, const Map& source) {
  RealMatrix x = old;
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.columns; ++j) {
      const auto [p, q] = source(i, j);
      x(i, j) = p < 0 || p >= x.rows || q < 0 || q >= x.columns ? 0 : old(p, q);
    }
  return x;
}
Kernel of_a(const Map& source) {
  return with_operands([=](Subject& x) { x.a = taken(x.a, source); });
}
Kernel of_b(const Map& source) {
  return with_operands([=](Subject& x) { x.b = taken(x.b, source); });
}
Kernel of_d(const Map& source) {
  return with_result([=](RealMatrix& d) { d = taken(d, source); });
}

/// Elements of A behind its end in memory, row by row.
double after_row(const RealMatrix& a, std::int64_t i, std::int64_t k) {
  const auto at = static_cast<std::size_t>(i * a.columns + k);
  return at < a.values.size() ? a.values[at] : 0;
}

/// The sum with products behind the end of K, up to a multiple of 32 and a tile more: A goes on in
/// its next row, B in the rows that are asked for.
Kernel with_tail(const std::function<std::int64_t(std::int64_t k, std::int64_t all)>& row_of_b) {
  return [=](const Subject& x) {
    RealMatrix d = chained(x.a, x.b);
    const std::int64_t end = (x.k() / 32 + 1) * 32;
    for (std::int64_t i = 0; i < d.rows; ++i)
      for (std::int64_t k = x.k(); k < end; ++k)
        for (std::int64_t j = 0; j < d.columns; ++j)
          d(i, j) += after_row(x.a, i, k) * x.b(row_of_b(k, x.k()), j);
    return plus(d, x.c);
  };
}

/// The product of all but the elements of K [begin, end).
RealMatrix without_k(Subject x, std::int64_t begin, std::int64_t end) {
  scale_k(x, begin, end, 0);
  return chained(x.a, x.b);
}

/// Some outputs of the product are those of `other`.
Kernel where(const std::function<bool(std::int64_t, std::int64_t)>& holds,
             const std::function<RealMatrix(const Subject&)>& other) {
  return [=](const Subject& x) {
    RealMatrix d = chained(x.a, x.b);
    const RealMatrix wrong = other(x);
    for (std::int64_t i = 0; i < d.rows; ++i)
      for (std::int64_t j = 0; j < d.columns; ++j)
        if (holds(i, j)) d(i, j) = wrong(i, j);
    return plus(d, x.c);
  };
}

bool in_second_tile(std::int64_t i) { return i >= 16 && i < 32; }

std::vector<Plant> fragment_bugs(const Size& size) {
  using enum FaultKind;
  const auto is_whole = [=](std::int64_t i, std::int64_t k, std::int64_t rows,
                            std::int64_t columns) {
    return i / 16 * 16 + 16 <= rows && k / 16 * 16 + 16 <= columns;
  };
  const auto half = size.k / 2;
  return {
      {"registers of A are swapped in one stage: rows 8 apart",
       {permuted_rows},
       of_a([](auto i, auto k) {
         return in_second_tile(i) && in_second_tile(k) ? Source{i ^ 8, k} : Source{i, k};
       })},
      {"registers of A are swapped in one warp: rows 8 apart",
       {permuted_rows},
       of_a([](auto i, auto k) {
         return in_second_tile(i) ? Source{i ^ 8, k} : Source{i, k};
       })},
      {"registers of B are swapped in one warp: k 8 apart", {permuted_k}, of_b([=](auto k, auto j) {
         return j >= 8 && j < 16 && is_whole(k, 0, size.k, 16) ? Source{k ^ 8, j} : Source{k, j};
       })},
      {"registers of A are swapped in one warp: row and k 8 apart",
       {transposed},
       of_a([=](auto i, auto k) {
         const bool is_here = in_second_tile(i) && is_whole(i, k, size.m, size.k);
         return is_here && ((i ^ k) & 8) != 0 ? Source{i ^ 8, k ^ 8} : Source{i, k};
       })},
      {"pairs of k are in another order in the last fragments of A",
       {permuted_k},
       of_a([=](auto i, auto k) {
         const std::int64_t begin = size.k / 16 * 16 - 16;
         return k >= begin && k < begin + 16 ? Source{i, k / 8 * 8 + (k % 4) * 2 + k % 8 / 4}
                                             : Source{i, k};
       })},
      {"8 x 8 blocks of B are loaded without transposing them",
       {transposed},
       of_b([=](auto k, auto j) {
         const bool is_block = k / 8 * 8 + 8 <= size.k && j / 8 * 8 + 8 <= size.n;
         return is_block ? Source{k / 8 * 8 + j % 8, j / 8 * 8 + k % 8} : Source{k, j};
       })},
      {"one tile of B is transposed", {transposed}, of_b([](auto k, auto j) {
         return in_second_tile(k) && in_second_tile(j) ? Source{j, k} : Source{k, j};
       })},
      {"A is swizzled over 128 bytes and read as of 64", {permuted_k}, of_a([](auto i, auto k) {
         return Source{i, k ^ ((i % 8 ^ i / 2 % 4) * 8)};
       })},
      {"A is swizzled over 64 bytes and read as if it were not",
       {permuted_k},
       of_a([](auto i, auto k) {
         return Source{i, k ^ i / 2 % 4 * 8};
       })},
      {"a swizzle of B is wrong in the first half of K", {permuted_k}, of_b([=](auto k, auto j) {
         return k < half / 16 * 16 && j / 8 % 2 == 1 ? Source{k ^ 8, j} : Source{k, j};
       })},
      {"one warp's last tile of B is the one before it", {stale_k}, of_b([=](auto k, auto j) {
         return in_second_tile(j) && k >= size.k - 16 ? Source{k - 16, j} : Source{k, j};
       })},
      {"halves of K are exchanged in A", {permuted_k}, of_a([=](auto i, auto k) {
         return Source{i, k < half ? k + half : k - half};
       })},
      {"a warp has the fragments of A of the one before it",
       {permuted_rows, moved_tile},
       of_a([](auto i, auto k) {
         return in_second_tile(i) ? Source{i - 16, k} : Source{i, k};
       })},
      {"a warp has the fragments of B of the one before it",
       {permuted_columns, moved_tile},
       of_b([](auto k, auto j) {
         return j >= 32 && j < 40 ? Source{k, j - 8} : Source{k, j};
       })},
      {"two registers of sums are swapped", {permuted_fragment}, of_d([=](auto i, auto j) {
         const bool is_here = is_whole(i, j, size.m, size.n) && (i >> 3 & 1) != (j & 1);
         return is_here ? Source{i ^ 8, j ^ 1} : Source{i, j};
       })},
      {"sums are stored as if lanes went down",
       {transposed, permuted_fragment},
       of_d([=](auto i, auto j) {
         // The lane's bits of row and column are exchanged: three of the row, two of the column.
         if (!is_whole(i, j, size.m, size.n)) return Source{i, j};
         const std::int64_t lane = i % 8 * 4 + j % 8 / 2, other = lane % 8 * 4 + lane / 8;
         return Source{i / 8 * 8 + other / 4, j / 8 * 8 + other % 4 * 2 + j % 2};
       })},
      {"columns of one tile are rotated", {permuted_columns}, of_d([](auto i, auto j) {
         return in_second_tile(j) ? Source{i, 16 + (j + 1) % 16} : Source{i, j};
       })},
      {"registers of C are swapped",
       {misplaced_c},
       [=](const Subject& x) {
         return plus(chained(x.a, x.b), taken(x.c, [=](auto i, auto j) {
                       const bool is_here =
                           is_whole(i, j, size.m, size.n) && (i >> 3 & 1) != (j & 1);
                       return is_here ? Source{i ^ 8, j ^ 1} : Source{i, j};
                     }));
       }},
      {"a tile has the C of the tile beside it",
       {misplaced_c},
       [](const Subject& x) {
         return plus(
             chained(x.a, x.b), taken(x.c, [](auto i, auto j) {
               return in_second_tile(i) && in_second_tile(j) ? Source{i, j - 16} : Source{i, j};
             }));
       }},
      {"a tile has the product of the tile beside it and its own C",
       {moved_tile},
       [](const Subject& x) {
         return plus(
             taken(
                 chained(x.a, x.b),
                 [](auto i, auto j) {
                   return in_second_tile(i) && in_second_tile(j) ? Source{i, j - 16} : Source{i, j};
                 }),
             x.c);
       }},
      {"every second tile begins with the sums of the one before it",
       {stale_accumulator},
       [](const Subject& x) {
         const RealMatrix p = chained(x.a, x.b);
         RealMatrix d = p;
         for (std::int64_t i = 0; i < d.rows / 16 * 16; ++i)
           for (std::int64_t j = 16; j < d.columns / 16 * 16; ++j)
             if (j / 16 % 2 == 1) d(i, j) += p(i, j - 16);
         return plus(d, x.c);
       }},
      {"the tail of K is read past its end, where B's index is limited",
       {unmasked_tail},
       with_tail([](auto, auto all) { return all - 1; })},
      {"the tail of K is read past its end, where B's tile is the one before",
       {unmasked_tail},
       with_tail([](auto k, auto) { return k - 32; })},
      {"the first half of K is lost in two tiles",
       {missing_k},
       where([](auto i, auto j) { return (i < 16 && j < 16) || (in_second_tile(i) && j >= 48); },
             [=](const Subject& x) { return without_k(x, 0, half); })},
      {"half a warp's rows miss half of K",
       {missing_k},
       where([](auto i, auto) { return i >= 24 && i < 32; },
             [=](const Subject& x) { return without_k(x, half, x.k()); })},
      {"one lane skips a stage",
       {missing_k},
       where([](auto i, auto j) { return i % 16 == 3 && j % 8 / 2 == 1; },
             [=](const Subject& x) { return without_k(x, 32, 48); })},
      {"B's leading dimension is padded to 64", {wrong_stride}, with_operands([](Subject& x) {
         const RealMatrix old = x.b;
         const std::int64_t leading = (x.b.columns / 64 + 1) * 64;
         for (std::int64_t k = 0; k < x.b.rows; ++k)
           for (std::int64_t j = 0; j < x.b.columns; ++j) {
             const auto at = static_cast<std::size_t>(k * leading + j);
             x.b(k, j) = at < old.values.size() ? old.values[at] : 0;
           }
       })},
      {"relu before C is added",
       {activation},
       [](const Subject& x) {
         return plus(mapped(chained(x.a, x.b), [](double v) { return std::max(v, 0.0); }), x.c);
       }},
      {"silu before C is added",
       {activation},
       [](const Subject& x) {
         return plus(mapped(chained(x.a, x.b), [](double v) { return v / (1 + std::exp(-v)); }),
                     x.c);
       }},
      {"relu squared", {activation}, with_function([](double v) { return v > 0 ? v * v : 0; })},
  };
}

/// Adds the bias to every row of D.
RealMatrix plus_bias(RealMatrix d, const RealMatrix& bias, double factor = 1) {
  for (std::int64_t i = 0; i < d.rows; ++i)
    for (std::int64_t j = 0; j < d.columns; ++j) d(i, j) += factor * bias(0, j);
  return d;
}

std::vector<Plant> bias_bugs() {
  using enum FaultKind;
  return {
      {"the bias is added twice",
       {bias},
       [](const Subject& x) { return plus_bias(chained(x.a, x.b), x.bias, 2); }},
      {"the bias is missing", {bias}, [](const Subject& x) { return chained(x.a, x.b); }},
      {"the bias is one column off",
       {misplaced_c},
       [](const Subject& x) {
         RealMatrix moved = x.bias;
         std::rotate(moved.values.begin(), moved.values.begin() + 1, moved.values.end());
         return plus_bias(chained(x.a, x.b), moved);
       }},
      {"eight columns have the bias of the first of them",
       {misplaced_c},
       [](const Subject& x) {
         RealMatrix moved = x.bias;
         for (std::size_t j = 0; j < moved.values.size(); ++j)
           moved.values[j] = x.bias.values[j / 8 * 8];
         return plus_bias(chained(x.a, x.b), moved);
       }},
      {"relu before the bias",
       {activation},
       [](const Subject& x) {
         return plus_bias(mapped(chained(x.a, x.b), [](double v) { return std::max(v, 0.0); }),
                          x.bias);
       }},
      {"gelu before the bias",
       {activation},
       [](const Subject& x) {
         return plus_bias(
             mapped(chained(x.a, x.b),
                    [](double v) { return 0.5 * v * std::erfc(-v * 0.70710678118654752); }),
             x.bias);
       }},
  };
}

const Types fragment_types[] = {{formats::fp32, formats::fp32},
                                {formats::fp16, formats::fp16},
                                {formats::bf16, formats::bf16},
                                {formats::e4m3, formats::bf16}};
constexpr Size fragment_sizes[] = {{33, 65, 100}, {64, 64, 64}, {96, 80, 200}, {256, 256, 512}};

void add(Tally& tally, const Size& size, const Types& type) {
  tally.add(fragment_bugs(size), size, type);
  tally.add(bias_bugs(), size, type, true);
}

TEST_CASE("bugs of fragments, tails and epilogues are named") {
  Tally tally;
  add(tally, fragment_sizes[1], fragment_types[1]);
  check_named(tally);
}

TEST_CASE("bugs of fragments, tails and epilogues are named at all sizes", "[sweep]") {
  Tally tally;
  for (const Size& size : fragment_sizes)
    for (const Types& type : fragment_types) add(tally, size, type);
  check_named(tally);
}

}  // namespace
}  // namespace guardbit::emulator
