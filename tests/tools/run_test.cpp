#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "formats/files/array_file.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/instruction_sets_here.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit;
using tests::CommandResult;
using tests::holds;
using tests::is_one_error_line;
using tests::run_command;
using tests::TemporaryFolder;

const std::string capture =
    "tests/golden/mma.sync/mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32.safetensors";
const std::string name = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";

bool same_bytes(const formats::Tensor& x, const formats::Tensor& y) {
  return x.shape == y.shape &&
         std::equal(x.bytes.begin(), x.bytes.end(), y.bytes.begin(), y.bytes.end());
}

formats::Tensor recorded_result(const std::string& path) {
  return *formats::read_safetensors(path).find("d");
}

std::vector<std::string> run_words(const std::string& output) {
  return {"run", name,    "--arch", "sm_90",        "--a", capture,
          "--b", capture, "--c",    capture + ":c", "-o",  output};
}

TEST_CASE("a recording's operands give its results, in every kind of file") {
  const TemporaryFolder folder;
  for (const std::string file : {"d.npy", "d.npz", "d.safetensors"}) {
    const CommandResult result = run_command(run_words(folder.path(file)));
    INFO(result.error);
    CHECK(result.status == 0);
    CHECK(holds(result.out, "10 executions"));
    const formats::TensorFile written = formats::read_tensors(folder.path(file));
    REQUIRE(written.tensors.size() == 1);
    CHECK(same_bytes(written.tensors[0], recorded_result(capture)));
  }
}

TEST_CASE("every dense or sparse recording can be written as a capture that verifies") {
  const TemporaryFolder folder;
  const std::string made = folder.path("made.safetensors");
  for (const std::string stem :
       {"mma.sync/mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "mma.sp/mma.sp__ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32",
        "mma.sync/mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        "mma.sync/mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
        "mma.sync/mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
        "wgmma/wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16.neg_a"}) {
    const std::string file = "tests/golden/" + stem + ".safetensors";
    const formats::TensorFile source = formats::read_safetensors(file);
    std::vector<std::string> words = {"run",          source.metadata.at("instruction"),
                                      "--arch",       "sm_90",
                                      "--a",          file,
                                      "--b",          file,
                                      "--c",          file,
                                      "-o",           made,
                                      "--as-capture", "--json"};
    if (source.find("e") != nullptr) words.insert(words.end(), {"--e", file});
    if (source.metadata.contains("imm_scale_a")) words.push_back("--negate-a");
    const CommandResult result = run_command(words);
    INFO(stem << "\n" << result.error);
    REQUIRE(result.status == 0);
    CHECK(nlohmann::json::parse(result.out)["file"] == made);
    CHECK(run_command({"verify", made}).status == 0);
    const formats::TensorFile written = formats::read_safetensors(made);
    CHECK(written.metadata.at("device") == "guardbit model");
    for (const formats::Tensor& tensor : source.tensors) {
      REQUIRE(written.find(tensor.name) != nullptr);
      CHECK(written.find(tensor.name)->format == tensor.format);
      CHECK(same_bytes(*written.find(tensor.name), tensor));
    }
  }
}

TEST_CASE("matrices without executions, words as codes, and C left out") {
  const TemporaryFolder folder;
  const std::vector<std::uint64_t> a(16 * 16, 0x3F80), b(16 * 8, 0x4000);
  const auto write = [&](const std::string& file, const formats::Format& format,
                         std::vector<std::int64_t> shape, const std::vector<std::uint64_t>& codes) {
    const auto tensor =
        formats::tensor_of_codes("x", format, formats::Packing::container, std::move(shape), codes);
    formats::write_tensors(folder.path(file), {}, std::vector{tensor});
    return folder.path(file);
  };
  const std::string words_file = write("a.npy", formats::uint16, {16, 16}, a);
  const std::string void_file =
      write("b.npy", formats::bf16, {16, 8}, b);  // numpy.save's form: |V2
  const CommandResult result =
      run_command({"run", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "--arch", "sm_80",
                   "--a", words_file, "--b", void_file, "-o", folder.path("d.npy")});
  INFO(result.error);
  REQUIRE(result.status == 0);
  const formats::Tensor d = formats::read_tensors(folder.path("d.npy")).tensors.at(0);
  CHECK(d.shape == std::vector<std::int64_t>{16, 8});
  CHECK(formats::codes_of(d) == std::vector<std::uint64_t>(16 * 8, 0x42000000));
}

TEST_CASE("modifiers act on the result") {
  const TemporaryFolder folder;
  const std::string wgmma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16";
  const std::string recorded = "tests/golden/wgmma/" + wgmma + ".neg_a.safetensors";
  const std::vector<std::string> without_c = {
      "run",    wgmma, "--arch", "sm_90", "--a",
      recorded, "--b", recorded, "-o",    folder.path("e.npy")};
  std::vector<std::string> words = without_c;
  words.back() = folder.path("d.npy");
  words.insert(words.end(), {"--c", recorded + ":c", "--scale-d", "0", "--negate-a", "--negate-b"});
  REQUIRE(run_command(words).status == 0);
  REQUIRE(run_command(without_c).status == 0);
  const formats::Tensor scaled = formats::read_tensors(folder.path("d.npy")).tensors.at(0);
  CHECK(same_bytes(scaled, formats::read_tensors(folder.path("e.npy")).tensors.at(0)));
  CHECK_FALSE(same_bytes(scaled, recorded_result(recorded)));
  // Other units have no such operands.
  words = run_words(folder.path("d.npy"));
  words.emplace_back("--negate-a");
  CHECK(run_command(words).status == 2);
}

TEST_CASE("this CPU's own unit answers by name, and its captures say so", "[cpu]") {
  const auto instruction = emulator::require_instruction("x86", "VFMADD231PS", "test");
  const auto engine = std::find_if(emulator::engines().begin(), emulator::engines().end(),
                                   [](const auto& e) { return e.name == "cpu"; });
  if (!engine->accepts(instruction)) {
    std::cout << "SKIPPED: VFMADD231PS is not a unit of this CPU\n";
    return;
  }
  const TemporaryFolder folder;
  const std::string file = "tests/golden/x86/VFMADD231PS.safetensors";
  const std::string made = folder.path("made.safetensors");
  const CommandResult result =
      run_command({"run", "vfmadd231ps", "--arch", "x86", "--engine", "cpu", "--a", file, "--b",
                   file, "--c", file, "-o", made, "--as-capture"});
  INFO(result.error);
  REQUIRE(result.status == 0);
  const formats::TensorFile written = formats::read_safetensors(made);
  CHECK(written.metadata.at("device") == engine->device());
  CHECK(written.metadata.at("instruction") == "VFMADD231PS");
  CHECK(same_bytes(*written.find("d"), recorded_result(file)));
  CHECK(run_command({"verify", made}).status == 0);
}

TEST_CASE("GUARDBIT_CPU takes engines away and leaves the bits", "[cpu]") {
  if (!tests::cpu_has(formats::InstructionSets::avx512)) {
    std::cout << "SKIPPED: this CPU has no AVX-512 to mask\n";
    return;
  }
  const TemporaryFolder folder;
  std::string widest;  // what all engines must give, written by the first
  for (const std::string mask : {"", "avx512", "avx2", "baseline"}) {
    const std::string engine = mask.empty() ? "avx512" : mask == "baseline" ? "portable" : mask;
    const CommandResult result = tests::run_shell(
        folder, "export GUARDBIT_CPU=" + mask + "\nguardbit verify " + capture + "\nguardbit run " +
                    name + " --arch sm_90 --a " + capture + " --b " + capture + " --c " + capture +
                    ":c -o $folder/d.npy\n" +
                    "guardbit cast $folder/d.npy --to e4m3 -o $folder/e.npy >$folder/log\n"
                    "cat $folder/d.npy $folder/e.npy | sha256sum >&2");
    INFO("mask '" << mask << "'");
    REQUIRE(result.status == 0);
    CHECK(holds(result.out, "  " + engine + "  "));         // verify
    CHECK(holds(result.out, ", engine " + engine + ", "));  // run
    if (widest.empty()) widest = result.error;
    CHECK(result.error == widest);
  }
  for (const std::string words : {"formats fp16", "--help", "--version", "bench --list"}) {
    const CommandResult refused = tests::run_shell(folder, "GUARDBIT_CPU=AVX2 guardbit " + words);
    CHECK(refused.status == 2);
    CHECK(refused.out.empty());
    CHECK(refused.error ==
          "guardbit: GUARDBIT_CPU: unknown value 'AVX2' (valid: baseline, avx2, avx512)\n");
  }
}

TEST_CASE("what cannot be run gives one line and status 2, and no file") {
  const TemporaryFolder folder;
  const std::string output = folder.path("d.npy");
  const auto refused = [&](const std::vector<std::string>& words, const std::string& why) {
    const CommandResult result = run_command(words);
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    CHECK(holds(result.error, why));
    CHECK_FALSE(std::filesystem::exists(output));
  };
  const auto words = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = run_words(output);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  refused({"run", name, "--arch", "sm_99", "--a", capture, "--b", capture, "-o", output},
          "unknown architecture");
  refused(
      {"run", "mma.sync.m16n8k16", "--arch", "sm_90", "--a", capture, "--b", capture, "-o", output},
      "unknown instruction");
  refused({"run", name, "--arch", "sm_90", "--a", capture + ":f", "--b", capture, "-o", output},
          "no tensor 'f' (valid: ");
  refused({"run", name, "--arch", "sm_90", "--a", capture + ":d", "--b", capture, "-o", output},
          "tensor 'a'");
  refused(
      {"run", name, "--arch", "sm_90", "--a", folder.path("x.npy"), "--b", capture, "-o", output},
      "x.npy");
  refused(words({"--engine", "abacus"}), "abacus");
  refused(words({"--engine", "cpu"}), "engine cpu: does not execute");
  refused(words({"--toolkit", "new"}), "'new' is not a version");
  refused(words({"--toolkit", "12.4"}), "--toolkit: is not read: every ptxas compiles " + name);
  refused({"probe", "--instruction", name, "--arch", "sm_90", "--toolkit", "13.0"},
          "--toolkit: is not read");
  refused(words({"--e", capture + ":a"}), "is dense");
  refused({"run", name, "--arch", "sm_90", "--a", capture, "--b", capture, "-o",
           folder.path("absent/d.npy")},
          "absent");
  refused(
      {"run", name, "--arch", "sm_90", "--a", capture, "--b", capture, "-o", folder.path("d.txt")},
      "valid: .safetensors");
}

}  // namespace
