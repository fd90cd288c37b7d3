#include <CLI/CLI.hpp>

#include "tools/commands/commands.hpp"
#include "tools/gpu/gpu_commands.hpp"

namespace guardbit::tools {

void add_gpu(CLI::App& app, int& status) {
  CLI::App* const gpu =
      app.add_subcommand("gpu", "Ask this machine's tensor core, and run the models on the device");
  gpu->require_subcommand(1);
  gpu->footer("Example: guardbit gpu list\n'guardbit gpu COMMAND --help' explains a command.");
  add_gpu_gemm(*gpu, status);
  add_gpu_list(*gpu, status);
  add_gpu_validate(*gpu, status);
  add_gpu_record(*gpu, status);
  add_gpu_screen(*gpu, status);
  add_gpu_convert(*gpu, status);
  add_gpu_train(*gpu, status);
  add_gpu_probe_questions(*gpu, status);
}

}  // namespace guardbit::tools
