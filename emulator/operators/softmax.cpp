#include "emulator/operators/softmax.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/kernels/vectorised.hpp"
#include "emulator/operators/number_view.hpp"
#include "emulator/operators/reductions.hpp"
#include "emulator/operators/rows.hpp"
#include "emulator/operators/trees.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator::operators {
namespace {

/// Each warp's values in order, then the warps' in order.
template <class Number>
Number sum_in_order(std::span<const Number> values) {
  Number sum = 0;
  for (std::size_t warp = 0; warp < values.size(); warp += warp_lanes) {
    Number own = 0;
    for (const Number value : values.subspan(warp, warp_lanes)) own += value;
    sum += own;
  }
  return sum;
}

/// Adds `vector` neighbours to each thread's value in turn, to as many threads as get all of them.
template <std::size_t vector, class Number>
void add_vectors(const Number* numbers, std::size_t threads, Number* values) {
  for (std::size_t t = 0; t < threads; ++t) {
    Number value = values[t];
    for (std::size_t k = 0; k < vector; ++k) value += numbers[t * vector + k];
    values[t] = value;
  }
}

/// Adds elements to the threads' values in turn, `vector` neighbours at a time.
template <class Number>
void add_in_turn(std::span<const Number> numbers, std::size_t vector, std::span<Number> values) {
  const std::size_t stride = vector * values.size();
  for (std::size_t begin = 0; begin < numbers.size(); begin += stride) {
    const std::size_t count = std::min(stride, numbers.size() - begin);
    const Number* from = numbers.data() + begin;
    const std::size_t whole = count / vector;
    switch (vector) {
      case 1: add_vectors<1>(from, whole, values.data()); break;
      case 2: add_vectors<2>(from, whole, values.data()); break;
      case 4: add_vectors<4>(from, whole, values.data()); break;
      case 8: add_vectors<8>(from, whole, values.data()); break;
      default:
        for (std::size_t i = 0; i < whole * vector; ++i) values[i / vector] += from[i];
    }
    for (std::size_t i = whole * vector; i < count; ++i) values[whole] += from[i];
  }
}

/// The sum of a row that begins `shift` elements after an aligned address. `values` are the
/// threads'.
template <class Number>
Number sum_of_row(const SoftmaxShape& shape, std::span<const Number> row, std::size_t shift,
                  std::span<Number> values) {
  using Kind = SoftmaxShape::Kind;
  const std::size_t threads = values.size();
  const auto vector = static_cast<std::size_t>(shape.vector);
  switch (shape.kind) {
    case Kind::persistent:
    case Kind::across: add_in_turn(row, 1, values); return halved_sum(values);
    case Kind::in_registers:
    case Kind::in_shared_memory: add_in_turn(row, vector, values); break;
    case Kind::from_memory: {
      std::size_t begin = 0;
      if (shift > 0) {
        for (std::size_t t = shift; t < threads && begin < row.size(); ++t, ++begin)
          values[t] += row[begin];
      }
      const std::size_t rest = row.size() - begin;
      const std::size_t whole = rest - rest % (vector * threads);
      add_in_turn(row.subspan(begin, whole), vector, values);
      add_in_turn(row.subspan(begin + whole), 1, values);
      break;
    }
  }
  return shape.is_sequential ? sum_in_order(std::span<const Number>(values))
                             : sum_of_two_stages(values);
}

template <class Number>
Number row_sum(const SoftmaxShape& shape, std::span<const Number> row, std::size_t shift,
               std::vector<Number>& values) {
  values.assign(static_cast<std::size_t>(shape.threads), 0);
  return vectorised<sum_of_row<Number>>(shape, row, shift, std::span(values));
}

SoftmaxSizes sizes_of(const Rows& rows, const Tensor& tensor, bool widens) {
  // What is not contiguous is copied first, and is aligned then.
  const bool is_moved = !is_contiguous(tensor);
  const auto row_bytes = rows.size * tensor.element_bytes();
  return {.size = rows.size,
          .inner = rows.inner,
          .element_bytes = tensor.element_bytes(),
          .is_aligned = (is_moved || is_aligned(tensor, 16)) && row_bytes % 16 == 0,
          .widens = widens};
}

std::size_t shift_of(const SoftmaxShape& shape, const Tensor& tensor, const Rows& rows,
                     std::int64_t row) {
  if (shape.kind != SoftmaxShape::Kind::from_memory) return 0;
  const std::int64_t offset = is_contiguous(tensor) ? tensor.offset : 0;
  return static_cast<std::size_t>((offset + row * rows.size) % shape.vector);
}

/// Calls body(row, places) for every row; places are those of its first element and the next one.
template <class Number, class Body>
void for_each_row(const Rows& rows, int threads, const Body& body) {
  const auto grain = static_cast<std::size_t>(
      std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(rows.size, 1)));
  formats::parallel_for(static_cast<std::size_t>(rows.count), grain, threads,
                        [&](std::size_t begin, std::size_t end) {
                          std::vector<Number> values, first, second;
                          for (std::size_t r = begin; r < end; ++r)
                            body(static_cast<std::int64_t>(r), values, first, second);
                        });
}

template <class Number>
void copy_row(const ViewOf<Number>& numbers, const Rows& rows, std::int64_t row,
              std::vector<Number>& to) {
  const std::size_t start = rows.at(row, 0);
  to.resize(static_cast<std::size_t>(rows.size));
  if (rows.inner == 1) {
    if (!to.empty()) std::memcpy(to.data(), numbers.data() + start, to.size() * sizeof(Number));
    return;
  }
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] = numbers[start + i * static_cast<std::size_t>(rows.inner)];
}

/// A result of so many rows, which threads write one by one.
template <class Number>
class ResultRows {
 public:
  ResultRows(const formats::Format& type, const Tensor& like, const Rows& rows)
      : rows_(rows), result_(uninitialised_tensor(type, like.shape)) {
    if (rows.inner != 1) numbers_.resize(static_cast<std::size_t>(like.count()));
  }

  void store(std::span<const Number> numbers, std::int64_t row) {
    if (rows_.inner == 1) return write_elements(result_, row * rows_.size, numbers);
    const auto inner = static_cast<std::size_t>(rows_.inner);
    const std::size_t start = rows_.at(row, 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers_[start + i * inner] = numbers[i];
  }

  Tensor take() {
    if (rows_.inner != 1) write_elements(result_, 0, std::span<const Number>(numbers_));
    return std::move(result_);
  }

 private:
  Rows rows_;
  Tensor result_;
  /// of rows whose elements do not lie together
  std::vector<Number> numbers_;
};

/// Of rows with NaNs any number: their sums are NaNs.
template <class Number>
Number greatest_of(std::span<const Number> row) {
  constexpr std::size_t lanes = 32;
  std::array<Number, lanes> greatest;
  greatest.fill(-std::numeric_limits<Number>::infinity());
  std::size_t begin = 0;
  for (; begin + lanes <= row.size(); begin += lanes) {
    for (std::size_t k = 0; k < lanes; ++k)
      greatest[k] = row[begin + k] > greatest[k] ? row[begin + k] : greatest[k];
  }
  for (std::size_t k = 0; begin < row.size(); ++k, ++begin)
    greatest[k] = row[begin] > greatest[k] ? row[begin] : greatest[k];
  Number all = greatest[0];
  for (const Number x : greatest) all = x > all ? x : all;
  return all;
}
template <class Number>
void subtract_greatest(std::span<Number> row) {
  const Number greatest = greatest_of(std::span<const Number>(row));
  for (Number& x : row) x -= greatest;
}
template <class Number>
void subtract(std::span<Number> row, Number number) {
  for (Number& x : row) x -= number;
}
template <class Number>
void divide(std::span<Number> row, Number number) {
  for (Number& x : row) x /= number;
}
template <class Number>
void multiply(std::span<Number> row, std::span<const Number> other) {
  for (std::size_t i = 0; i < row.size(); ++i) row[i] *= other[i];
}
template <class Number>
void subtract_products(std::span<Number> row, std::span<const Number> other, Number number) {
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::fma(-other[i], number, row[i]);
}

}  // namespace

namespace {

template <class Number>
SoftmaxResult softmax_in(const Tensor& input, std::int64_t dimension, bool is_logarithm,
                         const formats::Format& type, int threads,
                         const std::optional<SoftmaxShape>& other) {
  const Rows rows = rows_along(input, dimension_of(input, dimension));
  const SoftmaxShape shape =
      other ? *other : forward_shape(sizes_of(rows, input, type != input.type));
  const ViewOf<Number> numbers(input);
  ResultRows<Number> results(type, input, rows);
  for_each_row<Number>(rows, threads,
                       [&](std::int64_t row, std::vector<Number>& values,
                           std::vector<Number>& differences, std::vector<Number>& powers) {
                         copy_row<Number>(numbers, rows, row, differences);
                         vectorised<subtract_greatest<Number>>(std::span(differences));
                         std::vector<Number>& raised = is_logarithm ? powers : differences;
                         if (is_logarithm) powers = differences;
                         exp_in_place(raised);
                         const Number sum = row_sum(shape, std::span<const Number>(raised),
                                                    shift_of(shape, input, rows, row), values);
                         if (is_logarithm) {
                           vectorised<subtract<Number>>(std::span(differences), log_of(sum));
                         } else {
                           vectorised<divide<Number>>(std::span(differences), sum);
                         }
                         results.store(differences, row);
                       });
  return {results.take(), shape.text()};
}

}  // namespace

SoftmaxResult softmax(const Tensor& input, std::int64_t dimension, bool is_logarithm,
                      const formats::Format& type, int threads,
                      const std::optional<SoftmaxShape>& other) {
  return input.type == formats::fp64
             ? softmax_in<double>(input, dimension, is_logarithm, type, threads, other)
             : softmax_in<float>(input, dimension, is_logarithm, type, threads, other);
}

Tensor without_hidden_rows(const Tensor& input, std::int64_t dimension, const Tensor& result) {
  if (input.shape.empty() || input.count() == 0) return result;
  const Rows rows = rows_along(input, dimension_of(input, dimension));
  const auto size = static_cast<std::size_t>(rows.size),
             inner = static_cast<std::size_t>(rows.inner);
  const NumberView numbers(input);
  std::vector<float> results = numbers_of(result);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const std::size_t first = rows.at(row, 0);
    bool is_hidden = true;
    for (std::size_t i = 0; i < size; ++i)
      is_hidden =
          is_hidden && numbers[first + i * inner] == -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; is_hidden && i < size; ++i) results[first + i * inner] = 0;
  }
  return tensor_of_numbers(result.type, result.shape, result.stride, results);
}

namespace {

template <class Number>
SoftmaxResult softmax_gradient_in(const Tensor& gradient, const Tensor& output,
                                  std::int64_t dimension, bool is_logarithm,
                                  const formats::Format& type, int threads,
                                  const std::optional<SoftmaxShape>& other) {
  const Rows rows = rows_along(gradient, dimension_of(gradient, dimension));

  // softmax's product is a new tensor, so it is aligned wherever the gradient lies.
  const Tensor fresh{.type = gradient.type,
                     .shape = gradient.shape,
                     .stride = contiguous_stride(gradient.shape),
                     .offset = 0,
                     .bytes = {},
                     .owner = {}};
  const Tensor& summed = is_logarithm ? gradient : fresh;
  SoftmaxSizes sizes = sizes_of(rows, summed, type != gradient.type);
  sizes.is_aligned = sizes.is_aligned && (!is_contiguous(output) || is_aligned(output, 16));
  const SoftmaxShape shape = other ? *other : backward_shape(sizes);
  const ViewOf<Number> gradients(gradient), outputs(output);
  ResultRows<Number> results(type, gradient, rows);
  for_each_row<Number>(rows, threads,
                       [&](std::int64_t row, std::vector<Number>& values,
                           std::vector<Number>& of_gradient, std::vector<Number>& of_output) {
                         copy_row<Number>(gradients, rows, row, of_gradient);
                         copy_row<Number>(outputs, rows, row, of_output);
                         // softmax's product is a tensor of its own, rounded to its type.
                         if (!is_logarithm) {
                           vectorised<multiply<Number>>(std::span(of_gradient),
                                                        std::span<const Number>(of_output));
                           if constexpr (std::is_same_v<Number, float>)
                             round_to(gradient.type, of_gradient);
                         }
                         const Number sum = row_sum(shape, std::span<const Number>(of_gradient),
                                                    shift_of(shape, summed, rows, row), values);
                         if (is_logarithm) exp_in_place(of_output);
                         vectorised<subtract_products<Number>>(
                             std::span(of_gradient), std::span<const Number>(of_output), sum);
                         results.store(of_gradient, row);
                       });
  return {results.take(), shape.text()};
}

}  // namespace

SoftmaxResult softmax_gradient(const Tensor& gradient, const Tensor& output, std::int64_t dimension,
                               bool is_logarithm, const formats::Format& type, int threads,
                               const std::optional<SoftmaxShape>& other) {
  return gradient.type == formats::fp64
             ? softmax_gradient_in<double>(gradient, output, dimension, is_logarithm, type, threads,
                                           other)
             : softmax_gradient_in<float>(gradient, output, dimension, is_logarithm, type, threads,
                                          other);
}

}  // namespace guardbit::emulator::operators
