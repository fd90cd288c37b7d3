#include "tests/fuzz/input.hpp"
#include "tools/scaler/scaler_replay.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::parse_or_refuse(
      [&] { tools::parse_pattern(std::string(fuzz::text_of(data, size))); });
}
