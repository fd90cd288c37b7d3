#pragma once

#include <string>
#include <vector>

#include "tests/tools/command.hpp"

namespace guardbit::tests {

/// Runs a bash script in which `guardbit` is the command, $command its file and $folder the folder.
CommandResult run_shell(const TemporaryFolder& folder, const std::string& script);

/// Runs `guardbit` with these words of a shell in the folder and sends Ctrl-C after so many
/// seconds. `out` has the status, and "prompt" where the command ended within `most` milliseconds.
CommandResult run_until_interrupted(const TemporaryFolder& folder, const std::string& words,
                                    double seconds, int most = 1000);

/// What `guardbit` with these words prints, standard error included, on a terminal; `environment`
/// holds NAME=VALUE.
std::string run_on_terminal(const std::vector<std::string>& words,
                            const std::vector<std::string>& environment = {});

bool holds(const std::string& text, const std::string& part);

/// Columns of the longest line of UTF-8 text.
std::size_t longest_line(const std::string& text);

}  // namespace guardbit::tests
