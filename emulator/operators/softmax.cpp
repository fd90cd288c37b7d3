#include "emulator/operators/softmax.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
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
float sum_in_order(std::span<const float> values) {
  float sum = 0;
  for (std::size_t warp = 0; warp < values.size(); warp += warp_lanes) {
    float own = 0;
    for (const float value : values.subspan(warp, warp_lanes)) own += value;
    sum += own;
  }
  return sum;
}

/// Adds `vector` neighbours to each thread's value in turn, to as many threads as get all of them.
template <std::size_t vector>
void add_vectors(const float* numbers, std::size_t threads, float* values) {
  for (std::size_t t = 0; t < threads; ++t) {
    float value = values[t];
    for (std::size_t k = 0; k < vector; ++k) value += numbers[t * vector + k];
    values[t] = value;
  }
}

/// Adds elements to the threads' values in turn, `vector` neighbours at a time.
void add_in_turn(std::span<const float> numbers, std::size_t vector, std::span<float> values) {
  const std::size_t stride = vector * values.size();
  for (std::size_t begin = 0; begin < numbers.size(); begin += stride) {
    const std::size_t count = std::min(stride, numbers.size() - begin);
    const float* from = numbers.data() + begin;
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
float sum_of_row(const SoftmaxShape& shape, std::span<const float> row, std::size_t shift,
                 std::span<float> values) {
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
  return shape.is_sequential ? sum_in_order(values) : sum_of_two_stages(values);
}

float row_sum(const SoftmaxShape& shape, std::span<const float> row, std::size_t shift,
              std::vector<float>& values) {
  values.assign(static_cast<std::size_t>(shape.threads), 0.0F);
  return vectorised<sum_of_row>(shape, row, shift, std::span(values));
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
template <class Body>
void for_each_row(const Rows& rows, int threads, const Body& body) {
  const auto grain = static_cast<std::size_t>(
      std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(rows.size, 1)));
  formats::parallel_for(static_cast<std::size_t>(rows.count), grain, threads,
                        [&](std::size_t begin, std::size_t end) {
                          std::vector<float> values, first, second;
                          for (std::size_t r = begin; r < end; ++r)
                            body(static_cast<std::int64_t>(r), values, first, second);
                        });
}

void copy_row(const NumberView& numbers, const Rows& rows, std::int64_t row,
              std::vector<float>& to) {
  const std::size_t start = rows.at(row, 0);
  to.resize(static_cast<std::size_t>(rows.size));
  if (rows.inner == 1) {
    if (!to.empty()) std::memcpy(to.data(), numbers.data() + start, to.size() * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] = numbers[start + i * static_cast<std::size_t>(rows.inner)];
}

/// A result of so many rows, which threads write one by one.
class ResultRows {
 public:
  ResultRows(const formats::Format& type, const Tensor& like, const Rows& rows)
      : type_(type), rows_(rows), result_(uninitialised_tensor(type, like.shape)) {
    if (rows.inner != 1) numbers_.resize(static_cast<std::size_t>(like.count()));
  }

  void store(std::span<const float> numbers, std::int64_t row) {
    if (rows_.inner == 1)
      return write_numbers(type_, row * rows_.size, numbers, false, writable_bytes(result_));
    const auto inner = static_cast<std::size_t>(rows_.inner);
    const std::size_t start = rows_.at(row, 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers_[start + i * inner] = numbers[i];
  }

  Tensor take() {
    if (rows_.inner != 1) write_numbers(type_, 0, numbers_, false, writable_bytes(result_));
    return std::move(result_);
  }

 private:
  formats::Format type_;
  Rows rows_;
  Tensor result_;
  /// of rows whose elements do not lie together
  std::vector<float> numbers_;
};

/// Of rows with NaNs any number: their sums are NaNs.
float greatest_of(std::span<const float> row) {
  constexpr std::size_t lanes = 32;
  std::array<float, lanes> greatest;
  greatest.fill(-std::numeric_limits<float>::infinity());
  std::size_t begin = 0;
  for (; begin + lanes <= row.size(); begin += lanes) {
    for (std::size_t k = 0; k < lanes; ++k)
      greatest[k] = row[begin + k] > greatest[k] ? row[begin + k] : greatest[k];
  }
  for (std::size_t k = 0; begin < row.size(); ++k, ++begin)
    greatest[k] = row[begin] > greatest[k] ? row[begin] : greatest[k];
  float all = greatest[0];
  for (const float x : greatest) all = x > all ? x : all;
  return all;
}
void subtract_greatest(std::span<float> row) {
  const float greatest = greatest_of(row);
  for (float& x : row) x -= greatest;
}
void subtract(std::span<float> row, float number) {
  for (float& x : row) x -= number;
}
void divide(std::span<float> row, float number) {
  for (float& x : row) x /= number;
}
void multiply(std::span<float> row, std::span<const float> other) {
  for (std::size_t i = 0; i < row.size(); ++i) row[i] *= other[i];
}
void subtract_products(std::span<float> row, std::span<const float> other, float number) {
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::fma(-other[i], number, row[i]);
}

}  // namespace

SoftmaxResult softmax(const Tensor& input, std::int64_t dimension, bool is_logarithm,
                      const formats::Format& type, int threads,
                      const std::optional<SoftmaxShape>& other) {
  const Rows rows = rows_along(input, dimension_of(input, dimension));
  const SoftmaxShape shape =
      other ? *other : forward_shape(sizes_of(rows, input, type != input.type));
  const NumberView numbers(input);
  ResultRows results(type, input, rows);
  for_each_row(rows, threads,
               [&](std::int64_t row, std::vector<float>& values, std::vector<float>& differences,
                   std::vector<float>& powers) {
                 copy_row(numbers, rows, row, differences);
                 vectorised<subtract_greatest>(std::span(differences));
                 std::vector<float>& raised = is_logarithm ? powers : differences;
                 if (is_logarithm) powers = differences;
                 exp_in_place(raised);
                 const float sum =
                     row_sum(shape, raised, shift_of(shape, input, rows, row), values);
                 if (is_logarithm) {
                   vectorised<subtract>(std::span(differences), log_of(sum));
                 } else {
                   vectorised<divide>(std::span(differences), sum);
                 }
                 results.store(differences, row);
               });
  return {results.take(), shape.text()};
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

SoftmaxResult softmax_gradient(const Tensor& gradient, const Tensor& output, std::int64_t dimension,
                               bool is_logarithm, const formats::Format& type, int threads,
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
  const NumberView gradients(gradient), outputs(output);
  ResultRows results(type, gradient, rows);
  for_each_row(rows, threads,
               [&](std::int64_t row, std::vector<float>& values, std::vector<float>& of_gradient,
                   std::vector<float>& of_output) {
                 copy_row(gradients, rows, row, of_gradient);
                 copy_row(outputs, rows, row, of_output);
                 // softmax's product is a tensor of its own, rounded to its type.
                 if (!is_logarithm) {
                   vectorised<multiply>(std::span(of_gradient), std::span<const float>(of_output));
                   round_to(gradient.type, of_gradient);
                 }
                 const float sum =
                     row_sum(shape, of_gradient, shift_of(shape, summed, rows, row), values);
                 if (is_logarithm) exp_in_place(of_output);
                 vectorised<subtract_products>(std::span(of_gradient),
                                               std::span<const float>(of_output), sum);
                 results.store(of_gradient, row);
               });
  return {results.take(), shape.text()};
}

}  // namespace guardbit::emulator::operators
