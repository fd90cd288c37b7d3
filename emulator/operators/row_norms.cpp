#include "emulator/operators/row_norms.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
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

struct RowMoments {
  float mean = 0, reciprocal = 0;
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

Moments moments_of_block(std::span<const float> row) {
  std::vector<Moments> all(row_threads);
  for (std::size_t i = 0; i < row.size(); ++i)
    all[i % row_threads] = Welford::reduced(all[i % row_threads], row[i], 0);
  return two_stages(std::span(all), Moments{}, Welford::combined);
}

RowMoments moments_of(RowNorm kind, std::span<const float> row, bool in_vectors, float epsilon) {
  const auto size = static_cast<float>(row.size());
  if (in_vectors) {
    if (kind == RowNorm::rms)
      return {0, reciprocal_root_of(squares_of_vectors(row) / size + epsilon)};
    const Moments all = layer_moments_of_vectors(row);
    return {all.mean, reciprocal_root_of(all.squares / size + epsilon)};
  }
  const Moments all = moments_of_block(row);
  const float variance = all.squares / all.count;
  if (kind == RowNorm::layer) return {all.mean, reciprocal_root_of(variance + epsilon)};
  return {0, reciprocal_root_of(std::fma(all.mean, all.mean, variance) + epsilon)};
}

struct Affine {
  const float* weight = nullptr;
  const float* bias = nullptr;
};

template <RowNorm kind, bool has_weight, bool has_bias>
void normalise(std::span<const float> row, RowMoments moments, Affine affine, bool in_vectors,
               float* __restrict out) {
  const float mean = moments.mean, reciprocal = moments.reciprocal;
  const float *weight = affine.weight, *bias = affine.bias;
  constexpr bool is_layer = kind == RowNorm::layer;
  if (is_layer && !in_vectors) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      // An absent bias counts as 0; without a weight the first product is the fused one.
      const float shift = has_bias ? bias[i] : 0.0F, x = row[i] - mean;
      out[i] =
          has_weight ? std::fma(x * reciprocal, weight[i], shift) : std::fma(x, reciprocal, shift);
    }
    return;
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    const float x = is_layer ? row[i] - mean : row[i];
    const float scaled = x * reciprocal;
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

using Normalise = void (*)(std::span<const float>, RowMoments, Affine, bool, float*);
template <RowNorm kind>
Normalise normaliser(const Affine& affine) {
  const bool has_bias = affine.bias != nullptr;
  if (affine.weight == nullptr)
    return has_bias ? vectorised<normalise<kind, false, true>, std::span<const float>, RowMoments,
                                 Affine, bool, float*>
                    : vectorised<normalise<kind, false, false>, std::span<const float>, RowMoments,
                                 Affine, bool, float*>;
  return has_bias ? vectorised<normalise<kind, true, true>, std::span<const float>, RowMoments,
                               Affine, bool, float*>
                  : vectorised<normalise<kind, true, false>, std::span<const float>, RowMoments,
                               Affine, bool, float*>;
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

struct RowOfGradient {
  std::span<const float> gradient, row;
  RowMoments moments;
  const float* weight;
};

/// Each thread takes vectors of 4 elements, then those 512 on; of a row's end, single ones.
template <RowNorm kind, bool has_weight>
void input_gradient(const RowOfGradient& of, float* __restrict out) {
  const std::size_t size = of.row.size();
  const float *gradient = of.gradient.data(), *row = of.row.data(), *weight = of.weight;
  const float mean = of.moments.mean, reciprocal = of.moments.reciprocal;
  constexpr bool is_layer = kind == RowNorm::layer;
  std::array<float, vector_threads> first{}, second{};
  const auto add = [&](std::size_t i, float& sum, float& products) {
    const float scaled = has_weight ? gradient[i] * weight[i] : gradient[i];
    const float x = is_layer ? row[i] - mean : row[i];
    sum += scaled;
    products = std::fma(scaled * x, reciprocal, products);
  };
  for (std::size_t begin = 0; begin < size; begin += vector * vector_threads) {
    const std::size_t busy = std::min(vector_threads, (size - begin) / vector);
    for (std::size_t t = 0; t < busy; ++t) {
      float sum = first[t], products = second[t];
      for (std::size_t k = 0; k < vector; ++k) add(begin + t * vector + k, sum, products);
      first[t] = sum;
      second[t] = products;
    }
    if (busy == vector_threads) continue;
    for (std::size_t i = begin + busy * vector; i < size; ++i) add(i, first[busy], second[busy]);
  }
  const float sum = is_layer ? sum_of_two_stages(first) : 0;
  const float products = sum_of_two_stages(second);
  const auto count = static_cast<float>(size);
  const float factor = (1.0F / count) * reciprocal;
  for (std::size_t i = 0; i < size; ++i) {
    const float scale = has_weight ? count * weight[i] : count;
    if constexpr (is_layer) {
      const float normal = (row[i] - mean) * reciprocal;
      out[i] = (std::fma(scale, gradient[i], -(normal * products)) - sum) * factor;
    } else {
      out[i] = std::fma(scale, gradient[i], -(products * (reciprocal * row[i]))) * factor;
    }
  }
}

void input_gradient(RowNorm kind, const RowOfGradient& of, float* out) {
  if (kind == RowNorm::layer) {
    of.weight != nullptr ? vectorised<input_gradient<RowNorm::layer, true>>(of, out)
                         : vectorised<input_gradient<RowNorm::layer, false>>(of, out);
  } else {
    of.weight != nullptr ? vectorised<input_gradient<RowNorm::rms, true>>(of, out)
                         : vectorised<input_gradient<RowNorm::rms, false>>(of, out);
  }
}

struct ColumnOperands {
  std::span<const float> gradients, numbers, reciprocals, means;
  std::size_t rows, size;
  int threads;
};
/// Of each block of rows one after another.
struct ColumnGradients {
  std::vector<float> weight, bias;
};

/// Columns side by side, of each thread of a column.
struct ColumnSums {
  std::size_t begin, beside;
  std::span<float> of_weights, of_biases;
};

template <bool has_means>
void add_rows(const ColumnShape& shape, const ColumnOperands& operands, const ColumnSums& sums) {
  const std::size_t size = operands.size, own = shape.rows / shape.threads, beside = sums.beside;
  for (std::size_t r = 0; r < operands.rows; ++r) {
    const std::size_t block = r / shape.rows % shape.blocks;
    const std::size_t t = block * shape.threads + r % shape.rows / own;
    const float* __restrict gradient = operands.gradients.data() + r * size + sums.begin;
    const float* __restrict numbers = operands.numbers.data() + r * size + sums.begin;
    float* __restrict of_weights = sums.of_weights.data() + t * beside;
    float* __restrict of_biases = sums.of_biases.data() + t * beside;
    const float mean = has_means ? operands.means[r] : 0, reciprocal = operands.reciprocals[r];
    for (std::size_t c = 0; c < beside; ++c) {
      const float x = has_means ? numbers[c] - mean : numbers[c];
      of_weights[c] = std::fma(gradient[c] * x, reciprocal, of_weights[c]);
      of_biases[c] += gradient[c];
    }
  }
}

ColumnGradients column_gradients(const ColumnShape& shape, const ColumnOperands& operands) {
  const std::size_t size = operands.size;
  ColumnGradients all{std::vector<float>(shape.blocks * size),
                      std::vector<float>(shape.blocks * size)};
  // Many columns at once read memory in longer pieces; few where each has many partial sums.
  const std::size_t grain = shape.blocks > 1 ? 16 : 256;
  formats::parallel_for(size, grain, operands.threads, [&](std::size_t begin, std::size_t end) {
    const std::size_t beside = end - begin, chains = shape.blocks * shape.threads;
    std::vector<float> of_weights(chains * beside), of_biases(chains * beside);
    const ColumnSums sums{begin, beside, of_weights, of_biases};
    operands.means.empty() ? vectorised<add_rows<false>>(shape, operands, sums)
                           : vectorised<add_rows<true>>(shape, operands, sums);
    std::vector<float> column(shape.threads);
    const auto total = [&](const std::vector<float>& from, std::size_t block, std::size_t c) {
      for (std::size_t t = 0; t < shape.threads; ++t)
        column[t] = from[(block * shape.threads + t) * beside + c];
      return halved_sum(column);
    };
    for (std::size_t b = 0; b < shape.blocks; ++b) {
      for (std::size_t c = 0; c < beside; ++c) {
        all.weight[b * size + begin + c] = total(of_weights, b, c);
        all.bias[b * size + begin + c] = total(of_biases, b, c);
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

RowNormResult row_norm(RowNorm kind, const Tensor& input, std::size_t normalised_dimensions,
                       const Tensor* weight, const Tensor* bias, double epsilon, int threads) {
  const auto sizes = row_sizes_of(input, normalised_dimensions);
  const std::size_t rows = sizes.rows, size = sizes.size;
  for (const Tensor* of_columns : {weight, bias}) require_count(of_columns, size);
  constexpr std::size_t most_exact_count = std::size_t{1} << 24;
  const bool in_vectors = size % vector == 0 && size <= most_exact_count &&
                          starts_vectors(&input) && starts_vectors(weight) && starts_vectors(bias);
  const NumberView numbers(input);
  std::optional<NumberView> weights, biases;
  if (weight != nullptr) weights.emplace(*weight);
  if (bias != nullptr) biases.emplace(*bias);
  const Affine affine{weights ? weights->data() : nullptr, biases ? biases->data() : nullptr};
  const Normalise normalised = kind == RowNorm::layer ? normaliser<RowNorm::layer>(affine)
                                                      : normaliser<RowNorm::rms>(affine);
  const Tensor result = uninitialised_tensor(input.type, input.shape);
  std::vector<float> means(rows), reciprocals(rows);
  const std::size_t grain = std::max<std::size_t>(1, (1 << 14) / std::max<std::size_t>(1, size));
  formats::parallel_for(rows, grain, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<float> of_row(size);
    for (std::size_t r = begin; r < end; ++r) {
      const auto row = numbers.part(r * size, size);
      const RowMoments moments =
          vectorised<moments_of>(kind, row, in_vectors, static_cast<float>(epsilon));
      means[r] = moments.mean;
      reciprocals[r] = moments.reciprocal;
      normalised(row, moments, affine, in_vectors, of_row.data());
      write_numbers(input.type, static_cast<std::int64_t>(r * size), of_row, false,
                    writable_bytes(result));
    }
  });
  Dimensions of_rows = input.shape;
  std::fill(of_rows.end() - static_cast<std::ptrdiff_t>(normalised_dimensions), of_rows.end(), 1);
  return {result, tensor_of_numbers(formats::fp32, of_rows, means),
          tensor_of_numbers(formats::fp32, of_rows, reciprocals),
          in_vectors ? "128 threads a row, vectors of 4"
                     : "512 threads a row, single elements, moments by Welford"};
}

RowNormGradients row_norm_gradients(RowNorm kind, const Tensor& gradient, const Tensor& input,
                                    std::size_t normalised_dimensions, const Tensor* mean,
                                    const Tensor& reciprocal, const Tensor* weight,
                                    bool wants_columns, int threads,
                                    const std::optional<ColumnShape>& columns) {
  const auto sizes = row_sizes_of(input, normalised_dimensions);
  const std::size_t rows = sizes.rows, size = sizes.size;
  require_count(&gradient, rows * size);
  require_count(weight, size);
  for (const Tensor* of_rows : {mean, &reciprocal}) require_count(of_rows, rows);
  const NumberView gradients(gradient), numbers(input);
  const NumberView reciprocals(reciprocal);
  std::optional<NumberView> means, weights;
  if (mean != nullptr) means.emplace(*mean);
  if (weight != nullptr) weights.emplace(*weight);
  const Tensor result = uninitialised_tensor(input.type, input.shape);
  const std::size_t grain = std::max<std::size_t>(1, (1 << 14) / std::max<std::size_t>(1, size));
  formats::parallel_for(rows, grain, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<float> of_row(size);
    for (std::size_t r = begin; r < end; ++r) {
      input_gradient(kind,
                     {gradients.part(r * size, size),
                      numbers.part(r * size, size),
                      {means ? (*means)[r] : 0, reciprocals[r]},
                      weights ? weights->data() : nullptr},
                     of_row.data());
      write_numbers(input.type, static_cast<std::int64_t>(r * size), of_row, false,
                    writable_bytes(result));
    }
  });
  RowNormGradients all{result, {}, {}, ""};
  const ColumnShape shape = columns ? *columns : column_shape(rows, size);
  all.plan = "128 threads a row, vectors of 4; " + shape.text();
  if (!wants_columns) return all;
  const ColumnGradients of_columns = column_gradients(
      shape, {gradients.all(), numbers.all(), reciprocals.all(),
              means ? means->all() : std::span<const float>{}, rows, size, threads});
  const formats::Format& type = weight == nullptr ? input.type : weight->type;
  const Dimensions columns_shape(
      input.shape.end() - static_cast<std::ptrdiff_t>(normalised_dimensions), input.shape.end());
  const auto stored = [&](const std::vector<float>& blocks) {
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

}  // namespace guardbit::emulator::operators
