// Bugs of real kernels that the suite of planted faults does not have: each gets its kind, or one
// that says the same, or the honest "unknown"; none gets a wrong one.

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "tests/catch.hpp"
#include "tests/emulator/faults/wrong_products.hpp"

namespace guardbit::emulator {
namespace {

/// A * B with other indices.
using Index = std::function<std::int64_t(std::int64_t i, std::int64_t j, std::int64_t k)>;

/// D with element (i, k) of A and (k, j) of B read from flat addresses; out of range reads zero.
Kernel reading(const Index& a_at, const Index& b_at) {
  return [=](const Subject& x) {
    RealMatrix d(x.a.rows, x.b.columns);
    const auto read = [](const RealMatrix& y, std::int64_t at) {
      return at < 0 || at >= y.rows * y.columns ? 0 : y.values[static_cast<std::size_t>(at)];
    };
    for (std::int64_t i = 0; i < d.rows; ++i) {
      for (std::int64_t j = 0; j < d.columns; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < x.k(); ++k)
          sum = scalar::rounded(formats::fp32,
                                sum + read(x.a, a_at(i, j, k)) * read(x.b, b_at(i, j, k)));
        d(i, j) = sum + x.c(i, j);
      }
    }
    return d;
  };
}

/// Changes D, next to the right one and the subject.
Kernel after(const std::function<void(RealMatrix&, const Subject&)>& change) {
  return [=](Subject x) {
    RealMatrix d = plus(chained(x.a, x.b), x.c);
    change(d, x);
    return d;
  };
}

RealMatrix product_of(const Subject& x) { return chained(x.a, x.b); }

std::vector<Plant> bugs(std::int64_t m, std::int64_t n, std::int64_t k) {
  using enum FaultKind;
  const Index a = [=](auto i, auto, auto l) { return i * k + l; };
  const Index b = [=](auto, auto j, auto l) { return l * n + j; };
  return {
      {"a k-tile of A is loaded from the one before",
       {stale_k},
       reading([=](auto i, auto, auto l) { return i * k + (l >= 32 && l < 48 ? l - 16 : l); }, b)},
      {"every second k-tile of A is stale",
       {stale_k},
       reading([=](auto i, auto, auto l) { return i * k + l / 32 * 32 + l % 16; }, b)},
      {"lda is one too large",
       {wrong_stride},
       reading([=](auto i, auto, auto l) { return i * (k + 1) + l; }, b)},
      {"ldb is one too large",
       {wrong_stride},
       reading(a, [=](auto, auto j, auto l) { return l * (n + 1) + j; })},
      {"A begins 4 elements too late",
       {wrong_stride},
       reading([=](auto i, auto, auto l) { return i * k + l + 4; }, b)},
      {"B is read as if it were column by column",
       {transposed},
       reading(a, [=](auto, auto j, auto l) { return j * k + l; })},
      {"halves of 64 rows are exchanged",
       {permuted_rows},
       reading([=](auto i, auto, auto l) { return (i < 64 && m >= 64 ? i ^ 32 : i) * k + l; }, b)},
      {"B's rows within groups of 8 are interleaved",
       {permuted_k},
       reading(a, [=](auto, auto j,
                      auto l) { return (l / 8 * 8 + (l % 8 % 2) * 4 + l % 8 / 2) * n + j; })},
      {"an index of 11 bits overflows",
       {unknown, stale_k, permuted_rows, wrong_stride},
       reading([=](auto i, auto, auto l) { return (i * k + l) & 2047; }, b)},
      {"the last row is the one before it",
       {permuted_rows, moved_tile},
       reading([=](auto i, auto, auto l) { return std::min(i, m - 2) * k + l; }, b)},
      {"rows of the edge tile wrap to its first",
       {permuted_rows, moved_tile},
       reading([=](auto i, auto, auto l) { return (i >= m - 8 ? i - 8 : i) * k + l; }, b)},
      {"C of the neighbouring column",
       {misplaced_c},
       [](const Subject& x) {
         RealMatrix d = product_of(x);
         for (std::int64_t i = 0; i < d.rows; ++i)
           for (std::int64_t j = 0; j < d.columns; ++j)
             d(i, j) += x.c(i, std::min(j + 1, d.columns - 1));
         return d;
       }},
      {"C is transposed within tiles of 8",
       {transposed},
       [](const Subject& x) {
         RealMatrix d = product_of(x);
         for (std::int64_t i = 0; i < d.rows; ++i)
           for (std::int64_t j = 0; j < d.columns; ++j)
             d(i, j) += x.c(i / 8 * 8 + j % 8, j / 8 * 8 + i % 8);
         return d;
       }},
      {"alpha reaches C, too",
       {alpha, beta},
       [](const Subject& x) {
         return mapped(plus(product_of(x), x.c), [](double v) { return 0.3 * v; });
       }},
      {"C is added once for each of three splits",
       {beta},
       [](const Subject& x) { return plus(product_of(x), x.c, 3); }},
      {"C is missing in one tile", {missing_c}, after([](RealMatrix& d, const Subject& x) {
         for (std::int64_t i = 16; i < 32; ++i)
           for (std::int64_t j = 32; j < 48; ++j) d(i, j) -= x.c(i, j);
       })},
      {"a k-tile is missing in one tile of D",
       {missing_k},
       [](const Subject& x) {
         Subject y = x;
         scale_k(y, 16, 32, 0);
         RealMatrix d = product_of(x);
         const RealMatrix other = product_of(y);
         for (std::int64_t i = 32; i < 48; ++i)
           for (std::int64_t j = 0; j < 16; ++j) d(i, j) = other(i, j);
         return plus(d, x.c);
       }},
      {"the last k-tile is missing in the last rows",
       {missing_k},
       [](const Subject& x) {
         Subject y = x;
         scale_k(y, x.k() - 8, x.k(), 0);
         RealMatrix d = product_of(x);
         const RealMatrix other = product_of(y);
         for (std::int64_t i = d.rows - 16; i < d.rows; ++i)
           for (std::int64_t j = 0; j < d.columns; ++j) d(i, j) = other(i, j);
         return plus(d, x.c);
       }},
      {"a tile has another tile's sum besides",
       {stale_accumulator},
       after([](RealMatrix& d, const Subject& x) {
         const RealMatrix p = product_of(x);
         for (std::int64_t i = 0; i < 16; ++i)
           for (std::int64_t j = 0; j < 16; ++j) d(32 + i, 16 + j) += p(i, j);
       })},
      {"a tile is accumulated twice",
       {stale_accumulator, alpha},
       after([](RealMatrix& d, const Subject& x) {
         const RealMatrix p = product_of(x);
         for (std::int64_t i = 32; i < 48; ++i)
           for (std::int64_t j = 16; j < 32; ++j) d(i, j) += p(i, j);
       })},
      {"columns have scales of their neighbours",
       {line_factor},
       after([](RealMatrix& d, const Subject&) {
         for (std::int64_t i = 0; i < d.rows; ++i)
           for (std::int64_t j = 0; j < d.columns; ++j)
             d(i, j) *= 1 + 0.5 * std::cos(static_cast<double>(j));
       })},
      {"rows of the product have another scale, C has not",
       {line_factor},
       [](const Subject& x) {
         RealMatrix d = product_of(x);
         for (std::int64_t i = 0; i < d.rows; ++i)
           for (std::int64_t j = 0; j < d.columns; ++j) d(i, j) *= i % 16 == 3 ? 0.5 : 1;
         return plus(d, x.c);
       }},
      {"rows are normalised", {line_factor, bias}, after([](RealMatrix& d, const Subject&) {
         for (std::int64_t i = 0; i < d.rows; ++i) {
           double mean = 0, square = 0;
           for (std::int64_t j = 0; j < d.columns; ++j)
             mean += d(i, j), square += d(i, j) * d(i, j);
           mean /= static_cast<double>(d.columns);
           const double deviation =
               std::sqrt(square / static_cast<double>(d.columns) - mean * mean);
           for (std::int64_t j = 0; j < d.columns; ++j) d(i, j) = (d(i, j) - mean) / deviation;
         }
       })},
      {"softmax", {activation}, after([](RealMatrix& d, const Subject&) {
         for (std::int64_t i = 0; i < d.rows; ++i) {
           double sum = 0;
           for (std::int64_t j = 0; j < d.columns; ++j) sum += std::exp(d(i, j));
           for (std::int64_t j = 0; j < d.columns; ++j) d(i, j) = std::exp(d(i, j)) / sum;
         }
       })},
      {"a function without a name", {activation}, with_function([](double v) {
         return v * std::tanh(std::log1p(std::exp(v)));
       })},
      {"D is quantised in steps of 2", {converted_output, activation}, with_function([](double v) {
         return 2 * std::nearbyint(v / 2);
       })},
      {"the conversion saturates at 10", {clamped}, with_function([](double v) {
         return std::clamp(v, -10.0, 10.0);
       })},
      {"relu in one half of the columns", {activation}, after([](RealMatrix& d, const Subject&) {
         for (std::int64_t i = 0; i < d.rows; ++i)
           for (std::int64_t j = d.columns / 2; j < d.columns; ++j)
             d(i, j) = std::max(0.0, d(i, j));
       })},
      {"relu, then another alpha for all", {activation}, with_function([](double v) {
         return 3 * std::max(0.0, v);
       })},
      {"a fragment of A is zero",
       {missing_k, wrong_element},
       reading([=](auto i, auto,
                   auto l) { return i >= 16 && i < 32 && l >= 8 && l < 16 ? -1 : i * k + l; },
               b)},
      {"a fragment of A is another warp's",
       {moved_tile},
       reading(
           [=](auto i, auto, auto l) {
             return (i >= 16 && i < 32 && l >= 16 && l < 32 ? i - 16 : i) * k + l;
           },
           b)},
      {"the tile counter skips one tile of D",
       {not_written},
       after([](RealMatrix& d, const Subject&) {
         for (std::int64_t i = 32; i < 48; ++i)
           for (std::int64_t j = d.columns - 16; j < d.columns; ++j) d(i, j) = 0;
       })},
      {"two tiles are exchanged", {moved_tile}, after([](RealMatrix& d, const Subject&) {
         for (std::int64_t i = 0; i < 16; ++i)
           for (std::int64_t j = 0; j < 16; ++j) std::swap(d(i, j), d(32 + i, 48 + j));
       })},
      {"tiles below the diagonal are those above it",
       {transposed, unknown, moved_tile},
       after([](RealMatrix& d, const Subject&) {
         const RealMatrix old = d;
         for (std::int64_t i = 0; i < std::min(d.rows, d.columns); ++i)
           for (std::int64_t j = 0; j < i; ++j) d(i, j) = old(j, i);
       })},
      {"scattered bits of D are flipped",
       {unknown, wrong_element},
       after([](RealMatrix& d, const Subject&) {
         for (std::int64_t i = 3; i < d.rows; i += 13) d(i, (i * 7) % d.columns) *= -4;
       })},
      {"NaN of unwritten shared memory",
       {not_a_number, unknown},
       after([](RealMatrix& d, const Subject&) {
         for (std::int64_t i = 0; i < d.rows; i += 7) d(i, (i * 5) % d.columns) = std::nan("");
       })},
      {"alpha is wrong and a tile of K is missing",
       {missing_k},
       [](const Subject& x) {
         Subject y = x;
         scale_k(y, 16, 32, 0);
         return plus(mapped(product_of(y), [](double v) { return 0.5 * v; }), x.c);
       }},
      {"D through BF16 and a k missing",
       {missing_k},
       [](const Subject& x) {
         Subject y = x;
         scale_k(y, 16, 32, 0);
         return mapped(plus(product_of(y), x.c),
                       [](double v) { return scalar::rounded(formats::bf16, v); });
       }},
      {"A is negated in the last tile of K",
       {negated_k},
       [](const Subject& x) {
         Subject y = x;
         scale_k(y, x.k() - 16, x.k(), -1);
         return plus(product_of(y), x.c);
       }},
      {"products of neighbours are added: complex numbers taken for real ones",
       {unknown, permuted_k, stale_k, negated_k, weighted_k},
       [](const Subject& x) {
         Subject y = x;
         for (std::int64_t l = 1; l < x.k(); l += 2) scale_k(y, l, l + 1, -1);
         return plus(product_of(y), x.c);
       }},
      {"D is the product of random other operands",
       {unknown},
       [](const Subject& x) {
         const Subject y = subject_of({x.a.rows, x.b.columns, x.k()}, x.types, 77);
         return plus(product_of(y), y.c);
       }},
      {"fragments of A of 16 x 16 are transposed",
       {transposed},
       reading(
           [=](auto i, auto, auto l) {
             const bool is_whole = i / 16 * 16 + 16 <= m && l / 16 * 16 + 16 <= k;
             return is_whole ? (i / 16 * 16 + l % 16) * k + l / 16 * 16 + i % 16 : i * k + l;
           },
           b)},
      {"one fragment of A of 16 x 16 is transposed",
       {transposed},
       reading(
           [=](auto i, auto, auto l) {
             const bool is_here = i / 16 == 1 && l / 16 == 2;
             return is_here ? (16 + l % 16) * k + 32 + i % 16 : i * k + l;
           },
           b)},
      {"A has lost its signs",
       {wrong_sign},
       [](const Subject& x) {
         Subject y = x;
         y.a = mapped(x.a, [](double v) { return std::abs(v); });
         return plus(product_of(y), x.c);
       }},
      {"A stands in the place of B",
       {wrong_operand},
       [](const Subject& x) {
         Subject y = x;
         for (std::size_t i = 0; i < y.b.values.size(); ++i)
           y.b.values[i] = x.a.values[i % x.a.values.size()];
         return plus(product_of(y), x.c);
       }},
      {"a tile of B holds random numbers",
       {wrong_tile},
       [](const Subject& x) {
         Subject y = x;
         std::mt19937_64 random(9);
         for (std::int64_t l = 16; l < 32; ++l)
           for (std::int64_t j = 8; j < 24; ++j)
             y.b(l, j) = scalar::rounded(x.types.input, std::normal_distribution<double>()(random));
         return plus(product_of(y), x.c);
       }},
      {"a tenth of D is dropped", {dropout}, after([](RealMatrix& d, const Subject&) {
         std::mt19937_64 random(9);
         for (double& v : d.values) v = random() % 10 == 0 ? 0 : v * 1.25;
       })},
      {"sums of tiles are not set to zero",
       {stale_accumulator},
       [](const Subject& x) {
         RealMatrix d = product_of(x);
         const std::int64_t columns = d.columns / 16, tiles = d.rows / 16 * columns;
         for (std::int64_t t = 1; t < tiles; ++t)
           for (std::int64_t i = 0; i < 16; ++i)
             for (std::int64_t j = 0; j < 16; ++j)
               d(t / columns * 16 + i, t % columns * 16 + j) +=
                   d((t - 1) / columns * 16 + i, (t - 1) % columns * 16 + j);
         return plus(d, x.c);
       }},
      {"B is a stage ahead of A",
       {permuted_k},
       reading(a, [=](auto, auto j, auto l) { return (l + 16) % k * n + j; })},
      {"A is a stage behind, zeros come first",
       {stale_k},
       reading([=](auto i, auto, auto l) { return l < 16 ? -1 : i * k + l - 16; }, b)},
      {"a stage of A is stale in a band of columns",
       {stale_k},
       reading(
           [=](auto i, auto j, auto l) {
             return i * k + (j >= 32 && j < 48 && l >= 16 && l < 32 ? l - 16 : l);
           },
           b)},
      {"a swizzle of B is not undone",
       {permuted_k},
       reading(a, [=](auto, auto j, auto l) { return (l ^ (j / 8 % 8)) * n + j; })},
      {"blocks of fragments of A are exchanged",
       {transposed},
       reading(
           [=](auto i, auto, auto l) {
             const bool is_beside = ((i ^ l) & 8) != 0 && (l ^ 8) < k;
             return is_beside ? (i ^ 8) * k + (l ^ 8) : i * k + l;
           },
           b)},
      {"the tail of K is not masked",
       {unmasked_tail, unknown},
       [=](const Subject& x) {
         const std::int64_t more = (k + 31) / 32 * 32 + 16 - k;
         RealMatrix d = product_of(x);
         for (std::int64_t i = 0; i + 1 < d.rows; ++i)
           for (std::int64_t j = 0; j < d.columns; ++j)
             for (std::int64_t l = 0; l < more; ++l) d(i, j) += x.a(i + 1, l) * x.b(l + 16, j);
         return plus(d, x.c);
       }},
      {"a part of K is lost here and there",
       {missing_k},
       [=](const Subject& x) {
         Subject y = x;
         scale_k(y, 32, k, 0);
         RealMatrix d = product_of(x);
         const RealMatrix other = product_of(y);
         std::mt19937_64 random(4);
         for (std::size_t at = 0; at < d.values.size(); ++at)
           if (random() % 20 == 0) d.values[at] = other.values[at];
         return plus(d, x.c);
       }},
      {"one thread's elements are a constant",
       {not_written},
       after([](RealMatrix& d, const Subject&) {
         for (const std::int64_t i : {21, 29})
           for (const std::int64_t j : {26, 27}) d(i, j) = 7.125;
       })},
      {"a few columns have half their scale",
       {line_factor},
       after([](RealMatrix& d, const Subject&) {
         for (std::int64_t i = 0; i < d.rows; ++i)
           for (std::int64_t j = 16; j < 32; ++j) d(i, j) *= 0.5;
       })},
      {"A has a zero point",
       {bias},
       [](const Subject& x) {
         Subject y = x;
         y.a = mapped(x.a, [](double v) { return v + 3; });
         return plus(product_of(y), x.c);
       }},
      {"noise of 5 percent", {unknown}, after([](RealMatrix& d, const Subject&) {
         std::mt19937_64 random(5);
         std::normal_distribution<double> normal;
         for (double& v : d.values) v *= 1 + 0.05 * normal(random);
       })},
  };
}

const Types bug_types[] = {{formats::fp32, formats::fp32}, {formats::fp16, formats::fp16}};

TEST_CASE("sums that go on along a row or a column of tiles are named with the tiles") {
  const Subject x = subject_of({64, 96, 40}, bug_types[0], 3);
  RealMatrix d = product_of(x);
  for (std::int64_t i = 0; i < d.rows; ++i)
    for (std::int64_t j = 32; j < d.columns; ++j) d(i, j) += d(i, j - 32);
  Judgement judgement = judge(numbers(x, plus(d, x.c)));
  REQUIRE(judgement.faults.size() == 1);
  CHECK(judgement.faults[0].kind == FaultKind::stale_accumulator);
  CHECK(
      judgement.faults[0].text ==
      "in each row of tiles, each 32 columns of D hold, besides their own sums, those of the columns "
      "before them: sums are not set to zero between tiles");
  d = product_of(x);
  for (std::int64_t i = 16; i < d.rows; ++i)
    for (std::int64_t j = 0; j < d.columns; ++j) d(i, j) += d(i - 16, j);
  judgement = judge(numbers(x, plus(d, x.c)));
  REQUIRE(judgement.faults.size() == 1);
  CHECK(
      judgement.faults[0].text ==
      "in each column of tiles, each 16 rows of D hold, besides their own sums, those of the rows "
      "before them: sums are not set to zero between tiles");
}

/// Sums of 64 products, then their sum, each as `kept` leaves it.
RealMatrix in_parts(const Subject& x, const std::function<double(double)>& kept) {
  RealMatrix d(x.a.rows, x.b.columns);
  for (std::int64_t k = 0; k < x.k(); k += 64)
    d = plus(d, mapped(chained(part(x.a, 0, d.rows, k, 64), part(x.b, k, 64, 0, d.columns)), kept));
  return d;
}

TEST_CASE("sums that overflow on their way are named, and not taken for rounded products") {
  const auto in_fp16 = [](double v) { return scalar::rounded(formats::fp16, v); };
  const auto limited = [](double v) { return std::clamp(v, -65504.0, 65504.0); };
  for (const double factor : {50.0, 70.0}) {
    CAPTURE(factor);
    Subject x = subject_of({64, 80, 256}, {formats::fp16, formats::fp32}, 2);
    const auto enlarged = [&](double v) { return scalar::rounded(formats::fp16, factor * v); };
    x.a = mapped(x.a, enlarged), x.b = mapped(x.b, enlarged), x.c = RealMatrix(64, 80);
    const auto check = [&](const RealMatrix& d, const std::string& text) {
      const Judgement judgement = judge(numbers(x, d));
      CHECK(judgement.verdict == Verdict::wrong);
      REQUIRE(judgement.faults.size() == 1);
      CHECK(judgement.faults[0].kind == FaultKind::narrow_accumulator);
      CHECK(judgement.faults[0].name == "fp16");
      CHECK(judgement.faults[0].value == 65504);
      CAPTURE(judgement.faults[0].text);
      CHECK(judgement.faults[0].text.find(text) == 0);
    };
    check(in_parts(x, in_fp16), "sums are kept in fp16 and overflow: ");
    check(
        in_parts(x, [&](double v) { return in_fp16(limited(v)); }),
        "sums of 64 products are limited to 65504, the largest number of fp16, before they are added");
    check(in_parts(x, limited), "sums of 64 products are limited to 65504");
  }
  // Products that are infinite in FP16, and a D that is finite.
  Subject x = subject_of({32, 32, 32}, {formats::fp16, formats::fp32}, 2);
  const auto enlarged = [](double v) { return scalar::rounded(formats::fp16, 3000 * v); };
  x.a = mapped(x.a, enlarged), x.b = mapped(x.b, enlarged), x.c = RealMatrix(32, 32);
  const Judgement judgement =
      judge(numbers(x, mapped(chained(x.a, x.b), [](double v) { return 1.25 * v; })));
  CHECK(judgement.verdict == Verdict::wrong);
  REQUIRE(judgement.faults.size() == 1);
  CHECK(judgement.faults[0].kind == FaultKind::alpha);
}

constexpr Size bug_sizes[] = {{64, 64, 64}, {96, 80, 72}};

void add_bugs(Tally& tally, const Size& size, const Types& type) {
  tally.add(bugs(size.m, size.n, size.k), size, type);
}

TEST_CASE("other bugs are named or called unknown", "[long]") {
  Tally tally;
  add_bugs(tally, bug_sizes[0], bug_types[1]);
  add_bugs(tally, bug_sizes[1], bug_types[0]);
  check_named(tally);
}

TEST_CASE("other bugs are named or called unknown at all sizes", "[sweep]") {
  Tally tally;
  for (const Types& type : bug_types)
    for (const Size& size : bug_sizes) add_bugs(tally, size, type);
  check_named(tally);
}

}  // namespace
}  // namespace guardbit::emulator
