#pragma once

// What the exit status of a command says; 0 where all is well.
namespace guardbit::tools {

/// A result is not the recorded one.
inline constexpr int exit_mismatch = 1;
/// The input or the command line is wrong, or a file cannot be read.
inline constexpr int exit_bad_input = 2;

}  // namespace guardbit::tools
