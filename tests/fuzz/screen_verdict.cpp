#include "tools/report/screen_verdict.hpp"

#include "tests/fuzz/input.hpp"
#include "tools/console/read_json.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// What `gpu screen` wrote, as `screen merge` reads it, and what is made of it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile file("input.json");
  const std::string path = file.write(data, size);
  return fuzz::parse_or_refuse([&] {
    tools::Verdicts verdicts, again;
    verdicts.add(tools::read_json<nlohmann::ordered_json>(path), path);
    verdicts.worst();
    verdicts.slurm_nodes(true);
    verdicts.kubernetes_events();
    again.add(verdicts.to_json(), "again");
    fuzz::require(again.to_json() == verdicts.to_json(), "verdicts that do not come back");
  });
}
