#include "experiments/harness/settings.hpp"

#include <array>

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// VALUES of --set: the first byte says for which kind of parameter.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using experiments::Parameter;
  static constexpr std::array parameters = {
      Parameter{"i", "", "", "", Parameter::Kind::integer, true, -100, 1000},
      Parameter{"n", "", "", "", Parameter::Kind::number, true, -1e6, 1e6},
      Parameter{"w", "", "", "", Parameter::Kind::word, true, 1, 1, "one,two,three"},
      Parameter{"p", "", "", "", Parameter::Kind::path},
      Parameter{"l", "", "", "", Parameter::Kind::integer, true, -1e15, 1e15},
      Parameter{"s", "", "", "", Parameter::Kind::number, false, 0, 1},
  };
  if (size == 0) return 0;
  return fuzz::parse_or_refuse([&] {
    experiments::parse_values(parameters[data[0] % parameters.size()],
                              fuzz::text_of(data + 1, size - 1), "input");
  });
}
