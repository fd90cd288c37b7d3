#include "tests/fuzz/input.hpp"
#include "tools/console/division/part.hpp"
#include "tools/trace/trace_options.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// Shares and ranges of the command line: --part and --scales.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  fuzz::parse_or_refuse([&] {
    const tools::Part part = tools::part_of(text);
    fuzz::require(tools::part_of(tools::text_of(part)) == part, "a part that does not come back");
  });
  return fuzz::parse_or_refuse([&] { tools::parse_scales(text); });
}
