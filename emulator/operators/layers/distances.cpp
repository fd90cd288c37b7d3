#include "emulator/operators/layers/distances.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "emulator/operators/kernels/powers.hpp"
#include "emulator/operators/number_view.hpp"
#include "emulator/operators/trees.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator::operators {
namespace {

constexpr std::size_t threads_of_a_block = 256;

template <class Number>
Number sign_of(Number x) {
  return static_cast<Number>((x > 0) - (x < 0));
}

/// The norm of a row's differences: `added` to a thread's sum, `joined` of two threads' sums.
template <class Number>
struct NormOfDifferences {
  double order = 2;
  Number exponent = static_cast<Number>(order);

  Number added(Number sum, Number difference) const {
    if (order == 0) return sum + (difference != 0 ? 1 : 0);
    if (order == 1) return sum + difference;
    if (order == 2) return std::fma(difference, difference, sum);
    if (std::isinf(order)) return difference > sum ? difference : sum;
    return sum + power_of(difference, exponent);
  }
  Number joined(Number sum, Number other) const {
    if (std::isinf(order)) return other > sum ? other : sum;
    return sum + other;
  }
  Number finished(Number sum) const {
    if (order == 0 || order == 1 || std::isinf(order)) return sum;
    return order == 2 ? std::sqrt(sum) : power_of(sum, 1 / exponent);
  }
  /// What a difference adds to the gradient.
  Number gradient(Number difference, Number gradient, Number distance) const {
    const Number magnitude = std::abs(difference);
    if (order == 1) return gradient * sign_of(difference);
    if (std::isinf(order))
      return (gradient * sign_of(difference)) * static_cast<Number>(magnitude == distance);
    if (distance == 0) return 0;
    if (order == 2) return (gradient * difference) / distance;
    const Number divisor = power_of(distance, exponent - 1);
    if (order > 2) return ((difference * power_of(magnitude, exponent - 2)) * gradient) / divisor;
    if (difference == 0 && order < 1) return 0;
    return ((sign_of(difference) * power_of(magnitude, exponent - 1)) * gradient) / divisor;
  }
};

/// What runs over numbers of the tensors' type.
template <class Run>
Tensor with_rows_of(const DistanceOperands& operands, const Run& run) {
  return operands.first.type == formats::fp64
             ? run(0.0, DoubleView(operands.first), DoubleView(operands.second))
             : run(0.0F, NumberView(operands.first), NumberView(operands.second));
}

struct TableSizes {
  std::size_t tables, rows, others, width;

  explicit TableSizes(const DistanceOperands& operands)
      : tables(static_cast<std::size_t>(operands.first.shape[0])),
        rows(static_cast<std::size_t>(operands.first.shape[1])),
        others(static_cast<std::size_t>(operands.second.shape[1])),
        width(static_cast<std::size_t>(operands.first.shape[2])) {}
};

}  // namespace

Tensor distances(const DistanceOperands& operands, int threads) {
  const TableSizes sizes(operands);
  return with_rows_of(operands, [&](auto zero, const auto& first, const auto& second) {
    using Number = decltype(zero);
    const NormOfDifferences<Number> norm{operands.order};
    std::vector<Number> results(sizes.tables * sizes.rows * sizes.others);
    formats::parallel_for(results.size(), 64, threads, [&](std::size_t begin, std::size_t end) {
      std::array<Number, threads_of_a_block> sums;
      for (std::size_t k = begin; k < end; ++k) {
        const std::size_t table = k / (sizes.rows * sizes.others);
        const std::size_t row = k / sizes.others;  // counted over all tables
        const std::size_t other = table * sizes.others + k % sizes.others;
        sums.fill(0);
        for (std::size_t i = 0; i < sizes.width; ++i) {
          Number& sum = sums[i % threads_of_a_block];
          sum = norm.added(
              sum, std::abs(first[row * sizes.width + i] - second[other * sizes.width + i]));
        }
        results[k] =
            norm.finished(two_stages(std::span<Number>(sums), Number{0},
                                     [&](Number a, Number b) { return norm.joined(a, b); }));
      }
    });
    return tensor_of_numbers(
        operands.first.type,
        {operands.first.shape[0], operands.first.shape[1], operands.second.shape[1]}, results);
  });
}

Tensor distance_gradient_terms(const Tensor& gradient, const DistanceOperands& operands,
                               const Tensor& distances, int threads) {
  const TableSizes sizes(operands);
  return with_rows_of(operands, [&](auto zero, const auto& first, const auto& second) {
    using Number = decltype(zero);
    using View = std::decay_t<decltype(first)>;
    const NormOfDifferences<Number> norm{operands.order};
    const View gradients(gradient), lengths(distances);
    std::vector<Number> results(sizes.tables * sizes.others * sizes.rows * sizes.width);
    formats::parallel_for(sizes.tables * sizes.others * sizes.rows, 64, threads,
                          [&](std::size_t begin, std::size_t end) {
                            for (std::size_t line = begin; line < end; ++line) {
                              const std::size_t row = line % sizes.rows, at = line / sizes.rows;
                              const std::size_t table = at / sizes.others,
                                                other = at % sizes.others;
                              const std::size_t of_first = table * sizes.rows + row;
                              const std::size_t pair = of_first * sizes.others + other;
                              for (std::size_t i = 0; i < sizes.width; ++i) {
                                const Number difference = first[of_first * sizes.width + i] -
                                                          second[at * sizes.width + i];
                                results[line * sizes.width + i] =
                                    norm.gradient(difference, gradients[pair], lengths[pair]);
                              }
                            }
                          });
    return tensor_of_numbers(operands.first.type,
                             {operands.first.shape[0], operands.second.shape[1],
                              operands.first.shape[1], operands.first.shape[2]},
                             results);
  });
}

}  // namespace guardbit::emulator::operators
