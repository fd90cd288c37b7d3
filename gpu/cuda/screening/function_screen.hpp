#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/cuda/device/device.hpp"
#include "gpu/screening/function_case.hpp"
#include "gpu/screening/screen_log.hpp"
#include "gpu/screening/screen_report.hpp"

// Functions of numbers, and integer operations, of the current device against the results that the
// host's models give.
namespace guardbit::gpu {

class FunctionScreen {
 public:
  explicit FunctionScreen(std::span<const FunctionCase> cases);
  FunctionScreen(const FunctionScreen&) = delete;
  FunctionScreen& operator=(const FunctionScreen&) = delete;
  ~FunctionScreen();

  /// Every function on all inputs, several times, and the integer operations; every pass gives the
  /// inputs to other multiprocessors. Waits for the device; returns how many had wrong results.
  std::size_t run_pass();

  std::uint64_t outputs() const { return outputs_; }
  std::uint64_t mismatches() const { return mismatches_; }
  /// As MatrixScreen's. Where an instruction's model was never compared with hardware, what differs
  /// alike on every multiprocessor is unproven.
  std::vector<ScreenFinding> findings(const FaultRoom& room);

 private:
  struct OnDevice;
  void run(const OnDevice& function, ScreenLog* log, std::uint32_t begin, std::uint32_t first,
           std::uint32_t inputs);
  ScreenFault fault_of(std::size_t index, const ScreenMismatch& mismatch);

  std::span<const FunctionCase> cases_;
  std::vector<OnDevice> functions_;
  DeviceBuffer results_, places_, logs_;
  std::vector<std::size_t> wrong_;
  std::uint64_t outputs_ = 0, mismatches_ = 0;
  std::uint32_t pass_ = 0;
};

}  // namespace guardbit::gpu
