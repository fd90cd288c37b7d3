#include "tools/gpu/provenance.hpp"

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "gpu/operands/tensor_core_instruction.hpp"

namespace guardbit::tools {

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm date{};
  gmtime_r(&now, &date);
  char text[sizeof "2026-11-21"];
  std::strftime(text, sizeof text, "%Y-%m-%d", &date);
  return text;
}

nlohmann::ordered_json provenance(const gpu::Device& device) {
  return {{"device",
           {{"name", device.name}, {"driver", device.driver}, {"capability", device.capability}}},
          {"toolkit", device.toolkit},
          {"compiled_for", gpu::compiled_architecture()}};
}

}  // namespace guardbit::tools
