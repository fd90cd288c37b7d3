#include "emulator/replay/recording.hpp"

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::parse_or_refuse([&] {
    const auto recording = emulator::replay::read_recording(fuzz::in_memory(data, size));
    for (const auto& call : recording.calls) {
      for (const auto* tensor : emulator::replay::tensors_of(call.out))
        (void)emulator::operators::numbers_of(*tensor);
    }
  });
}
