#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>

#include "emulator/capture/capture.hpp"
#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/emulator/inputs/x86_inputs.hpp"

// guardbit_record_cpu FOLDER: records what this CPU answers, a file for each instruction of x86
// that it has. tests/golden/x86 is made so.
namespace {

using namespace guardbit;
using namespace guardbit::tests;

const emulator::Engine& silicon() {
  return *std::find_if(emulator::engines().begin(), emulator::engines().end(),
                       [](const emulator::Engine& engine) { return engine.name == "cpu"; });
}

formats::Tensor tensor(const char* name, const Format& f, const std::vector<std::int64_t>& shape,
                       std::vector<std::byte> bytes) {
  return formats::owning_tensor(name, f, formats::Packing::container, shape, std::move(bytes));
}

void record(const MatrixInstruction& instruction, const std::filesystem::path& folder) {
  const BatchInputs inputs = recorded_unit_inputs(instruction);
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
  std::cout << file << '\n';
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: guardbit_record_cpu FOLDER\n";
    return 2;
  }
  try {
    for (const MatrixInstruction& instruction : emulator::catalogue())
      if (instruction.arch == "x86" && silicon().accepts(instruction))
        record(instruction, words[1]);
  } catch (const std::exception& error) {
    std::cerr << "guardbit_record_cpu: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
