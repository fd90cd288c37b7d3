#pragma once

namespace CLI {
class App;
}

namespace guardbit::tools {

/// Each function adds one subcommand of `guardbit gpu`, in its own file `<name>.cpp`; see
/// tools/commands/commands.hpp.
void add_gpu_gemm(CLI::App& gpu, int& status);
void add_gpu_convert(CLI::App& gpu, int& status);
void add_gpu_list(CLI::App& gpu, int& status);
void add_gpu_validate(CLI::App& gpu, int& status);
void add_gpu_record(CLI::App& gpu, int& status);
void add_gpu_screen(CLI::App& gpu, int& status);
void add_gpu_train(CLI::App& gpu, int& status);
void add_gpu_probe_questions(CLI::App& gpu, int& status);

}  // namespace guardbit::tools
