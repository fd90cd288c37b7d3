#include "tools/train/train_log.hpp"

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile file("log.csv");
  return fuzz::parse_or_refuse([&] {
    const auto log = tools::read_log(file.write(data, size));
    tools::log_text(log);
  });
}
