#include "tools/trace/trace_results.hpp"

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// What `trace --json` wrote, as --merge reads it: the same file twice.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile file("input.json");
  const std::string path = file.write(data, size);
  return fuzz::parse_or_refuse([&] { tools::merged_results({path, path}); });
}
