#include "formats/files/hdf5_file.hpp"
#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// libhdf5 reads in child processes: what happens there is an Error here, so that this target sees
// what our code does around it, and what the library does in the second reading in this process.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile file("input.h5");
  return fuzz::parse_or_refuse(
      [&] { fuzz::touch(formats::open_hdf5(formats::map_file(file.write(data, size)))); });
}
