#include "gpu/cuda/screening/nvml.hpp"

#include <dlfcn.h>

namespace guardbit::gpu {

namespace {

// nvml.h: the few names that this file needs. All return 0 where they succeed.
using Initialise = int (*)();
using DeviceOfBus = int (*)(const char*, void**);
using ReadNumber = int (*)(void*, unsigned*);
using ReadOne = int (*)(void*, int which, unsigned*);
using ReadErrors = int (*)(void*, int kind, int since, unsigned long long*);
constexpr int sensor_of_chip = 0, clock_of_processors = 1, clock_of_memory = 2;
constexpr int errors_corrected = 0, errors_uncorrected = 1, since_driver_was_loaded = 0;

/// Never unloaded, as it keeps threads of its own.
struct Library {
  void* handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  bool works = false;

  Library() {
    const auto initialise = find<Initialise>("nvmlInit_v2");
    works = initialise != nullptr && initialise() == 0;
  }
  template <class Function>
  Function find(const char* symbol) const {
    return handle == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(handle, symbol));
  }
};

const Library& library() {
  static const Library instance;
  return instance;
}

template <class Function, class... Arguments>
bool call(const char* symbol, Arguments... arguments) {
  const auto function = library().find<Function>(symbol);
  return function != nullptr && function(arguments...) == 0;
}

}  // namespace

DeviceMonitor::DeviceMonitor(const std::string& pci) {
  if (library().works &&
      !call<DeviceOfBus>("nvmlDeviceGetHandleByPciBusId_v2", pci.c_str(), &device_))
    device_ = nullptr;
}

std::optional<Telemetry> DeviceMonitor::read(double seconds) const {
  if (!works()) return std::nullopt;
  Telemetry now;
  now.seconds = seconds;
  unsigned milliwatts = 0;
  if (call<ReadNumber>("nvmlDeviceGetPowerUsage", device_, &milliwatts))
    now.watts = milliwatts * 1e-3;
  call<ReadOne>("nvmlDeviceGetClockInfo", device_, clock_of_processors, &now.sm_mhz);
  call<ReadOne>("nvmlDeviceGetClockInfo", device_, clock_of_memory, &now.memory_mhz);
  call<ReadOne>("nvmlDeviceGetTemperature", device_, sensor_of_chip, &now.celsius);
  return now;
}

std::optional<MemoryErrors> DeviceMonitor::memory_errors() const {
  MemoryErrors errors;
  if (!works() ||
      !call<ReadErrors>("nvmlDeviceGetTotalEccErrors", device_, errors_corrected,
                        since_driver_was_loaded, &errors.corrected) ||
      !call<ReadErrors>("nvmlDeviceGetTotalEccErrors", device_, errors_uncorrected,
                        since_driver_was_loaded, &errors.uncorrected))
    return std::nullopt;
  return errors;
}

}  // namespace guardbit::gpu
