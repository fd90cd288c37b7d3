#include "emulator/catalogue/instruction_text.hpp"
#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::parse_or_refuse([&] {
    const std::string text =
        emulator::instruction_text(emulator::parse_instruction(fuzz::text_of(data, size), "input"));
    fuzz::require(emulator::instruction_text(emulator::parse_instruction(text, "again")) == text,
                  "an instruction that does not come back from its text");
  });
}
