#include "tools/console/threads_option.hpp"

#include <CLI/CLI.hpp>

namespace guardbit::tools {

void add_threads_option(CLI::App& command, int& threads) {
  command.add_option("--threads", threads, "Threads (default: all processors)")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));
}

}  // namespace guardbit::tools
