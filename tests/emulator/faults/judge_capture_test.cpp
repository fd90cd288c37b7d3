// What only a whole recording shows: batches, codes that are read as other numbers, NaNs that are
// lost, functions and factors that were asked for.

#include "emulator/faults/judge_capture.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "emulator/faults/mended.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/faults/wrong_products.hpp"

namespace guardbit::emulator {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

CodeMatrix codes_of(const formats::Format& format, std::int64_t batch, const RealMatrix& x) {
  CodeMatrix result = make_matrix(format, batch, x.rows / batch, x.columns);
  for (std::int64_t at = 0; at < result.size(); ++at)
    result.set(at, scalar::encoded(format, x.values[static_cast<std::size_t>(at)]));
  return result;
}

/// A product of `batch` entries, whose D each test makes by itself.
struct Recording {
  std::int64_t batch, m = 24, n = 20, k = 40;
  formats::Format input;
  RealMatrix a, b;
  GemmCapture capture;

  Recording(std::int64_t batch_, const formats::Format& input_, double scale = 1)
      : batch(batch_), input(input_) {
    std::mt19937_64 random(5);
    const auto drawn = [&](std::int64_t rows, std::int64_t columns) {
      RealMatrix x = random_matrix(random, rows, columns, formats::fp32, false);
      const bool is_whole = formats::is_integer(input);
      return mapped(x, [&](double v) {
        return is_whole ? std::round(20 * v) : scalar::rounded(input, scale * v);
      });
    };
    a = drawn(batch * m, k), b = drawn(batch * k, n);
    capture.path = "recording";
    capture.kind = "gemm";
    capture.problem.a = codes_of(input, batch, a);
    capture.problem.b = codes_of(input, batch, b);
  }

  /// Entry g of A with entry h of B.
  RealMatrix product(std::int64_t g, std::int64_t h) const {
    return chained(part(a, g * m, m, 0, k), part(b, h * k, k, 0, n));
  }
  Judgement judged(const RealMatrix& d, const formats::Format& output = formats::fp32) {
    capture.d = codes_of(output, batch, d);
    capture.shape = {batch, m, n};
    return judge(capture).judgement;
  }
  /// What was not looked at.
  std::string limits(const RealMatrix& d) {
    capture.d = codes_of(formats::fp32, batch, d);
    capture.shape = {batch, m, n};
    std::string all;
    for (const std::string& limit : judge(capture).limits) all += limit;
    return all;
  }
};

/// Entries one below the other.
RealMatrix stacked(const std::vector<RealMatrix>& parts) {
  RealMatrix all(0, parts.front().columns);
  for (const RealMatrix& x : parts) {
    all.rows += x.rows;
    all.values.insert(all.values.end(), x.values.begin(), x.values.end());
  }
  return all;
}

void is_right(const Judgement& judgement) {
  for (const Fault& fault : judgement.faults) UNSCOPED_INFO(fault.text);
  CHECK(judgement.verdict != Verdict::wrong);
  CHECK(judgement.faults.empty());
}

void says(const Judgement& judgement, FaultKind kind, const std::string& text) {
  CHECK(judgement.verdict == Verdict::wrong);
  REQUIRE(!judgement.faults.empty());
  CAPTURE(judgement.faults.front().text);
  CHECK(judgement.faults.front().kind == kind);
  CHECK(judgement.faults.front().text.find(text) != std::string::npos);
}

/// A product of so many outputs that they are looked at in part.
struct LargeProduct {
  std::int64_t m, n, k;
  RealMatrix a, b;
  GemmCapture capture;

  LargeProduct(std::int64_t m_, std::int64_t n_, std::int64_t k_) : m(m_), n(n_), k(k_) {
    std::mt19937_64 random(7);
    a = random_matrix(random, m, k, formats::fp16, false);
    b = random_matrix(random, k, n, formats::fp16, false);
    capture.path = "large";
    capture.kind = "gemm";
    capture.problem.a = codes_of(formats::fp16, 1, a);
    capture.problem.b = codes_of(formats::fp16, 1, b);
  }
  RealMatrix product() const { return chained(a, b, 16); }
  CaptureJudgement judged(const RealMatrix& d, const std::function<bool()>& interrupted = {}) {
    capture.d = codes_of(formats::fp32, 1, d);
    capture.shape = {m, n};
    return judge(capture, interrupted);
  }
};

TEST_CASE("a judgement of which an end is asked says what it has and what it left") {
  LargeProduct x(640, 512, 384);
  RealMatrix d = x.product();
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (double& value : d.values) value *= 1 + 0.05 * normal(random);
  int asked = 0;
  const CaptureJudgement judged = x.judged(d, [&] { return ++asked > 100; });
  CHECK(judged.judgement.verdict == Verdict::wrong);
  CHECK(judged.judgement.wrong > 0);
  REQUIRE(judged.judgement.faults.size() == 1);
  CHECK(judged.judgement.faults[0].kind == FaultKind::unknown);
  REQUIRE(!judged.limits.empty());
  CHECK(judged.limits[0] == "there was no time to try every fault that has a name");
  // Once it was told, it goes on asking only where it ends one thing after the other.
  CHECK(asked < 120);
}

TEST_CASE(
    "a fault of one tile of a large product, or of half of it, is named with all of its lines",
    "[long]") {
  LargeProduct x(640, 512, 320);
  const RealMatrix right = x.product();
  const auto faulty = [&](std::int64_t row, std::int64_t rows, std::int64_t column,
                          std::int64_t columns, const auto& element) {
    RealMatrix d = right;
    for (std::int64_t i = row; i < row + rows; ++i)
      for (std::int64_t j = column; j < column + columns; ++j)
        d(i, j) = scalar::rounded(formats::fp32, element(i, j));
    return x.judged(d).judgement;
  };
  const RealMatrix tail = multiply(part(x.a, 0, x.m, 256, 64), part(x.b, 256, 64, 0, x.n));
  says(
      faulty(128, 128, 256, 128, [&](auto i, auto j) { return right(i, j) - tail(i, j); }),
      FaultKind::missing_k,
      "in rows 128 to 255, columns 256 to 383: the products of k = 256 to 319, the last 64 of 320, "
      "are missing");
  says(faulty(128, 128, 256, 128, [&](auto i, auto j) { return right(i, j) + right(i - 128, j); }),
       FaultKind::stale_accumulator,
       "rows 128 to 255, columns 256 to 383 of D hold, besides their own sum, that of rows 0 to "
       "127, columns 256 to 383");
  const Judgement half =
      faulty(320, 320, 0, x.n, [&](auto i, auto j) { return 0.5 * right(i, j); });
  says(half, FaultKind::line_factor, "rows 320 to 639 of D have the factor 0.5");
  REQUIRE(half.faults[0].rows == std::vector<Places>{{320, 640}});
}

TEST_CASE("integers that are scaled and limited have a factor, and nothing else is made up") {
  Recording x(1, formats::int8);
  const RealMatrix product = x.product(0, 0);
  const Judgement judgement = x.judged(
      mapped(product,
             [](double v) { return std::clamp(std::nearbyint(v * 0.0193), -128.0, 127.0); }),
      formats::int8);
  REQUIRE(judgement.faults.size() == 1);
  CAPTURE(judgement.faults[0].text);
  CHECK(judgement.faults[0].kind == FaultKind::alpha);
  CHECK(std::abs(judgement.faults[0].value.value_or(0) - 0.0193) < 1e-5);
}

TEST_CASE("FP64 operands that are multiplied in FP32 are named as that") {
  Recording x(1, formats::fp64);
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (RealMatrix* operand : {&x.a, &x.b})
    for (double& value : operand->values) value = normal(random);
  x.capture.problem.a = codes_of(formats::fp64, 1, x.a);
  x.capture.problem.b = codes_of(formats::fp64, 1, x.b);
  for (RealMatrix* operand : {&x.a, &x.b})
    for (double& value : operand->values) value = scalar::rounded(formats::fp32, value);
  const Judgement judgement = x.judged(x.product(0, 0), formats::fp64);
  for (const Fault& fault : judgement.faults) UNSCOPED_INFO(fault.text);
  CHECK(judgement.verdict == Verdict::valid_rounding);
  REQUIRE(judgement.faults.size() == 2);
  CHECK(judgement.faults[0].text == "A and B were rounded to fp32 before they were multiplied");
  CHECK(judgement.faults[1].text == "D was rounded to fp32 and back");
}

TEST_CASE("one number that is added to some rows is told") {
  Recording x(1, formats::fp16);
  RealMatrix d = x.product(0, 0);
  for (std::int64_t i = 6; i < 12; ++i)
    for (std::int64_t j = 0; j < x.n; ++j)
      d(i, j) = scalar::rounded(formats::fp32, d(i, j) - 0.125);
  says(x.judged(d), FaultKind::bias, "the number -0.125 is added, in rows 6 to 11");
}

TEST_CASE("a bias and ReLU that nobody told are both named") {
  for (const bool is_told : {false, true}) {
    CAPTURE(is_told);
    Recording x(1, formats::fp16);
    x.capture.activation = is_told ? Activation::relu : Activation::none;
    RealMatrix d = x.product(0, 0);
    std::mt19937_64 random(2);
    std::normal_distribution<double> normal;
    for (std::int64_t j = 0; j < x.n; ++j) {
      const double bias = 2 * normal(random);
      for (std::int64_t i = 0; i < x.m; ++i)
        d(i, j) = scalar::rounded(formats::fp16, std::max(d(i, j) + bias, 0.0));
    }
    const Judgement judgement = x.judged(d, formats::fp16);
    for (const Fault& fault : judgement.faults) UNSCOPED_INFO(fault.text);
    CHECK(judgement.verdict == Verdict::wrong);
    REQUIRE(judgement.faults.size() == (is_told ? 1 : 2));
    CHECK(judgement.faults.back().text == "a number for each column is added");
    if (!is_told) CHECK(judgement.faults[0].text == "D went through relu");
  }
}

TEST_CASE("operands of another batch entry are named") {
  Recording x(3, formats::fp16);
  is_right(x.judged(stacked({x.product(0, 0), x.product(1, 1), x.product(2, 2)})));
  says(x.judged(stacked({x.product(0, 0), x.product(1, 0), x.product(2, 2)})),
       FaultKind::wrong_operand, "batch entry 1: B of entry 0 stands in the place of its own");
  says(x.judged(stacked({x.product(0, 0), x.product(2, 1), x.product(2, 2)})),
       FaultKind::wrong_operand, "batch entry 1: A of entry 2 stands in the place of its own");
  says(x.judged(stacked({x.product(0, 0), x.product(2, 2), x.product(2, 2)})),
       FaultKind::moved_tile, "batch entry 1: D holds the product of entry 2");
}

TEST_CASE("sums that are not set to zero between batch entries are named") {
  Recording x(4, formats::fp16);
  std::vector<RealMatrix> own, running, one_more;
  for (std::int64_t g = 0; g < 4; ++g) {
    own.push_back(x.product(g, g));
    running.push_back(g == 0 ? own[0] : plus(own.back(), running.back()));
    one_more.push_back(g == 3 ? plus(own[3], own[1]) : own.back());
  }
  is_right(x.judged(stacked(own)));
  const Judgement judgement = x.judged(stacked(running));
  says(judgement, FaultKind::stale_accumulator,
       "batch entry 1: D holds, besides its own product, that of entry 0");
  REQUIRE(judgement.faults.size() == 3);
  CHECK(judgement.faults[2].text.find(
            "batch entry 3: D holds, besides its own product, all that entry "
            "2 holds: sums are not set to zero between entries") == 0);
  says(x.judged(stacked(one_more)), FaultKind::stale_accumulator,
       "batch entry 3: D holds, besides its own product, that of entry 1");
}

TEST_CASE("scales that are read from other places, or are other numbers, are named") {
  constexpr std::int64_t block = 16;
  Recording x(1, formats::e4m3);
  x.k = 64;
  std::mt19937_64 random(5);
  x.a = random_matrix(random, x.m, x.k, formats::e4m3, false);
  x.b = random_matrix(random, x.k, x.n, formats::e4m3, false);
  x.capture.problem.a = codes_of(formats::e4m3, 1, x.a);
  x.capture.problem.b = codes_of(formats::e4m3, 1, x.b);
  x.capture.problem.scale_k = block;
  const auto drawn = [&](std::int64_t rows, std::int64_t columns) {
    return mapped(random_matrix(random, rows, columns, formats::fp32, false),
                  [](double v) { return std::exp2(std::round(2 * v)); });
  };
  // A for each row and block of K, B for each block of K and column.
  const RealMatrix of_a = drawn(x.m, 4), of_b = drawn(4, x.n);
  x.capture.problem.scale_a = codes_of(formats::fp32, 1, of_a);
  x.capture.problem.scale_b = codes_of(formats::fp32, 1, of_b);
  const auto with_scales = [&](const RealMatrix& a, const RealMatrix& b) {
    Recording y = x;
    for (std::int64_t i = 0; i < x.m; ++i)
      for (std::int64_t k = 0; k < x.k; ++k) y.a(i, k) *= a(i, k / block);
    for (std::int64_t k = 0; k < x.k; ++k)
      for (std::int64_t j = 0; j < x.n; ++j) y.b(k, j) *= b(k / block, j);
    return y.product(0, 0);
  };
  const auto moved = [](const RealMatrix& scales, std::int64_t rows, std::int64_t columns) {
    RealMatrix result = scales;
    for (std::int64_t p = 0; p < scales.rows; ++p)
      for (std::int64_t q = 0; q < scales.columns; ++q)
        result(p, q) = scales(std::min(p + rows, scales.rows - 1), (q + columns) % scales.columns);
    return result;
  };
  const auto ones = [](const RealMatrix& scales) {
    return mapped(scales, [](double) { return 1.0; });
  };
  is_right(x.judged(with_scales(of_a, of_b)));
  says(x.judged(with_scales(moved(of_a, 0, 1), of_b)), FaultKind::wrong_scale,
       "the scales of A: each block of K has that of the one 1 further on");
  says(x.judged(with_scales(moved(of_a, 1, 0), of_b)), FaultKind::wrong_scale,
       "the scales of A: each row has that of the one 1 further on");
  says(x.judged(with_scales(of_a, moved(of_b, 1, 0))), FaultKind::wrong_scale,
       "the scales of B: each block of K has that of the one 1 further on");
  says(x.judged(with_scales(ones(of_a), of_b)), FaultKind::wrong_scale,
       "the scales of A are taken as 1");
  says(x.judged(with_scales(ones(of_a), ones(of_b))), FaultKind::wrong_scale,
       "the scales of A and of B are taken as 1");
  RealMatrix other = of_a;
  REQUIRE(other(5, 2) != 1);
  other(5, 2) = 1;
  says(x.judged(with_scales(other, of_b)), FaultKind::wrong_scale,
       "scale [5, 2] of A was taken as 1, not ");
  other = of_b;
  other(3, 7) *= 4, other(0, 7) *= 0.5;
  const Judgement two = x.judged(with_scales(of_a, other));
  says(two, FaultKind::wrong_scale, "scale [0, 7] of B was taken as ");
  REQUIRE(two.faults.size() == 2);
  CHECK(two.faults[1].text.find("scale [3, 7] of B was taken as ") == 0);
  // Some of them.
  other = of_b;
  for (std::int64_t j = 4; j < 14; ++j)
    for (std::int64_t p = 0; p < 4; ++p) other(p, j) = of_b(std::max<std::int64_t>(p - 1, 0), j);
  const Judgement some = x.judged(with_scales(of_a, other));
  says(some, FaultKind::wrong_scale,
       "the scales of B: each block of K has that of the one 1 before, in columns ");
  CHECK(some.faults[0].text.ends_with("in blocks 1 to 3 of K"));
  other = of_a;
  for (std::int64_t i = 0; i < x.m; ++i) other(i, 3) = 1;
  says(x.judged(with_scales(other, of_b)), FaultKind::wrong_scale,
       "the scales of A are taken as 1, in ");
  for (const bool is_forth : {true, false}) {
    other = of_b;
    for (std::int64_t at = 0; at < 4 * x.n; ++at)
      (is_forth ? other(at / x.n, at % x.n) : other(at % 4, at / 4)) =
          is_forth ? of_b(at % 4, at / 4) : of_b(at / x.n, at % x.n);
    says(x.judged(with_scales(of_a, other)), FaultKind::wrong_scale,
         "the scales of B are read as if they were stored the other way round");
  }
  RealMatrix between = of_a;
  for (std::int64_t i = 0; i < x.m; ++i)
    for (std::int64_t q = 0; q < 4; ++q)
      between(i, q) = scalar::rounded(formats::fp32,
                                      of_a(i, q) * (1.1 + 0.17 * static_cast<double>((i + q) % 5)));
  x.capture.problem.scale_a = codes_of(formats::fp32, 1, between);
  says(x.judged(with_scales(of_a, of_b)), FaultKind::wrong_scale,
       "the scales of A are rounded down to powers of two");
  x.capture.problem.scale_a = codes_of(formats::fp32, 1, of_a);
  // Those of A and B in each other's place, where both have as many.
  x.n = x.m;
  x.b = random_matrix(random, x.k, x.n, formats::e4m3, false);
  x.capture.problem.b = codes_of(formats::e4m3, 1, x.b);
  const RealMatrix of_more = drawn(4, x.n);
  x.capture.problem.scale_b = codes_of(formats::fp32, 1, of_more);
  is_right(x.judged(with_scales(of_a, of_more)));
  says(x.judged(with_scales(transposed(of_more), transposed(of_a))), FaultKind::wrong_scale,
       "A has the scales of B, and B those of A");
}

TEST_CASE("operands whose codes are read as another format are named") {
  Recording whole(1, formats::int8);
  whole.a = mapped(whole.a, [](double v) { return v < 0 ? v + 256 : v; });
  says(whole.judged(whole.product(0, 0), formats::int32), FaultKind::misread_format,
       "elements of A were read as uint8, not as int8");
  Recording half(1, formats::bf16);
  half.a = mapped(half.a, [](double v) {
    return scalar::decoded(formats::fp16, scalar::encoded(formats::bf16, v));
  });
  says(half.judged(half.product(0, 0)), FaultKind::misread_format,
       "elements of A were read as fp16, not as bf16");
}

TEST_CASE("a NaN or an infinity that is lost is no rounding") {
  Recording x(1, formats::fp32);
  const RealMatrix right = x.product(0, 0);
  x.a(5, 9) = std::nan("");
  x.capture.problem.a = codes_of(formats::fp32, 1, x.a);
  says(x.judged(right), FaultKind::not_a_number,
       "20 elements of D are numbers, or have the other sign, where the operands give NaN or "
       "infinity, in row 5, columns 0 to 19");
  RealMatrix d = right;
  for (std::int64_t j = 0; j < d.columns; ++j) d(5, j) = std::nan("");
  is_right(x.judged(d));
  x.a(5, 9) = infinite;
  x.capture.problem.a = codes_of(formats::fp32, 1, x.a);
  for (std::int64_t j = 0; j < d.columns; ++j) d(5, j) = std::copysign(infinite, x.b(9, j));
  is_right(x.judged(d));
  for (std::int64_t j = 0; j < d.columns; ++j) d(5, j) = -d(5, j);
  says(x.judged(d), FaultKind::not_a_number, "in row 5");
  // C that beta leaves out is not read.
  x.a(5, 9) = 0;
  x.capture.problem.a = codes_of(formats::fp32, 1, x.a);
  x.capture.problem.c = codes_of(formats::fp32, 1, RealMatrix(x.m, x.n, std::nan("")));
  x.capture.beta = 0;
  is_right(x.judged(x.product(0, 0)));
  x.capture.beta = 1;
  says(x.judged(x.product(0, 0)), FaultKind::not_a_number, "480 elements of D are numbers");
}

TEST_CASE("NaNs and infinities that are lost behind a smooth function are no rounding") {
  for (const Activation activation : {Activation::silu, Activation::gelu, Activation::gelu_tanh}) {
    CAPTURE(formats::word_of(activation));
    Recording x(1, formats::fp32);
    x.capture.activation = activation;
    const RealMatrix d = mapped(x.product(0, 0), [&](double v) {
      return scalar::rounded(formats::fp32, activated_in_doubles(activation, v));
    });
    x.a(5, 9) = infinite;
    x.a(6, 2) = std::nan("");
    x.capture.problem.a = codes_of(formats::fp32, 1, x.a);
    // What libraries make of the lowest infinity is NaN or zero.
    for (const double lowest : {std::nan(""), -0.0}) {
      RealMatrix right = d;
      for (std::int64_t j = 0; j < d.columns; ++j)
        right(5, j) = x.b(9, j) > 0 ? infinite : lowest, right(6, j) = std::nan("");
      is_right(x.judged(right));
      right(6, 3) = 0;
      says(
          x.judged(right), FaultKind::not_a_number,
          "1 element of D is a number, or has the other sign, where the operands give NaN or infinity, "
          "in row 6, column 3");
      right(6, 3) = right(6, 4);
      for (std::int64_t j = 0; j < d.columns; ++j) right(5, j) = d(5, j);
      says(x.judged(right), FaultKind::not_a_number, "20 elements of D are numbers");
    }
  }
}

TEST_CASE("it is said that NaNs were not looked for where operands have scales") {
  Recording x(1, formats::fp32);
  const RealMatrix d = x.product(0, 0);
  x.a(6, 2) = std::nan("");
  x.capture.problem.a = codes_of(formats::fp32, 1, x.a);
  CHECK(x.limits(d) ==
        "rows of A and columns of B that hold infinities or NaNs were looked at for these alone");
  x.capture.problem.scale_a = codes_of(formats::fp32, 1, RealMatrix(1, 1, 1));
  CHECK(x.limits(d) ==
        "rows of A and columns of B that hold infinities or NaNs were not looked at");
}

TEST_CASE("a function that a part missed, or that came too early, is named with its place") {
  Recording x(1, formats::fp16);
  x.capture.activation = Activation::relu;
  const auto relu = [](double v) { return std::max(v, 0.0); };
  RealMatrix d = mapped(x.product(0, 0), relu);
  is_right(x.judged(d));
  for (std::int64_t i = 8; i < 16; ++i)
    for (std::int64_t j = 4; j < 12; ++j) d(i, j) = x.product(0, 0)(i, j);
  says(x.judged(d), FaultKind::activation,
       "in rows 8 to 15, columns 4 to 11: D did not go through relu");
  RealMatrix c(x.m, x.n);
  std::mt19937_64 random(2);
  c = random_matrix(random, x.m, x.n, formats::fp32, false);
  x.capture.problem.c = codes_of(formats::fp32, 1, c);
  x.capture.beta = 1;
  says(x.judged(plus(mapped(x.product(0, 0), relu), c)), FaultKind::activation,
       "relu was applied before C was added");
}

TEST_CASE(
    "a smooth function that came before the bias is not taken for the one that was asked for") {
  for (const Activation activation : {Activation::silu, Activation::gelu, Activation::gelu_tanh}) {
    CAPTURE(formats::word_of(activation));
    Recording x(1, formats::fp32);
    std::mt19937_64 random(3);
    const RealMatrix bias = random_matrix(random, 1, x.n, formats::fp32, false);
    x.capture.problem.bias = codes_of(formats::fp32, 1, bias);
    x.capture.activation = activation;
    RealMatrix late = x.product(0, 0), early = late;
    for (std::int64_t i = 0; i < late.rows; ++i) {
      for (std::int64_t j = 0; j < late.columns; ++j) {
        late(i, j) = activated_in_doubles(activation, late(i, j) + bias(0, j));
        early(i, j) = activated_in_doubles(activation, early(i, j)) + bias(0, j);
      }
    }
    is_right(x.judged(late));
    CHECK(x.judged(early).verdict == Verdict::wrong);
  }
}

TEST_CASE("integers that wrap in a narrow D are wrong, saturated ones and 32 bits are not") {
  Recording x(1, formats::int8);
  const RealMatrix d = x.product(0, 0);
  const auto wrapped = [](double v) {
    const double low = v - 256 * std::floor(v / 256);
    return low >= 128 ? low - 256 : low;
  };
  const auto saturated = [](double v) { return std::clamp(v, -128.0, 127.0); };
  REQUIRE(mapped(d, wrapped).values != d.values);
  says(x.judged(mapped(d, wrapped), formats::int8), FaultKind::wrapped, "D is right modulo 2^8");
  is_right(x.judged(mapped(d, saturated), formats::int8));
}

TEST_CASE("what is wrong besides a function that is missing is named, too") {
  Recording x(1, formats::fp16);
  x.capture.activation = Activation::relu;
  Recording other = x;
  other.a(5, 9) = 40;
  const Judgement judgement = x.judged(other.product(0, 0));
  says(judgement, FaultKind::activation, "D did not go through relu");
  REQUIRE(judgement.faults.size() == 2);
  CHECK(judgement.faults[1].kind == FaultKind::wrong_element);
  CHECK(judgement.faults[1].text.find("element [5, 9] of A was taken as 40, not") == 0);
  CHECK(x.judged(x.product(0, 0)).faults.size() == 1);
}

TEST_CASE(
    "the problem that a kernel with two faults solved holds the one and leaves out the other") {
  Recording x(1, formats::fp32);
  Recording other = x;
  for (std::int64_t i = 0; i < x.m; ++i)
    for (std::int64_t k = 8; k < 16; ++k) other.a(i, k) = 0;
  RealMatrix d = other.product(0, 0);
  for (std::int64_t i = 0; i < 8; ++i)
    for (std::int64_t j = 8; j < 16; ++j) d(i, j) = 0;
  const Judgement judgement = x.judged(d);
  says(judgement, FaultKind::not_written, "rows 0 to 7, columns 8 to 15");
  REQUIRE(judgement.faults.size() == 2);
  CHECK(judgement.faults[1].kind == FaultKind::missing_k);
  const auto rest = mended(x.capture, judgement);
  REQUIRE(rest);
  CHECK(rest->is_part);
  CHECK(rest->capture.d.rows == 16);
  CHECK(judge(rest->capture).judgement.faults.empty());
}

TEST_CASE("rows and columns of a large product that hold others are named, however they lie",
          "[long]") {
  Recording x(1, formats::fp32);
  x.m = 512, x.n = 400, x.k = 224;
  std::mt19937_64 random(5);
  x.a = random_matrix(random, x.m, x.k, formats::fp32, false);
  x.b = random_matrix(random, x.k, x.n, formats::fp32, false);
  const RealMatrix c = random_matrix(random, x.m, x.n, formats::fp32, false);
  x.capture.problem.a = codes_of(formats::fp32, 1, x.a);
  x.capture.problem.b = codes_of(formats::fp32, 1, x.b);
  x.capture.problem.c = codes_of(formats::fp32, 1, c);
  x.capture.beta = 1;
  const RealMatrix product = x.product(0, 0), right = plus(product, c);
  const auto rows_of = [](const RealMatrix& d, const auto& source) {
    RealMatrix moved = d;
    for (std::int64_t i = 0; i < d.rows; ++i)
      for (std::int64_t j = 0; j < d.columns; ++j) moved(i, j) = d(source(i), j);
    return moved;
  };
  is_right(x.judged(right));
  says(x.judged(rows_of(right, [](auto i) { return i % 8 == 0 ? i + 1 : i; })),
       FaultKind::permuted_rows,
       "rows 0 and the same every 8 further, up to 504 of D hold what belongs to others: each "
       "holds the row 1 further on");
  says(x.judged(rows_of(right, [](auto i) { return i % 16 < 2 ? i ^ 1 : i; })),
       FaultKind::permuted_rows, "halves of 2 are exchanged");
  says(x.judged(plus(rows_of(product, [](auto i) { return i ^ 8; }), c)), FaultKind::permuted_rows,
       "of the product are those of others, C is right: halves of 16 are exchanged");
  says(x.judged(rows_of(right, [](auto i) { return (i * 5 + 3) % 512; })), FaultKind::permuted_rows,
       "0 holds 3");
  says(x.judged(
           transposed(rows_of(transposed(right), [](auto j) { return j % 40 == 3 ? j + 5 : j; }))),
       FaultKind::permuted_columns, "each holds the column 5 further on");
  // A tile of D that is another, far from what is looked at.
  RealMatrix tile = right;
  for (std::int64_t i = 0; i < 64; ++i)
    for (std::int64_t j = 0; j < 64; ++j) tile(256 + i, 128 + j) = right(64 + i, 320 + j);
  says(
      x.judged(tile), FaultKind::moved_tile,
      "rows 256 to 319, columns 128 to 191 of D hold what belongs to rows 64 to 127, columns 320 to 383");
  // With another alpha, both are named.
  const Judgement both = x.judged(plus(
      mapped(rows_of(product, [](auto i) { return i ^ 8; }), [](double v) { return 0.75 * v; }),
      c));
  says(both, FaultKind::permuted_rows, "halves of 16 are exchanged");
  REQUIRE(both.faults.size() == 2);
  CHECK(both.faults[1].kind == FaultKind::alpha);
}

TEST_CASE("a wrong product of very many rows takes neither much memory nor long", "[long]") {
  Recording x(1, formats::fp16);
  x.m = 40000, x.n = 5, x.k = 8;
  std::mt19937_64 random(5);
  x.a = random_matrix(random, x.m, x.k, formats::fp16, false);
  x.b = random_matrix(random, x.k, x.n, formats::fp16, false);
  x.capture.problem.a = codes_of(formats::fp16, 1, x.a);
  x.capture.problem.b = codes_of(formats::fp16, 1, x.b);
  std::normal_distribution<double> normal;
  says(x.judged(mapped(x.product(0, 0), [&](double v) { return v * (1 + 0.1 * normal(random)); })),
       FaultKind::unknown, "for no reason that has a name here");
}

TEST_CASE(
    "rows, tiles and operands from other places are named behind a function that was asked for") {
  Recording x(1, formats::fp32);
  x.m = x.n = 64;
  std::mt19937_64 random(5);
  x.a = random_matrix(random, x.m, x.k, formats::fp32, false);
  x.b = random_matrix(random, x.k, x.n, formats::fp32, false);
  x.capture.problem.a = codes_of(formats::fp32, 1, x.a);
  x.capture.problem.b = codes_of(formats::fp32, 1, x.b);
  for (const Activation activation : {Activation::relu, Activation::silu}) {
    CAPTURE(formats::word_of(activation));
    x.capture.activation = activation;
    const auto function = [&](double v) {
      return scalar::rounded(formats::fp32, activated_in_doubles(activation, v));
    };
    const RealMatrix right = mapped(x.product(0, 0), function);
    is_right(x.judged(right));
    RealMatrix d = right;
    for (std::int64_t i = 0; i < x.m; ++i)
      for (std::int64_t j = 0; j < x.n; ++j) d(i, j) = right(i ^ 8, j);
    says(x.judged(d), FaultKind::permuted_rows, "halves of 16 are exchanged");
    d = right;
    for (std::int64_t i = 0; i < 16; ++i)
      for (std::int64_t j = 0; j < 16; ++j) d(i, j) = right(32 + i, 16 + j);
    says(x.judged(d), FaultKind::moved_tile,
         "hold what belongs to rows 32 to 47, columns 16 to 31");
    Recording other = x;
    for (std::int64_t k = 0; k < x.k; ++k)
      for (std::int64_t j = 0; j < x.n; ++j) other.b(k, j) = x.b(k ^ 1, j);
    says(x.judged(mapped(other.product(0, 0), function)), FaultKind::permuted_k, "");
  }
}

TEST_CASE("a bias that is missing, or added by the wrong index, is named") {
  Recording x(1, formats::fp32);
  std::mt19937_64 random(2);
  x.m = 20;
  x.a = part(x.a, 0, 20, 0, x.k);
  x.capture.problem.a = codes_of(formats::fp32, 1, x.a);
  const RealMatrix bias = random_matrix(random, 1, x.n, formats::fp32, false);
  x.capture.problem.bias = codes_of(formats::fp32, 1, bias);
  const auto with_bias = [&](const std::function<double(std::int64_t, std::int64_t)>& added) {
    RealMatrix d = x.product(0, 0);
    for (std::int64_t i = 0; i < d.rows; ++i)
      for (std::int64_t j = 0; j < d.columns; ++j) d(i, j) += added(i, j);
    return x.judged(d);
  };
  is_right(with_bias([&](auto, auto j) { return bias(0, j); }));
  says(with_bias([](auto, auto) { return 0; }), FaultKind::bias, "the bias is not added");
  says(with_bias([&](auto, auto j) { return 2 * bias(0, j); }), FaultKind::bias,
       "the bias is added twice");
  says(with_bias([&](auto, auto j) { return j < 8 ? 0 : bias(0, j); }), FaultKind::bias,
       "the bias is not added in columns 0 to 7");
  says(with_bias([&](auto i, auto) { return bias(0, i); }), FaultKind::misplaced_c,
       "by the number of the row");
}

TEST_CASE("TF32 that was asked for is right at any scale") {
  for (const double scale : {1e-3, 1.0, 1e3}) {
    for (const bool truncates : {false, true}) {
      CAPTURE(scale, truncates);
      Recording x(1, formats::fp32, scale);
      x.capture.tf32 = true;
      const auto converted = [&](double v) {
        const double rounded = scalar::rounded(formats::tf32, v);
        return truncates && std::abs(rounded) > std::abs(v)
                   ? rounded - std::copysign(2 * half_spacing(formats::tf32, v), v)
                   : rounded;
      };
      x.a = mapped(x.a, converted), x.b = mapped(x.b, converted);
      is_right(x.judged(x.product(0, 0)));
    }
  }
}

TEST_CASE("positive results say nothing of a function that overflows or has reached its limit") {
  Recording x(1, formats::fp32);
  x.a = mapped(x.a, [](double v) { return scalar::rounded(formats::fp32, v + 5); });
  x.b = mapped(x.b, [](double v) { return scalar::rounded(formats::fp32, v + 5); });
  x.capture.problem.a = codes_of(formats::fp32, 1, x.a);
  x.capture.problem.b = codes_of(formats::fp32, 1, x.b);
  RealMatrix a = x.a;
  for (std::int64_t i = 0; i < x.m; ++i) x.a(i, 17) = 0;
  says(x.judged(x.product(0, 0)), FaultKind::missing_k, "k = 17");
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(1000, 1);
  RealMatrix d(x.m, x.n);
  for (double& v : d.values) v = normal(random);
  says(x.judged(d), FaultKind::unknown, "no reason that has a name");
}

}  // namespace
}  // namespace guardbit::emulator
