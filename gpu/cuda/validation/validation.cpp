#include "gpu/cuda/validation/validation.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace guardbit::gpu {

ValidationSeconds& ValidationSeconds::operator+=(const ValidationSeconds& other) {
  generate += other.generate;
  pack += other.pack;
  tensor_core += other.tensor_core;
  model += other.model;
  reference += other.reference;
  return *this;
}

Validator::Validator(const TensorCoreInstruction& instruction,
                     const emulator::MatrixInstruction& model, std::int64_t outputs)
    : instruction_(instruction),
      model_(model_instruction(model,
                               {instruction.negate_a, instruction.negate_b, instruction.ignore_c})),
      has_kernel_(model_accepts(model)),
      staging_(instruction, model,
               std::max<std::int64_t>(4, outputs / (instruction.m * instruction.n))),
      tallies_(2 * sizeof(DeviceTally), instruction.name),
      coverage_(sizeof(DeviceCoverage), instruction.name) {}

double Validator::plain_fma_seconds() {
  timer_.start();
  run_plain_fma(model_, staging_.operands());
  return timer_.stop();
}

ValidationPart Validator::run(InputFamily family, std::uint64_t seed, std::int64_t first,
                              std::uint64_t reference_outputs) {
  ValidationPart part;
  std::array<DeviceTally, 2> tallies{};
  tallies_.write(std::as_bytes(std::span(tallies)));
  coverage_.clear();
  const auto timed = [&](double& seconds, auto work) {
    timer_.start();
    work();
    seconds = timer_.stop();
  };
  auto* const tally = tallies_.as<DeviceTally>();
  timed(part.seconds.generate, [&] { staging_.generate(family, seed, first); });
  timed(part.seconds.pack, [&] { staging_.pack(); });
  timed(part.seconds.tensor_core, [&] { staging_.execute(); });
  if (has_kernel_)
    timed(part.seconds.model,
          [&] { run_model(model_, staging_.operands(), staging_.results(), tally); });
  DeviceOperands judged_operands = staging_.operands();
  if (has_kernel_) {
    const auto each =
        static_cast<std::uint64_t>(instruction_.m) * static_cast<std::uint64_t>(instruction_.n);
    judged_operands.executions =
        std::min(executions(), static_cast<std::int64_t>((reference_outputs + each - 1) / each));
  }
  if (judged_operands.executions != 0)
    timed(part.seconds.reference, [&] {
      run_reference(model_, judged_operands, staging_.results(), tally + 1, {},
                    coverage_.as<DeviceCoverage>());
    });
  tallies_.read(std::as_writable_bytes(std::span(tallies)));
  const DeviceTally& judged = has_kernel_ ? tallies[0] : tallies[1];
  part.outputs = judged.outputs;
  part.mismatches = judged.mismatches;
  part.reference_outputs = tallies[1].outputs;
  part.reference_mismatches = tallies[1].mismatches;
  DeviceCoverage coverage;
  coverage_.read(std::as_writable_bytes(std::span(&coverage, 1)));
  part.coverage.outputs = part.reference_outputs;
  std::copy_n(std::begin(coverage.counts), emulator::event_count, part.coverage.counts.begin());
  const std::uint64_t index = std::min(tallies[0].first, tallies[1].first);
  if (index != ~0ULL)
    part.first_mismatch =
        static_cast<std::int64_t>(index) / (std::int64_t{instruction_.m} * instruction_.n);
  return part;
}

}  // namespace guardbit::gpu
