#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Orders in which a row of FP32 numbers may be added.
namespace guardbit::emulator {

/// Element i goes to thread i / vector mod threads; the threads' sums are then brought together.
struct SumRule {
  /// How the threads' sums meet.
  enum class Order : std::uint8_t {
    /// s[t] + s[t + n/2], then s[t] + s[t + n/4], ...
    halves,
    /// s[2t] + s[2t + 1], then the same of what came out
    pairs,
    /// ((s0 + s1) + s2) + ...
    ascending,
    /// each warp of 32 by halves, then the warps' sums by halves
    warps,
  };
  enum class Kind : std::uint8_t {
    /// as above
    threads,
    /// NumPy's: rows of more than 128 are cut in two, shorter ones added by eight sums
    numpy,
    /// in FP64, in ascending order, and rounded once
    fp64,
  };
  Kind kind = Kind::threads;
  int threads = 1, vector = 1;
  /// a sum for each element of a thread's vector, added in ascending order in the end
  bool has_own_sums = false;
  Order order = Order::halves;

  std::string text() const;
};

float sum_of(const SumRule& rule, std::span<const float> row);

/// All that are tried for a row of so many elements, simple ones first. Those that only repeat
/// another one's additions are left out.
std::vector<SumRule> sum_rules(std::int64_t size);

}  // namespace guardbit::emulator
