#pragma once

// Products that are made wrong on purpose, for tests of what names the faults.

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "emulator/faults/find_faults.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/words.hpp"
#include "formats/text.hpp"
#include "tests/catch.hpp"

namespace guardbit::emulator {

struct Size {
  std::int64_t m, n, k;
};

struct Types {
  formats::Format input, output;
};

/// A product to be made wrong.
struct Subject {
  RealMatrix a, b, c;
  Types types;
  /// [1, N] in the place of C; else empty
  RealMatrix bias = {};
  std::int64_t k() const { return a.columns; }
};

inline RealMatrix random_matrix(std::mt19937_64& random, std::int64_t rows, std::int64_t columns,
                                const formats::Format& format, bool positive) {
  std::normal_distribution<double> normal;
  RealMatrix x(rows, columns);
  for (double& value : x.values) {
    const double drawn = normal(random);
    value = scalar::rounded(format, positive ? std::abs(drawn) : drawn);
  }
  return x;
}

inline Subject subject_of(const Size& size, const Types& types, std::uint64_t seed,
                          bool positive = false) {
  std::mt19937_64 random(seed);
  return {random_matrix(random, size.m, size.k, types.input, positive),
          random_matrix(random, size.k, size.n, types.input, positive),
          random_matrix(random, size.m, size.n, formats::fp32, false), types};
}

/// A * B in chains whose sums are rounded to `sums` after every `step` products.
inline RealMatrix chained(const RealMatrix& a, const RealMatrix& b, std::int64_t step = 8,
                          const formats::Format& sums = formats::fp32) {
  RealMatrix d(a.rows, b.columns);
  for (std::int64_t k = 0; k < a.columns; k += step) {
    const std::int64_t count = std::min(step, a.columns - k);
    const RealMatrix more = multiply(part(a, 0, a.rows, k, count), part(b, k, count, 0, b.columns));
    for (std::size_t i = 0; i < d.values.size(); ++i)
      d.values[i] = scalar::rounded(sums, d.values[i] + more.values[i]);
  }
  return d;
}

inline RealMatrix plus(RealMatrix x, const RealMatrix& y, double factor = 1) {
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] += factor * y.values[i];
  return x;
}

/// D before it is rounded to its format.
using Kernel = std::function<RealMatrix(Subject)>;

struct Plant {
  std::string name;
  /// kinds that name it
  std::vector<FaultKind> kinds;
  Kernel kernel;
};

inline Kernel with_operands(const std::function<void(Subject&)>& change) {
  return [=](Subject x) {
    change(x);
    return plus(chained(x.a, x.b), x.c);
  };
}

inline Kernel with_result(const std::function<void(RealMatrix&)>& change) {
  return [=](Subject x) {
    RealMatrix d = plus(chained(x.a, x.b), x.c);
    change(d);
    return d;
  };
}

inline Kernel with_function(const std::function<double(double)>& function) {
  return [=](Subject x) { return mapped(plus(chained(x.a, x.b), x.c), function); };
}

inline void scale_k(Subject& x, std::int64_t begin, std::int64_t end, double factor) {
  for (std::int64_t i = 0; i < x.a.rows; ++i)
    for (std::int64_t k = begin; k < end; ++k) x.a(i, k) *= factor;
}

/// Columns of A at `to` become those at `from`.
inline void copy_a(Subject& x, const RealMatrix& old, std::int64_t to, std::int64_t from) {
  for (std::int64_t i = 0; i < x.a.rows; ++i) x.a(i, to) = old(i, from);
}
inline void copy_b(Subject& x, const RealMatrix& old, std::int64_t to, std::int64_t from) {
  for (std::int64_t j = 0; j < x.b.columns; ++j) x.b(to, j) = old(from, j);
}

constexpr std::int64_t stage = 16;
inline std::int64_t middle(const Subject& x) { return x.k() / 2 / stage * stage; }

inline ProductNumbers numbers(const Subject& x, RealMatrix d) {
  ProductNumbers result;
  result.a = x.a, result.b = x.b, result.c = x.c, result.bias = x.bias;
  result.beta = x.c.empty() ? 0 : 1;
  result.input = x.types.input, result.output = x.types.output;
  result.d =
      mapped(std::move(d), [&](double value) { return scalar::rounded(x.types.output, value); });
  result.multiply_operands();
  return result;
}

inline const Types tested_types[] = {{formats::fp32, formats::fp32},
                                     {formats::fp16, formats::fp32},
                                     {formats::bf16, formats::bf16},
                                     {formats::e4m3, formats::fp32}};
inline const Size tested_sizes[] = {{64, 64, 64}, {96, 80, 200}, {128, 128, 256}};

/// How often a suite of wrong kernels was named right.
struct Tally {
  int all = 0, named = 0, misnamed = 0;
  std::string missed;

  /// Judges each plant at this size and of these types.
  void add(const std::vector<Plant>& plants, const Size& size, const Types& type,
           bool with_bias = false) {
    Subject subject = subject_of(size, type, 1);
    if (with_bias) subject.bias = part(std::exchange(subject.c, {}), 0, 1, 0, size.n);
    RealMatrix right = chained(subject.a, subject.b);
    if (with_bias)
      for (std::size_t at = 0; at < right.values.size(); ++at)
        right.values[at] += subject.bias.values[at % subject.bias.values.size()];
    else
      right = plus(right, subject.c);
    for (const Plant& plant : plants) {
      const ProductNumbers x = numbers(subject, plant.kernel(subject));
      // A conversion to what the operands are changes nothing.
      if (x.d.values == numbers(subject, right).d.values) continue;
      const Judgement judgement = judge(x);
      ++all;
      const bool is_named =
          std::any_of(judgement.faults.begin(), judgement.faults.end(), [&](const Fault& fault) {
            return std::find(plant.kinds.begin(), plant.kinds.end(), fault.kind) !=
                   plant.kinds.end();
          });
      if (is_named) {
        ++named;
        continue;
      }
      const bool other =
          !judgement.faults.empty() && judgement.faults[0].kind != FaultKind::unknown;
      misnamed += other ? 1 : 0;
      missed += plant.name + ", " + std::to_string(size.m) + " x " + std::to_string(size.n) +
                " x " + std::to_string(size.k) + ", " + formats::name_of(type.input) + ": " +
                std::string(formats::word_of(judgement.verdict));
      for (const Fault& fault : judgement.faults) missed += "; " + fault.text;
      missed += '\n';
    }
  }
};

/// 95 % with right words, none with wrong ones.
inline void check_named(const Tally& tally) {
  INFO(tally.missed);
  CAPTURE(tally.named, tally.all);
  CHECK(tally.named * 100 >= tally.all * 95);
  CHECK(tally.misnamed == 0);
}

}  // namespace guardbit::emulator
