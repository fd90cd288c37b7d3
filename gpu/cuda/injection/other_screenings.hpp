#pragma once

#include <cstddef>
#include <vector>

#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/tensor_core/tensor_core_kernels.hpp"
#include "gpu/screening/screen_set.hpp"

// What screenings without expected results do: they compare results of GPUs with each other.
namespace guardbit::gpu {

/// One instruction on copies of its inputs that fill the device, results stored.
class UncheckedRun {
 public:
  UncheckedRun(const PackedCase& x, const ScreenSet& set, int processors);
  /// The results of all copies.
  std::vector<std::byte> run(const Fault* fault) const;

 private:
  const PackedCase& case_;
  int copies_;
  DeviceBuffer a_, b_, c_, e_, d_;
};

/// Do two runs differ at all? And as burn-in tools ask: by more than 0.001 in results of FP32,
/// where a NaN differs from nothing?
bool differ(const std::vector<std::byte>& x, const std::vector<std::byte>& y);
bool differ_in_thousandths(const std::vector<std::byte>& x, const std::vector<std::byte>& y);

}  // namespace guardbit::gpu
