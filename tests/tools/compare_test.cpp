#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/files/array_file.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/json.hpp"
#include "tests/tools/shell.hpp"
#include "tests/tools/tensors.hpp"

namespace guardbit::tests {
namespace {

using nlohmann::json;

const std::string golden = "tests/golden/gemm/";
const std::string tf32 = golden + "mm_tf32_72x88x520.safetensors";
const std::string tf32_plan =
    "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 residue_first=16 split=8x4:ceil d=fp32";

std::vector<std::string> keys_of(const json& j) {
  std::vector<std::string> keys;
  for (const auto& item : j.items()) keys.push_back(item.key());
  return keys;
}

TEST_CASE("compare judges a recording against the exact product and its plan's bounds") {
  const CommandResult result =
      run_command({"compare", tf32, "--exact", "--plan", tf32_plan, "--json"});
  INFO(result.error);
  REQUIRE(result.status == 0);
  const json j = json::parse(result.out);
  CHECK(keys_of(j) ==
        std::vector<std::string>{"absolute",        "batch",         "bias",  "bounds",   "columns",
                                 "compared",        "componentwise", "equal", "file",     "format",
                                 "heat_map",        "infinity",      "nan",   "normwise", "outputs",
                                 "reference",       "relative",      "rows",  "seconds",  "ulp",
                                 "within_half_ulp", "worst"});
  CHECK(j["reference"] == "exact");
  CHECK(j["outputs"] == 72 * 88);
  CHECK(j["compared"] == 72 * 88);
  CHECK(j["bounds"]["deterministic"]["holds"] == true);
  CHECK(j["bounds"]["deterministic"]["largest_part"] > 0.01);
  CHECK(j["bounds"]["mean_zero"] == false);
  // TF32 keeps 11 bits of each operand, so 2^-11 of |A||B| is the scale of what is to be seen.
  CHECK(j["componentwise"]["max"] > 1e-5);
  CHECK(j["componentwise"]["max"] < 2 * 0x1p-11);
  CHECK(j["heat_map"]["max"].size() == 18);
  // The same operands given one by one.
  const CommandResult again = run_command(
      {"compare", tf32 + ":d", "--a", tf32 + ":a", "--b", tf32 + ":b", "--exact", "--json"});
  REQUIRE(again.status == 0);
  CHECK(json::parse(again.out)["ulp"] == j["ulp"]);
  CHECK(json::parse(again.out)["bounds"] == nullptr);
}

TEST_CASE("compare exits with 1 where a plan's bound does not hold or an error is too large") {
  // FP32 on CUDA cores is much closer to the exact product than TF32 was.
  const CommandResult result =
      run_command({"compare", tf32, "--exact", "--plan", "simt/fma.fp32 d=fp32"});
  CHECK(result.status == 1);
  CHECK(result.out.find("does not hold") != std::string::npos);
  CHECK(run_command({"compare", tf32, tf32, "--max-ulp", "0"}).status == 0);
  const std::string other = golden + "mm_fp32_33x17x100.safetensors";
  CHECK(run_command({"compare", other, "--exact", "--max-ulp", "0.5"}).status == 1);
}

TEST_CASE("compare finds the element that differs from a reference, and says so in words") {
  const TemporaryFolder folder;
  formats::TensorFile file = formats::read_safetensors(tf32);
  for (formats::Tensor& tensor : file.tensors) {
    if (tensor.name != "d") continue;
    std::vector<std::byte> bytes(tensor.bytes.begin(), tensor.bytes.end());
    bytes[4 * (5 * 88 + 3)] ^= std::byte{1};
    tensor = formats::owning_tensor("d", tensor.format, tensor.packing, tensor.shape, bytes);
  }
  const std::string flipped = folder.path("flipped.safetensors");
  formats::write_safetensors(flipped, file.metadata, file.tensors);
  const CommandResult words = run_command({"compare", flipped, tf32});
  CHECK(words.status == 0);
  INFO(words.out);
  CHECK(words.out.find("equal    6335 of 6336") != std::string::npos);
  CHECK(words.out.find("row 5, column 3") != std::string::npos);
  CHECK(words.out.find('@') != std::string::npos);
  const json j = json::parse(run_command({"compare", flipped, tf32, "--json"}).out);
  CHECK(j["ulp"]["max"] == 1);
  CHECK(j["worst"]["row"] == 5);
  CHECK(j["worst"]["column"] == 3);
  CHECK(j["componentwise"]["max"] == nullptr);
  CHECK(j["heat_map"]["statistic"] == "ulp");
}

TEST_CASE("compare takes NaNs alike, whatever their signs") {
  const TemporaryFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  formats::write_tensors(folder.path("x.npy"), {}, std::vector{tensor_of("x", {1, 2}, {nan, 1})});
  formats::write_tensors(folder.path("y.npy"), {}, std::vector{tensor_of("y", {1, 2}, {-nan, 1})});
  const std::vector<std::string> words = {"compare", folder.path("x.npy"), folder.path("y.npy")};
  for (const std::string how : {"--no-map", "--json"}) {
    std::vector<std::string> line = words;
    line.insert(line.end(), {"--max-ulp", "0", how});
    const CommandResult result = run_command(line);
    INFO(result.out << result.error);
    CHECK(result.status == 0);
    CHECK_FALSE(holds(result.out, "-nan"));
  }
  std::vector<std::string> json_words = words;
  json_words.emplace_back("--json");
  CHECK(json_of(json_words)["nan"]["both"] == 1);
}

TEST_CASE("compare has no figures where nothing is compared, and no worst of equal results") {
  const TemporaryFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  formats::write_tensors(folder.path("x.npy"), {}, std::vector{tensor_of("x", {1, 2}, {nan, nan})});
  formats::write_tensors(folder.path("y.npy"), {}, std::vector{tensor_of("y", {1, 2}, {2, 1})});
  const CommandResult text = run_command({"compare", folder.path("x.npy"), folder.path("y.npy")});
  INFO(text.out);
  CHECK(holds(text.out, "equal    0 of 0 (-)"));
  CHECK(holds(text.out, "ulp      largest -, mean -, root mean square -"));
  CHECK_FALSE(holds(text.out, "from 0 to 0"));
  const json none = json_of({"compare", folder.path("x.npy"), folder.path("y.npy"), "--json"});
  CHECK(none["ulp"]["max"] == nullptr);
  CHECK(none["bias"]["magnitude"] == nullptr);
  CHECK(json_of({"compare", tf32, tf32, "--json"})["worst"] == nullptr);
  CHECK_FALSE(holds(run_command({"compare", tf32, tf32}).out, "worst"));
  CHECK(run_command({"compare", tf32, tf32, "--max-ulp", "-1"}).status == 2);
}

TEST_CASE("compare takes a number, and FP8 codes that NumPy knows as integers") {
  const TemporaryFolder folder;
  formats::write_tensors(folder.path("s.npy"), {}, std::vector{tensor_of("s", {}, {1.5F})});
  CHECK(run_command({"compare", folder.path("s.npy"), folder.path("s.npy")}).status == 0);
  formats::write_tensors(folder.path("x.npy"), {},
                         std::vector{tensor_of("x", {2, 2}, {1, 2, 3, 0.3F})});
  REQUIRE(run_command({"cast", folder.path("x.npy"), "--to", "e4m3", "-o", folder.path("c.npy")})
              .status == 0);
  const json plain =
      json_of({"compare", folder.path("c.npy"), folder.path("x.npy"), "--from", "e4m3", "--json"});
  CHECK(plain.dump().find("e4m3") != std::string::npos);
  const CommandResult text = run_command(
      {"compare", folder.path("c.npy"), folder.path("x.npy"), "--from", "e4m3", "--no-map"});
  CHECK(text.status == 0);
  CHECK_FALSE(holds(text.out, "tile"));
}

TEST_CASE("compare refuses in one line what it cannot compare") {
  const auto refused = [&](std::vector<std::string> words, const std::string& why) {
    words.insert(words.begin(), "compare");
    const CommandResult result = run_command(words);
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    CHECK(result.error.find(why) != std::string::npos);
  };
  const std::string other = golden + "mm_fp32_33x17x100.safetensors";
  refused({tf32}, "needs REF or --exact");
  refused({tf32, tf32, "--exact"}, "needs REF or --exact");
  refused({tf32, other}, "is 72 x 88 where the reference is 33 x 17");
  refused({tf32, "--exact", "--a", tf32 + ":a"}, "--a and --b");
  refused({tf32, "--exact", "--a", other + ":a", "--b", other + ":b"}, "is 72 x 88 where A * B");
  refused({tf32, "--exact", "--beta", "1"}, "--c is needed");
  refused({tf32, "--exact", "--plan", "simt/fma.fp32 d=fp16"},
          "is fp32 and the plan's result fp16");
  refused({tf32, "--exact", "--plan", "simt/fma.fp7 d=fp32"},
          "fma.fp32, mul_add.fp32, mul_add.fp16, mul_add.bf16, fma.fp64");
  refused({"absent.npy", tf32}, "absent.npy");
}

}  // namespace
}  // namespace guardbit::tests
