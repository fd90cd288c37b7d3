#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/tensor_core/tensor_core_kernels.hpp"
#include "gpu/screening/screen_set.hpp"

// What screenings without expected results do: they compare results of GPUs with each other.
namespace guardbit::gpu {

/// Which of them see a difference: a second run of the same GPU from its first one, also by more
/// than 0.001 in results of FP32, where a NaN differs from nothing (as burn-in tools ask); and a
/// healthy GPU.
struct OtherScreenings {
  bool by_first = false, by_first_within = false, by_vote = false;
};

/// Instructions on copies of their inputs that fill the device, results stored.
class UncheckedRuns {
 public:
  UncheckedRuns(const ScreenSet& set, int processors);
  /// `fault` and `none` are on the device.
  OtherScreenings compare(std::size_t index, const Fault* fault, const Fault* none) const;

 private:
  enum Array { a, b, c, e, arrays };

  int copies_of(const PackedCase& x) const;
  void copy(Array array, std::size_t begin, int bytes, const PackedCase& x) const;
  void run(const PackedCase& x, const Fault* fault, const DeviceBuffer& results) const;

  const ScreenSet& set_;
  int processors_;
  std::array<std::size_t, arrays + 1> sizes_;
  std::array<DeviceBuffer, arrays> operands_;
  DeviceBuffer first_, again_, healthy_, counts_;
};

}  // namespace guardbit::gpu
