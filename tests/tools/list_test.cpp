#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "emulator/catalogue/accumulator_fields.hpp"
#include "emulator/catalogue/instruction_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit;
using nlohmann::json;
using tests::CommandResult;
using tests::holds;
using tests::run_command;

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

TEST_CASE("the list holds every instruction, in JSON and by name") {
  const json all = json::parse(run_command({"list", "--json"}).out);
  CHECK(all["instructions"].size() == emulator::catalogue().size());
  const json& first = all["instructions"][0];
  for (const char* key : {"name", "arch", "family", "shape", "a", "b", "c", "d", "arithmetic",
                          "toolkit", "basis", "source"}) {
    CHECK(first.contains(key));
  }
  const std::string names = run_command({"list", "--names"}).out;
  for (const emulator::MatrixInstruction& instruction : emulator::catalogue()) {
    CHECK(holds(names, std::string(std::string_view(instruction.name)) + "\n"));
  }
}

TEST_CASE("filters leave the instructions that they name") {
  const json instructions =
      json::parse(run_command({"list", "--json", "--arch", "sm_90a", "--type", "f16", "--family",
                               "wgmma", "--basis", "measured"})
                      .out)["instructions"];
  CHECK(instructions.size() == 6);  // f16 into f32 and f16; the four FP8 pairs into f16
  for (const json& entry : instructions) {
    CHECK(entry["arch"] == "sm_90");
    CHECK(entry["family"] == "wgmma");
    CHECK((entry["a"] == "fp16" || entry["d"] == "fp16"));
  }
}

TEST_CASE("the page for a terminal fits 100 columns and the tables name their sources") {
  const CommandResult page = run_command({"list"});
  CHECK(page.status == 0);
  CHECK(longest_line(page.out) <= 100);
  const CommandResult tables = run_command({"list", "--markdown"});
  CHECK(tables.status == 0);
  for (const emulator::Arch& arch : emulator::architectures()) {
    INFO(arch.name);
    CHECK(holds(page.out, std::string(arch.name)));
    CHECK(holds(tables.out, std::string(arch.name)));
  }
  for (const emulator::MatrixInstruction& instruction : emulator::catalogue()) {
    INFO(instruction.evidence.source);
    CHECK(holds(tables.out, std::string(instruction.evidence.source)));
  }
  for (const emulator::AccumulatorField& field : emulator::accumulator_fields())
    CHECK(holds(tables.out, "| " + std::string(field.name) + " |"));
}

TEST_CASE("what several machines share is described once") {
  const std::string all = run_command({"list"}).out;
  const std::size_t first = all.find("\nsm_80, "), b300 = all.find("\nsm_103 ");
  REQUIRE(first != std::string::npos);
  REQUIRE(b300 != std::string::npos);
  CHECK_FALSE(holds(all.substr(0, first), ": as "));
  CHECK(
      holds(all.substr(b300, all.find("\n\n", b300) - b300), "\n  tcgen05 kind::i8: as sm_100\n"));
  // A machine by itself is described in full.
  const std::string own = run_command({"list", "--arch", "sm_103"}).out;
  CHECK_FALSE(holds(own, ": as "));
  CHECK(holds(own, "\n  tcgen05 kind::i8\n"));
}

TEST_CASE("one instruction is described in words") {
  const CommandResult native =
      run_command({"list", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "--arch", "sm_90"});
  CHECK(native.status == 0);
  for (const char* part :
       {"sm_90", "measured", "blocks of 16", "2^(E-25)", "-133", "truncated to fp32"}) {
    INFO(part << "\n" << native.out);
    CHECK(holds(native.out, part));
  }
  const CommandResult emulated = run_command(
      {"list", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "--arch", "sm_90"});
  CHECK(holds(emulated.out, "k mod 4 in {0,1}"));
  CHECK(holds(emulated.out, "before ptxas 13.0"));
}

TEST_CASE("unknown names give one line with what comes near") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f61.f32"},
        {"list", "--arch", "sm_900"},
        {"list", "--type", "fp17"},
        {"list", "--family", "mna"},
        {"list", "--basis", "guessed"}}) {
    const CommandResult result = run_command(words);
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(tests::is_one_error_line(result.error));
  }
}

}  // namespace
