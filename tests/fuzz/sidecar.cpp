#include "tests/fuzz/input.hpp"
#include "tools/trace/trace_sidecar.hpp"

using namespace guardbit;
using namespace guardbit::tests;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile file("input.npz.json");
  const std::string path = file.write(data, size);
  const std::string of = path.substr(0, path.size() - std::string_view(".json").size());
  return fuzz::parse_or_refuse([&] {
    const tools::Sidecar sidecar(of, {});
    for (const char* const name : {"fc1.weight.grad", "x"}) {
      experiments::TraceName meaning = tools::meaning_of(of, name);
      std::optional<double> scale;
      sidecar.complete(name, meaning, scale);
    }
  });
}
