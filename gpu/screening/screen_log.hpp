#pragma once

#include <cstdint>

// What kernels of a screening report, and the faults that a test build injects into them.
namespace guardbit::gpu {

/// Multiprocessors that have counters of their own, and the processing blocks of each.
inline constexpr int most_processors = 256, processor_blocks = 4;

/// One thread's first wrong result word.
struct ScreenMismatch {
  /// which of the inputs
  std::uint32_t image;
  /// thread of the warp or warpgroup; of a function, 0
  std::uint32_t lane;
  /// 32-bit word of the thread's results, or of the image where a wrapper stores them itself
  std::uint32_t word;
  std::uint32_t processor, block;
  std::uint32_t expected, got;
};

/// Wrong results that a kernel counts, and the first of them in full.
template <class Entry, unsigned most>
struct MismatchLog {
  static constexpr unsigned most_entries = most;

  unsigned long long mismatches;
  /// entries that are wanted, of which the first most_entries are there
  unsigned recorded;
  Entry entries[most];

  /// Entries that are there.
  constexpr unsigned listed() const { return recorded < most ? recorded : most; }
};

/// Counts wrong 32-bit words; adds up over launches.
struct ScreenLog : MismatchLog<ScreenMismatch, 64> {
  /// executions by a warp, and those with a wrong result
  unsigned long long executions[most_processors][processor_blocks];
  unsigned long long failures[most_processors][processor_blocks];
};

/// A fault of one warp's place on the device.
struct Fault {
  enum class Place : std::uint8_t { none, a, b, product, addend, result };
  enum class Effect : std::uint8_t { stuck_at_0, stuck_at_1, flip };

  Place place = Place::none;
  Effect effect = Effect::flip;
  int processor = 0, block = 0;
  /// thread of the warp, its register, and a bit of that
  int lane = 0, word = 0, bit = 0;
  /// It happens in one of 2^32 / chance executions; 2^32 - 1: always.
  std::uint32_t chance = ~0U;
};

}  // namespace guardbit::gpu
