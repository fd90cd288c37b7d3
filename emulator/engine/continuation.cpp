#include "emulator/engine/continuation.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <tuple>

#include "formats/support/error.hpp"

namespace guardbit::emulator {

namespace {

bool takes_every_product(const MatrixInstruction& instruction, const Step& step) {
  for (int i = 0; i < stored_k(instruction, instruction.shape.k); ++i)
    if (!step.selection.contains(i)) return false;
  return true;
}

/// Elements of K for each scale; 1 without scales.
int elements_per_scale(const MatrixInstruction& instruction) {
  return instruction.scale.count == 0 ? 1 : instruction.shape.k / instruction.scale.count;
}

/// The fewest elements of K that are whole blocks of that many products, groups and scales.
int shortest_execution(const MatrixInstruction& instruction, int block) {
  for (int k = 1; k < instruction.shape.k; ++k) {
    const int group = instruction.sparsity.group_elements;
    const bool whole_groups = group == 0 || k % group == 0;
    if (whole_groups && k % elements_per_scale(instruction) == 0 &&
        stored_k(instruction, k) % block == 0)
      return k;
  }
  return instruction.shape.k;
}

}  // namespace

bool takes_addend(const MatrixInstruction& instruction) {
  std::array<bool, std::tuple_size_v<decltype(Steps::list)>> needed{};
  for (int i = instruction.steps.count - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    if (i != instruction.steps.count - 1 && !needed[at]) continue;
    const Step& step = instruction.steps.list[at];
    const bool adds = step.operation == Operation::add;
    for (const Source source : {step.addend, adds ? step.other : step.addend}) {
      if (source == Source::c) return true;
      if (static_cast<int>(source) >= 0) needed[static_cast<std::size_t>(source)] = true;
    }
  }
  return false;
}

MatrixInstruction Continuation::shortened(std::int64_t k) const {
  const std::int64_t length = (k + shortest - 1) / shortest * shortest;
  if (length >= instruction.shape.k) return instruction;
  MatrixInstruction x = instruction;
  if (instruction.scale.count != 0)
    x.scale.count = static_cast<int>(length) / elements_per_scale(instruction);
  x.shape.k = static_cast<int>(length);
  return x;
}

namespace {

/// Products of a block that the next one's follow, where the instruction has no addend; 0 where it
/// is not known how it goes on.
int block_of(const MatrixInstruction& instruction) {
  const Step& step = instruction.steps.list[0];
  if (instruction.steps.count != 1 || step.operation != Operation::dot ||
      takes_addend(instruction) || !takes_every_product(instruction, step))
    return 0;
  // A chain of multiply-adds is blocks of one product; a sum modulo 2^n has no order at all.
  const AccumulatorSpec& spec = step.spec;
  const bool wraps =
      spec.summation == Summation::integer && spec.integer_overflow == IntegerOverflow::wrap;
  const int block = wraps || spec.summation == Summation::fma_chain ? 1 : spec.terms;
  const int products = stored_k(instruction, instruction.shape.k);
  const bool blocks_follow = block != 0 && block < products && products % block == 0;
  return wraps || blocks_follow ? block : 0;
}

}  // namespace

std::optional<Continuation> continuation_of(const MatrixInstruction& instruction) {
  const int block = block_of(instruction);
  if (block == 0) return {};
  const Step& step = instruction.steps.list[0];
  Continuation x{instruction, 0, shortest_execution(instruction, block)};
  if (step.addend == Source::negative_zero) x.begin = formats::sign_mask(step.result);
  x.instruction.steps.list[0].addend = Source::c;
  x.instruction.c = x.instruction.d = step.result;
  return x;
}

bool can_be_chained(const MatrixInstruction& instruction) {
  return takes_addend(instruction) ? instruction.c == instruction.d : block_of(instruction) != 0;
}

void require_chain(const MatrixInstruction& instruction, std::int64_t k, std::string_view where) {
  if (k <= instruction.shape.k || can_be_chained(instruction)) return;
  const std::string name(std::string_view(instruction.name)),
      most = std::to_string(instruction.shape.k);
  if (takes_addend(instruction))
    throw formats::Error(std::string(where),
                         name + " has C in " + formats::name_of(instruction.c) + " and D in " +
                             formats::name_of(instruction.d) + ": its executions cannot be chained",
                         "K up to " + most);
  throw formats::Error(
      std::string(where),
      std::string(instruction.arch) + "/" + name +
          " takes no addend, and its steps do not show how a sum goes on beyond its K = " + most +
          "; this one has K = " + std::to_string(k) +
          ": probe the unit with --c, or split K into parts of at most " + most +
          ", whose sums the plan adds");
}

}  // namespace guardbit::emulator
