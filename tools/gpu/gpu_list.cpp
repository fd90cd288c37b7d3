#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "gpu/cuda/device/device.hpp"
#include "gpu/operands/tensor_core_instruction.hpp"
#include "tools/console/terminal.hpp"
#include "tools/gpu/gpu_commands.hpp"

namespace guardbit::tools {

namespace {

struct Options {
  bool json = false;
};

std::string variant_of(const gpu::TensorCoreInstruction& instruction) {
  return instruction.variant.empty() ? "-" : std::string(instruction.variant);
}

void print_json(const gpu::Device& device) {
  nlohmann::ordered_json out;
  out["device"] = {{"name", device.name},           {"capability", device.capability},
                   {"driver", device.driver},       {"processors", device.processors},
                   {"clock_ghz", device.clock_ghz}, {"memory_bytes", device.memory_bytes}};
  out["toolkit"] = device.toolkit;
  out["compiled_for"] = gpu::compiled_architecture();
  out["runs"] = gpu::runs_compiled_code(device);
  out["instructions"] = nlohmann::ordered_json::array();
  for (const gpu::TensorCoreInstruction& instruction : gpu::tensor_core_instructions())
    out["instructions"].push_back({{"name", instruction.name}, {"variant", instruction.variant}});
  std::cout << out.dump(2) << '\n';
}

void print_text(const gpu::Device& device) {
  std::cout << device.name << ", sm_" << device.capability << ", driver " << device.driver << ", "
            << device.processors << " multiprocessors at " << device.clock_ghz << " GHz, "
            << device.memory_bytes / (1 << 30) << " GiB\n"
            << "This program holds " << gpu::tensor_core_instructions().size()
            << " forms of instructions, compiled for " << gpu::compiled_architecture()
            << " by CUDA " << device.toolkit
            << (gpu::runs_compiled_code(device) ? "; this device runs them:\n"
                                                : "; this device runs none of them:\n");
  Table table("ll");
  table.add({"instruction", "variant"});
  for (const gpu::TensorCoreInstruction& instruction : gpu::tensor_core_instructions())
    table.add({std::string(instruction.name), variant_of(instruction)});
  table.print(std::cout);
}

}  // namespace

void add_gpu_list(CLI::App& gpu, int&) {
  const auto options = std::make_shared<Options>();
  CLI::App* const command =
      gpu.add_subcommand("list", "The device, and the instructions that can be asked of it");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer("Example: guardbit gpu list");
  command->callback([options] {
    const gpu::Device device = gpu::find_device();
    options->json ? print_json(device) : print_text(device);
  });
}

}  // namespace guardbit::tools
