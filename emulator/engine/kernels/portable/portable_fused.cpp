#include "emulator/engine/kernels/portable/portable_fused.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "emulator/engine/kernels/portable/factors.hpp"
#include "emulator/engine/kernels/shared/block_sum.hpp"
#include "emulator/engine/kernels/shared/default_environment.hpp"
#include "emulator/model/dot.hpp"
#include "emulator/model/mma.hpp"

namespace guardbit::emulator::portable {

namespace {

// Vectors of the compiler's own (GCC, Clang): they become whatever the target CPU has.
using Exponents = std::int16_t __attribute__((vector_size(2 * lanes)));
using Values = float __attribute__((vector_size(2 * lanes)));
using Doubles = double __attribute__((vector_size(4 * lanes)));
using Integers = std::int32_t __attribute__((vector_size(2 * lanes)));
constexpr std::size_t half = lanes / 2;

template <class Vector, class Element>
Vector load(const Element* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

/// The block's width is a template argument so that the compiler unrolls it whole.
template <std::size_t Width>
int largest_product_exponent(const Line& a, const Line& b) {
  Exponents largest = load<Exponents>(a.exponents) + load<Exponents>(b.exponents);
  for (std::size_t i = lanes; i < Width; i += lanes) {
    const Exponents sum = load<Exponents>(a.exponents + i) + load<Exponents>(b.exponents + i);
    largest = sum > largest ? sum : largest;
  }
  const Exponents swapped = __builtin_shufflevector(largest, largest, 4, 5, 6, 7, 0, 1, 2, 3);
  largest = swapped > largest ? swapped : largest;
  const Exponents crossed = __builtin_shufflevector(largest, largest, 2, 3, 0, 1, 6, 7, 4, 5);
  largest = crossed > largest ? crossed : largest;
  return std::max(largest[0], largest[1]);
}

/// Exponents E between which FP32 holds every product that matters, and the scale 2^(F - E): below,
/// scales pass 2^127; above, a product can pass 2^128. A product too small for a normal FP32 is
/// then far below the grid, and its rounded value is too. FP64 holds every product and scale.
constexpr int lowest_scaled_exponent = -86;
constexpr int highest_scaled_exponent = 125;

float fp32_power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(127 + exponent) << 23);
}
double fp64_power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

/// The products cut to multiples of 1 / scale, added. FP32 multiplies two significands of at most
/// 24 bits in all and scales by a power of two without error; conversion to an integer truncates
/// the magnitude, which is the unit's alignment.
template <std::size_t Width, class Numbers, class Number>
std::int64_t aligned_products(const Line& a, const Line& b, Number scale) {
  Integers sums = {};
  for (std::size_t i = 0; i < Width; i += half) {
    const Numbers products = __builtin_convertvector(load<Values>(a.values + i), Numbers) *
                             __builtin_convertvector(load<Values>(b.values + i), Numbers) * scale;
    sums += __builtin_convertvector(products, Integers);
  }
  return (std::int64_t{sums[0]} + sums[1]) + (std::int64_t{sums[2]} + sums[3]);
}

/// A block with an infinity or a NaN among its factors or as its addend. FP32 multiplies those as
/// the unit does; finite products do not matter.
std::uint64_t special_block(const AccumulatorSpec& spec, const AccumulatorFormat& format,
                            const Line& a, const Line& b, std::size_t width, const Addend& addend,
                            bool addend_is_nan) {
  SpecialSum specials;
  if (addend.special)
    specials.include({addend_is_nan ? Kind::nan : Kind::infinity, addend.negative, 0, 0, false});
  for (std::size_t i = 0; i < width; ++i) {
    if (a.exponents[i] != special_exponent && b.exponents[i] != special_exponent) continue;
    const float product = a.values[i] * b.values[i];
    specials.include(
        {std::isnan(product) ? Kind::nan : Kind::infinity, std::signbit(product), 0, 0, false});
  }
  return encode_result(spec, format.format, specials.value());
}

// ---- Steps ----

bool is_fused_step(const MatrixInstruction& instruction, const Step& step, const Format& addend) {
  const AccumulatorSpec& x = step.spec;
  const bool plain = x.summation == Summation::fused && x.exact_group == 1 && x.terms > 0 &&
                     x.alignment == Rounding::toward_zero &&
                     (x.result == Rounding::toward_zero || x.result == Rounding::nearest_even) &&
                     x.input == Subnormals::keep && x.output == Subnormals::keep;
  const auto operand = [&](const Format& f) {
    const bool is_fp32_head = f == formats::tf32 && !step.widened;
    return f.encoding == formats::Encoding::floating && f.exponent_bits <= 8 &&
           (formats::bits(f) <= 16 || is_fp32_head);
  };
  const auto accumulator = [&](const Format& f) {
    return f.specials == formats::Specials::ieee && formats::bits(f) <= 32 && f.has_subnormals &&
           x.min_exponent < formats::min_exponent(f);
  };
  // A lane adds L / half terms below 2^(F + 2) into 32 bits.
  const int terms_per_lane = (x.terms + static_cast<int>(half) - 1) / static_cast<int>(half);
  const bool fits = x.kept_fraction_bits >= 0 && x.kept_fraction_bits + 2 <= 30 &&
                    (std::int64_t{terms_per_lane} << (x.kept_fraction_bits + 2)) <= INT32_MAX &&
                    x.terms <= widest_block;
  return plain && operand(instruction.a) && operand(instruction.b) &&
         formats::precision(instruction.a) + formats::precision(instruction.b) <= 24 &&
         accumulator(addend) && accumulator(step.result) && fits &&
         x.min_exponent > zero_exponent / 2;
}

/// A dot step: its blocks in order.
template <std::size_t Width>
std::uint64_t run_blocks(const AccumulatorSpec& spec, const Segment& segment, const Line& a,
                         const Line& b, std::uint64_t addend) {
  std::uint64_t result = addend;
  const AccumulatorFormat* format = &segment.addend;
  for (std::size_t block = 0; block < segment.blocks; ++block) {
    const Addend c = decode_addend(*format, result, spec.min_exponent);
    const Line a_block = a.from(segment.begin + block * Width);
    const Line b_block = b.from(segment.begin + block * Width);
    const int products = largest_product_exponent<Width>(a_block, b_block);
    const int largest = std::max(products, c.exponent);
    if (products > largest_finite_exponent || c.special) {
      const bool addend_is_nan = (result & format->magnitude) > format->infinity;
      result = special_block(spec, segment.result, a_block, b_block, Width, c, addend_is_nan);
      format = &segment.result;
      continue;
    }
    const int grid = largest - spec.kept_fraction_bits;
    std::int64_t sum = 0;
    if (products > zero_exponent / 2) {
      const bool is_small = largest < lowest_scaled_exponent;
      const bool is_large = largest > highest_scaled_exponent;
      sum = is_small || is_large
                ? aligned_products<Width, Doubles>(a_block, b_block, fp64_power_of_two(-grid))
                : aligned_products<Width, Values>(a_block, b_block, fp32_power_of_two(-grid));
    }
    const int down = grid - (c.exponent - format->format.fraction_bits);
    const std::uint64_t magnitude =
        down >= 0 ? c.magnitude >> std::min(63, down) : c.magnitude << -down;
    sum +=
        c.negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
    result = encode_sum(spec, segment.result, sum, grid);
    format = &segment.result;
  }
  return result;
}

/// False when the model has to decide, about blocks of another width.
bool run_dot_step(const AccumulatorSpec& spec, const Segment& segment, const Line& a, const Line& b,
                  std::uint64_t addend, std::uint64_t& result) {
  switch (segment.stride) {
    case 8: result = run_blocks<8>(spec, segment, a, b, addend); return true;
    case 16: result = run_blocks<16>(spec, segment, a, b, addend); return true;
    case 24: result = run_blocks<24>(spec, segment, a, b, addend); return true;
    case 32: result = run_blocks<32>(spec, segment, a, b, addend); return true;
    default: return false;
  }
}

/// One output element of an instruction of several steps. False when the model has to decide.
bool composed_element(const MatrixInstruction& instruction, const Layout& layout, const Line& a,
                      const Line& b, std::uint64_t c, std::uint64_t& d) {
  Registers registers{};
  const DotOperands operands{{}, {}, c};
  std::size_t index = 0;
  for (const Step& step : instruction.steps) {
    Register& result = registers[index];
    result.format = step.result;
    if (step.operation == Operation::dot) {
      const Register addend =
          read_source(step.addend, instruction, operands, registers, step.result);
      if (!run_dot_step(step.spec, layout.segments[index], a, b, addend.code, result.code))
        return false;
    } else {
      result.code = scalar_step(instruction, step, operands, registers);
    }
    ++index;
  }
  d = registers[index - 1].code;
  return true;
}

bool fused_element(const MatrixInstruction& instruction, const Layout& layout, const Line& a,
                   const Line& b, std::uint64_t c, std::uint64_t& d) {
  if (instruction.steps.count > 1) return composed_element(instruction, layout, a, b, c, d);
  return run_dot_step(instruction.steps.list[0].spec, layout.segments[0], a, b, c, d);
}

}  // namespace

bool is_fused_instruction(const MatrixInstruction& instruction) {
  if (instruction.scale.count != 0) return false;
  const Step* const first_dot =
      std::find_if(instruction.steps.begin(), instruction.steps.end(),
                   [](const Step& s) { return s.operation == Operation::dot; });
  return std::all_of(instruction.steps.begin(), instruction.steps.end(), [&](const Step& step) {
    return step.operation != Operation::dot ||
           (step.widened == first_dot->widened &&
            is_fused_step(instruction, step, source_format(instruction, step.addend, step.result)));
  });
}

void run_fused(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
               std::int64_t end) {
  const DefaultEnvironment environment;
  const Shape& shape = batch.shape;
  const bool sparse = instruction.sparsity.group_elements != 0;
  const int stored = stored_k(instruction, shape.k);
  const Layout layout = layout_of(instruction, stored);
  std::vector<int> every_k(static_cast<std::size_t>(shape.k));
  std::iota(every_k.begin(), every_k.end(), 0);
  Panel a(shape.m, layout.order.size());
  Panel b(shape.n, layout.order.size());
  Panel b_dense(sparse ? shape.n : 0, every_k.size());
  for (std::int64_t t = begin; t < end; ++t) {
    decode_a_lines(instruction, layout, batch, t, a);
    if (sparse) {
      decode_b_lines(instruction, layout, batch, t, every_k, b_dense);
    } else {
      decode_b_lines(instruction, layout, batch, t, layout.order, b);
    }
    for (int m = 0; m < shape.m; ++m) {
      const std::int64_t d_row = (t * shape.m + m) * shape.n;
      const Line a_line = line_of(a, m);
      if (sparse) pick_b_lines(instruction, layout, batch, (t * shape.m + m) * stored, b_dense, b);
      for (int n = 0; n < shape.n; ++n) {
        const std::uint64_t c = batch.modifiers.zero_addend ? 0 : batch.c[d_row + n];
        std::uint64_t d = 0;
        if (!fused_element(instruction, layout, a_line, line_of(b, n), c, d)) {
          d = dot(instruction, gather(instruction, batch, t, m, n).view());
        }
        batch.d.set(d_row + n, d);
      }
    }
  }
}

}  // namespace guardbit::emulator::portable
