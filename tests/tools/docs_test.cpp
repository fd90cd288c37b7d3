#include <cstdlib>
#include <string>

#include "tests/catch.hpp"
#include "tests/places.hpp"

// The generated parts of the documents come from the tables, so they are stale when a table
// changes.
TEST_CASE("the generated documents are what the tables say") {
  CHECK(std::system(("bash tools/scripts/generate_docs.sh --check \"" +
                     guardbit::tests::command_path() + "\"")
                        .c_str()) == 0);
}
