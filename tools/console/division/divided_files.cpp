#include "tools/console/division/divided_files.hpp"

#include "formats/support/printable.hpp"

namespace guardbit::tools {

std::string kept_text(std::size_t done, std::size_t pieces, const std::string& results) {
  return ": " + std::to_string(done) + " of " + std::to_string(pieces) + " done, " +
         (results.empty()
              ? "none kept (--results FILE keeps them)"
              : "kept in " + formats::printable(results) + "; the same command goes on from there");
}

}  // namespace guardbit::tools
