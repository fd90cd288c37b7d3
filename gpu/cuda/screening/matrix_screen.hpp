#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/tensor_core/tensor_core_kernels.hpp"
#include "gpu/screening/screen_report.hpp"
#include "gpu/screening/screen_set.hpp"

// Matrix instructions of the current device against the results that the host's model gives.
namespace guardbit::gpu {

class MatrixScreen {
 public:
  /// Copies the set to the current device. `processors`: its multiprocessors.
  MatrixScreen(const ScreenSet& set, int processors);

  /// Every case on every multiprocessor; waits for the device. Returns how many cases had wrong
  /// results.
  std::size_t run_pass();

  /// Results compared so far, and wrong 32-bit words among them.
  std::uint64_t outputs() const { return outputs_; }
  std::uint64_t mismatches() const { return mismatches_; }

  /// The wrong results that were seen in the last pass, of each instruction as many as `room` says
  /// and at most one for each processing block; each is repeated everywhere.
  std::vector<ScreenFinding> findings(const FaultRoom& room);

  /// What a case's kernel noted in the last pass.
  ScreenLog read_log(std::size_t index) const;

  /// Multiprocessors that executed every case in the last pass.
  int processors_seen() const;

  /// One case by itself as in a pass, or only its image `image` where that is not negative, so many
  /// times. Of a warpgroup only the warp `quarter` counts, where that is not negative.
  ScreenLog run_case(std::size_t index) { return run_case(index, -1, 0); }
  ScreenLog run_case(std::size_t index, int image, int repetitions, int quarter = -1);

  /// In a build that injects faults (launch.cuh), both on the device: `fault` strikes one case, and
  /// `none` is what the others have.
  void inject(const Fault* none, const Fault* fault, std::size_t index);

  std::size_t size() const { return set_.cases.size(); }

 private:
  DeviceImages images_of(std::size_t index, ScreenLog* log, int image, int repetitions) const;
  ScreenFault fault_of(const PackedCase& x, std::size_t index, const ScreenCase& made,
                       const ScreenMismatch& mismatch);

  const ScreenSet& set_;
  int processors_;
  DeviceBuffer bytes_, logs_, scratch_;
  std::vector<std::size_t> wrong_;
  const Fault *no_fault_ = nullptr, *fault_ = nullptr;
  std::size_t faulty_ = 0;
  std::uint64_t outputs_ = 0, mismatches_ = 0;
};

}  // namespace guardbit::gpu
