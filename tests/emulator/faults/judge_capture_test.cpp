// What only a whole recording shows: batches, codes that are read as other numbers, NaNs that are
// lost, functions and factors that were asked for.

#include "emulator/faults/judge_capture.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

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
