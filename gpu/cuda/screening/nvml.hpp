#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gpu/screening/screen_report.hpp"

// Power, clocks, temperature and memory errors of a device by NVML, which comes with the driver.
namespace guardbit::gpu {

/// A device that NVML watches; says nothing where the library is missing or refuses.
class DeviceMonitor {
 public:
  /// `pci` as CUDA spells it: "0000:1A:00.0"
  explicit DeviceMonitor(const std::string& pci);

  bool works() const { return device_ != nullptr; }
  std::optional<Telemetry> read(double seconds) const;
  /// Nothing where the device keeps no error-correcting codes.
  std::optional<MemoryErrors> memory_errors() const;

 private:
  void* device_ = nullptr;
};

}  // namespace guardbit::gpu
