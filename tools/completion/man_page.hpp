#pragma once

#include <string>

namespace CLI {
class App;
}

// Manual pages, made of the help.
namespace guardbit::tools {

/// guardbit-gpu-list
std::string man_name(const CLI::App& command);

/// The page of a command in the language of man.
std::string man_page(const CLI::App& command);

}  // namespace guardbit::tools
