#include "emulator/gemm/plan.hpp"

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::parse_or_refuse([&] {
    const emulator::GemmPlan plan = emulator::parse_plan(fuzz::text_of(data, size), "input");
    emulator::describe(plan);
    fuzz::require(emulator::parse_plan(emulator::to_text(plan), "again") == plan,
                  "a plan that does not come back from its text");
  });
}
