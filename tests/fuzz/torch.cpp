#include "formats/files/torch_file.hpp"
#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::parse_or_refuse(
      [&] { fuzz::touch(formats::open_torch(fuzz::in_memory(data, size))); });
}
