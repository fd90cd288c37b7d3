#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace guardbit::tools {

/// The families of matrices that products are measured with (emulator/inputs/matrix_families.hpp).
inline constexpr std::array<std::string_view, 6> data_words = {"normal",   "wide",  "cancelling",
                                                               "specials", "zeros", "subnormals"};

/// What `guardbit bench` is asked for. Empty lists and zeros mean the defaults of the set.
struct BenchOptions {
  /// a benchmark's name must hold one of them
  std::vector<std::string> only;
  /// gemm, convert, replay, memory, trace, function, operator
  std::vector<std::string> kinds;
  /// names of engines
  std::vector<std::string> engines;
  /// families of operands
  std::vector<std::string> data;
  /// of products: product_size() reads each
  std::vector<std::string> sizes;
  std::vector<int> threads;
  /// one that is none of the cases
  std::string arch, instruction;
  int repetitions = 0;
  /// least time of one repetition
  double seconds = 0;
  bool full = false, curves = false, list = false, json = false;
  /// two files
  std::vector<std::string> compare;
};

/// M, N and K of "512", which is all three, or of "8192x8192x4096"; nothing for other words.
std::optional<std::array<int, 3>> product_size(const std::string& word);

/// Adds the options to a command, which `guardbit` and the program that measures both read.
void add_bench_options(CLI::App& command, BenchOptions& options);

/// The words that say again what was given to the command.
std::vector<std::string> given_words(const CLI::App& command);

}  // namespace guardbit::tools
