#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "emulator/model/instruction.hpp"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace guardbit::tools {

/// Why the words of a command line were refused, as we say it, whatever version of CLI11 reads
/// them.
std::string refused_option(const CLI::App& app, const CLI::ParseError& error);

/// formats::Error if one of these options was given though nothing reads it: `when` says when it is
/// read, as in "with --exec" (alone) or "without --json".
void refuse_unread(const CLI::App& command, std::initializer_list<const char*> options,
                   const std::string& when);

/// formats::Error for a --toolkit that was given with an instruction which every ptxas compiles
/// alike.
void refuse_toolkit(const emulator::MatrixInstruction& instruction, std::string_view toolkit);

/// For CLI::Option::check: what is wrong with a word of a number that has no sign; empty: nothing.
/// CLI11 takes "-1" for such a number and wraps it.
std::string below_zero(const std::string& word);

}  // namespace guardbit::tools
