#pragma once

#include <string>

namespace CLI {
class App;
}

// Scripts that complete the words of a command line, made of the tree of commands.
namespace guardbit::tools {

std::string bash_script(const CLI::App& app);
std::string zsh_script(const CLI::App& app);
std::string fish_script(const CLI::App& app);

}  // namespace guardbit::tools
