#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu/screening/screen_case.hpp"

// The cases of a screening, made once on the host and copied to every device.
namespace guardbit::gpu {

/// Where the images of one case begin in the bytes of the set.
struct PackedCase {
  const TensorCoreInstruction* instruction = nullptr;
  int images = 0, a_bytes = 0, b_bytes = 0, c_bytes = 0, e_bytes = 0, a_scale_bytes = 0,
      b_scale_bytes = 0, d_bytes = 0;
  std::size_t a = 0, b = 0, c = 0, e = 0, a_scale = 0, b_scale = 0, expected = 0;
  /// what the kernel compares in one execution
  int outputs = 0;
};

struct ScreenSet {
  std::uint64_t seed = 0;
  std::vector<std::byte> bytes;
  std::vector<PackedCase> cases;
  /// Of the plain forms: outputs that were observed, how many kinds of events they show of those
  /// that some instruction can show, and "instruction: event" for what one never shows.
  std::uint64_t observed = 0;
  int events = 0, possible_events = 0;
  std::vector<std::string> never;
};

/// The set of these instructions; expected results by the model, on `threads` threads (0: all).
ScreenSet make_screen_set(std::span<const TensorCoreInstruction* const> instructions,
                          std::uint64_t seed, int threads = 0);

}  // namespace guardbit::gpu
