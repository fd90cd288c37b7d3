#include <CLI/CLI.hpp>

#include "formats/support/error.hpp"
#include "tools/commands/commands.hpp"

namespace guardbit::tools {

/// What a build without nvcc says instead of asking a device.
void add_gpu(CLI::App& app, int&) {
  CLI::App* const gpu =
      app.add_subcommand("gpu", "Ask this machine's tensor core (not in this build)");
  gpu->footer("Example: guardbit gpu list");
  gpu->allow_extras();
  gpu->callback([] {
    throw formats::Error(
        "gpu",
        "this build holds no CUDA code: install the CUDA toolkit (nvcc), then run 'cmake --preset cuda' and 'cmake --build --preset cuda'");
  });
}

}  // namespace guardbit::tools
