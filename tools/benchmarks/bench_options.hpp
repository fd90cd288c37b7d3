#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace guardbit::tools {

/// What `guardbit bench` is asked for. Empty lists and zeros mean the defaults of the set.
struct BenchOptions {
  std::vector<std::string> only;     ///< a benchmark's name must hold one of them
  std::vector<std::string> kinds;    ///< gemm, convert, replay, memory, trace
  std::vector<std::string> engines;  ///< names of engines
  std::vector<std::string> data;     ///< families of operands
  std::vector<int> sizes;            ///< M = N = K of products
  std::vector<int> threads;
  std::string arch, instruction;  ///< a row that is none of the cases
  int repetitions = 0;
  double seconds = 0;  ///< least time of one repetition
  bool full = false, curves = false, list = false, json = false;
  std::vector<std::string> compare;  ///< two files
};

/// Adds the options to a command, which `guardbit` and the program that measures both read.
void add_bench_options(CLI::App& command, BenchOptions& options);

/// The words that say again what was given to the command.
std::vector<std::string> given_words(const CLI::App& command);

}  // namespace guardbit::tools
