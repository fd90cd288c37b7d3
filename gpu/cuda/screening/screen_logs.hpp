#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu/cuda/device/device.hpp"
#include "gpu/screening/screen_log.hpp"

// Logs of a pass, one for each case, as they lie on the device.
namespace guardbit::gpu {

/// The log with that number.
inline ScreenLog read_log(const DeviceBuffer& logs, std::size_t index, std::string_view where) {
  ScreenLog log;
  check_cuda(cudaMemcpy(&log, logs.as<ScreenLog>() + index, sizeof log, cudaMemcpyDeviceToHost),
             where);
  return log;
}

/// Waits for the device. The numbers of those of the first `count` logs that have wrong results go
/// to `wrong`; how many wrong results all of them have.
inline std::uint64_t note_wrong_logs(const DeviceBuffer& logs, std::size_t count,
                                     std::string_view where, std::vector<std::size_t>& wrong) {
  wrong.clear();
  std::vector<unsigned long long> counts(count);
  if (counts.empty()) return 0;
  // Each log begins with its number of wrong results.
  check_cuda(cudaMemcpy2D(counts.data(), sizeof counts[0], logs.as(), sizeof(ScreenLog),
                          sizeof counts[0], count, cudaMemcpyDeviceToHost),
             where);
  std::uint64_t mismatches = 0;
  for (std::size_t i = 0; i < count; ++i) {
    mismatches += counts[i];
    if (counts[i] != 0) wrong.push_back(i);
  }
  return mismatches;
}

}  // namespace guardbit::gpu
