#pragma once

// How a matrix unit computes one output element. This page is the model: plain integer code that
// reads an instruction of the catalogue. Everything faster is tested against it.
//
// An instruction is a list of steps (run_steps); nearly all have one, a dot product. A dot product
// is a chain of blocks of L products, lower k first, each block's result being the next one's
// addend (for_each_block). A block is summed as its AccumulatorSpec says; on NVIDIA's units, by
// fused_block.

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/model/block.hpp"
#include "emulator/model/instruction.hpp"
#include "emulator/model/result.hpp"
#include "emulator/model/summations.hpp"
#include "emulator/model/terms.hpp"
#include "formats/codec.hpp"

namespace guardbit::emulator {

/// The operands of one dot product as codes: K of a and b, one addend, and scale factors spread
/// evenly over K.
struct DotOperands {
  std::span<const std::uint64_t> a, b;
  std::uint64_t c = 0;
  std::span<const std::uint64_t> a_scale{}, b_scale{};
};

/// NVIDIA: align every product and the addend to the largest exponent, cut, add, convert once.
constexpr std::uint64_t fused_block(const Block& block) {
  if (const SpecialSum specials = special_sum(block); specials.any()) {
    return encode_result(block.spec, block.result_format, specials.value());
  }
  const int grid = largest_exponent(block) - block.spec.kept_fraction_bits;
  std::int64_t sum = 0;
  for_each_term(block, [&](const Term& t) { sum += align(t, grid, block.spec.alignment); });
  return encode_result(block.spec, block.result_format, fixed_point(sum, grid));
}

constexpr std::uint64_t accumulate_block(const Block& block) {
  switch (block.spec.summation) {
    case Summation::fused: return fused_block(block);
    case Summation::exact: return exact_block(block);
    case Summation::fma_chain: return fma_chain(block);
    case Summation::pairwise: return pairwise_block(block);
    case Summation::two_stage: return two_stage_block(block);
    case Summation::two_grids: return two_grids_block(block);
    case Summation::integer:
      return integer_dot(block.spec, block.a, block.b, block.addend, block.result_format);
  }
  return 0;
}

/// A number as another format holds it. Not inlined, as encode_result.
[[gnu::noinline]] constexpr Value widened(const Format& f, const Value& v) {
  return formats::decode(f, formats::encode(f, v));
}

/// Decodes an operand and widens it (exactly) to the format the step multiplies in.
constexpr Value decode_operand(const Step& step, const Format& f, std::uint64_t code) {
  const Value v = decode_input(step.spec, f, code);
  return step.widened ? widened(*step.widened, v) : v;
}

constexpr const Format& operand_format(const Step& step, const Format& stored) {
  return step.widened ? *step.widened : stored;
}

/// The products a step selects, decoded once; at most `Capacity`.
template <std::size_t Capacity>
struct SelectedOperands {
  std::array<Value, Capacity> a, b, a_scale, b_scale;
  std::size_t count = 0;
  bool scaled = false;
};

template <std::size_t Capacity>
constexpr SelectedOperands<Capacity> select(const MatrixInstruction& instruction, const Step& step,
                                            const DotOperands& operands) {
  SelectedOperands<Capacity> selected;
  selected.scaled = instruction.scale.count != 0;
  const std::size_t k = operands.a.size();
  for (std::size_t i = 0; i < k; ++i) {
    if (!step.selection.contains(static_cast<int>(i))) continue;
    const std::size_t at = selected.count++;
    selected.a[at] = decode_operand(step, instruction.a, operands.a[i]);
    selected.b[at] = decode_operand(step, instruction.b, operands.b[i]);
    if (!selected.scaled) continue;
    const std::size_t scale = i * operands.a_scale.size() / k;
    selected.a_scale[at] = formats::decode(instruction.scale.format, operands.a_scale[scale]);
    selected.b_scale[at] = formats::decode(instruction.scale.format, operands.b_scale[scale]);
  }
  return selected;
}

/// Calls `visit(block)` for each block of a dot step in order; visit returns the block's result,
/// the next one's addend.
template <std::size_t Capacity, class Visit>
constexpr std::uint64_t for_each_block(const MatrixInstruction& instruction, const Step& step,
                                       const DotOperands& operands, std::uint64_t addend,
                                       Format addend_format, Visit visit) {
  const SelectedOperands<Capacity> selected = select<Capacity>(instruction, step, operands);
  const std::size_t length =
      step.spec.terms == 0 ? selected.count : static_cast<std::size_t>(step.spec.terms);
  for (std::size_t begin = 0; begin < selected.count; begin += length) {
    const std::size_t count = begin + length < selected.count ? length : selected.count - begin;
    const auto part = [&](const auto& list) {
      return std::span<const Value>(list).subspan(begin, count);
    };
    const std::span<const Value> none;
    const Block block{step.spec,
                      operand_format(step, instruction.a),
                      operand_format(step, instruction.b),
                      part(selected.a),
                      part(selected.b),
                      selected.scaled ? part(selected.a_scale) : none,
                      selected.scaled ? part(selected.b_scale) : none,
                      instruction.scale.format,
                      decode_input(step.spec, addend_format, addend),
                      addend_format,
                      step.result};
    addend = visit(block);
    addend_format = step.result;
  }
  return addend;
}

/// A code with the format it is in.
struct Register {
  std::uint64_t code = 0;
  Format format{};
};

using Registers = std::array<Register, std::tuple_size_v<decltype(Steps::list)>>;

constexpr Register read_source(Source source, const MatrixInstruction& instruction,
                               const DotOperands& operands, const Registers& registers,
                               const Format& result) {
  switch (source) {
    case Source::positive_zero: return {0, result};
    case Source::negative_zero: return {formats::sign_mask(result), result};
    case Source::c: return {operands.c, instruction.c};
    default: return registers[static_cast<std::size_t>(source)];
  }
}

constexpr Value decode_register(const AccumulatorSpec& spec, const Register& r) {
  return decode_input(spec, r.format, r.code);
}

/// x + y as a scalar instruction, rounded once by spec.result.
constexpr std::uint64_t rounded_addition(const AccumulatorSpec& spec, const Format& result,
                                         const Register& first, const Register& second) {
  const Value x = decode_register(spec, first);
  const Value y = decode_register(spec, second);
  Unrounded sum = formats::add(formats::exactly(x), formats::exactly(y));
  const bool operands_decide =
      spec.nan == NanPolicy::operand_abc || spec.nan == NanPolicy::operand_bca;
  if (sum.kind == Kind::nan && operands_decide) sum = operand_nan({&x, &y});
  return encode_result(spec, result, sum);
}

/// The code that an `add` or `convert` step gives.
constexpr std::uint64_t scalar_step(const MatrixInstruction& instruction, const Step& step,
                                    const DotOperands& operands, const Registers& registers) {
  const Register addend = read_source(step.addend, instruction, operands, registers, step.result);
  if (step.operation == Operation::convert) {
    return encode_result(step.spec, step.result,
                         formats::exactly(decode_register(step.spec, addend)));
  }
  const Register other = read_source(step.other, instruction, operands, registers, step.result);
  return rounded_addition(step.spec, step.result, addend, other);
}

/// The output element of one dot product: the instruction's steps in order. Visit(step index,
/// block) -> code computes a block and lets an explanation look over the model's shoulder; the
/// model itself is `accumulate_block`.
template <std::size_t Capacity = max_k, class Visit>
constexpr std::uint64_t run_steps(const MatrixInstruction& instruction, const DotOperands& operands,
                                  Visit visit) {
  Registers registers{};
  std::size_t index = 0;
  for (const Step& step : instruction.steps) {
    Register& result = registers[index];
    result.format = step.result;
    if (step.operation == Operation::dot) {
      const Register addend =
          read_source(step.addend, instruction, operands, registers, step.result);
      result.code =
          for_each_block<Capacity>(instruction, step, operands, addend.code, addend.format,
                                   [&](const Block& block) { return visit(index, block); });
    } else {
      result.code = scalar_step(instruction, step, operands, registers);
    }
    ++index;
  }
  return registers[index - 1].code;
}

/// D of one output element, with room for `Capacity` products.
template <std::size_t Capacity>
constexpr std::uint64_t dot_within(const MatrixInstruction& instruction,
                                   const DotOperands& operands) {
  return run_steps<Capacity>(instruction, operands, [](std::size_t, const Block& block) {
    return accumulate_block(block);
  });
}

/// D of one output element. `operands.a` and `.b` hold the same number of codes, at most max_k;
/// shorter dot products than the instruction's K are allowed (missing products are zero). Short
/// ones do not clear the room of long ones.
constexpr std::uint64_t dot(const MatrixInstruction& instruction, const DotOperands& operands) {
  const std::size_t k = operands.a.size();
  assert(k == operands.b.size() && k <= max_k);
  if (k <= 16) return dot_within<16>(instruction, operands);
  if (k <= 64) return dot_within<64>(instruction, operands);
  return dot_within<max_k>(instruction, operands);
}

}  // namespace guardbit::emulator
