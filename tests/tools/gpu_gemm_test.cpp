#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/tools/command.hpp"

namespace {

using namespace guardbit;
using tests::CommandResult;
using tests::is_one_error_line;
using tests::run_command;
using tests::TemporaryFolder;

bool no_device() {
  const CommandResult list = run_command({"gpu", "list", "--json"});
  if (list.status == 0 && nlohmann::json::parse(list.out)["runs"] == true) return false;
  std::cout << "SKIPPED: " << (list.status == 0 ? "the device does not run this build" : list.error)
            << '\n';
  return true;
}

struct Choice {
  std::string arch, instruction;
};

std::vector<std::string> words_of(const Choice& of, const std::string& family,
                                  const std::string& kernel, const std::string& output) {
  return {"gpu",        "gemm",   "--arch", of.arch,    "--instruction", of.instruction, "--random",
          "147,75,211", "--seed", "5",      "--family", family,          "--kernel",     kernel,
          "--check",    "6",      "-o",     output,     "--json"};
}

TEST_CASE("the tuned kernel, the model on the device and the CPU engines agree", "[gpu]") {
  if (no_device()) return;
  const TemporaryFolder folder;
  for (const Choice& of :
       {Choice{"sm_90", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"},
        Choice{"sm_90", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16"},
        Choice{"sm_90", "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32"},
        Choice{"sm_90", "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16"},
        Choice{"sm_90", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2"},
        Choice{"sm_90", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"},
        Choice{"sm_90", "mma.sync.aligned.m16n8k16.row.col.f16.e5m2.e5m2.f16"},
        Choice{"sm_70", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"},
        Choice{"sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"},
        Choice{"sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"},
        Choice{"sm_89", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"},
        Choice{"sm_120", "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16"}}) {
    for (const std::string family :
         {"normal", "raw", "finite", "narrow", "sparse", "relu", "tiny", "specials"}) {
      INFO(of.instruction << " on " << of.arch << ", " << family);
      const std::string tuned = folder.path("tuned.npy"), model = folder.path("model.npy");
      const CommandResult fast = run_command(words_of(of, family, "tuned", tuned));
      INFO(fast.error);
      REQUIRE(fast.status == 0);
      const auto report = nlohmann::json::parse(fast.out);
      CHECK(report["kernel"] == "tuned");
      CHECK(report["checked"]["outputs"] == 6 * 16 * 16);
      CHECK(report["checked"]["mismatches"] == 0);
      REQUIRE(run_command(words_of(of, family, "model", model)).status == 0);
      CHECK(tests::read_text(tuned) == tests::read_text(model));
    }
  }
}

TEST_CASE("instructions that the tuned kernel does not take go to the model", "[gpu]") {
  if (no_device()) return;
  for (const Choice& of : {Choice{"sm_90", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"},
                           Choice{"sm_90", "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64"},
                           Choice{"cdna3", "v_mfma_f32_16x16x16_f16"}}) {
    INFO(of.instruction);
    const CommandResult result =
        run_command({"gpu", "gemm", "--arch", of.arch, "--instruction", of.instruction, "--random",
                     "40,33,70", "--check", "4", "--json"});
    INFO(result.error);
    REQUIRE(result.status == 0);
    const auto report = nlohmann::json::parse(result.out);
    CHECK(report["kernel"] == "model");
    CHECK(report["checked"]["mismatches"] == 0);
  }
}

TEST_CASE("gpu gemm refuses in one line what it cannot do") {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--arch", "sm_90", "--type", "int4", "--random", "8,8,8"},
           {"--arch", "sm_1", "--random", "8,8,8"},
           {"--arch", "sm_90", "--random", "8,8,0"},
           {"--arch", "sm_90"}}) {
    std::vector<std::string> command = {"gpu", "gemm"};
    command.insert(command.end(), words.begin(), words.end());
    const CommandResult result = run_command(command);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
  }
}

}  // namespace
