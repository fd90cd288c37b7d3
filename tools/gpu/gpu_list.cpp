#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "gpu/cuda/device/device.hpp"
#include "gpu/operands/tensor_core_instruction.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/print_json.hpp"
#include "tools/gpu/gpu_commands.hpp"

namespace guardbit::tools {

namespace {

struct Options {
  bool json = false;
};

const Columns<gpu::TensorCoreInstruction>& instruction_columns() {
  using I = gpu::TensorCoreInstruction;
  static const Columns<I> columns = {
      {"name", "instruction", Side::left, [](const I& i) { return i.name; }},
      {"variant", "variant", Side::left, [](const I& i) { return i.variant; },
       [](const I& i) { return i.variant.empty() ? "-" : std::string(i.variant); }}};
  return columns;
}

nlohmann::ordered_json document_of(const gpu::Device& device) {
  nlohmann::ordered_json out;
  out["device"] = {{"name", device.name},           {"capability", device.capability},
                   {"driver", device.driver},       {"processors", device.processors},
                   {"clock_ghz", device.clock_ghz}, {"memory_bytes", device.memory_bytes}};
  out["toolkit"] = device.toolkit;
  out["compiled_for"] = gpu::compiled_architecture();
  out["runs"] = gpu::runs_compiled_code(device);
  out["instructions"] = instruction_columns().json_list(gpu::tensor_core_instructions());
  return out;
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
  instruction_columns().print(std::cout, gpu::tensor_core_instructions());
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
    options->json ? print_json(document_of(device)) : print_text(device);
  });
}

}  // namespace guardbit::tools
