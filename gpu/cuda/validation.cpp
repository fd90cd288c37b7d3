#include "gpu/cuda/validation.hpp"

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

Validator::Validator(const TensorCoreInstruction& row, const emulator::MatrixInstruction& model,
                     std::int64_t outputs)
    : row_(row),
      model_(model_row(model, {row.negate_a, row.negate_b, row.ignore_c})),
      has_kernel_(model_accepts(model)),
      staging_(row, std::max<std::int64_t>(4, outputs / (row.m * row.n))),
      tallies_(2 * sizeof(DeviceTally), row.name) {}

ValidationPart Validator::run(int family, std::uint64_t seed, std::int64_t first,
                              bool by_reference) {
  ValidationPart part;
  std::array<DeviceTally, 2> tallies{};
  tallies_.write(std::as_bytes(std::span(tallies)));
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
  if (by_reference || !has_kernel_)
    timed(part.seconds.reference,
          [&] { run_reference(model_, staging_.operands(), staging_.results(), tally + 1); });
  tallies_.read(std::as_writable_bytes(std::span(tallies)));
  const DeviceTally& judged = has_kernel_ ? tallies[0] : tallies[1];
  part.outputs = judged.outputs;
  part.mismatches = judged.mismatches;
  part.reference_outputs = tallies[1].outputs;
  part.reference_mismatches = tallies[1].mismatches;
  const std::uint64_t index = std::min(tallies[0].first, tallies[1].first);
  if (index != ~0ULL)
    part.first_mismatch = static_cast<std::int64_t>(index) / (std::int64_t{row_.m} * row_.n);
  return part;
}

}  // namespace guardbit::gpu
