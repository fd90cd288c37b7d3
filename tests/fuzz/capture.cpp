#include "emulator/capture/capture.hpp"

#include "emulator/replay/recording.hpp"
#include "formats/files/safetensors.hpp"
#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::parse_or_refuse([&] { emulator::replay::read_recording(fuzz::in_memory(data, size)); });
  return fuzz::parse_or_refuse([&] {
    emulator::make_capture(formats::read_safetensors(fuzz::in_memory(data, size)), "input");
  });
}
