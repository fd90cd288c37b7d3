#include "formats/files/safetensors.hpp"

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::parse_or_refuse([&] {
    const formats::MappedFile file = fuzz::in_memory(data, size);
    for (const formats::Tensor& tensor : formats::read_safetensors(file).tensors)
      fuzz::touch(tensor);
  });
}
