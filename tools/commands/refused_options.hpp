#pragma once

#include <initializer_list>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace guardbit::tools {

/// Why the words of a command line were refused, as we say it, whatever version of CLI11 reads
/// them.
std::string refused_option(const CLI::App& app, const CLI::ParseError& error);

/// formats::Error if one of these options was given though nothing reads it: `when` says when it is
/// read, as in "with --exec".
void refuse_unread(const CLI::App& command, std::initializer_list<const char*> options,
                   const std::string& when);

}  // namespace guardbit::tools
