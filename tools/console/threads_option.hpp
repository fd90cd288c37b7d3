#pragma once

// The option `--threads`.
namespace CLI {
class App;
}

namespace guardbit::tools {

/// Adds --threads, which means the same to every command: 0, the usual value, is all processors.
void add_threads_option(CLI::App& command, int& threads);

}  // namespace guardbit::tools
