#include "tools/scaler/scaler_log.hpp"

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// JSON, JSON lines or a table. Up to the first zero byte it is the run that is asked for.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile file("input.json");
  const std::string_view text = fuzz::text_of(data, size);
  const std::size_t zero = text.find(char{0});
  const std::size_t begin = zero == std::string_view::npos ? 0 : zero + 1;
  const std::string run(text.substr(0, begin == 0 ? 0 : zero));
  return fuzz::parse_or_refuse(
      [&] { tools::read_scaler_log(file.write(data + begin, size - begin), run); });
}
