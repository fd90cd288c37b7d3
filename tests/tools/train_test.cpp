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

namespace {

/// What a whole run and one that was killed again and again left, but for times.
void compare_runs(const TemporaryFolder& folder, const std::vector<std::string>& recipes,
                  const std::vector<std::string>& files) {
  const auto text_of = [&](std::string path, const std::string& recipe, const std::string& file) {
    path.append(recipe).append(file);
    return read_text(folder.path(path));
  };
  for (const std::string& recipe : recipes) {
    for (const std::string& file : files) {
      INFO(recipe << file);
      CHECK(text_of("whole/", recipe, file) == text_of("killed/", recipe, file));
    }
  }
  const json whole = json::parse(read_text(folder.path("whole/results.json")));
  const json killed = json::parse(read_text(folder.path("killed/results.json")));
  for (std::size_t i = 0; i < whole["training"].size(); ++i)
    for (const char* key : {"recipe", "accuracy", "test_loss", "weights_hash", "skipped"})
      CHECK(whole["training"][i][key] == killed["training"][i][key]);
  CHECK(whole.value("integers", json()) == killed.value("integers", json()));
}

/// Kills the run after `delays` (seconds) and lets it end; no part of a file may be left over.
constexpr const char* killing = R"(
guardbit train "$folder/c.toml" -o "$folder/whole" >/dev/null || exit 1
for delay in $delays; do
  timeout -s KILL $delay "$command" train "$folder/c.toml" -o "$folder/killed" >/dev/null
done
guardbit train "$folder/c.toml" -o "$folder/killed" >/dev/null || exit 2
for file in $(find "$folder/killed" -name '*.safetensors'); do guardbit trace "$file" >/dev/null || exit 3; done
)";

}  // namespace

TEST_CASE("A recipe that begins where another ends waits for it") {
  const TemporaryFolder folder;
  tests::write_text(folder.path("c.toml"), R"([data]
kind = "spiral"
training = 64
test = 16
[model]
hidden = [8]
[training]
recipes = ["fp32", "int8_qat"]
steps = 6
batch = 32
[quantisation]
from = "fp32"
calibrators = ["max"]
)");
  const json part =
      train(folder.path("c.toml"), {"-o", folder.path("killed"), "--stop-after", "4"});
  CHECK(part[0]["complete"] == false);
  CHECK(part[1]["steps"] == 0);
  train(folder.path("c.toml"), {"-o", folder.path("killed")});
  const json whole = train(folder.path("c.toml"), {"-o", folder.path("whole")});
  CHECK(whole[1]["complete"] == true);
  compare_runs(folder, {"fp32", "int8_qat"}, {"/log.csv", "/checkpoint.safetensors"});
  CHECK(whole[1]["distance_from_fp32"] > 0.0);
}

TEST_CASE("A training run that is killed anywhere ends with the same files") {
  const TemporaryFolder folder;
  tests::write_text(folder.path("c.toml"), small);
  const CommandResult result =
      tests::run_shell(folder, std::string("delays='0.02 0.03 0.04'") + killing);
  INFO(result.error);
  REQUIRE(result.status == 0);
  compare_runs(folder, {"fp32", "fp16_amp", "fp8_delayed"},
               {"/log.csv", "/checkpoint.safetensors", "/trace/step00000005.safetensors"});
}

TEST_CASE("Training runs of every recipe survive many kills", "[sweep]") {
  const TemporaryFolder folder;
  tests::write_text(folder.path("c.toml"), R"([data]
training = 640
test = 64
[model]
filters = [4, 8]
hidden = [16]
[training]
recipes = ["fp32", "fp16_amp", "fp8_delayed", "int8_qat", "int4_qat", "bf16"]
epochs = 4
batch = 32
checkpoint_every = 1
[optimizer]
kind = "adamw"
keeping = "rest"
first = "bf16"
state_rounding = "stochastic"
[scaler]
preset = "megatron"
interval = 5
[quantisation]
estimator = "learned_scale"
from = "fp32"
calibrators = ["max"]
)");
  const CommandResult result = tests::run_shell(
      folder,
      std::string(
          "RANDOM=7; delays=$(for i in {1..40}; do printf '0.%03d ' $((20 + RANDOM % 400)); done)") +
          killing);
  INFO(result.error);
  REQUIRE(result.status == 0);
  compare_runs(folder, {"fp32", "fp16_amp", "fp8_delayed", "int8_qat", "int4_qat", "bf16"},
               {"/log.csv", "/checkpoint.safetensors"});
}

TEST_CASE("A full disk leaves whole files, from which training goes on") {
  const TemporaryFolder folder;
  tests::write_text(folder.path("c.toml"), small);
  // A limit of the files' size stands for the disk: writing beyond it fails.
  const CommandResult result = tests::run_shell(folder, R"(
guardbit train "$folder/c.toml" -o "$folder/whole" >/dev/null || exit 1
largest=$(stat -c %s "$folder"/whole/fp32/checkpoint.safetensors)
for blocks in 0 $((largest / 1024)); do
  (ulimit -f $blocks
   exec "$command" train "$folder/c.toml" -o "$folder/killed") 2>&1 >/dev/null | cat >&2
  [[ ${PIPESTATUS[0]} -eq 2 ]] || exit 2
done
find "$folder/killed" -type f ! -name config.toml ! -name log.csv >&2
guardbit train "$folder/c.toml" -o "$folder/killed" >/dev/null || exit 3)");
  INFO(result.error);
  REQUIRE(result.status == 0);
  const auto lines = std::count(result.error.begin(), result.error.end(), '\n');
  CHECK(lines == 2);  // one for each, and no file that is no whole one
  CHECK(holds(result.error, "killed/"));
  compare_runs(folder, {"fp32", "fp16_amp", "fp8_delayed"},
               {"/log.csv", "/checkpoint.safetensors"});
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
  const std::string of_folder = "kind = \"idx\"\npath = \"" + folder.path("digits") + "\"\n";
  const json read = train(config(of_folder), {});
  const json drawn = train(config("training = 64\ntest = 16\n"), {});
  CHECK(read[0]["weights_hash"] == drawn[0]["weights_hash"]);
  // As MNIST is distributed.
  REQUIRE(tests::run_shell(folder, "gzip \"$folder\"/digits/*").status == 0);
  CHECK(train(config(of_folder), {})[0]["weights_hash"] == drawn[0]["weights_hash"]);
  tests::write_text(folder.path("digits/train-labels-idx1-ubyte.gz"), "\x1f\x8b more");
  const CommandResult refused = run_command({"train", config(of_folder)});
  CHECK(refused.status == 2);
  CHECK(is_one_error_line(refused.error));
  CHECK(holds(refused.error, "train-labels-idx1-ubyte.gz: "));
}

TEST_CASE("Configurations that cannot be are refused in one line that names the place") {
  const TemporaryFolder folder;
  CHECK(refuses(folder, "[data\n", {"bad.toml line 1"}));
  for (const char* const text : {"[%]\n", "[{}]\n", "[../../x]\n", "[[[[[[\n"})
    CHECK(refuses(folder, text, {"bad.toml", "the name of a table is no key"}));
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
  CHECK(refuses(folder, "[quantisation]\nbits = [5]\n", {"line 2", "8, 4"}));
  CHECK(refuses(folder, "[quantisation]\nestimator = \"pytorc\"\n", {"line 2", "learned_scale"}));
  CHECK(refuses(folder, "[quantisation]\ncalibrators = [\"maximum\"]\n", {"line 2", "entropy"}));
  CHECK(refuses(folder,
                "[training]\nrecipes = [\"int8_qat\"]\n[quantisation]\nfrom = \"nowhere\"\n",
                {"nowhere", "no checkpoint"}));
  CHECK(refuses(folder, "[data]\ntraining = 10\ntest = 5\n", {"batch of 64"}));
  CHECK(
      refuses(folder, "[data]\nkind = \"idx\"\npath = \"/nowhere\"\n", {"/nowhere/train-images"}));
  CHECK(run_command({"train"}).status == 2);
}
