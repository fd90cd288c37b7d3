#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.hpp"
#include "tests/places.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit;
using nlohmann::json;
using tests::CommandResult;
using tests::holds;
using tests::is_one_error_line;
using tests::run_command;

/// A build without the program that measures says in one line how it is built.
bool cannot_measure() {
  const CommandResult list = run_command({"bench", "--list"});
  if (list.status == 0) return false;
  REQUIRE(is_one_error_line(list.error));
  REQUIRE(holds(list.error, "--target guardbit_benchmark"));
  WARN("SKIPPED: the program that measures is not built");
  return true;
}

std::string run_of(double rate, const char* ratio, const char* extra = "") {
  return std::string(
             R"({"machine": {"cpu": "test"}, "results": [{"name": "gemm/x", "unit": "GFLOP/s", "rate": )") +
         std::to_string(rate) + ratio + "}" + extra + "]}";
}

TEST_CASE("bench compares two runs by their ratios to the yardsticks") {
  const tests::TemporaryFolder folder;
  const std::string before = folder.path("old.json"), after = folder.path("new.json");
  tests::write_text(before, run_of(10, R"(, "ratio": 0.5, "native_ratio": 0.75)"));
  tests::write_text(after, run_of(12, R"(, "ratio": 0.4)",
                                  R"(, {"name": "gemm/y", "unit": "GFLOP/s", "rate": 1})"));
  const CommandResult result = run_command({"bench", "--compare", before, after, "--json"});
  REQUIRE(result.status == 0);
  const json document = json::parse(result.out);
  REQUIRE(document["results"].size() == 1);
  CHECK(document["results"][0]["speedup"].get<double>() == Approx(0.8));
  CHECK(document["results"][0]["old_native_ratio"].get<double>() == 0.75);
  CHECK(!document["results"][0].contains("new_native_ratio"));
  CHECK(document["geometric_mean"].get<double>() == Approx(0.8));
  CHECK(document["only_new"] == json::array({"gemm/y"}));
  CHECK(document["only_old"].empty());
  CHECK(holds(run_command({"bench", "--compare", before, after}).out, "0.80"));
}

TEST_CASE("bench refuses what it cannot use in one line") {
  const tests::TemporaryFolder folder;
  const std::string good = folder.path("good.json"), bad = folder.path("bad.json");
  tests::write_text(good, run_of(10, ""));
  tests::write_text(bad, "{}");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"bench", "--compare", good, bad},
        {"bench", "--compare", good, folder.path("none.json")},
        {"bench", "--compare", good},
        {"bench", "--kind", "conversions"},
        {"bench", "--size", "0"},
        {"bench", "--size", "16x16"},
        {"bench", "--size", "16x16x"},
        {"bench", "--size", "16x16x65537"},
        {"bench", "--instruction", "wgmma"},
        {"bench", "--engine", "abacus"},
        {"bench", "--instruction", "abacus", "--arch", "sm_90", "--list"},
        {"bench", "--only", "abacus"}}) {
    const CommandResult result = run_command(words);
    CAPTURE(words.back(), result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    CHECK(result.out.empty());
  }
}

TEST_CASE("bench measures what its filters leave, beside the yardsticks", "[tool]") {
  if (cannot_measure()) return;
  const std::string list = run_command({"bench", "--list", "--only", "int8/"}).out;
  CHECK(holds(list, "gemm/int8/512/eigen_sgemm_"));
  CHECK(holds(list, "gemm/int8/512/normal/reference/1\n"));
  CHECK(!holds(list, "hopper_f16"));
  CHECK(holds(run_command({"bench", "--list", "--curves", "--only", "curve/mxfp4/scales"}).out,
              "curve/mxfp4/scales/128\n"));
  CHECK(holds(run_command({"bench", "--list", "--only", "int8/", "--size", "8x16x32"}).out,
              "gemm/int8/8x16x32/normal/reference/1\n"));
  const CommandResult result =
      run_command({"bench", "--only", "int8/16/normal/reference", "--size", "16", "--time", "0.001",
                   "--repetitions", "2", "--json"});
  REQUIRE(result.status == 0);
  const json document = json::parse(result.out);
  CHECK(document["complete"] == true);
  CHECK(document["settings"]["repetitions"] == 2);
  const bool native = document["machine"]["eigen_native"] == "used";
  REQUIRE(document["results"].size() == (native ? 4 : 3));
  const json &eigen = document["results"][0], &peak = document["results"][1],
             &product = document["results"].back();
  CHECK(product["name"] == "gemm/int8/16/normal/reference/1");
  CHECK(product["yardstick"] == eigen["subject"]);
  CHECK(product["seconds"].get<double>() > 0);
  CHECK(product["ratio"].get<double>() ==
        Approx(product["rate"].get<double>() / eigen["rate"].get<double>()));
  CHECK(holds(peak["subject"].get<std::string>(), "multiply_add_fp32_"));
  CHECK(peak["rate"].get<double>() > 0.5 * eigen["rate"].get<double>());
  CHECK(product["peak_ratio"].get<double>() ==
        Approx(product["rate"].get<double>() / peak["rate"].get<double>()));
  CHECK(product.contains("native_ratio") == native);
  if (native) {
    const json& second = document["results"][2];
    CHECK(product["native_yardstick"] == second["subject"]);
    CHECK(product["native_ratio"].get<double>() ==
          Approx(product["rate"].get<double>() / second["rate"].get<double>()));
  }
  CHECK(product["rate"].get<double>() ==
        Approx(2e-9 * product["m"].get<double>() * product["n"].get<double>() * 16 /
               product["seconds"].get<double>()));
}

TEST_CASE("the page of figures is made of runs", "[tool]") {
  if (cannot_measure()) return;
  const tests::TemporaryFolder folder;
  const CommandResult result = run_command({"bench", "--curves", "--only", "curve/int8/m/16",
                                            "--time", "0.001", "--repetitions", "1", "--json"});
  REQUIRE(result.status == 0);
  tests::write_text(folder.path("run.json"), result.out);
  const std::string out = folder.path("");
  const std::string make =
      "python3 \"" + tests::in_source("tools/scripts/performance_page.py") + "\" ";
  REQUIRE(std::system((make + "\"" + out + "\" \"" + folder.path("run.json") + "\"").c_str()) == 0);
  const std::string page = tests::read_text(folder.path("PERFORMANCE.md"));
  CHECK(holds(page, "## How time grows"));
  CHECK(holds(page, "](performance/m.svg)"));
  CHECK(holds(tests::read_text(folder.path("performance/m.svg")), "</svg>"));
  // Folded, the runs make the same page.
  REQUIRE(std::system((make + "--fold \"" + folder.path("run.json") + "\" >\"" +
                       folder.path("folded.json") + "\"")
                          .c_str()) == 0);
  CHECK(tests::read_text(folder.path("folded.json")).size() < result.out.size());
  REQUIRE(std::system((make + "\"" + out + "\" \"" + folder.path("folded.json") + "\"").c_str()) ==
          0);
  CHECK(tests::read_text(folder.path("PERFORMANCE.md")) == page);
  tests::write_text(folder.path("bad.json"), "{}");
  CHECK(std::system(
            (make + "\"" + out + "\" \"" + folder.path("bad.json") + "\" 2>/dev/null").c_str()) !=
        0);
}

}  // namespace
