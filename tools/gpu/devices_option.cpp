#include "tools/gpu/devices_option.hpp"

#include <algorithm>
#include <cstddef>
#include <set>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "gpu/operands/tensor_core_instruction.hpp"
#include "tools/console/division/part.hpp"

namespace guardbit::tools {

using gpu::HostDevice;

std::vector<HostDevice> chosen_devices(const std::string& words,
                                       const std::vector<HostDevice>& devices) {
  if (words == "all") return devices;
  std::vector<HostDevice> chosen;
  std::set<int> numbers;
  for (std::size_t begin = 0; begin <= words.size();) {
    const std::size_t end = std::min(words.find(',', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    const auto number = whole_number(word);
    if (!number || *number >= static_cast<int>(devices.size()))
      throw formats::Error("--devices", "there is no device " + formats::in_quotes(word),
                           "all, 0 to " + std::to_string(devices.size() - 1));
    if (numbers.insert(*number).second)
      chosen.push_back(devices[static_cast<std::size_t>(*number)]);
    begin = end + 1;
  }
  return chosen;
}

std::vector<int> usable_devices(const std::string& words) {
  std::vector<int> numbers;
  for (const HostDevice& device : chosen_devices(words, gpu::devices_of_host())) {
    if (!device.is_compiled_for)
      throw formats::Error("CUDA",
                           "device " + std::to_string(device.index) + ", '" + device.name +
                               "', cannot run this program, which was compiled for " +
                               std::string(gpu::compiled_architecture()),
                           "--devices chooses others");
    numbers.push_back(device.index);
  }
  return numbers;
}

}  // namespace guardbit::tools
