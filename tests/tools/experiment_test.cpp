#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/places.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/json.hpp"
#include "tests/tools/shell.hpp"

namespace guardbit::tests {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

Words keys_of(const json& object) {
  Words keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;
}

const Words small_e08 = {"experiment", "run",   "E08",   "--set",    "K=64,128",
                         "--set",      "MN=16", "--set", "repeats=3"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_CASE("experiment list and show describe the suite") {
  const json all = json_of({"experiment", "list", "--json"})["experiments"];
  CHECK(all.size() >= 15);
  for (const json& x : all)
    CHECK(keys_of(x) == Words{"expected", "method", "name", "parameters", "question", "slug"});
  const CommandResult shown = run_command({"experiment", "show", "e08", "rceil_is_not_ceil"});
  CHECK(shown.status == 0);
  holds(shown.out, "DeepSeek-V3");
  holds(shown.out, "E23 rceil_is_not_ceil");
  holds(run_command({"experiment", "list"}).out, "fp8_accumulation_width");
}

TEST_CASE("experiment run prints verdicts with what was measured and expected") {
  const json all = json_of({"experiment", "run", "E23", "E20", "--quick", "--json"})["experiments"];
  REQUIRE(all.size() == 2);
  const json& x = all[0];
  CHECK(x["name"] == "E23");
  CHECK(x["verdict"] == "reproduced");
  CHECK(x["measured"]["amax=150: rceil"] == 126);
  CHECK(x["reference"]["amax=150: ceil"] == 127);
  CHECK(x["tolerance"]["amax=150: ceil"] == 0);
  const json& finding = x["findings"][0];
  CHECK(keys_of(finding) == Words{"certainty", "key", "measured", "reference", "relation", "source",
                                  "tolerance", "tolerance_reason", "unit", "verdict"});
  CHECK(finding["certainty"] == "read");
  const CommandResult text = run_command({"experiment", "run", "E23"});
  holds(text.out, "E23 rceil_is_not_ceil: reproduced");
  holds(text.out, "E8M0 code (exponent + 127)");
  holds(run_command({"experiment", "run", "E20", "E23"}).out, "reproduced");
}

TEST_CASE("an experiment without references says undecidable") {
  // The gradients were recorded for 8 bits: with 7 only the relation is left.
  const json other =
      json_of({"experiment", "run", "E27", "--set", "bits=7", "--json"})["experiments"][0];
  CHECK(other["reference"].size() == 1);
  CHECK(other["verdict"] == "reproduced");
  const json none =
      json_of({"experiment", "run", "E23", "--set", "amax=3", "--json"})["experiments"][0];
  CHECK(none["verdict"] == "undecidable");
  CHECK(none["reference"].empty());
}

TEST_CASE(
    "a run goes on from its record and gives the same numbers as one that was not interrupted") {
  const TemporaryFolder folder;
  const std::string whole = folder.path("whole"), cut = folder.path("cut");
  REQUIRE(run_command(with(small_e08, {"-o", whole})).status == 0);
  json record = json::parse(read_text(whole + "/E08.json"));
  CHECK(record["complete"] == true);
  // Two lengths and distributions with three repeats each, and two recorded products.
  CHECK(record["points"].size() == 14);
  CHECK(record["plans"].size() == 2);
  CHECK(record["formats"] == json::array({"e4m3"}));
  const json points = record["points"];

  // As an interrupt leaves it; a point whose value tells that it was not computed again.
  record["complete"] = false;
  record["result"] = nullptr;
  record["points"].erase("normal K=64 repeat 1");
  record["points"].erase("uniform K=128 repeat 0");
  std::filesystem::create_directories(cut);
  write_text(cut + "/E08.json", record.dump());
  REQUIRE(run_command(with(small_e08, {"-o", cut})).status == 0);
  CHECK(read_text(cut + "/E08.json") == read_text(whole + "/E08.json"));

  record["points"]["normal K=64 repeat 0"]["values"] = {77.0, 0.0};
  write_text(cut + "/E08.json", record.dump());
  REQUIRE(run_command(with(small_e08, {"-o", cut})).status == 0);
  CHECK(json::parse(read_text(cut + "/E08.json"))["points"] != points);
  REQUIRE(run_command(with(small_e08, {"-o", cut, "--fresh"})).status == 0);
  CHECK(json::parse(read_text(cut + "/E08.json"))["points"] == points);

  // Another seed, other settings or another program: nothing is taken over.
  write_text(cut + "/E08.json", record.dump());
  REQUIRE(run_command(with(small_e08, {"-o", cut, "--seed", "2"})).status == 0);
  const json other = json::parse(read_text(cut + "/E08.json"))["points"];
  CHECK(other["normal K=64 repeat 0"]["values"][0] != 77.0);
  CHECK(other["normal K=64 repeat 0"]["inputs"] != points["normal K=64 repeat 0"]["inputs"]);
}

TEST_CASE("a run that is killed goes on to the same bytes", "[sweep]") {
  const TemporaryFolder folder;
  const std::string words = "experiment run E08 --set K=64:512:x2 --set MN=96 --set repeats=3";
  const CommandResult killed = run_shell(
      folder,
      "guardbit " + words +
          " -o $folder/whole >$folder/log || exit 3\n"
          "for round in 1 2 3 4; do\n"
          "  timeout -s KILL 0.${round}5 $command " +
          words +
          " -o $folder/cut >$folder/log\n"
          "  [ ! -e $folder/cut/E08.json ] || grep -q '\"result\"' $folder/cut/E08.json || exit 4\n"
          "done\n"
          "guardbit " +
          words +
          " -o $folder/cut >$folder/log || exit 5\n"
          "cmp $folder/whole/E08.json $folder/cut/E08.json");
  INFO(killed.out << killed.error);
  CHECK(killed.status == 0);
}

TEST_CASE("a full disk leaves no part of a record") {
  const TemporaryFolder folder;
  // A limit on the size of files fails a write as a full disk does.
  const CommandResult full = run_shell(folder,
                                       "ulimit -f 2\n"
                                       "guardbit experiment run E20 E31 -o $folder/full");
  CHECK(full.status == 2);
  holds(full.error, "cannot be written");
  CHECK(is_one_error_line(full.error));
  CHECK(run_shell(folder, "ls -A $folder/full").out.empty());
}

TEST_CASE("a record runs again to the same bits, on any number of threads") {
  const TemporaryFolder folder;
  const std::string out = folder.path("out");
  REQUIRE(run_command(with(small_e08, {"-o", out, "--seed", "5", "--threads", "2"})).status == 0);
  const std::string record = out + "/E08.json";
  const json again = json_of(
      {"experiment", "run", "--record", record, "--threads", "1", "--json"})["experiments"][0];
  CHECK(again["same_as_record"] == true);
  json changed = json::parse(read_text(record));
  changed["points"]["uniform K=64 repeat 1"]["values"][0] = 1.5;
  write_text(record, changed.dump());
  const CommandResult differing = run_command({"experiment", "run", "--record", record});
  holds(differing.out, "differ from those");
  CHECK(differing.status == 1);
}

TEST_CASE("a record with NaN and infinity runs again to the same points") {
  const TemporaryFolder folder;
  const std::string out = folder.path("out");
  REQUIRE(run_command({"experiment", "run", "E20", "--quick", "-o", out}).status == 0);
  const std::string record = out + "/E20.json";
  REQUIRE(holds(read_text(record), "\"nan\""));
  const CommandResult again = run_command({"experiment", "run", "--record", record});
  CHECK(again.status == 0);
  CHECK(holds(again.out, "Every point is what the record says."));
}

TEST_CASE("recordings are found from any folder, and what is missing is named") {
  const TemporaryFolder folder;
  const auto verdict = [&](const std::string& words) {
    return run_shell(folder,
                     "cd $folder && " + words + " experiment run E01 --quick --set step=599")
        .out;
  };
  CHECK(holds(verdict("guardbit"), "reproduced"));
  // A program alone looks in $GUARDBIT_DATA, and says where it has looked.
  REQUIRE(run_shell(folder, "mkdir $folder/bin && cp $command $folder/bin").status == 0);
  const std::string alone = verdict("bin/guardbit");
  CHECK(holds(alone, "undecidable"));
  CHECK(holds(alone, "not there: tests/golden/traces/digits_mlp_grad_out.npz"));
  CHECK(holds(alone, "looked for below tests/golden"));
  CHECK(holds(verdict("GUARDBIT_DATA='" + in_source("tests/golden") + "' bin/guardbit"),
              "reproduced"));
  const std::string all =
      run_shell(folder, "cd $folder && bin/guardbit experiment run E01 E24 --quick").out;
  CHECK(holds(all, "why"));
  CHECK(holds(all, "not there: tests/golden/traces/digits_mlp_grad_out.npz"));
  CHECK(holds(all, "it checks what theory demands"));
}

TEST_CASE("experiment refuses bad input in one line") {
  const TemporaryFolder folder;
  write_text(folder.path("text.json"), "{\"file\": 3}");
  const std::string text = folder.path("text.json");
  struct Case {
    Words words;
    std::string says;
  };
  for (const Case& c : {
           Case{{"run"}, "needs names, --all or --record"},
           Case{{"run", "E08", "--all"}, "one of them"},
           Case{{"run", "E98"}, "unknown experiment 'E98'"},
           Case{{"run", "E08", "--set", "K"}, "'K' is not KEY=VALUES"},
           Case{{"run", "E08", "--set", "KK=4"}, "valid: K, MN, repeats, distribution"},
           Case{{"run", "E08", "--set", "K=0"}, "(valid: 1 to 65536"},
           Case{{"run", "E08", "--set", "E09.K=5"}, "nothing to set"},
           Case{{"run", "E08", "--set", "distribution=cauchy"}, "'cauchy' is not known"},
           Case{{"run", "E25", "--set", "trace=missing.npz"}, "missing.npz"},
           Case{{"run", "--record", "missing.json"}, "missing.json: cannot read"},
           Case{{"run", "--record", text}, "is not an experiment's record"},
           Case{{"run", "E23", "--plot", folder.path("no/folder.svg")}, "folder.svg"},
           Case{{"run", "E23", "E20", "--plot", "x.svg"}, "needs one experiment"},
           Case{{"show"}, "NAME"},
           Case{{"list", "--markdown", "--results", text}, "is not what"},
           Case{{"plot"}, "unknown command 'plot'"},
       }) {
    const CommandResult result = run_command(with({"experiment"}, c.words));
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    holds(result.error, c.says);
    CHECK(result.out.empty());
  }
}

TEST_CASE("a plot names its axes, units and curves") {
  const TemporaryFolder folder;
  const std::string path = folder.path("a.svg");
  const CommandResult result = run_command(with(small_e08, {"--plot", path}));
  INFO(result.error);
  REQUIRE(result.status == 0);
  const std::string svg = read_text(path);
  for (const char* const part : {"<svg", "K (products in each sum)", "largest error (%)", "normal",
                                 "uniform", "E08: E4M3 products"})
    holds(svg, part);
}

}  // namespace
}  // namespace guardbit::tests
