#include "experiments/traces/trace_name.hpp"

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  experiments::parse_trace_name(fuzz::text_of(data, size));
  return 0;
}
