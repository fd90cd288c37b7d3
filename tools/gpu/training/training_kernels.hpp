#pragma once

#include <cstdint>

#include "experiments/training/layout.hpp"
#include "experiments/training/training_arithmetic.hpp"

// The operations of a training step on the device. Host functions that launch kernels over device
// memory; what they compute element by element is experiments/training/training_arithmetic.hpp.
// Tensors are FP32 arrays that hold numbers of their format, dense and row-major.
namespace guardbit::tools::training {

namespace layout = experiments::training;

/// Formats that tensors are rounded into: to nearest even, overflow to infinity.
enum class NumberFormat : std::uint8_t { fp32, tf32, bf16, fp16 };

/// The instructions that multiply, all of `mma.sync` with FP32 sums: m16n8k16 of FP16 and BF16,
/// m16n8k8 of TF32.
enum class MatrixUnit : std::uint8_t { fp16, bf16, tf32 };

/// One operand of a product: lines (rows of A, columns of B) of k numbers of the unit's format,
/// which are elements of an array.
struct OperandView {
  enum class Kind : std::uint8_t {
    /// (line, k) is array[line * stride + k]
    rows,
    /// array[k * stride + line]
    columns,
    /// the windows' matrix, a line for each of its rows
    windows,
    /// the same, a line for each of its columns
    windows_columns,
    /// the turned filters' matrix
    turned_filters,
  };
  const float* values = nullptr;
  Kind kind = Kind::rows;
  std::int64_t lines = 0, k = 0, stride = 0;
  layout::Windows windows = {};
  layout::TurnedFilters filters = {};
};

/// D [a.lines, b.lines] = A B by one chain of instructions, ascending in K, from zeros; K is filled
/// up with zeros to whole instructions.
void multiply(MatrixUnit unit, const OperandView& a, const OperandView& b, float* d);

/// to[i] = from[i], rounded into the format.
void round_into(NumberFormat format, const float* from, float* to, std::int64_t count);
/// d[i, j] + bias[j], rounded into the format, in place.
void add_bias(NumberFormat format, float* d, const float* bias, std::int64_t rows,
              std::int64_t columns);
/// Sums over the rows, in runs, rounded into the format. `parts` has room for a row of each run.
void sum_rows(NumberFormat format, const float* from, float* parts, float* sums, std::int64_t rows,
              std::int64_t columns);

void relu(const float* x, float* y, std::int64_t count);
void relu_gradient(const float* y, const float* gradient, float* dx, std::int64_t count);
/// `chosen` gets y * size + x of each maximum.
void max_pool(const layout::Pooling& pooling, const float* x, float* y, std::int32_t* chosen);
/// dx is all zeros before.
void max_pool_gradient(const layout::Pooling& pooling, const float* gradient,
                       const std::int32_t* chosen, float* dx);

/// The mean loss of logits [rows, classes] into *loss, and the gradient by the logits times
/// loss_scale, rounded into the logits' format. `losses` and `exponentials` are room for a number
/// of each row and of each logit.
void cross_entropy(NumberFormat format, const float* logits, const std::int32_t* labels,
                   std::int64_t rows, std::int64_t classes, float loss_scale, float* exponentials,
                   float* losses, float* gradient, float* loss);

/// Sets *found where any number is infinite or NaN.
void find_overflow(const float* values, std::int64_t count, std::uint32_t* found);

/// Weights move by their gradients times inverse_scale.
void move_by_sgd(const experiments::training::SgdStep& step, float* weights, const float* gradient,
                 float* momentum, float inverse_scale, std::int64_t count);
void move_by_adam(const experiments::training::AdamStep& step, float* weights,
                  const float* gradient, float* first, float* second, float inverse_scale,
                  std::int64_t count);

}  // namespace guardbit::tools::training
