#include "emulator/operator_search/row_formulas.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "emulator/operator_search/sum_rule.hpp"
#include "emulator/operators/kernels/array_math.hpp"

namespace guardbit::emulator {
namespace {

using Op = SearchedOperator;
using Row = std::span<const float>;

/// A function of one number, with its name.
struct Named {
  const char* name;
  float (*of)(float);
};

constexpr Named exponentials[] = {
    {"CUDA's expf", [](float x) { return operators::exp_of(x); }},
    {"__expf", [](float x) { return cuda_math::intrinsic_expf(HostNumber(x)).number(); }},
    {"exp rounded from FP64", [](float x) { return static_cast<float>(std::exp(double{x})); }},
};
constexpr Named logarithms[] = {
    {"CUDA's logf", [](float x) { return operators::log_of(x); }},
    {"log rounded from FP64", [](float x) { return static_cast<float>(std::log(double{x})); }},
};
constexpr Named reciprocal_roots[] = {
    {"rsqrtf", [](float x) { return operators::reciprocal_root_of(x); }},
    {"1 / sqrt", [](float x) { return 1 / std::sqrt(x); }},
};

std::vector<RowFormula> sums(std::int64_t size, bool is_mean) {
  std::vector<RowFormula> all;
  for (const SumRule& rule : sum_rules(size)) {
    if (!is_mean) {
      all.push_back({rule.text(), [=](Row row) { return std::vector{sum_of(rule, row)}; }});
      continue;
    }
    all.push_back({rule.text() + "; divided by the count", [=](Row row) {
                     return std::vector{sum_of(rule, row) / static_cast<float>(row.size())};
                   }});
    all.push_back({rule.text() + "; times 1 / count", [=](Row row) {
                     return std::vector{sum_of(rule, row) * (1 / static_cast<float>(row.size()))};
                   }});
  }
  return all;
}

float greatest_of(Row row) {
  float greatest = -std::numeric_limits<float>::infinity();
  for (const float x : row) greatest = x > greatest ? x : greatest;
  return greatest;
}

std::vector<RowFormula> softmaxes(std::int64_t size) {
  std::vector<RowFormula> all;
  for (const Named& exponential : exponentials) {
    for (const bool divides : {true, false}) {
      for (const SumRule& rule : sum_rules(size)) {
        all.push_back({std::string(exponential.name) + " of x - max; " + rule.text() +
                           (divides ? "; divided by the sum" : "; times 1 / sum"),
                       [=, exp = exponential.of](Row row) {
                         const float greatest = greatest_of(row);
                         std::vector<float> powers;
                         for (const float x : row) powers.push_back(exp(x - greatest));
                         const float sum = sum_of(rule, powers), inverse = 1 / sum;
                         for (float& x : powers) x = divides ? x / sum : x * inverse;
                         return powers;
                       }});
      }
    }
  }
  return all;
}

std::vector<RowFormula> log_softmaxes(std::int64_t size) {
  std::vector<RowFormula> all;
  for (const Named& exponential : exponentials) {
    for (const Named& logarithm : logarithms) {
      for (const bool adds_first : {false, true}) {
        for (const SumRule& rule : sum_rules(size)) {
          all.push_back({std::string(adds_first ? "x - (max + log)" : "(x - max) - log") +
                             " with " + exponential.name + " and " + logarithm.name + "; " +
                             rule.text(),
                         [=, exp = exponential.of, log = logarithm.of](Row row) {
                           const float greatest = greatest_of(row);
                           std::vector<float> powers, results;
                           for (const float x : row) powers.push_back(exp(x - greatest));
                           const float of_sum = log(sum_of(rule, powers));
                           for (const float x : row)
                             results.push_back(adds_first ? x - (greatest + of_sum)
                                                          : (x - greatest) - of_sum);
                           return results;
                         }});
        }
      }
    }
  }
  return all;
}

/// Squares of x - mean, whose mean is the variance.
std::vector<float> squares(Row row, float mean) {
  std::vector<float> all;
  for (const float x : row) all.push_back((x - mean) * (x - mean));
  return all;
}

std::vector<RowFormula> norms(std::int64_t size, float epsilon, bool has_mean) {
  std::vector<RowFormula> all;
  for (const Named& root : reciprocal_roots) {
    for (const bool is_one_pass : {false, true}) {
      if (is_one_pass && !has_mean) continue;
      for (const bool is_fused : {false, true}) {
        if (is_fused && !has_mean) continue;
        for (const SumRule& rule : sum_rules(size)) {
          std::string text = !has_mean     ? "mean of x x"
                             : is_one_pass ? "mean of x x less the mean's square"
                                           : "mean, then mean of (x - mean)^2";
          text += "; " + rule.text() + "; " + root.name +
                  (!has_mean  ? " x"
                   : is_fused ? ", fma(x, r, -mean r)"
                              : ", (x - mean) r");
          all.push_back({std::move(text), [=, root_of = root.of](Row row) {
                           const auto count = static_cast<float>(row.size());
                           const float mean = has_mean ? sum_of(rule, row) / count : 0;
                           float variance =
                               sum_of(rule, squares(row, is_one_pass ? 0 : mean)) / count;
                           if (is_one_pass) variance = variance - mean * mean;
                           const float r = root_of(variance + epsilon), shift = -mean * r;
                           std::vector<float> results;
                           for (const float x : row)
                             results.push_back(is_fused ? std::fma(x, r, shift) : (x - mean) * r);
                           return results;
                         }});
        }
      }
    }
  }
  return all;
}

}  // namespace

std::vector<RowFormula> row_formulas(SearchedOperator op, std::int64_t size, float epsilon) {
  switch (op) {
    case Op::sum: return sums(size, false);
    case Op::mean: return sums(size, true);
    case Op::softmax: return softmaxes(size);
    case Op::log_softmax: return log_softmaxes(size);
    case Op::layer_norm: return norms(size, epsilon, true);
    case Op::rms_norm: return norms(size, epsilon, false);
    case Op::all_reduce:
    case Op::all_reduce_avg: break;  // no rows
  }
  return {};
}

}  // namespace guardbit::emulator
