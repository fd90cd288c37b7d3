#include "formats/format_catalogue.hpp"
#include "formats/text.hpp"
#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// Numbers as people write them, and as they are printed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::parse_or_refuse([&] {
    const formats::ParsedValue parsed = formats::parse_value(fuzz::text_of(data, size), "input");
    if (parsed.decimal && parsed.decimal->digits.size() < 100) formats::unrounded(*parsed.decimal);
    if (!parsed.format) return;
    formats::hex_text(*parsed.format, parsed.code);
    formats::binary_text(*parsed.format, parsed.code);
  });
}
