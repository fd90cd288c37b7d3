#include "emulator/capture/function_capture.hpp"

#include "formats/files/safetensors.hpp"
#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::parse_or_refuse([&] {
    const formats::TensorFile file = formats::read_safetensors(fuzz::in_memory(data, size));
    if (emulator::is_function_capture(file)) emulator::make_function_capture(file, "input");
  });
}
