#include "emulator/operators/row_norms.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/kernels/vectorised.hpp"
#include "emulator/operators/number_view.hpp"
#include "emulator/operators/reduction.hpp"
#include "emulator/operators/reductions.hpp"
#include "emulator/operators/trees.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator::operators {
namespace {

constexpr std::size_t vector_threads = 128, row_threads = 512, vector = 4;

/// Welford with a reciprocal in place of the division, as the kernel of vectors has it.
struct VectorWelford {
  static Moments reduced(Moments a, float x) {
    const float count = a.count + 1, delta = x - a.mean;
    const float mean = std::fma(delta, 1.0F / count, a.mean);
    return {mean, std::fma(delta, x - mean, a.squares), count};
  }
  static Moments combined(Moments lower, Moments upper) {
    const float delta = lower.mean - upper.mean, count = upper.count + lower.count;
    if (!(count > 0)) return {0, 0, count};
    const float reciprocal = 1.0F / count;
    const float of_upper = upper.count * reciprocal, of_lower = lower.count * reciprocal;
    return {std::fma(of_upper, upper.mean, of_lower * lower.mean),
            std::fma((delta * delta) * upper.count, of_lower, upper.squares + lower.squares),
            count};
  }
};

template <class Number>
struct RowMoments {
  Number mean = 0, reciprocal = 0;
};

/// Thread t takes vectors t, t + 128, ...: a round of 512 elements. The threads' states lie apart
/// (structure of arrays), because all have seen as many elements.
Moments layer_moments_of_vectors(std::span<const float> row) {
  std::array<float, vector_threads> means{}, squares{};
  std::array<float, vector_threads> counts{};
  float count = 0;
  std::array<float, vector> reciprocals{};
  for (std::size_t begin = 0; begin < row.size(); begin += vector * vector_threads) {
    const std::size_t busy = std::min(vector_threads, (row.size() - begin) / vector);
    for (std::size_t k = 0; k < vector; ++k)
      reciprocals[k] = 1.0F / (count + static_cast<float>(k + 1));
    const float* numbers = row.data() + begin;
    for (std::size_t t = 0; t < busy; ++t) {
      float mean = means[t], of_squares = squares[t];
      for (std::size_t k = 0; k < vector; ++k) {
        const float x = numbers[t * vector + k], delta = x - mean;
        mean = std::fma(delta, reciprocals[k], mean);
        of_squares = std::fma(delta, x - mean, of_squares);
      }
      means[t] = mean;
      squares[t] = of_squares;
    }
    count += vector;
    for (std::size_t t = 0; t < busy; ++t) counts[t] = count;
  }
  std::array<Moments, vector_threads> all;
  for (std::size_t t = 0; t < vector_threads; ++t) all[t] = {means[t], squares[t], counts[t]};
  std::array<Moments, vector_threads / warp_lanes> warps;
  for (std::size_t w = 0; w < warps.size(); ++w)
    warps[w] = halved(std::span<Moments>(all).subspan(w * warp_lanes, warp_lanes),
                      VectorWelford::combined);
  return halved(std::span<Moments>(warps), VectorWelford::combined);
}

float squares_of_vectors(std::span<const float> row) {
  std::array<float, vector_threads> squares{};
  for (std::size_t begin = 0; begin < row.size(); begin += vector * vector_threads) {
    const std::size_t busy = std::min(vector_threads, (row.size() - begin) / vector);
    const float* numbers = row.data() + begin;
    for (std::size_t t = 0; t < busy; ++t) {
      float of_squares = squares[t];
      for (std::size_t k = 0; k < vector; ++k)
        of_squares = std::fma(numbers[t * vector + k], numbers[t * vector + k], of_squares);
      squares[t] = of_squares;
    }
  }
  std::array<float, vector_threads / warp_lanes> warps{};
  for (std::size_t w = 0; w < warps.size(); ++w)
    warps[w] = halved_sum(std::span(squares).subspan(w * warp_lanes, warp_lanes));
  return halved_sum(warps);
}

template <class Number>
MomentsOf<Number> moments_of_block(std::span<const Number> row) {
  using Op = WelfordOf<Number>;
  std::vector<MomentsOf<Number>> all(row_threads);
  for (std::size_t i = 0; i < row.size(); ++i)
    all[i % row_threads] = Op::reduced(all[i % row_threads], row[i], 0);
  return two_stages(std::span(all), MomentsOf<Number>{}, Op::combined);
}

/// FP64 is never read in vectors.
template <class Number>
RowMoments<Number> moments_of(RowNorm kind, std::span<const Number> row, bool in_vectors,
                              Number epsilon) {
  if constexpr (std::is_same_v<Number, float>) {
    const auto size = static_cast<float>(row.size());
    if (in_vectors && kind == RowNorm::rms)
      return {0, reciprocal_root_of(squares_of_vectors(row) / size + epsilon)};
    if (in_vectors) {
      const Moments all = layer_moments_of_vectors(row);
      return {all.mean, reciprocal_root_of(all.squares / size + epsilon)};
    }
  }
  const MomentsOf<Number> all = moments_of_block(row);
  const Number variance = all.squares / all.count;
  if (kind == RowNorm::layer) return {all.mean, reciprocal_root_of(variance + epsilon)};
  return {0, reciprocal_root_of(std::fma(all.mean, all.mean, variance) + epsilon)};
}

template <class Number>
struct Affine {
  const Number* weight = nullptr;
  const Number* bias = nullptr;
};

template <class Number, RowNorm kind, bool has_weight, bool has_bias>
void normalise(std::span<const Number> row, RowMoments<Number> moments, Affine<Number> affine,
               bool in_vectors, Number* __restrict out) {
  const Number mean = moments.mean, reciprocal = moments.reciprocal;
  const Number *weight = affine.weight, *bias = affine.bias;
  constexpr bool is_layer = kind == RowNorm::layer;
  if (is_layer && !in_vectors) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      // An absent bias counts as 0; without a weight the first product is the fused one.
      const Number shift = has_bias ? bias[i] : 0, x = row[i] - mean;
      out[i] =
          has_weight ? std::fma(x * reciprocal, weight[i], shift) : std::fma(x, reciprocal, shift);
    }
    return;
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Number x = is_layer ? row[i] - mean : row[i];
    const Number scaled = x * reciprocal;
    if constexpr (has_weight && has_bias) {
      out[i] = std::fma(scaled, weight[i], bias[i]);
    } else if constexpr (has_weight) {
      out[i] = weight[i] * scaled;
    } else if constexpr (has_bias) {
      // The compiler fused the product and the sum in three of the four unrolled steps.
      out[i] = i % vector == 0 ? scaled + bias[i] : std::fma(reciprocal, x, bias[i]);
    } else {
      out[i] = scaled;
    }
  }
}

template <class Number>
using Normalise = void (*)(std::span<const Number>, RowMoments<Number>, Affine<Number>, bool,
                           Number*);
template <class Number, RowNorm kind, bool has_weight, bool has_bias>
constexpr Normalise<Number> in_vectors_of_cpu =
    vectorised<normalise<Number, kind, has_weight, has_bias>, std::span<const Number>,
               RowMoments<Number>, Affine<Number>, bool, Number*>;
template <class Number, RowNorm kind>
Normalise<Number> normaliser(const Affine<Number>& affine) {
  const bool has_bias = affine.bias != nullptr;
  if (affine.weight == nullptr)
    return has_bias ? in_vectors_of_cpu<Number, kind, false, true>
                    : in_vectors_of_cpu<Number, kind, false, false>;
  return has_bias ? in_vectors_of_cpu<Number, kind, true, true>
                  : in_vectors_of_cpu<Number, kind, true, false>;
}

struct Sizes {
  std::size_t rows = 1, size = 1;
};
Sizes row_sizes_of(const Tensor& input, std::size_t normalised_dimensions) {
  if (normalised_dimensions < 1 || normalised_dimensions > input.shape.size())
    throw UnknownShape{std::to_string(normalised_dimensions) + " dimensions of " +
                       std::to_string(input.shape.size()) + " that are normalised"};
  Sizes sizes;
  const std::size_t first = input.shape.size() - normalised_dimensions;
  for (std::size_t d = 0; d < input.shape.size(); ++d)
    (d < first ? sizes.rows : sizes.size) *= static_cast<std::size_t>(input.shape[d]);
  return sizes;
}

/// An operand, if there is one, has so many elements.
void require_count(const Tensor* tensor, std::size_t count) {
  if (tensor != nullptr && tensor->count() != static_cast<std::int64_t>(count))
    throw UnknownShape{"an operand of " + std::to_string(tensor->count()) +
                       " elements in place of " + std::to_string(count)};
}

bool starts_vectors(const Tensor* tensor) {
  return tensor == nullptr || !is_contiguous(*tensor) ||
         is_aligned(*tensor, static_cast<int>(vector) * tensor->element_bytes());
}

template <class Number>
struct RowOfGradient {
  std::span<const Number> gradient, row;
  RowMoments<Number> moments;
  const Number* weight;
};

/// Each thread takes vectors of 4 elements, then those 512 on; of a row's end, single ones.
template <class Number, RowNorm kind, bool has_weight>
void input_gradient(const RowOfGradient<Number>& of, Number* __restrict out) {
  const std::size_t size = of.row.size();
  const Number *gradient = of.gradient.data(), *row = of.row.data(), *weight = of.weight;
  const Number mean = of.moments.mean, reciprocal = of.moments.reciprocal;
  constexpr bool is_layer = kind == RowNorm::layer;
  std::array<Number, vector_threads> first{}, second{};
  const auto add = [&](std::size_t i, Number& sum, Number& products) {
    const Number scaled = has_weight ? gradient[i] * weight[i] : gradient[i];
    const Number x = is_layer ? row[i] - mean : row[i];
    sum += scaled;
    products = std::fma(scaled * x, reciprocal, products);
  };
  for (std::size_t begin = 0; begin < size; begin += vector * vector_threads) {
    const std::size_t busy = std::min(vector_threads, (size - begin) / vector);
    for (std::size_t t = 0; t < busy; ++t) {
      Number sum = first[t], products = second[t];
      for (std::size_t k = 0; k < vector; ++k) add(begin + t * vector + k, sum, products);
      first[t] = sum;
      second[t] = products;
    }
    if (busy == vector_threads) continue;
    for (std::size_t i = begin + busy * vector; i < size; ++i) add(i, first[busy], second[busy]);
  }
  const Number sum = is_layer ? sum_of_two_stages(std::span<Number>(first)) : 0;
  const Number products = sum_of_two_stages(std::span<Number>(second));
  const auto count = static_cast<Number>(size);
  const Number factor = (1 / count) * reciprocal;
  for (std::size_t i = 0; i < size; ++i) {
    const Number scale = has_weight ? count * weight[i] : count;
    if constexpr (is_layer) {
      const Number normal = (row[i] - mean) * reciprocal;
      out[i] = (std::fma(scale, gradient[i], -(normal * products)) - sum) * factor;
    } else {
      out[i] = std::fma(scale, gradient[i], -(products * (reciprocal * row[i]))) * factor;
    }
  }
}

template <class Number>
void input_gradient_of(RowNorm kind, const RowOfGradient<Number>& of, Number* out) {
  if (kind == RowNorm::layer) {
    of.weight != nullptr ? vectorised<input_gradient<Number, RowNorm::layer, true>>(of, out)
                         : vectorised<input_gradient<Number, RowNorm::layer, false>>(of, out);
  } else {
    of.weight != nullptr ? vectorised<input_gradient<Number, RowNorm::rms, true>>(of, out)
                         : vectorised<input_gradient<Number, RowNorm::rms, false>>(of, out);
  }
}

template <class Number>
struct ColumnOperands {
  std::span<const Number> gradients, numbers, reciprocals, means;
  std::size_t rows, size;
  int threads;
};
/// Of each block of rows one after another.
template <class Number>
struct ColumnGradients {
  std::vector<Number> weight, bias;
};

/// Columns side by side, of each thread of a column.
template <class Number>
struct ColumnSums {
  std::size_t begin, beside;
  std::span<Number> of_weights, of_biases;
};

template <class Number, bool has_means>
void add_rows(const ColumnShape& shape, const ColumnOperands<Number>& operands,
              const ColumnSums<Number>& sums) {
  const std::size_t size = operands.size, own = shape.rows / shape.threads, beside = sums.beside;
  for (std::size_t r = 0; r < operands.rows; ++r) {
    const std::size_t block = r / shape.rows % shape.blocks;
    const std::size_t t = block * shape.threads + r % shape.rows / own;
    const Number* __restrict gradient = operands.gradients.data() + r * size + sums.begin;
    const Number* __restrict numbers = operands.numbers.data() + r * size + sums.begin;
    Number* __restrict of_weights = sums.of_weights.data() + t * beside;
    Number* __restrict of_biases = sums.of_biases.data() + t * beside;
    const Number mean = has_means ? operands.means[r] : 0, reciprocal = operands.reciprocals[r];
    for (std::size_t c = 0; c < beside; ++c) {
      const Number x = has_means ? numbers[c] - mean : numbers[c];
      of_weights[c] = std::fma(gradient[c] * x, reciprocal, of_weights[c]);
      of_biases[c] += gradient[c];
    }
  }
}

template <class Number>
ColumnGradients<Number> column_gradients(const ColumnShape& shape,
                                         const ColumnOperands<Number>& operands) {
  const std::size_t size = operands.size;
  ColumnGradients<Number> all{std::vector<Number>(shape.blocks * size),
                              std::vector<Number>(shape.blocks * size)};
  // Many columns at once read memory in longer pieces; few where each has many partial sums.
  const std::size_t grain = shape.blocks > 1 ? 16 : 256;
  formats::parallel_for(size, grain, operands.threads, [&](std::size_t begin, std::size_t end) {
    const std::size_t beside = end - begin, chains = shape.blocks * shape.threads;
    std::vector<Number> of_weights(chains * beside), of_biases(chains * beside);
    const ColumnSums<Number> sums{begin, beside, of_weights, of_biases};
    operands.means.empty() ? vectorised<add_rows<Number, false>>(shape, operands, sums)
                           : vectorised<add_rows<Number, true>>(shape, operands, sums);
    std::vector<Number> column(shape.threads);
    const auto total = [&](const std::vector<Number>& from, std::size_t block, std::size_t c) {
      for (std::size_t t = 0; t < shape.threads; ++t)
        column[t] = from[(block * shape.threads + t) * beside + c];
      return halved_sum(std::span(column));
    };
    for (std::size_t b = 0; b < shape.blocks; ++b) {
      for (std::size_t c = 0; c < beside; ++c) {
        // Rows past the end count as zeros, whose sum is +0.
        const bool has_absent =
            operands.rows % shape.rows != 0 && operands.rows / shape.rows % shape.blocks == b;
        const Number absent = has_absent ? Number{0} : -Number{0};
        all.weight[b * size + begin + c] = total(of_weights, b, c) + absent;
        all.bias[b * size + begin + c] = total(of_biases, b, c) + absent;
      }
    }
  });
  return all;
}

}  // namespace

ColumnShape column_shape(std::size_t rows, std::size_t columns) {
  if (rows > 65536 && columns / 32 < 66)
    return {1, 32, std::min((rows + 31) / 32, 32768 / ((columns + 31) / 32))};
  if (rows < 64) return {1, 64, 1};
  if (rows < 128) return {8, 64, 1};
  if (rows < 256) return {16, 128, 1};
  return {32, 256, 1};
}

std::string ColumnShape::text() const {
  return std::to_string(threads) + (threads == 1 ? " thread a column" : " threads a column") +
         (blocks == 1 ? "" : ", " + std::to_string(blocks) + " blocks");
}

namespace {

template <class Number>
RowNormResult row_norm_in(RowNorm kind, const Tensor& input, std::size_t normalised_dimensions,
                          const Tensor* weight, const Tensor* bias, double epsilon, int threads) {
  const auto sizes = row_sizes_of(input, normalised_dimensions);
  const std::size_t rows = sizes.rows, size = sizes.size;
  for (const Tensor* of_columns : {weight, bias}) require_count(of_columns, size);
  constexpr std::size_t most_exact_count = std::size_t{1} << 24;
  constexpr bool is_double = std::is_same_v<Number, double>;
  const bool in_vectors = !is_double && size % vector == 0 && size <= most_exact_count &&
                          starts_vectors(&input) && starts_vectors(weight) && starts_vectors(bias);
  const ViewOf<Number> numbers(input);
  std::optional<ViewOf<Number>> weights, biases;
  if (weight != nullptr) weights.emplace(*weight);
  if (bias != nullptr) biases.emplace(*bias);
  const Affine<Number> affine{weights ? weights->data() : nullptr,
                              biases ? biases->data() : nullptr};
  const Normalise<Number> normalised = kind == RowNorm::layer
                                           ? normaliser<Number, RowNorm::layer>(affine)
                                           : normaliser<Number, RowNorm::rms>(affine);
  const Tensor result = uninitialised_tensor(input.type, input.shape);
  std::vector<Number> means(rows), reciprocals(rows);
  const std::size_t grain = std::max<std::size_t>(1, (1 << 14) / std::max<std::size_t>(1, size));
  formats::parallel_for(rows, grain, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<Number> of_row(size);
    for (std::size_t r = begin; r < end; ++r) {
      const std::span<const Number> row = numbers.part(r * size, size);
      const RowMoments<Number> moments =
          vectorised<moments_of<Number>>(kind, row, in_vectors, static_cast<Number>(epsilon));
      means[r] = moments.mean;
      reciprocals[r] = moments.reciprocal;
      normalised(row, moments, affine, in_vectors, of_row.data());
      write_elements(result, static_cast<std::int64_t>(r * size), of_row);
    }
  });
  Dimensions of_rows = input.shape;
  std::fill(of_rows.end() - static_cast<std::ptrdiff_t>(normalised_dimensions), of_rows.end(), 1);
  const formats::Format& of_moments = is_double ? formats::fp64 : formats::fp32;
  return {result, tensor_of_numbers(of_moments, of_rows, means),
          tensor_of_numbers(of_moments, of_rows, reciprocals),
          in_vectors ? "128 threads a row, vectors of 4"
                     : "512 threads a row, single elements, moments by Welford"};
}

template <class Number>
RowNormGradients row_norm_gradients_in(RowNorm kind, const Tensor& gradient, const Tensor& input,
                                       std::size_t normalised_dimensions, const Tensor* mean,
                                       const Tensor& reciprocal, const Tensor* weight,
                                       bool wants_columns, int threads,
                                       const std::optional<ColumnShape>& columns) {
  const auto sizes = row_sizes_of(input, normalised_dimensions);
  const std::size_t rows = sizes.rows, size = sizes.size;
  require_count(&gradient, rows * size);
  require_count(weight, size);
  for (const Tensor* of_rows : {mean, &reciprocal}) require_count(of_rows, rows);
  const ViewOf<Number> gradients(gradient), numbers(input), reciprocals(reciprocal);
  std::optional<ViewOf<Number>> means, weights;
  if (mean != nullptr) means.emplace(*mean);
  if (weight != nullptr) weights.emplace(*weight);
  const Tensor result = uninitialised_tensor(input.type, input.shape);
  const std::size_t grain = std::max<std::size_t>(1, (1 << 14) / std::max<std::size_t>(1, size));
  formats::parallel_for(rows, grain, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<Number> of_row(size);
    for (std::size_t r = begin; r < end; ++r) {
      const RowOfGradient<Number> row{gradients.part(r * size, size),
                                      numbers.part(r * size, size),
                                      {means ? (*means)[r] : 0, reciprocals[r]},
                                      weights ? weights->data() : nullptr};
      input_gradient_of(kind, row, of_row.data());
      write_elements(result, static_cast<std::int64_t>(r * size), of_row);
    }
  });
  RowNormGradients all{result, {}, {}, ""};
  const ColumnShape shape = columns ? *columns : column_shape(rows, size);
  all.plan = "128 threads a row, vectors of 4; " + shape.text();
  if (!wants_columns) return all;
  const ColumnGradients<Number> of_columns = column_gradients<Number>(
      shape, {gradients.all(), numbers.all(), reciprocals.all(),
              means ? means->all() : std::span<const Number>{}, rows, size, threads});
  const formats::Format& type = weight == nullptr ? input.type : weight->type;
  const Dimensions columns_shape(
      input.shape.end() - static_cast<std::ptrdiff_t>(normalised_dimensions), input.shape.end());
  const auto stored = [&](const std::vector<Number>& blocks) {
    if (shape.blocks == 1) return tensor_of_numbers(type, columns_shape, blocks);
    // Blocks store what they have in the tensor's type; a sum over them follows.
    const Dimensions of_blocks = {static_cast<std::int64_t>(shape.blocks),
                                  static_cast<std::int64_t>(size)};
    ReductionRequest over_blocks;
    over_blocks.dimensions = {0};
    over_blocks.threads = threads;
    Tensor of_all = sum(tensor_of_numbers(type, of_blocks, blocks), over_blocks).result;
    of_all.shape = columns_shape;
    of_all.stride = contiguous_stride(columns_shape);
    return of_all;
  };
  all.weight = stored(of_columns.weight);
  if (kind == RowNorm::layer) all.bias = stored(of_columns.bias);
  return all;
}

}  // namespace

RowNormResult row_norm(RowNorm kind, const Tensor& input, std::size_t normalised_dimensions,
                       const Tensor* weight, const Tensor* bias, double epsilon, int threads) {
  return input.type == formats::fp64 ? row_norm_in<double>(kind, input, normalised_dimensions,
                                                           weight, bias, epsilon, threads)
                                     : row_norm_in<float>(kind, input, normalised_dimensions,
                                                          weight, bias, epsilon, threads);
}

RowNormGradients row_norm_gradients(RowNorm kind, const Tensor& gradient, const Tensor& input,
                                    std::size_t normalised_dimensions, const Tensor* mean,
                                    const Tensor& reciprocal, const Tensor* weight,
                                    bool wants_columns, int threads,
                                    const std::optional<ColumnShape>& columns) {
  const auto in =
      input.type == formats::fp64 ? row_norm_gradients_in<double> : row_norm_gradients_in<float>;
  return in(kind, gradient, input, normalised_dimensions, mean, reciprocal, weight, wants_columns,
            threads, columns);
}

}  // namespace guardbit::emulator::operators
