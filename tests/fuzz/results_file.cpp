#include "tools/console/division/results_file.hpp"

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// What --part and --results keep, as `merge` reads it and as a run that goes on does: the same file
// twice.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile file("input.jsonl");
  const std::vector<std::string> files(2, file.write(data, size));
  tools::is_results_file(files[0]);
  fuzz::parse_or_refuse([&] { tools::merged_results_of("trace", files); });
  return fuzz::parse_or_refuse([&] {
    tools::ResultsFile({files[0]}, {"trace", {"a", "b"}, {{"formats", 1}}}, {1, 2}).take_known();
  });
}
