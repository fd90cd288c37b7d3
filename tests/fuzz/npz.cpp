#include "formats/files/npz.hpp"

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::parse_or_refuse(
      [&] { fuzz::touch(formats::open_npz(fuzz::in_memory(data, size))); });
}
