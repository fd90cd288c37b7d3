#pragma once

#include <array>

namespace CLI {
class App;
}

namespace guardbit::tools {

/// Each function adds one subcommand, in its own file `command_<name>.cpp`. The subcommand's
/// callback does the work, writes its exit status where it differs from 0, and throws
/// formats::Error for bad input (`main` prints it, status 2).
void add_formats(CLI::App& app, int& status);
void add_show(CLI::App& app, int& status);
void add_cast(CLI::App& app, int& status);
void add_function(CLI::App& app, int& status);
void add_list(CLI::App& app, int& status);
void add_run(CLI::App& app, int& status);
void add_verify(CLI::App& app, int& status);
void add_replay(CLI::App& app, int& status);
void add_gemm(CLI::App& app, int& status);
void add_plan(CLI::App& app, int& status);
void add_explain(CLI::App& app, int& status);
void add_compare(CLI::App& app, int& status);
void add_probe(CLI::App& app, int& status);
void add_trace(CLI::App& app, int& status);
void add_scaler(CLI::App& app, int& status);
void add_recipe(CLI::App& app, int& status);
void add_quantize(CLI::App& app, int& status);
void add_experiment(CLI::App& app, int& status);
void add_train(CLI::App& app, int& status);
void add_report(CLI::App& app, int& status);
void add_bench(CLI::App& app, int& status);
void add_gpu(CLI::App& app, int& status);
void add_screen(CLI::App& app, int& status);
void add_completion(CLI::App& app, int& status);
void add_man(CLI::App& app, int& status);
void add_help(CLI::App& app, int& status);

/// In the order in which the help lists them.
inline constexpr std::array commands = {
    add_formats, add_show,   add_cast,       add_function,   add_list,    add_run,    add_verify,
    add_replay,  add_gemm,   add_plan,       add_explain,    add_compare, add_probe,  add_trace,
    add_scaler,  add_recipe, add_quantize,   add_experiment, add_train,   add_report, add_bench,
    add_gpu,     add_screen, add_completion, add_man,        add_help,
};

/// What `main` does: reads the words that the program was started with, runs the command that they
/// name and gives the status to exit with. Once in a process.
int command_line(int count, char** words);

}  // namespace guardbit::tools
