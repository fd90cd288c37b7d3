#include <algorithm>
#include <type_traits>

#include "emulator/model/dot.hpp"
#include "formats/format_catalogue.hpp"
#include "gpu/cuda/model/fused_model.hpp"
#include "gpu/cuda/model/model_launch.cuh"

namespace guardbit::gpu {

namespace {

using formats::Kind;

/// An operand in shared memory: a number of few bits as its signed significand and the exponent of
/// its leading bit's place, an FP64 as its code.
struct Factor {
  std::int32_t significand;
  std::int32_t exponent;
};

/// The exponent of a zero never wins a maximum, that of an infinity or a NaN always does, even
/// beside a zero. A negative zero lies one below: the chains see its sign.
constexpr int zero_exponent = -(1 << 20);
constexpr int special_exponent = 1 << 24;

__device__ Factor make_factor(const Step& step, const Format& stored, std::uint64_t code) {
  if (formats::bits(stored) == 64)
    return {static_cast<std::int32_t>(code), static_cast<std::int32_t>(code >> 32)};
  const Value v = decode_operand(step, stored, code);
  const auto significand = static_cast<std::int32_t>(v.significand);
  const std::int32_t sign = v.negative ? -1 : 1;
  switch (v.kind) {
    case Kind::zero: return {0, zero_exponent - (v.negative ? 1 : 0)};
    case Kind::infinity: return {sign, special_exponent};
    case Kind::nan: return {0, special_exponent};
    case Kind::finite: break;
  }
  return {sign * significand, aligned_exponent(v, operand_format(step, stored))};
}

__device__ double fp64_of(const Factor& x) { return __hiloint2double(x.exponent, x.significand); }

/// One output's line through the tile. A sparse A says itself which k its positions meet.
template <bool Sparse>
struct Line {
  const Factor* a;
  const Factor* b;
  const std::uint16_t* k_of;
  int columns;

  __device__ Factor left(int at) const { return a[at]; }
  __device__ Factor right(int at) const { return b[(Sparse ? k_of[at] : at) * columns]; }
};

__device__ float fp32_of(const Factor& x, int fraction_bits) {
  if (x.exponent == special_exponent)
    return x.significand == 0 ? __int_as_float(0x7FFFFFFF)
                              : (x.significand < 0 ? -INFINITY : INFINITY);
  if (x.significand == 0) return x.exponent == zero_exponent ? 0.0F : -0.0F;
  return ldexpf(static_cast<float>(x.significand), x.exponent - fraction_bits);
}

__device__ double fp64_fma(Rounding rounding, double a, double b, double c) {
  switch (rounding) {
    case Rounding::toward_zero: return __fma_rz(a, b, c);
    case Rounding::upward: return __fma_ru(a, b, c);
    case Rounding::downward: return __fma_rd(a, b, c);
    default: return __fma_rn(a, b, c);
  }
}

__device__ std::uint64_t fp64_bits(double x) {
  return static_cast<std::uint64_t>(__double_as_longlong(x));
}

template <bool Sparse>
__device__ std::uint64_t fp64_chain(const AccumulatorSpec& spec, const Line<Sparse>& line,
                                    int begin, int end, std::uint64_t code) {
  for (int at = begin; at < end; ++at) {
    const double a = fp64_of(line.left(at)), b = fp64_of(line.right(at)),
                 c = __longlong_as_double(static_cast<long long>(code));
    const double next = fp64_fma(spec.result, a, b, c);
    code = fp64_bits(next);
    if (next == next) continue;
    constexpr std::uint64_t quiet = formats::quiet_bit;
    code = 0xFFF8000000000000ULL;
    if (a != a) code = fp64_bits(a) | quiet;
    if (c != c) code = fp64_bits(c) | quiet;
    if (b != b) code = fp64_bits(b) | quiet;
  }
  return code;
}

/// A chain of FP32 fused multiply-adds on products of 16-bit operands.
template <bool Sparse>
__device__ std::uint64_t fp32_chain(const Line<Sparse>& line, int begin, int end,
                                    int a_fraction_bits, int b_fraction_bits, std::uint64_t code) {
  float sum = __int_as_float(static_cast<int>(code));
  for (int at = begin; at < end; ++at)
    sum = __fmaf_rn(fp32_of(line.left(at), a_fraction_bits),
                    fp32_of(line.right(at), b_fraction_bits), sum);
  return static_cast<std::uint32_t>(__float_as_int(sum));
}

template <bool Sparse>
__device__ std::uint64_t integer_total(const AccumulatorSpec& spec, const Line<Sparse>& line,
                                       int begin, int end, std::uint64_t code) {
  std::int32_t products = 0;  // at most 256 of at most 2^16
  for (int at = begin; at < end; ++at) {
    const std::int32_t a = line.left(at).significand, b = line.right(at).significand;
    if (spec.product == Product::multiply) products += a * b;
    if (spec.product == Product::bit_and) products += __popc(static_cast<unsigned>(a & b));
    if (spec.product == Product::bit_xor) products += __popc(static_cast<unsigned>(a ^ b));
  }
  std::int64_t total = std::int64_t{static_cast<std::int32_t>(code)} + products;
  if (spec.integer_overflow == IntegerOverflow::saturate)
    total = total > INT32_MAX ? INT32_MAX : total < INT32_MIN ? INT32_MIN : total;
  return static_cast<std::uint32_t>(total);
}

template <bool Sparse>
__device__ std::uint64_t dot_step(const MatrixInstruction& instruction, const Step& step,
                                  const Line<Sparse>& line, int begin, int end,
                                  const Register& addend) {
  const AccumulatorSpec& spec = step.spec;
  const Format a = operand_format(step, instruction.a), b = operand_format(step, instruction.b);
  switch (spec.summation) {
    case Summation::integer: return integer_total(spec, line, begin, end, addend.code);
    case Summation::fma_chain:
      if (formats::bits(step.result) == 64) return fp64_chain(spec, line, begin, end, addend.code);
      return fp32_chain(line, begin, end, a.fraction_bits, b.fraction_bits, addend.code);
    default: return 0;  // not accepted
  }
}

template <bool Sparse>
__device__ std::uint64_t run_instruction(const ModelInstruction& model, const Line<Sparse>& line,
                                         std::uint64_t c) {
  const MatrixInstruction& instruction = model.instruction;
  const DotOperands operands{{}, {}, c};
  Registers registers{};
  for (int index = 0; index < instruction.steps.count; ++index) {
    const Step& step = instruction.steps.list[static_cast<std::size_t>(index)];
    Register& result = registers[static_cast<std::size_t>(index)];
    result.format = step.result;
    if (step.operation == Operation::dot) {
      const Register addend =
          read_source(step.addend, instruction, operands, registers, step.result);
      const int begin = model.begin[index];
      result.code = dot_step(instruction, step, line, begin, begin + model.count[index], addend);
    } else {
      result.code = scalar_step(instruction, step, operands, registers);
    }
  }
  return registers[static_cast<std::size_t>(instruction.steps.count - 1)].code;
}

/// Sixty-four columns or fewer of one execution, decoded.
template <bool Sparse>
struct Tile {
  /// [M][a_stride], in the order of the steps
  Factor* a;
  /// [rows][columns]: by position as A, or by k where A is sparse
  Factor* b;
  /// [M][a_stride] of a sparse A
  std::uint16_t* k_of;
  int a_stride, rows, first_column, columns;

  __device__ Line<Sparse> line(int i, int j) const {
    return {a + i * a_stride, b + j, k_of + i * a_stride, columns};
  }
};

/// The factor at position `at` of a line whose element k is `element(k)`: one element, or 32 single
/// bits.
template <class Element>
__device__ Factor factor_at(const ModelInstruction& model, const Step& step, const Format& f,
                            bool negate, int at, Element element) {
  if (!model.packed_bits)
    return make_factor(step, f, operand_code(f, element(model.order[at]), negate));
  std::uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) bits |= static_cast<std::uint32_t>(element(32 * at + i)) << i;
  return {static_cast<std::int32_t>(bits), 0};
}

template <bool Sparse>
__device__ void decode_tile(const ModelInstruction& model, const DeviceOperands& operands,
                            std::int64_t t, const Tile<Sparse>& tile) {
  const MatrixInstruction& instruction = model.instruction;
  const int stored = stored_k(instruction, instruction.shape.k);
  const Step& step = instruction.steps.list[static_cast<std::size_t>(model.first_dot)];
  const int me = static_cast<int>(threadIdx.x);
  for (int x = me; x < instruction.shape.m * model.ordered; x += threads_per_tile) {
    const int i = x / model.ordered, at = x % model.ordered;
    const std::size_t line = (static_cast<std::size_t>(t) * instruction.shape.m + i) * stored;
    tile.a[i * tile.a_stride + at] =
        factor_at(model, step, instruction.a, model.modifiers.negate_a, at,
                  [&](int s) { return load_element(operands.a, line + s); });
    if constexpr (Sparse)
      tile.k_of[i * tile.a_stride + at] = static_cast<std::uint16_t>(
          dense_k_of(instruction, operands, line + model.order[at], model.order[at]));
  }
  for (int x = me; x < tile.rows * tile.columns; x += threads_per_tile) {
    const int at = x / tile.columns;
    const std::size_t column =
        static_cast<std::size_t>(t) * instruction.shape.k * instruction.shape.n +
        tile.first_column + x % tile.columns;
    const auto element = [&](int k) {
      return load_element(operands.b, column + static_cast<std::size_t>(k) * instruction.shape.n);
    };
    if constexpr (Sparse) {
      tile.b[x] = make_factor(step, instruction.b,
                              operand_code(instruction.b, element(at), model.modifiers.negate_b));
    } else {
      tile.b[x] = factor_at(model, step, instruction.b, model.modifiers.negate_b, at, element);
    }
  }
}

/// One block per execution and 64 columns.
template <bool Sparse>
__global__ void __launch_bounds__(threads_per_tile)
    model_kernel(const __grid_constant__ ModelInstruction model, DeviceOperands operands,
                 DeviceResults results, DeviceTally* tally, DeviceElements d) {
  extern __shared__ __align__(16) unsigned char shared[];
  const Shape& shape = model.instruction.shape;
  const std::int64_t t = blockIdx.x;
  Tile<Sparse> tile{};
  tile.first_column = static_cast<int>(blockIdx.y) * columns_per_tile;
  tile.columns = min(columns_per_tile, shape.n - tile.first_column);
  tile.rows = Sparse ? shape.k : model.ordered;
  tile.a_stride = model.ordered | 1;  // an odd number of eight bytes: no bank conflicts
  tile.a = reinterpret_cast<Factor*>(shared);
  tile.b = tile.a + shape.m * tile.a_stride;
  tile.k_of = reinterpret_cast<std::uint16_t*>(tile.b + tile.rows * tile.columns);
  decode_tile(model, operands, t, tile);
  __syncthreads();
  const int outputs = shape.m * tile.columns;
  Verdicts verdicts;
  for (int output = static_cast<int>(threadIdx.x); output < outputs; output += threads_per_tile) {
    const int i = output / tile.columns, j = output % tile.columns;
    const int place = i * shape.n + tile.first_column + j;
    const std::size_t index = static_cast<std::size_t>(t) * shape.m * shape.n + place;
    const std::uint64_t c = model.modifiers.zero_addend ? 0 : load_element(operands.c, index);
    const std::uint64_t code = run_instruction(model, tile.line(i, j), c);
    if (d.data != nullptr) store_element(d, index, code);
    if (results.images != nullptr)
      verdicts.add(load_result(results, formats::bits(model.instruction.d), t, place,
                               shape.m * shape.n) != code,
                   index);
  }
  if (tally != nullptr) verdicts.report(tally);
}

bool step_accepted(const MatrixInstruction& instruction, const Step& step) {
  const AccumulatorSpec& spec = step.spec;
  const Format& a = operand_format(step, instruction.a);
  const Format& b = operand_format(step, instruction.b);
  if (step.operation != Operation::dot) return true;
  switch (spec.summation) {
    case Summation::integer:
      return instruction.steps.count == 1 && instruction.d == formats::int32 && spec.terms == 0 &&
             formats::bits(instruction.a) <= 8 && formats::bits(instruction.b) <= 8;
    case Summation::fma_chain:
      if (step.result == formats::fp64)
        return instruction.a == formats::fp64 && instruction.b == formats::fp64 &&
               spec.nan == NanPolicy::operand_bca && spec.output == Subnormals::keep;
      return step.result == formats::fp32 && formats::bits(a) <= 16 && formats::bits(b) <= 16 &&
             spec.result == Rounding::nearest_even && spec.nan == NanPolicy::all_ones &&
             spec.input == Subnormals::keep && spec.output == Subnormals::keep &&
             (step.addend != Source::c || instruction.c == formats::fp32);
    default: return false;
  }
}

/// Is every dot step of the instruction a chain or an integer sum that the kernel below takes?
bool chain_accepts(const MatrixInstruction& instruction) {
  const Step* first_dot = nullptr;
  for (const Step& step : instruction.steps) {
    if (!step_accepted(instruction, step)) return false;
    if (step.operation != Operation::dot) continue;
    if (first_dot != nullptr && first_dot->widened != step.widened) return false;
    if (first_dot == nullptr) first_dot = &step;
  }
  return first_dot != nullptr;
}

}  // namespace

bool model_accepts(const MatrixInstruction& instruction) {
  return fused_accepts(instruction) || chain_accepts(instruction);
}

ModelInstruction model_instruction(const MatrixInstruction& instruction,
                                   const Modifiers& modifiers) {
  ModelInstruction model;
  model.instruction = instruction;
  model.modifiers = modifiers;
  const int stored = stored_k(instruction, instruction.shape.k);
  model.packed_bits = instruction.a == formats::b1;
  int index = 0;
  bool has_dot = false;
  for (const Step& step : instruction.steps) {
    model.begin[index] = model.ordered;
    if (step.operation == Operation::dot) {
      if (!has_dot) model.first_dot = index;
      has_dot = true;
      if (model.packed_bits) model.ordered += stored / 32;
      for (int s = 0; s < stored && !model.packed_bits; ++s)
        if (step.selection.contains(s)) model.order[model.ordered++] = static_cast<std::uint8_t>(s);
    }
    model.count[index] = model.ordered - model.begin[index];
    ++index;
  }
  return model;
}

void run_model(const ModelInstruction& model, const DeviceOperands& operands,
               const DeviceResults& results, DeviceTally* tally, const DeviceElements& d) {
  if (fused_accepts(model.instruction)) {
    run_fused_model(fused_instruction(model), operands, results, tally, d);
    return;
  }
  const Shape& shape = model.instruction.shape;
  const int columns = std::min(columns_per_tile, shape.n);
  const int a_stride = model.ordered | 1;
  const bool sparse = model.instruction.sparsity.group_elements != 0;
  const int rows = sparse ? shape.k : model.ordered;
  const int shared_bytes =
      static_cast<int>(sizeof(Factor)) * (shape.m * a_stride + rows * columns) +
      (sparse ? static_cast<int>(sizeof(std::uint16_t)) * shape.m * a_stride : 0);
  launch(model, sparse ? model_kernel<true> : model_kernel<false>, tile_grid(shape, operands),
         shared_bytes, model, operands, results, tally, d);
}

}  // namespace guardbit::gpu
