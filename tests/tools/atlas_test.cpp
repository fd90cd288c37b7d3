#include "emulator/gemm/atlas/atlas.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "formats/files/safetensors.hpp"
#include "formats/support/error.hpp"
#include "formats/support/words.hpp"
#include "tests/catch.hpp"
#include "tests/tools/command.hpp"

namespace guardbit::tests {
namespace {

using nlohmann::json;

const std::string atlas_golden = "tests/golden/atlas/";

json prediction(const std::string& file, int status) {
  const CommandResult result = run_command({"verify", file, "--predict", "--json"});
  INFO(result.error);
  CHECK(result.status == status);
  return json::parse(result.out).at("predictions").at(0);
}

/// The plan that gives a recorded call's results, in every bit.
std::string right_plan(const std::string& name) {
  const json j = prediction(atlas_golden + name + ".safetensors", 0);
  INFO(name);
  CHECK(j["predicted"] == true);
  CHECK(j["mismatches"] == 0);
  return j["plan"].get<std::string>();
}

TEST_CASE("verify --predict computes recorded calls by the plan that the call alone gives") {
  for (const std::string name : {"f32_split", "bf16_split"}) {
    const json j = prediction(atlas_golden + name + ".safetensors", 0);
    CHECK(j["predicted"] == true);
    CHECK((j["known"] == "nearest" || j["known"] == "rule"));
    CHECK(j["mismatches"] == 0);
    CHECK(j["plan"].get<std::string>().find("split=2x") != std::string::npos);
  }
}

TEST_CASE(
    "the parts of a split K are whole lines of the cache where K is and one operand runs along it") {
  const json j = prediction(atlas_golden + "bf16_lines.safetensors", 0);
  CHECK(j["predicted"] == true);
  CHECK(j["plan"].get<std::string>().find("x64:ceil:bf16") != std::string::npos);
}

TEST_CASE("scores of one query are shared by lanes, or go to tensor cores") {
  CHECK(right_plan("f32_one_query").find("lanes=8x8:round_robin:halves") != std::string::npos);
  CHECK(right_plan("bf16_one_query").find("lanes=16x6:round_robin:halves") != std::string::npos);
  CHECK(right_plan("f16_one_query_chain").find("wgmma") != std::string::npos);
  CHECK(prediction(atlas_golden + "f32_one_query.safetensors", 0)["known"] == "recorded");
}

TEST_CASE("a layer of one feature in 16 bits rounds before its bias is added, unless K is cut") {
  CHECK(right_plan("bf16_one_feature").find("add=rounded") != std::string::npos);
  CHECK(right_plan("f16_one_feature").find("add=rounded") != std::string::npos);
  const std::string split = right_plan("f16_one_feature_split");
  CHECK(split.find("split=3x64:ceil") != std::string::npos);
  CHECK(split.find("add=") == std::string::npos);
}

TEST_CASE("verify --predict knows kernels whose lanes share K") {
  CHECK(right_plan("bf16_dot").find("lanes=256x1:round_robin:halves:groups2") != std::string::npos);
  CHECK(right_plan("bf16_lanes_of_runs").find("promote=128 lanes=4x80:round_robin") !=
        std::string::npos);
  CHECK(right_plan("bf16_lanes_restarted").find("promote=32 lanes=16x1:round_robin") !=
        std::string::npos);
  CHECK(right_plan("f32_lanes").find("lanes=32x10:round_robin:halves") != std::string::npos);
  CHECK(right_plan("f32_lanes_of_24").find("lanes=24x4:round_robin:shuffles") != std::string::npos);
  CHECK(right_plan("f32_two_lanes").find("lanes=2x16:round_robin") != std::string::npos);
  CHECK(right_plan("f32_split_lanes").find("lanes=16x64:round_robin:halves split=3x1:ceil") !=
        std::string::npos);
  CHECK(right_plan("bf16_split_lanes_rounded").find("split=106x1:ceil add=rounded") !=
        std::string::npos);
  CHECK(right_plan("bf16_split_chains").find("promote=32 lanes=16x1:round_robin split=8x1:ceil") !=
        std::string::npos);
}

TEST_CASE("verify --predict knows how many elements each of 32 lanes takes at once") {
  CHECK(right_plan("tf32_lanes_of_one").find("lanes=32x1:round_robin:halves") != std::string::npos);
}

TEST_CASE("each part of K begins with its incomplete tile, where K itself has none") {
  CHECK(right_plan("tf32_parts_residue").find("residue_first=16 split=8x4:ceil") !=
        std::string::npos);
  CHECK(right_plan("tf32_parts_residue_lines").find("residue_first=16 split=22x4:ceil") !=
        std::string::npos);
}

TEST_CASE("verify --predict knows how blocks of threads share a dot product") {
  CHECK(right_plan("f32_dot_blocks").find("split=3x256:round_robin:by_four") != std::string::npos);
  CHECK(right_plan("f32_dot_strided").find("split=8x128:round_robin:by_four") != std::string::npos);
  CHECK(right_plan("f32_dot_many_blocks").find("split=64x128:round_robin:by_four") !=
        std::string::npos);
}

TEST_CASE("verify --predict knows kernels that take tiles of K in turn") {
  CHECK(right_plan("tf32_in_turn").find("split=3x64:round_robin d=") != std::string::npos);
  CHECK(right_plan("tf32_in_turn_two_kernels").find("split=5x32:round_robin d=") !=
        std::string::npos);
  CHECK(right_plan("tf32_buffers").find("split=6x64:round_robin:buffers") != std::string::npos);
}

TEST_CASE("verify --predict knows into how many parts an FP32 layer of few features is cut") {
  CHECK(right_plan("f32_largek_tail").find("split=4x16:ceil") != std::string::npos);
  CHECK(right_plan("f32_largek_whole").find("split=") == std::string::npos);
  CHECK(right_plan("f32_largek_five").find("split=5x88:ceil") != std::string::npos);
  CHECK(right_plan("f32_largek_long").find("split=6x128:ceil") != std::string::npos);
  CHECK(right_plan("f32_largek_thin").find("split=5x512:ceil") != std::string::npos);
  CHECK(right_plan("f32_largek_parts").find("split=8x128:ceil") != std::string::npos);
}

TEST_CASE("a leaf whose calls all agree is a rule") {
  // The golden dot product is one; of the other answers most are what similar calls got.
  CHECK(prediction(atlas_golden + "f32_dot_blocks.safetensors", 0)["known"] == "rule");
  CHECK(prediction(atlas_golden + "f32_lanes.safetensors", 0)["known"] == "nearest");
}

TEST_CASE("verify --predict does not look at D, and says where the plan is not its plan") {
  const TemporaryFolder folder;
  formats::TensorFile file = formats::read_safetensors(atlas_golden + "f32_split.safetensors");
  json call = json::parse(file.metadata.at("call"));
  const std::string plan = prediction(atlas_golden + "f32_split.safetensors", 0)["plan"];
  // As many rows as fill the machine: K is not cut.
  call["m"] = 60000;
  call["n"] = 4096;
  call["b_stride"] = json::array({4096, 1});
  file.metadata["call"] = call.dump();
  const std::string other = folder.path("other.safetensors");
  formats::write_safetensors(other, file.metadata, file.tensors);
  const json j = prediction(other, 1);
  CHECK(j["plan"] != plan);
  CHECK(j["predicted"] == false);
  CHECK(j["mismatches"] > 0);
}

TEST_CASE("verify --predict counts a call that the atlas does not know as a miss") {
  const json j = prediction(atlas_golden + "unknown.safetensors", 1);
  CHECK(j["predicted"] == false);
  CHECK(j["known"] == "unknown");
}

TEST_CASE("verify --predict refuses captures without a call and other machines") {
  const CommandResult none =
      run_command({"verify", "tests/golden/gemm/mm_tf32_72x88x520.safetensors", "--predict"});
  CHECK(none.status == 2);
  CHECK(none.error.find("has no call") != std::string::npos);
}

TEST_CASE("plan names the plan by which verify --predict computes a recorded call") {
  for (const std::string name : {"f32_split", "bf16_split", "bf16_lines", "f32_lanes"}) {
    const std::string file = atlas_golden + name + ".safetensors";
    const json call = json::parse(formats::read_safetensors(file).metadata.at("call"));
    const auto strides = [&](const char* key) {
      std::string text;
      for (const json& stride : call[key]) text += (text.empty() ? "" : ",") + stride.dump();
      return text;
    };
    const CommandResult result = run_command(
        {"plan", "--call", call["op"].get<std::string>().substr(5), "--m", call["m"].dump(), "--n",
         call["n"].dump(), "--k", call["k"].dump(), "--dtype",
         name.starts_with("f32") ? "fp32" : "bf16", "--a-stride", strides("a_stride"), "--b-stride",
         strides("b_stride"), "--batch", std::to_string(call.value("batch", 1)), "--json"});
    INFO(name << ' ' << result.error);
    REQUIRE(result.status == 0);
    const json answer = json::parse(result.out), predicted = prediction(file, 0);
    CHECK(answer["plan"]["text"] == predicted["plan"]);
    CHECK(answer["known"] == predicted["known"]);
  }
}

TEST_CASE("plan of a range of sizes says what it says of each size alone") {
  const auto asked = [](const std::string& m) {
    const CommandResult result =
        run_command({"plan", "--call", "addmm", "--m", m, "--n", "768", "--k", "512", "--dtype",
                     "fp32", "--layout", "NT", "--json"});
    INFO(result.error);
    REQUIRE(result.status == 0);
    return json::parse(result.out);
  };
  const json all = asked("1:40");
  CHECK(all["varied"] == "m");
  CHECK(all["plans"].get<std::size_t>() > 1);
  const auto doubt = [](const json& known) {
    return *formats::find_word<emulator::atlas::Known>(known.get<std::string>());
  };
  std::int64_t next = 1;
  for (const json& run : all["runs"]) {
    CHECK(run["first"] == next);
    next = run["last"].get<std::int64_t>() + 1;
    for (std::int64_t m = run["first"]; m < next; ++m) {
      INFO(m);
      const json one = asked(std::to_string(m));
      CHECK(one["plan"]["text"] == run["plan"]);
      CHECK(one["agree"].get<double>() >= run["agree"].get<double>());
      CHECK(doubt(one["known"]) <= doubt(run["known"]));
    }
  }
  CHECK(next == 41);
}

TEST_CASE("a map of sizes says what plan says of each pair") {
  const auto asked = [](const std::string& m, const std::string& k) {
    const CommandResult result = run_command({"plan", "--call", "mm", "--m", m, "--n", "10", "--k",
                                              k, "--dtype", "fp32", "--layout", "TN", "--json"});
    INFO(result.error);
    REQUIRE(result.status <= 1);
    return json::parse(result.out);
  };
  const json map = asked("3:70:21", "64:4096:1000");
  CHECK(map["down"] == "m");
  CHECK(map["across"] == "k");
  // The last size is the last step's.
  CHECK(map["m"]["last"] == 66);
  CHECK(map["k"]["last"] == 4064);
  REQUIRE(map["cells"].size() == std::size_t{4 * 5});
  std::size_t cell = 0, rules = 0;
  for (int m = 3; m <= 66; m += 21) {
    for (int k = 64; k <= 4064; k += 1000, ++cell) {
      INFO(m << ' ' << k);
      const json one = asked(std::to_string(m), std::to_string(k));
      const json& plan = map["plans"][map["cells"][cell].get<std::size_t>()];
      CHECK(plan["plan"] == (one["plan"].is_null() ? json() : one["plan"]["text"]));
      CHECK(plan["most_partial_sums"] >= map["partial_sums"][cell]);
      if (one["known"] == "rule") ++rules;
    }
  }
  CHECK(map["rules"] == rules);
  CHECK(map["plans"].size() > 1);
}

TEST_CASE("the atlas refuses what it does not hold") {
  using emulator::atlas::plan_of;
  CHECK_THROWS_AS(plan_of({.m = 0}), formats::Error);
  CHECK_THROWS_AS(plan_of({.batch = 2}), formats::Error);
  CHECK_THROWS_AS(plan_of({.k = 8, .a_leading = 7}), formats::Error);
}

}  // namespace
}  // namespace guardbit::tests
