#include "formats/format_catalogue.hpp"
#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::parse_or_refuse([&] {
    const formats::Format format = formats::require_format(fuzz::text_of(data, size), "input");
    fuzz::require(formats::find_format(formats::name_of(format)) == format,
                  "a format that does not come back from its name");
  });
}
