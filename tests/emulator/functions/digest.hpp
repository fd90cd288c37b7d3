#pragma once

#include <cstdint>
#include <mutex>

#include "emulator/functions/function_digest.hpp"
#include "emulator/functions/numbers/host_number.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::tests {

/// The digest of a function of FP32 codes over every `stride`th of them, as docs/FUNCTIONS.md says.
template <class Function>
std::uint64_t digest_of(const Function& function, std::uint64_t stride = 1) {
  std::mutex mutex;
  std::uint64_t total = 0;
  const std::uint64_t count = ((std::uint64_t{1} << 32) + stride - 1) / stride;
  formats::parallel_for(count, 1 << 16, 0, [&](std::size_t begin, std::size_t end) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = begin; i < end; ++i) {
      const std::uint32_t result = function(static_cast<std::uint32_t>(i * stride));
      sum += emulator::function_digest_share(i * stride, emulator::with_one_nan(result));
    }
    const std::lock_guard lock(mutex);
    total += sum;
  });
  return total;
}

/// The codes of a function of numbers.
template <class Function>
auto of_codes(const Function& function) {
  return [&function](std::uint32_t code) { return bits(function(emulator::HostNumber::of(code))); };
}

}  // namespace guardbit::tests
