#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/console/division/divided_files.hpp"
#include "tools/console/interruption.hpp"

// Work on many files divided among processes: those of mpirun, of which each takes the next file
// when it is free, or parts that know nothing of each other.
namespace guardbit::tools {

/// As the options of a command say it.
struct DivisionOptions {
  /// empty: all of the work
  std::string part;
  /// where results are kept as soon as they are there
  std::string results;
};

/// --part and --results.
void add_division_options(CLI::App& command, DivisionOptions& options);

/// Is it work for several processes, or are results to be kept?
bool is_divided(const DivisionOptions& options, std::size_t pieces);

/// The results of all pieces in their order, or nothing where this process does not report them: it
/// did a part, or is a rank other than 0.
std::optional<std::vector<nlohmann::ordered_json>> divide(const DivisionOptions& options,
                                                          const DividedFiles& files,
                                                          const Interruption& interruption);

}  // namespace guardbit::tools
