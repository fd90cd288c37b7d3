#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace guardbit::tools {

/// Why the words of a command line were refused, as we say it, whatever version of CLI11 reads
/// them.
std::string refused_option(const CLI::App& app, const CLI::ParseError& error);

}  // namespace guardbit::tools
