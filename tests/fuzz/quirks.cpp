#include "experiments/quantisation/calibrators.hpp"
#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::parse_or_refuse([&] {
    const experiments::CalibrationQuirks quirks =
        experiments::parse_quirks(fuzz::text_of(data, size), "input");
    const std::string text = experiments::to_text(quirks);
    fuzz::require(experiments::parse_quirks(text.empty() ? "none" : text, "again") == quirks,
                  "quirks that do not come back from their text");
  });
}
