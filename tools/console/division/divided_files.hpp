#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/console/division/results_file.hpp"

// Work on many files, whatever does it.
namespace guardbit::tools {

/// Pieces of work whose results are JSON.
struct DividedFiles {
  WorkDescription description;
  /// The result of a piece. formats::Error ends all of the work; of several errors that of the
  /// first piece is reported, as one process would.
  std::function<nlohmann::ordered_json(std::size_t)> work;
};

/// How many pieces are done and what becomes of them, for a message of why the work ended early.
std::string kept_text(std::size_t done, std::size_t pieces, const std::string& results);

}  // namespace guardbit::tools
