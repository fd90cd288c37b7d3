#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "emulator/capture/capture.hpp"
#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/x86_inputs.hpp"

// tests/golden/x86: what a CPU answered. With GUARDBIT_RECORD_CPU=FOLDER the program writes that
// folder's recordings of every instruction that this CPU has.
namespace {

using namespace guardbit;
using namespace guardbit::tests;

constexpr std::uint64_t recording_seed = 20261121;

/// Executions that hold every family several times and make files of a few kilobytes.
std::int64_t execution_count(const MatrixInstruction& instruction) {
  const auto families = static_cast<std::int64_t>(unit_families(instruction).size());
  if (instruction.family == emulator::Family::avx)
    return is_floating(instruction.a) ? 24 * families : 128;
  return is_floating(instruction.a) ? 4 : 1;
}

const emulator::Engine& silicon() {
  return *std::find_if(emulator::engines().begin(), emulator::engines().end(),
                       [](const emulator::Engine& engine) { return engine.name == "cpu"; });
}

formats::Tensor tensor(const char* name, const Format& f, const std::vector<std::int64_t>& shape,
                       std::vector<std::byte> bytes) {
  return formats::owning_tensor(name, f, formats::Packing::container, shape, std::move(bytes));
}

void record(const MatrixInstruction& instruction, const std::filesystem::path& folder) {
  const BatchInputs inputs =
      mixed_unit_inputs(instruction, recording_seed, execution_count(instruction));
  const Shape& s = instruction.shape;
  const auto width = static_cast<std::size_t>(formats::container_bits(instruction.d)) / 8;
  std::vector<std::byte> d(static_cast<std::size_t>(inputs.count * s.m * s.n) * width);
  emulator::run_batch(silicon(), instruction, inputs.batch(instruction, d.data()));
  auto metadata =
      emulator::capture_metadata(instruction, instruction.arch, emulator::newest_toolkit, {});
  metadata["device"] = silicon().device();
  metadata["seed"] = std::to_string(recording_seed);
  std::string families;
  for (const InputFamily family : unit_families(instruction))
    families += (families.empty() ? "" : ",") + std::string(name_of(family));
  metadata["families"] = families;
  const std::vector<formats::Tensor> tensors = {
      tensor("a", instruction.a, {inputs.count, s.m, s.k}, inputs.a),
      tensor("b", instruction.b, {inputs.count, s.k, s.n}, inputs.b),
      tensor("c", instruction.c, {inputs.count, s.m, s.n}, inputs.c),
      tensor("d", instruction.d, {inputs.count, s.m, s.n}, d)};
  const std::string file = std::string(std::string_view(instruction.name)) + ".safetensors";
  formats::write_safetensors((folder / file).string(), metadata, tensors);
}

}  // namespace

TEST_CASE("x86 recordings hold what their seed makes, of every measured instruction") {
  if (const char* const folder = std::getenv("GUARDBIT_RECORD_CPU")) {
    for (const MatrixInstruction& instruction : emulator::catalogue()) {
      if (instruction.arch == "x86" && silicon().accepts(instruction)) record(instruction, folder);
    }
  }
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    if (instruction.arch != "x86" || instruction.evidence.basis != emulator::Basis::measured)
      continue;
    const std::string path =
        "tests/golden/x86/" + std::string(std::string_view(instruction.name)) + ".safetensors";
    INFO(path);
    const formats::TensorFile file = formats::read_safetensors(path);
    CHECK(file.metadata.at("seed") == std::to_string(recording_seed));
    CHECK(file.metadata.at("device") != "");
    const BatchInputs inputs =
        mixed_unit_inputs(instruction, recording_seed, execution_count(instruction));
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
