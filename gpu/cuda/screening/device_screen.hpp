#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpu/screening/function_case.hpp"
#include "gpu/screening/product_case.hpp"
#include "gpu/screening/screen_report.hpp"
#include "gpu/screening/screen_set.hpp"

// The screening of one device.
namespace guardbit::gpu {

/// A device of this host, as CUDA numbers them.
struct HostDevice {
  int index = 0;
  std::string name, uuid, pci;
  int processors = 0;
  /// does it run the code that this program holds?
  bool is_compiled_for = false;
};

/// Every device. formats::Error, one line, when there is none or its driver is too old.
std::vector<HostDevice> devices_of_host();

/// What is asked of every device, made on the host; empty parts are left out.
struct ScreenInputs {
  ScreenSet matrix;
  std::vector<FunctionCase> functions;
  std::vector<ProductCase> products;
  bool memory = true;
};

/// Screens a device on the calling thread: every test in turn until `seconds` have passed, but each
/// once at least. `goes_on(seconds so far)` is asked between them; false ends it early. What
/// CUDA refuses becomes the report's failure.
DeviceReport screen_device(const HostDevice& device, const ScreenInputs& inputs, double seconds,
                           const std::function<bool(double)>& goes_on);

}  // namespace guardbit::gpu
