#include "tools/train/train_config.hpp"

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile file("input.toml");
  return fuzz::parse_or_refuse([&] { tools::read_train_config(file.write(data, size)); });
}
