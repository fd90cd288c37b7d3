#include "tools/products/instruction_run.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "emulator/capture/bound_operands.hpp"
#include "emulator/engine/engines.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::tools {

using emulator::MatrixInstruction;
using formats::Error;
using formats::Format;
using formats::Tensor;

namespace {

/// C or D of zeros, in the shape that A and B imply.
Tensor zeros(const std::string& name, const Format& format, const MatrixInstruction& instruction,
             const std::vector<Tensor>& operands) {
  const auto shape_of = [&](const std::string& operand) -> const std::vector<std::int64_t>& {
    return std::find_if(operands.begin(), operands.end(),
                        [&](const Tensor& t) { return t.name == operand; })
        ->shape;
  };
  const std::vector<std::int64_t>& a = shape_of("a");
  const std::vector<std::int64_t>& b = shape_of("b");
  if (a.size() != 3 || b.size() != 3)
    throw Error("run", "A and B need shapes [T, M, K] and [T, K, N], or [M, K] and [K, N]");
  const std::vector<std::int64_t> shape = {a[0],
                                           instruction.shape.m != 0 ? instruction.shape.m : a[1],
                                           instruction.shape.n != 0 ? instruction.shape.n : b[2]};
  const auto count = formats::checked_element_count(shape);
  if (!count) throw Error("run", "the result has too many elements");
  const auto width = static_cast<std::size_t>(formats::container_bits(format)) / 8;
  return formats::owning_tensor(name, format, formats::Packing::container, shape,
                                std::vector<std::byte>(static_cast<std::size_t>(*count) * width));
}

}  // namespace

Format operand_format(const MatrixInstruction& instruction, std::string_view tensor) {
  if (tensor == "a") return instruction.a;
  if (tensor == "b") return instruction.b;
  if (tensor == "c") return instruction.c;
  return tensor == "e" ? formats::uint8 : instruction.scale.format;
}

bool takes_modifiers(const MatrixInstruction& instruction) {
  using emulator::Family;
  return instruction.family == Family::wgmma || instruction.family == Family::wgmma_sp ||
         instruction.family == Family::tcgen05 || instruction.family == Family::tcgen05_sp;
}

void require_modifiers(const MatrixInstruction& instruction, const emulator::Modifiers& modifiers) {
  if ((modifiers.negate_a || modifiers.negate_b) && formats::is_integer(instruction.a))
    throw Error("run", "--negate-a and --negate-b are for floating operands, not " +
                           formats::name_of(instruction.a));
}

InstructionRun run_instruction(const MatrixInstruction& instruction, const emulator::Engine& engine,
                               std::vector<Tensor> operands, const emulator::Modifiers& modifiers,
                               int threads, const std::string& where) {
  const bool has_c =
      std::ranges::any_of(operands, [](const Tensor& tensor) { return tensor.name == "c"; });
  if (!has_c) operands.push_back(zeros("c", instruction.c, instruction, operands));
  const Tensor d = zeros("d", instruction.d, instruction, operands);
  emulator::BoundBatch bound = emulator::bind_operands(instruction, std::move(operands),
                                                       emulator::ElementType::same_bits, where);
  std::vector<std::byte> results(d.bytes.size());
  bound.batch.d = emulator::codes_of(instruction.d, results.data());
  bound.batch.modifiers = modifiers;
  if (bound.outputs() != 0) emulator::run_batch(engine, instruction, bound.batch, threads);
  InstructionRun run = {std::move(bound.tensors), bound.batch.count, bound.outputs()};
  run.tensors.push_back(formats::owning_tensor("d", instruction.d, formats::Packing::container,
                                               d.shape, std::move(results)));
  return run;
}

}  // namespace guardbit::tools
