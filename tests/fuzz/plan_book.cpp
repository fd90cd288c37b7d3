#include "emulator/replay/plan_book.hpp"

#include <nlohmann/json.hpp>

#include "tests/fuzz/input.hpp"
#include "tools/products/plan_book_file.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// What `replay --book` wrote.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile file("input.json");
  return fuzz::parse_or_refuse([&] {
    emulator::replay::PlanBook book, again;
    tools::read_plan_book(file.write(data, size), book);
    tools::add_plans(tools::plans_json(book), "again", again);
    fuzz::require(again.all() == book.all(), "plans that do not come back from their file");
  });
}
