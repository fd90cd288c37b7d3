#include <algorithm>
#include <string>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/files/safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/x86_inputs.hpp"

// tests/golden/x86: what a CPU answered, as guardbit_record_cpu writes it.
namespace {

using namespace guardbit;
using namespace guardbit::tests;

}  // namespace

TEST_CASE("x86 recordings hold what their seed makes, of every measured instruction") {
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    if (instruction.arch != "x86" || instruction.evidence.basis != emulator::Basis::measured)
      continue;
    const std::string path =
        "tests/golden/x86/" + std::string(std::string_view(instruction.name)) + ".safetensors";
    INFO(path);
    const formats::TensorFile file = formats::read_safetensors(path);
    CHECK(file.metadata.at("seed") == std::to_string(recording_seed));
    CHECK(file.metadata.at("device") != "");
    const BatchInputs inputs = recorded_unit_inputs(instruction);
    const auto same = [&](const char* name, const std::vector<std::byte>& bytes) {
      const formats::Tensor* const found = file.find(name);
      return found != nullptr &&
             std::equal(found->bytes.begin(), found->bytes.end(), bytes.begin(), bytes.end());
    };
    CHECK(same("a", inputs.a));
    CHECK(same("b", inputs.b));
    CHECK(same("c", inputs.c));
  }
}
