#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/probe/function_probe.hpp"
#include "emulator/probe/probe.hpp"
#include "tools/console/interruption.hpp"

// The option `--exec`: a program of the user's as a black box.
namespace guardbit::tools {

/// A program of the user's that multiplies: `COMMAND IN OUT` reads a [T, M, K], b [T, K, N] and,
/// with an addend, c [T, M, N] from the safetensors file IN and writes d [T, M, N] to OUT.
struct UserKernel {
  /// for the shell; the two files are appended
  std::string command;
  /// every row of A and column of B is the same question
  int m = 1, n = 1;
  /// the element of D that answers; -1: all, which must be equal
  int row = -1, column = -1;
  /// for one run, after which it is ended
  double seconds = 60;
};

/// Answers to the questions, of one run. formats::Error when the program fails, takes too long, or
/// writes no such D.
std::vector<std::uint64_t> run_user_kernel(const UserKernel& kernel, const emulator::BlackBox& box,
                                           std::span<const emulator::Question> questions,
                                           const Interruption& interruption);

/// The same of a program that computes a function: it reads x, and y, z, w where there are more
/// operands, and writes d, and d1 where there is a second result, all [T].
std::vector<std::vector<std::uint64_t>> run_user_function(
    const UserKernel& kernel, const emulator::FunctionShape& shape,
    const std::vector<std::vector<std::uint64_t>>& questions, const Interruption& interruption);

}  // namespace guardbit::tools
