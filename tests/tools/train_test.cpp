#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/tools/json.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit;
using nlohmann::json;
using tests::CommandResult;
using tests::holds;
using tests::is_one_error_line;
using tests::read_text;
using tests::run_command;
using tests::TemporaryFolder;

const std::string small = R"([data]
kind = "spiral"
training = 256
test = 64
[model]
hidden = [16]
[training]
recipes = ["fp32", "fp16_amp", "fp8_delayed"]
steps = 9
batch = 32
checkpoint_every = 4
trace_every = 5
[unit]
history = 3
[scaler]
interval = 2
)";

json train(const std::string& config, std::vector<std::string> more) {
  more.insert(more.begin(), {"train", config, "--json"});
  return tests::json_of(more)["training"];
}

bool refuses(const TemporaryFolder& folder, const std::string& text,
             const std::vector<std::string>& words) {
  tests::write_text(folder.path("bad.toml"), text);
  const CommandResult result = run_command({"train", folder.path("bad.toml")});
  INFO(text << " gives: " << result.error);
  CHECK(result.status == 2);
  CHECK(result.out.empty());
  CHECK(is_one_error_line(result.error));
  return std::all_of(words.begin(), words.end(),
                     [&](const std::string& word) { return holds(result.error, word); });
}

}  // namespace

TEST_CASE("A training run that was interrupted ends with the same files") {
  const TemporaryFolder folder;
  const std::string config = folder.path("small.toml");
  tests::write_text(config, small);
  const json whole = train(config, {"-o", folder.path("whole")});
  for (int part = 0; part < 3; ++part)
    train(config, {"-o", folder.path("parts"), "--stop-after", "4", "--threads", "1"});
  json parts = train(config, {"-o", folder.path("parts")});
  REQUIRE(whole.size() == 3);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK(whole[i]["complete"] == true);
    CHECK(whole[i]["accuracy"] == parts[i]["accuracy"]);
    const std::string recipe = whole[i]["recipe"];
    for (const char* file :
         {"/log.csv", "/checkpoint.safetensors", "/trace/step00000005.safetensors"}) {
      INFO(recipe << file);
      CHECK(read_text(folder.path("whole/" + recipe + file)) ==
            read_text(folder.path("parts/" + recipe + file)));
    }
  }
  CHECK(whole[0]["distance_from_fp32"].is_null());
  CHECK(whole[1]["distance_from_fp32"] > 0.0);
  CHECK(whole[2]["distance_from_fp32"] > 0.0);

  const CommandResult trace = run_command({"trace", folder.path("whole/fp16_amp/trace"), "--json"});
  INFO(trace.error);
  REQUIRE(trace.status == 0);
  CHECK(holds(trace.out, "\"wgrad\""));
  CHECK(holds(trace.out, "\"grad_out\""));
  CHECK(holds(trace.out, "\"step\": 5"));

  tests::write_text(config, small + "initial = 4.0\n");
  const CommandResult other = run_command({"train", config, "-o", folder.path("whole")});
  CHECK(other.status == 2);
  CHECK(holds(other.error, "other settings"));
}

TEST_CASE("Digits are written as IDX files that train reads") {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {
      "train", "--write-digits", folder.path("digits"), "--images", "64", "--test-images", "16"};
  REQUIRE(run_command(words).status == 0);
  CHECK(read_text(folder.path("digits/train-images-idx3-ubyte")).size() == 16 + 64 * 784);
  CHECK(read_text(folder.path("digits/t10k-labels-idx1-ubyte")).size() == 8 + 16);
  const auto config = [&](const std::string& data) {
    tests::write_text(folder.path("c.toml"),
                      "[data]\n" + data +
                          "[model]\nfilters = [4]\nhidden = [8]\n"
                          "[training]\nrecipes = [\"fp32\"]\nsteps = 2\nbatch = 16\n");
    return folder.path("c.toml");
  };
  const json read = train(config("kind = \"idx\"\npath = \"" + folder.path("digits") + "\"\n"), {});
  const json drawn = train(config("training = 64\ntest = 16\n"), {});
  CHECK(read[0]["weights_hash"] == drawn[0]["weights_hash"]);
}

TEST_CASE("Configurations that cannot be are refused in one line that names the place") {
  const TemporaryFolder folder;
  CHECK(refuses(folder, "[data\n", {"bad.toml line 1"}));
  CHECK(refuses(folder, "[daat]\n", {"line 1", "did you mean data"}));
  CHECK(refuses(folder, "[data]\nkind = \"digit\"\n", {"line 2", "did you mean digits"}));
  CHECK(refuses(folder, "[data]\nkind = \"idx\"\n", {"line 2", "needs a path"}));
  CHECK(refuses(folder, "[training]\nbatch = 0\n", {"line 2", "1 to"}));
  CHECK(refuses(folder, "[training]\nbatsh = 3\n", {"line 2", "did you mean batch"}));
  CHECK(refuses(folder, "[training]\nrecipes = [\"fp31\"]\n", {"line 2", "did you mean fp32"}));
  CHECK(refuses(folder, "[training]\nrecipes = [\"fp16_amp\"]\n[unit]\narch = \"sm_60\"\n",
                {"sm_70"}));
  CHECK(refuses(folder, "[training]\nrecipes = [\"fp8_delayed\"]\n[unit]\narch = \"sm_80\"\n",
                {"e4m3", "list --arch sm_80"}));
  CHECK(refuses(folder, "[optimizer]\nfirst = \"bf17\"\n", {"line 2", "bf16"}));
  CHECK(refuses(folder, "[scaler]\npreset = \"megatro\"\n", {"line 2", "did you mean megatron"}));
  CHECK(refuses(folder, "[scaler]\npreset = \"apex\"\ngrowth = 3\n", {"line 3", "always takes 2"}));
  CHECK(refuses(folder, "[scaler]\npreset = \"keras2\"\nbackoff = 0.3\n", {"line 3", "divides"}));
  CHECK(refuses(folder, "[scaler]\npreset = \"static\"\ninterval = 3\n", {"line 3", "interval"}));
  CHECK(refuses(folder, "[scaler]\npreset = \"static\"\ninitial = 0\n", {"line 3", "above 0"}));
  CHECK(refuses(folder, "[scaler]\ngrowth = 1\n", {"line 2", "above 1"}));
  CHECK(refuses(folder, "[optimizer]\nkeeping = \"masters\"\n", {"line 2", "did you mean master"}));
  CHECK(refuses(folder, "[data]\ntraining = 10\ntest = 5\n", {"batch of 64"}));
  CHECK(
      refuses(folder, "[data]\nkind = \"idx\"\npath = \"/nowhere\"\n", {"/nowhere/train-images"}));
  CHECK(run_command({"train"}).status == 2);
}
