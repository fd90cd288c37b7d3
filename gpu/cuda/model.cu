#include <cuda_runtime.h>

#include <algorithm>

#include "emulator/dot.hpp"
#include "emulator/kernels/block_sum.hpp"
#include "emulator/mma.hpp"
#include "formats/catalogue.hpp"
#include "formats/error.hpp"
#include "gpu/cuda/device.hpp"
#include "gpu/cuda/device_operands.cuh"
#include "gpu/cuda/model.hpp"
#include "gpu/words.hpp"

namespace guardbit::gpu {

namespace {

using namespace emulator;
using formats::Kind;

constexpr int threads_per_tile = 128;
constexpr int columns_per_tile = 64;

/// An operand in shared memory: for fused blocks and integers its signed significand and the
/// exponent that the unit aligns by, for FP64 its code.
struct Factor {
  std::int32_t significand;
  std::int32_t exponent;
};

/// The exponent of a zero never wins a maximum, that of an infinity or a NaN always does, even
/// beside a zero. A negative zero lies one below, for the chains, which see its sign. (That a zero
/// product then does not contribute e0 to E changes nothing: see emulator/kernels/factors.hpp.)
constexpr int zero_exponent = -(1 << 20);
constexpr int special_exponent = 1 << 24;
constexpr int largest_finite_exponent = 1 << 22;

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

/// The operands of an execution's tile: A in the order of the steps, B by k.
struct Tile {
  const Factor* a;            ///< [M][a_stride]
  const Factor* b;            ///< [K][columns]
  const std::uint16_t* k_of;  ///< [M][a_stride]: which k a position of A meets
  int a_stride, columns;
};

/// One output's line through the tile.
struct Line {
  const Factor* a;
  const Factor* b;
  const std::uint16_t* k_of;
  int columns;

  __device__ Factor left(int at) const { return a[at]; }
  __device__ Factor right(int at) const { return b[k_of[at] * columns]; }
};

__device__ std::uint64_t special_block(const AccumulatorSpec& spec, const AccumulatorFormat& result,
                                       const Line& line, int begin, int end, const Addend& addend,
                                       bool addend_is_nan) {
  SpecialSum specials;
  if (addend.special)
    specials.include({addend_is_nan ? Kind::nan : Kind::infinity, addend.negative, 0, 0, false});
  for (int at = begin; at < end; ++at) {
    const Factor x = line.left(at), y = line.right(at);
    if (x.exponent != special_exponent && y.exponent != special_exponent) continue;
    // A NaN and a zero have no sign here: either makes the product a NaN.
    const bool is_nan = x.significand == 0 || y.significand == 0;
    specials.include({is_nan ? Kind::nan : Kind::infinity,
                      (x.significand < 0) != (y.significand < 0), 0, 0, false});
  }
  return encode_result(spec, result.format, specials.value());
}

/// NUMERICS 1.1, with magnitudes in 64 bits: products below 2^2, cut to 2^-F, times L terms.
__device__ std::uint64_t fused_blocks(const AccumulatorSpec& spec, const Line& line, int begin,
                                      int end, int fraction_bits, AccumulatorFormat addend_format,
                                      const AccumulatorFormat& result, std::uint64_t code) {
  const int kept = spec.kept_fraction_bits;
  const int length = spec.terms == 0 ? end - begin : spec.terms;
  for (int first = begin; first < end; first += length) {
    const int last = min(first + length, end);
    int products = zero_exponent;
    for (int at = first; at < last; ++at)
      products = max(products, line.left(at).exponent + line.right(at).exponent);
    const Addend c = decode_addend(addend_format, code, spec.min_exponent);
    if (products > largest_finite_exponent || c.special) {
      const bool addend_is_nan = (code & addend_format.magnitude) > addend_format.infinity;
      code = special_block(spec, result, line, first, last, c, addend_is_nan);
    } else {
      const int largest = max(products, c.exponent);
      std::int64_t sum = 0;
      for (int at = first; at < last; ++at) {
        const Factor x = line.left(at), y = line.right(at);
        const int product = x.significand * y.significand;
        const int cut = min(largest - x.exponent - y.exponent, 63);
        const auto magnitude = static_cast<std::uint64_t>(static_cast<std::uint32_t>(abs(product)))
                               << (kept - fraction_bits);
        const auto term = static_cast<std::int64_t>(magnitude >> cut);
        sum += product < 0 ? -term : term;
      }
      const int down = largest - kept - (c.exponent - addend_format.format.fraction_bits);
      const std::uint64_t magnitude =
          down >= 0 ? c.magnitude >> min(63, down) : c.magnitude << -down;
      sum +=
          c.negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
      code = encode_sum(spec, result, sum, largest - kept);
    }
    addend_format = result;
  }
  return code;
}

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

__device__ std::uint64_t fp64_chain(const AccumulatorSpec& spec, const Line& line, int begin,
                                    int end, std::uint64_t code) {
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
__device__ std::uint64_t fp32_chain(const Line& line, int begin, int end, int a_fraction_bits,
                                    int b_fraction_bits, std::uint64_t code) {
  float sum = __int_as_float(static_cast<int>(code));
  for (int at = begin; at < end; ++at)
    sum = __fmaf_rn(fp32_of(line.left(at), a_fraction_bits),
                    fp32_of(line.right(at), b_fraction_bits), sum);
  return static_cast<std::uint32_t>(__float_as_int(sum));
}

__device__ std::uint64_t integer_total(const AccumulatorSpec& spec, const Line& line, int begin,
                                       int end, std::uint64_t code) {
  std::int64_t total = static_cast<std::int32_t>(code);
  for (int at = begin; at < end; ++at) {
    const int a = line.left(at).significand, b = line.right(at).significand;
    total += spec.product == Product::multiply  ? a * b
             : spec.product == Product::bit_and ? a & b
                                                : a ^ b;
  }
  if (spec.integer_overflow == IntegerOverflow::saturate)
    total = total > INT32_MAX ? INT32_MAX : total < INT32_MIN ? INT32_MIN : total;
  return static_cast<std::uint32_t>(total);
}

__device__ std::uint64_t dot_step(const MatrixInstruction& row, const Step& step, const Line& line,
                                  int begin, int end, const Register& addend) {
  const AccumulatorSpec& spec = step.spec;
  const Format a = operand_format(step, row.a), b = operand_format(step, row.b);
  switch (spec.summation) {
    case Summation::integer: return integer_total(spec, line, begin, end, addend.code);
    case Summation::fma_chain:
      if (formats::bits(step.result) == 64) return fp64_chain(spec, line, begin, end, addend.code);
      return fp32_chain(line, begin, end, a.fraction_bits, b.fraction_bits, addend.code);
    default:
      return fused_blocks(spec, line, begin, end, a.fraction_bits + b.fraction_bits,
                          {addend.format, spec}, {step.result, spec}, addend.code);
  }
}

__device__ std::uint64_t run_row(const ModelRow& model, const Line& line, std::uint64_t c) {
  const MatrixInstruction& row = model.row;
  const DotOperands operands{{}, {}, c};
  Registers registers{};
  for (int index = 0; index < row.steps.count; ++index) {
    const Step& step = row.steps.list[static_cast<std::size_t>(index)];
    const Register addend = read_source(step.addend, row, operands, registers, step.result);
    Register& result = registers[static_cast<std::size_t>(index)];
    result.format = step.result;
    if (step.operation == Operation::dot) {
      const int begin = model.begin[index];
      result.code = dot_step(row, step, line, begin, begin + model.count[index], addend);
    } else if (step.operation == Operation::convert) {
      result.code = encode_result(step.spec, step.result, read_exactly(addend));
    } else {
      const Register other = read_source(step.other, row, operands, registers, step.result);
      result.code = encode_result(step.spec, step.result,
                                  formats::add(read_exactly(addend), read_exactly(other)));
    }
  }
  return registers[static_cast<std::size_t>(row.steps.count - 1)].code;
}

__device__ int dense_k_of(const MatrixInstruction& row, const DeviceOperands& operands,
                          std::size_t a_index, int s) {
  if (row.sparsity.group_elements == 0) return s;
  return dense_k(row.sparsity, s, static_cast<int>(load_element(operands.e, a_index)));
}

__device__ std::uint64_t operand_code(const Format& f, std::uint64_t word, bool negate) {
  return negated(f, word >> ignored_bits(f), negate);
}

/// One block per execution and 64 columns.
__global__ void __launch_bounds__(threads_per_tile)
    model_kernel(const __grid_constant__ ModelRow model, DeviceOperands operands,
                 DeviceResults results, DeviceTally* tally, DeviceElements d) {
  extern __shared__ __align__(16) unsigned char shared[];
  const MatrixInstruction& row = model.row;
  const int m = row.shape.m, n = row.shape.n, k = row.shape.k, stored = stored_k(row, k);
  const std::int64_t t = blockIdx.x;
  const int first_column = static_cast<int>(blockIdx.y) * columns_per_tile;
  const int columns = min(columns_per_tile, n - first_column);
  const int a_stride = model.ordered + 1;  // odd multiples of eight bytes: no bank conflicts
  auto* const a = reinterpret_cast<Factor*>(shared);
  Factor* const b = a + m * a_stride;
  auto* const k_of = reinterpret_cast<std::uint16_t*>(b + k * columns);
  const Step* const first_dot =
      std::find_if(row.steps.begin(), row.steps.end(),
                   [](const Step& step) { return step.operation == Operation::dot; });
  for (int x = static_cast<int>(threadIdx.x); x < m * model.ordered; x += threads_per_tile) {
    const int i = x / model.ordered, at = x % model.ordered, s = model.order[at];
    const std::size_t index = (static_cast<std::size_t>(t) * m + i) * stored + s;
    a[i * a_stride + at] =
        make_factor(*first_dot, row.a,
                    operand_code(row.a, load_element(operands.a, index), model.modifiers.negate_a));
    k_of[i * a_stride + at] = static_cast<std::uint16_t>(dense_k_of(row, operands, index, s));
  }
  for (int x = static_cast<int>(threadIdx.x); x < k * columns; x += threads_per_tile) {
    const int at = x / columns, j = x % columns;
    const std::size_t index = (static_cast<std::size_t>(t) * k + at) * n + first_column + j;
    b[x] =
        make_factor(*first_dot, row.b,
                    operand_code(row.b, load_element(operands.b, index), model.modifiers.negate_b));
  }
  __syncthreads();
  const int outputs = m * columns;
  for (int base = 0; base < outputs; base += threads_per_tile) {
    const int output = base + static_cast<int>(threadIdx.x);
    const bool counted = output < outputs;
    bool mismatch = false;
    std::size_t index = 0;
    if (counted) {
      const int i = output / columns, j = output % columns;
      const int place = i * n + first_column + j;
      index = static_cast<std::size_t>(t) * m * n + place;
      const std::uint64_t c = model.modifiers.zero_addend ? 0 : load_element(operands.c, index);
      const std::uint64_t code =
          run_row(model, {a + i * a_stride, b + j, k_of + i * a_stride, columns}, c);
      if (d.data != nullptr) store_element(d, index, code);
      if (results.images != nullptr)
        mismatch = load_result(results, formats::bits(row.d), t, place, m * n) != code;
    }
    if (tally != nullptr) add_verdict(tally, counted, mismatch, index);
  }
}

/// emulator::dot itself, one thread per output.
template <std::size_t Capacity>
__global__ void __launch_bounds__(threads_per_tile)
    reference_kernel(const __grid_constant__ ModelRow model, DeviceOperands operands,
                     DeviceResults results, DeviceTally* tally, DeviceElements d) {
  const MatrixInstruction& row = model.row;
  const int m = row.shape.m, n = row.shape.n, k = row.shape.k, stored = stored_k(row, k);
  const std::int64_t total = operands.executions * m * n;
  const std::int64_t index = std::int64_t{blockIdx.x} * threads_per_tile + threadIdx.x;
  const bool counted = index < total;
  bool mismatch = false;
  if (counted) {
    const std::int64_t t = index / (m * n);
    const int place = static_cast<int>(index % (m * n)), i = place / n, j = place % n;
    std::uint64_t a[Capacity], b[Capacity];
    for (int s = 0; s < stored; ++s) {
      const std::size_t a_index = (static_cast<std::size_t>(t) * m + i) * stored + s;
      const int at = dense_k_of(row, operands, a_index, s);
      const std::size_t b_index = (static_cast<std::size_t>(t) * k + at) * n + j;
      a[s] = operand_code(row.a, load_element(operands.a, a_index), model.modifiers.negate_a);
      b[s] = operand_code(row.b, load_element(operands.b, b_index), model.modifiers.negate_b);
    }
    const auto count = static_cast<std::size_t>(stored);
    const std::uint64_t c =
        model.modifiers.zero_addend ? 0 : load_element(operands.c, static_cast<std::size_t>(index));
    const std::uint64_t code = dot<Capacity>(row, {{a, count}, {b, count}, c});
    if (d.data != nullptr) store_element(d, static_cast<std::size_t>(index), code);
    if (results.images != nullptr)
      mismatch = load_result(results, formats::bits(row.d), t, place, m * n) != code;
  }
  if (tally != nullptr)
    add_verdict(tally, counted, mismatch, static_cast<unsigned long long>(index));
}

bool step_accepted(const MatrixInstruction& row, const Step& step) {
  const AccumulatorSpec& spec = step.spec;
  const Format& a = operand_format(step, row.a);
  const Format& b = operand_format(step, row.b);
  if (step.operation != Operation::dot) return true;
  switch (spec.summation) {
    case Summation::integer:
      return row.steps.count == 1 && row.d == formats::int32 && spec.terms == 0 &&
             formats::bits(row.a) <= 8 && formats::bits(row.b) <= 8;
    case Summation::fma_chain:
      if (step.result == formats::fp64)
        return row.a == formats::fp64 && row.b == formats::fp64 &&
               spec.nan == NanPolicy::operand_bca && spec.output == Subnormals::keep;
      return step.result == formats::fp32 && formats::bits(a) <= 16 && formats::bits(b) <= 16 &&
             spec.result == Rounding::nearest_even && spec.nan == NanPolicy::all_ones &&
             spec.input == Subnormals::keep && spec.output == Subnormals::keep &&
             (step.addend != Source::c || row.c == formats::fp32);
    case Summation::fused: break;
    default: return false;
  }
  const int fraction_bits = a.fraction_bits + b.fraction_bits;
  return row.scale.count == 0 && spec.exact_group == 1 && spec.alignment == Rounding::toward_zero &&
         spec.kept_fraction_bits >= fraction_bits && spec.kept_fraction_bits <= 40 &&
         formats::precision(a) + formats::precision(b) <= 30 &&
         (spec.result == Rounding::toward_zero || spec.result == Rounding::nearest_even) &&
         spec.input == Subnormals::keep && spec.output == Subnormals::keep &&
         step.result.specials == formats::Specials::ieee && formats::bits(step.result) <= 32;
}

template <class Kernel>
void launch(Kernel kernel, dim3 grid, int shared_bytes, const ModelRow& row,
            const DeviceOperands& operands, const DeviceResults& results, DeviceTally* tally,
            const DeviceElements& d) {
  const std::string_view name = row.row.name;
  if (shared_bytes > 48 * 1024)
    check_cuda(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        name);
  kernel<<<grid, threads_per_tile, static_cast<std::size_t>(shared_bytes)>>>(row, operands, results,
                                                                             tally, d);
  check_cuda(cudaGetLastError(), name);
}

}  // namespace

bool model_accepts(const MatrixInstruction& row) {
  const Step* first_dot = nullptr;
  for (const Step& step : row.steps) {
    if (!step_accepted(row, step)) return false;
    if (step.operation != Operation::dot) continue;
    if (first_dot != nullptr && first_dot->widened != step.widened) return false;
    if (first_dot == nullptr) first_dot = &step;
  }
  return first_dot != nullptr;
}

ModelRow model_row(const MatrixInstruction& row, const Modifiers& modifiers) {
  ModelRow model;
  model.row = row;
  model.modifiers = modifiers;
  const int stored = stored_k(row, row.shape.k);
  int index = 0;
  for (const Step& step : row.steps) {
    model.begin[index] = model.ordered;
    if (step.operation == Operation::dot) {
      for (int s = 0; s < stored; ++s)
        if (step.selection.contains(s)) model.order[model.ordered++] = static_cast<std::uint8_t>(s);
    }
    model.count[index] = model.ordered - model.begin[index];
    ++index;
  }
  return model;
}

void run_model(const ModelRow& row, const DeviceOperands& operands, const DeviceResults& results,
               DeviceTally* tally, const DeviceElements& d) {
  const Shape& shape = row.row.shape;
  const int columns = std::min(columns_per_tile, shape.n);
  const int a_stride = row.ordered + 1;
  const int shared_bytes =
      static_cast<int>(sizeof(Factor)) * (shape.m * a_stride + shape.k * columns) +
      static_cast<int>(sizeof(std::uint16_t)) * shape.m * a_stride;
  const dim3 grid(static_cast<unsigned>(operands.executions),
                  static_cast<unsigned>((shape.n + columns_per_tile - 1) / columns_per_tile));
  launch(model_kernel, grid, shared_bytes, row, operands, results, tally, d);
}

void run_reference(const ModelRow& row, const DeviceOperands& operands,
                   const DeviceResults& results, DeviceTally* tally, const DeviceElements& d) {
  const Shape& shape = row.row.shape;
  const std::int64_t total = operands.executions * shape.m * shape.n;
  const dim3 grid(static_cast<unsigned>((total + threads_per_tile - 1) / threads_per_tile));
  const int stored = stored_k(row.row, shape.k);
  if (stored <= 16) return launch(reference_kernel<16>, grid, 0, row, operands, results, tally, d);
  if (stored <= 64) return launch(reference_kernel<64>, grid, 0, row, operands, results, tally, d);
  launch(reference_kernel<max_k>, grid, 0, row, operands, results, tally, d);
}

}  // namespace guardbit::gpu
