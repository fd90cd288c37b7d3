#pragma once

#include <CLI/CLI.hpp>

namespace guardbit::tools {

/// Each function adds one subcommand, in its own file `command_<name>.cpp`. The subcommand's
/// callback does the work, writes its exit status where it differs from 0, and throws
/// formats::Error for bad input (`main` prints it, status 2).
void add_formats(CLI::App& app, int& status);
void add_show(CLI::App& app, int& status);
void add_cast(CLI::App& app, int& status);
void add_list(CLI::App& app, int& status);
void add_run(CLI::App& app, int& status);
void add_verify(CLI::App& app, int& status);
void add_gemm(CLI::App& app, int& status);
void add_explain(CLI::App& app, int& status);
void add_probe(CLI::App& app, int& status);
void add_trace(CLI::App& app, int& status);
void add_experiment(CLI::App& app, int& status);
void add_bench(CLI::App& app, int& status);
void add_gpu(CLI::App& app, int& status);
void add_completion(CLI::App& app, int& status);

}  // namespace guardbit::tools
