#include "tools/report/experiment_record.hpp"

#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile file("input.json");
  return fuzz::parse_or_refuse([&] {
    const tools::ExperimentRecord record = tools::read_record(file.write(data, size));
    try {
      tools::outcome_of(record.result);
    } catch (const nlohmann::json::exception&) {  // its readers expect that, too
    }
  });
}
