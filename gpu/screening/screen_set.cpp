#include "gpu/screening/screen_set.hpp"

#include <bit>
#include <optional>

#include "formats/support/parallel.hpp"
#include "gpu/validation/device_capture.hpp"

namespace guardbit::gpu {

namespace {

/// A case without what only its maker needs.
struct MadeCase {
  PackedOperands operands;
  std::vector<std::byte> expected;
  ImageLayout layout;
  std::optional<CaseCoverage> coverage;
};

std::size_t append(std::vector<std::byte>& bytes, const std::vector<std::byte>& more) {
  constexpr std::size_t alignment = 256;
  const std::size_t begin = (bytes.size() + alignment - 1) / alignment * alignment;
  bytes.resize(begin);
  bytes.insert(bytes.end(), more.begin(), more.end());
  return begin;
}

}  // namespace

ScreenSet make_screen_set(std::span<const TensorCoreInstruction* const> instructions,
                          std::uint64_t seed, int threads) {
  std::vector<MadeCase> made(instructions.size());
  formats::parallel_for(instructions.size(), 1, threads, [&](std::size_t at, std::size_t) {
    const TensorCoreInstruction& instruction = *instructions[at];
    ScreenCase x = make_screen_case(instruction, seed);
    // Variants and other sizes share the arithmetic of the plain form.
    if (instruction.variant.empty() && !instruction.size_sweep) made[at].coverage = coverage_of(x);
    made[at].operands = std::move(x.operands);
    made[at].expected = std::move(x.expected);
    made[at].layout = std::move(x.layout);
  });
  ScreenSet set;
  set.seed = seed;
  emulator::EventSet seen, possible;
  for (std::size_t at = 0; at < made.size(); ++at) {
    const MadeCase& x = made[at];
    const TensorCoreInstruction& instruction = *instructions[at];
    PackedCase& packed = set.cases.emplace_back();
    packed = {.instruction = &instruction,
              .images = x.operands.images,
              .a_bytes = x.layout.a_bytes,
              .b_bytes = x.layout.b_bytes,
              .c_bytes = x.layout.c_bytes,
              .e_bytes = x.layout.e_bytes,
              .a_scale_bytes = x.layout.a_scale_bytes,
              .b_scale_bytes = x.layout.b_scale_bytes,
              .d_bytes = x.layout.d_bytes,
              .outputs = instruction.m * instruction.n * x.layout.executions_per_image};
    packed.a = append(set.bytes, x.operands.a);
    packed.b = append(set.bytes, x.operands.b);
    packed.c = append(set.bytes, x.operands.c);
    packed.e = append(set.bytes, x.operands.e);
    packed.a_scale = append(set.bytes, x.operands.a_scale);
    packed.b_scale = append(set.bytes, x.operands.b_scale);
    packed.expected = append(set.bytes, x.expected);
    if (!x.coverage) continue;
    set.observed += x.coverage->coverage.outputs;
    possible.include(x.coverage->possible);
    for (const emulator::EventEntry& entry : emulator::events)
      seen.include(entry.event, x.coverage->coverage.of(entry.event) != 0 &&
                                    x.coverage->possible.contains(entry.event));
    for (const std::string_view event : x.coverage->never)
      set.never.push_back(capture_stem(instruction) + ": " + std::string(event));
  }
  set.events = std::popcount(seen.bits);
  set.possible_events = std::popcount(possible.bits);
  return set;
}

}  // namespace guardbit::gpu
