#include "formats/files/idx.hpp"

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// MNIST files, packed by gzip or not.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile file("input");
  return fuzz::parse_or_refuse([&] { fuzz::touch(formats::read_idx(file.write(data, size))); });
}
