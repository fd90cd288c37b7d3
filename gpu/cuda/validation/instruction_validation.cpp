#include "gpu/cuda/validation/instruction_validation.hpp"

#include <algorithm>

#include "formats/support/error.hpp"
#include "gpu/cuda/tensor_core/tensor_core.hpp"
#include "gpu/model/host_model.hpp"

namespace guardbit::gpu {

namespace {

/// Outputs of one launch: enough to fill the device, few enough to stay in its cache.
constexpr std::int64_t outputs_per_launch = std::int64_t{1} << 22;

std::vector<InputFamilyEntry> chosen_families(const TensorCoreInstruction& instruction,
                                              const emulator::MatrixInstruction& model,
                                              std::string_view name) {
  std::vector<InputFamilyEntry> chosen;
  std::string names;
  for (const InputFamilyEntry& entry : generated_families(input_shape(instruction, model).kind)) {
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
    if (name.empty() || name == entry.name) chosen.push_back(entry);
  }
  if (chosen.empty())
    throw formats::Error(std::string(instruction.name),
                         "has no family '" + std::string(name) + "' of inputs", names);
  return chosen;
}

std::vector<std::string_view> unseen_events(const emulator::MatrixInstruction& model,
                                            const std::vector<FamilyReport>& families) {
  emulator::Coverage all;
  for (const FamilyReport& family : families) all += family.coverage;
  std::vector<std::string_view> unseen;
  if (all.outputs == 0) return unseen;
  const emulator::EventSet possible = emulator::possible_events(model);
  for (const emulator::EventEntry& entry : emulator::events)
    if (possible.contains(entry.event) && all.of(entry.event) == 0) unseen.push_back(entry.name);
  return unseen;
}

}  // namespace

InstructionReport validate_instruction(const TensorCoreInstruction& instruction,
                                       const emulator::MatrixInstruction& model,
                                       const ValidationPlan& plan,
                                       const std::function<bool(std::uint64_t)>& goes_on) {
  const std::vector<InputFamilyEntry> families = chosen_families(instruction, model, plan.family);
  const auto each =
      static_cast<std::int64_t>((plan.outputs + families.size() - 1) / families.size());
  Validator validator(instruction, model, std::min(outputs_per_launch, each));
  InstructionReport report;
  for (const InputFamilyEntry& entry : families) {
    FamilyReport& family = report.families.emplace_back();
    family.name = entry.name;
    std::uint64_t judged_by_reference = 0;
    for (std::int64_t first = 0; first * instruction.m * instruction.n < each;
         first += validator.executions()) {
      if (!goes_on(report.outputs)) {
        report.interrupted = true;
        return report;
      }
      const std::uint64_t to_judge =
          plan.reference_outputs - std::min(plan.reference_outputs, judged_by_reference);
      const ValidationPart part = validator.run(entry.family, plan.seed, first, to_judge);
      judged_by_reference += part.reference_outputs;
      family.outputs += part.outputs;
      family.mismatches += part.mismatches;
      family.coverage += part.coverage;
      report.outputs += part.outputs;
      report.mismatches += part.mismatches;
      report.reference_outputs += part.reference_outputs;
      report.reference_mismatches += part.reference_mismatches;
      report.seconds += part.seconds;
      if (part.first_mismatch && !report.mismatch)
        report.mismatch = validator.read(*part.first_mismatch);
    }
  }
  report.never = unseen_events(model, report.families);
  report.plain_fma_seconds = validator.plain_fma_seconds() * static_cast<double>(report.outputs) /
                             static_cast<double>(validator.outputs());
  return report;
}

Batch reduce_mismatch(const TensorCoreInstruction& instruction,
                      const emulator::MatrixInstruction& model, const Batch& batch) {
  const auto by_model = [&](Batch x) {
    run_on_host_model(model, instruction, x);
    return x.d;
  };
  const std::vector<std::uint64_t> expected = by_model(batch);
  const auto first = std::mismatch(batch.d.begin(), batch.d.end(), expected.begin()).first;
  if (first == batch.d.end()) return batch;  // only a kernel of the model differed, not the model
  const auto at = static_cast<std::size_t>(first - batch.d.begin());
  const int i = static_cast<int>(at) / instruction.n, j = static_cast<int>(at) % instruction.n;
  Batch best = batch;
  const auto attempt = [&](auto change) {
    Batch next = best;
    change(next);
    run_on_tensor_core(instruction, next);
    if (next.d[at] != by_model(next)[at]) best = next;
  };
  attempt([&](Batch& x) {
    for (int r = 0; r < instruction.m; ++r)
      for (int s = 0; s < instruction.stored_k(); ++s)
        if (r != i) x.a[element_index(instruction.m, instruction.stored_k(), 0, r, s)] = 0;
    for (int k = 0; k < instruction.k; ++k)
      for (int n = 0; n < instruction.n; ++n)
        if (n != j) x.b[element_index(instruction.k, instruction.n, 0, k, n)] = 0;
    for (int r = 0; r < instruction.m; ++r)
      for (int n = 0; n < instruction.n; ++n)
        if (r != i || n != j) x.c[element_index(instruction.m, instruction.n, 0, r, n)] = 0;
  });
  attempt([&](Batch& x) { x.c[element_index(instruction.m, instruction.n, 0, i, j)] = 0; });
  for (int s = 0; s < instruction.stored_k(); ++s)
    attempt(
        [&](Batch& x) { x.a[element_index(instruction.m, instruction.stored_k(), 0, i, s)] = 0; });
  for (int k = 0; k < instruction.k; ++k)
    attempt([&](Batch& x) { x.b[element_index(instruction.k, instruction.n, 0, k, j)] = 0; });
  return best;
}

}  // namespace guardbit::gpu
