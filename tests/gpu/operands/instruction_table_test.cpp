#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "emulator/capture/capture.hpp"
#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/catalogue/instruction_name.hpp"
#include "formats/support/error.hpp"
#include "gpu/inputs/inputs.hpp"
#include "gpu/operands/tensor_core_instruction.hpp"
#include "gpu/validation/device_capture.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"

namespace {

using namespace guardbit::gpu;
namespace emulator = guardbit::emulator;

const std::string golden = guardbit::tests::in_source("tests/golden/h200/");

std::string golden_path(const TensorCoreInstruction& instruction) {
  const std::string stem = capture_stem(instruction);
  for (const std::string family : {"mma.sp", "mma.sync", "wgmma", "wmma"})
    if (stem.starts_with(family)) return golden + family + "/" + stem + ".safetensors";
  return golden + stem + ".safetensors";
}

/// What the Error says that the call throws; empty when it throws none.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const guardbit::formats::Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("every wrapped instruction is in the catalogue with that shape and those formats") {
  for (const std::string_view arch : wrapped_architectures()) {
    const auto table = tensor_core_instructions(arch);
    REQUIRE(table.size() > 300);
    std::set<std::pair<std::string_view, std::string_view>> names;
    for (const TensorCoreInstruction& instruction : table) {
      INFO(std::string(arch) << " " << std::string(instruction.name) << " "
                             << std::string(instruction.variant));
      REQUIRE(instruction.arch == arch);
      REQUIRE_NOTHROW(check_against_catalogue(instruction));
      if (!instruction.plain.empty()) REQUIRE(find_plain(table, instruction.plain) != nullptr);
      REQUIRE(names.insert({instruction.name, instruction.variant}).second);
    }
  }
  TensorCoreInstruction wrong = tensor_core_instructions().front();
  wrong.k += 1;
  REQUIRE(refusal([&] { check_against_catalogue(wrong); }).find("another shape") !=
          std::string::npos);
}

TEST_CASE("tables of instructions are found by any name of an architecture") {
  REQUIRE(tensor_core_instructions("sm_90a").data() == tensor_core_instructions("sm_90").data());
  REQUIRE(tensor_core_instructions("sm_87").data() == tensor_core_instructions("sm_86").data());
  REQUIRE(tensor_core_instructions("sm_121a").data() == tensor_core_instructions("sm_120").data());
  REQUIRE(refusal([] { tensor_core_instructions("sm_70"); }).find("sm_120") != std::string::npos);
}

TEST_CASE("wgmma comes in every size of N") {
  std::map<std::string, std::set<int>> sizes;
  for (const TensorCoreInstruction& instruction : tensor_core_instructions("sm_90"))
    if (instruction.unit == Unit::wgmma && instruction.variant.empty())
      sizes[emulator::parse_name(instruction.name).key].insert(instruction.n);
  REQUIRE(sizes.size() == 2 * (12 + 8) + 1);
  for (const auto& [key, ns] : sizes) {
    INFO(key);
    REQUIRE(ns.size() == (key.find(".s32.") == std::string::npos ? 32 : 18));
    REQUIRE(*ns.begin() == 8);
    REQUIRE(*ns.rbegin() == 256);
  }
}

TEST_CASE("every measured instruction of sm_90 has a wrapper and a recording") {
  std::set<std::string> wrapped;
  for (const TensorCoreInstruction& instruction : tensor_core_instructions())
    if (instruction.variant.empty() && std::filesystem::exists(golden_path(instruction)))
      wrapped.insert(emulator::parse_name(instruction.name).key);
  for (const emulator::MatrixInstruction& instruction : emulator::catalogue()) {
    if (instruction.arch != "sm_90" || instruction.evidence.basis != emulator::Basis::measured)
      continue;
    INFO(std::string(std::string_view(instruction.name)));
    REQUIRE(wrapped.count(emulator::parse_name(instruction.name).key) == 1);
  }
}

TEST_CASE("golden inputs are what their seed makes", "[cpu]") {
  if (std::numeric_limits<long double>::digits != 64) {
    WARN("SKIPPED: the cancellation family needs the x87 long double");
    return;
  }
  int files = 0;
  for (const TensorCoreInstruction& instruction : tensor_core_instructions()) {
    if (!std::filesystem::exists(golden_path(instruction))) continue;
    INFO(golden_path(instruction));
    const Batch recorded = read_capture(golden_path(instruction), instruction);
    const Batch made = make_mixed_rows(instruction, recorded.executions, 20261120);
    REQUIRE(recorded.a == made.a);
    REQUIRE(recorded.b == made.b);
    REQUIRE(recorded.c == made.c);
    REQUIRE(recorded.e == made.e);
    ++files;
  }
  REQUIRE(files > 300);
}

TEST_CASE("the golden files' page lists the families in order") {
  std::ifstream file(golden + "README.md");
  std::stringstream page;
  for (std::string word; file >> word;) page << word << ' ';
  for (const char* name : {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                           "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
                           "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc"}) {
    const TensorCoreInstruction* instruction = find_plain(name);
    REQUIRE(instruction != nullptr);
    std::string line = "- `" + std::string(mixed_kind(*instruction)) + "`:";
    for (const std::string_view family : mixed_families(*instruction))
      line += (line.back() == ':' ? " " : ", ") + std::string(family);
    INFO(line);
    REQUIRE(page.str().find(line) != std::string::npos);
  }
}

TEST_CASE("a capture comes back as it was written") {
  const auto folder = std::filesystem::temp_directory_path() / "guardbit_gpu_capture_test";
  std::filesystem::create_directories(folder);
  for (const char* name : {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
                           "mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
                           "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
                           "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"}) {
    const TensorCoreInstruction* instruction = find_plain(name);
    REQUIRE(instruction != nullptr);
    Batch batch = make_mixed_rows(*instruction, 2, 3);
    batch.d = batch.c;
    const std::string path = (folder / (capture_stem(*instruction) + ".safetensors")).string();
    write_capture(path, *instruction, batch, {{"device", "none"}});
    const Batch read = read_capture(path, *instruction);
    REQUIRE(read.a == batch.a);
    REQUIRE(read.b == batch.b);
    REQUIRE(read.d == batch.d);
    REQUIRE(read.e == batch.e);
    REQUIRE(emulator::read_capture(path).operands.outputs() ==
            2 * instruction->m * instruction->n);  // what the model reads
    const TensorCoreInstruction* other =
        find_plain("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16");
    REQUIRE(refusal([&] { read_capture(path, *other); }).find("does not fit") != std::string::npos);
  }
  std::filesystem::remove_all(folder);
}
