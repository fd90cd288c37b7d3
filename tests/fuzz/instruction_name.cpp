#include "emulator/catalogue/instruction_catalogue.hpp"
#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// "ARCH NAME", as the command line takes them; a third word is the toolkit.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const std::size_t first = std::min(text.find(32), text.size());
  const std::size_t second = std::min(text.find(32, first + 1), text.size());
  return fuzz::parse_or_refuse([&] {
    const std::string_view name = text.substr(std::min(first + 1, second), second - first);
    const int toolkit =
        emulator::require_toolkit(text.substr(std::min(second + 1, text.size())), "input");
    emulator::require_instruction(text.substr(0, first), name, "input", toolkit);
  });
}
