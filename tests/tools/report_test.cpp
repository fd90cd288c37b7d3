#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/tools/shell.hpp"

namespace guardbit::tests {
namespace {

using nlohmann::json;

/// A folder of records: E20 and E23 complete, E27 as an interrupt leaves it.
void make_records(const std::string& folder) {
  REQUIRE(run_command({"experiment", "run", "E20", "E23", "E27", "--seed", "7", "--set",
                       "amax=150,200", "-o", folder})
              .status == 0);
  json record = json::parse(read_text(folder + "/E27.json"));
  record["complete"] = false;
  record["result"] = nullptr;
  write_text(folder + "/E27.json", record.dump());
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
  return n;
}

TEST_CASE("report writes one page that needs nothing else, verdicts first") {
  const TemporaryFolder folder;
  const std::string records = folder.path("records"), page = folder.path("page.html");
  make_records(records);
  const CommandResult result = run_command({"report", records, "-o", page});
  INFO(result.error);
  REQUIRE(result.status == 0);
  CHECK(result.out.empty());
  const std::string html = read_text(page);
  for (const char* const part :
       {"2 <span class=\"verdict reproduced\">", "1 <span class=\"verdict incomplete\">",
        "Do the two MX scale rules that round up give the same scale?", "(read)</em>",
        "guardbit experiment run E23 --set amax=150,200 --seed 7", "<code>amax</code>",
        "goes on from"})
    CHECK(holds(html, part));
  CHECK(html.find("href=\"#run-3\"") < html.find("<section"));
  CHECK(count(html, "<section") == 3);
  // No address but anchors of the page and drawings within it.
  CHECK(count(html, "href=\"") == count(html, "href=\"#"));
  CHECK(count(html, "src") == 0);
  CHECK(count(html, "http") == 0);
  // Drawings, for wide and narrow screens, say in words what they show.
  CHECK(count(html, "<svg ") == 4);
  CHECK(count(html, " aria-label=\"E2") >= 4);
}

/// Three recipes on a spiral.
void make_training(const std::string& folder) {
  write_text(folder + ".toml",
             "[data]\nkind = \"spiral\"\ntraining = 128\ntest = 64\n[model]\nhidden = [16, 16]\n"
             "[training]\nrecipes = [\"fp32\", \"fp16_amp\", \"int8_qat\"]\nsteps = 24\n"
             "batch = 32\n[scaler]\ninitial = 1048576\n");
  const CommandResult result = run_command({"train", folder + ".toml", "-o", folder});
  INFO(result.error);
  REQUIRE(result.status == 0);
}

TEST_CASE("report shows training runs: tables, curves, words for them, how to run them again") {
  const TemporaryFolder folder;
  const std::string runs = folder.path("runs"), page = folder.path("page.html");
  std::filesystem::create_directories(runs + "/more");
  make_training(runs + "/a");
  const std::string interrupted = runs + "/more/b<i>";
  std::filesystem::copy(runs + "/a", interrupted, std::filesystem::copy_options::recursive);
  std::filesystem::remove(interrupted + "/results.json");
  const CommandResult result = run_command({"report", runs, "-o", page});
  INFO(result.error);
  REQUIRE(result.status == 0);
  const std::string html = read_text(page);
  for (const char* const part :
       {"Training runs: ", "<a href=\"#training-1\">a</a>", "more/b&lt;i&gt;</a>",
        "<span class=\"verdict complete\">", "<span class=\"verdict incomplete\">",
        "goes on from its checkpoints", "guardbit train ", "recipes = [", "On integers",
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", "2:4 pruning", "Recipes side by side",
        "Numerics"}) {
    INFO(part);
    CHECK(html.find(part) != std::string::npos);
  }
  CHECK(html.find("<i>") == std::string::npos);
  CHECK(count(html, "<section") == 2);
  CHECK(count(html, "href=\"") == count(html, "href=\"#"));
  for (
      const char* const words :
      {"aria-label=\"Loss by precision recipe. Across: step. Up: loss (mean of 20 steps), logarithmic.",
       "aria-label=\"Loss scale. Across: step.", "fp16_amp, skipped: from 1.049e+06 at ",
       "aria-label=\"Loss apart from the FP32 run's. Across: step."}) {
    INFO(words);
    CHECK(html.find(words) != std::string::npos);
  }
  const CommandResult text = run_command({"report", runs});
  for (const char* const part : {"a: guardbit train ", "accuracy", "Loss scale", "interrupted"})
    CHECK(holds(text.out, part));
  const json all = json::parse(run_command({"report", runs, "--json"}).out);
  REQUIRE(all["trainings"].size() == 2);
  CHECK(all["trainings"][0]["complete"] == true);
  CHECK(all["trainings"][1]["complete"] == false);
  const json own = json::parse(read_text(runs + "/a/results.json"));
  CHECK(all["trainings"][0]["training"] == own["training"]);
  CHECK(all["trainings"][0]["integers"] == own["integers"]);

  write_text(runs + "/a/results.json", "{\"training\": [{\"recipe\": 3}]}");
  const CommandResult refused = run_command({"report", runs, "-o", page});
  CHECK(refused.status == 2);
  CHECK(is_one_error_line(refused.error));
  CHECK(holds(refused.error, "a/results.json: is damaged"));
  CHECK(read_text(page) == html);
  const CommandResult rest = run_command({"report", runs, "--keep-going"});
  CHECK(rest.status == 0);
  CHECK(holds(rest.error, "left out: "));
}

TEST_CASE("report prints the same on a terminal, with plots in characters") {
  const TemporaryFolder folder;
  const std::string records = folder.path("records");
  make_records(records);
  const CommandResult text = run_command({"report", records});
  CHECK(text.status == 0);
  for (const char* const part : {"E23.json  Do the two MX", "E23 rceil_is_not_ceil: reproduced",
                                 "E8M0 code (exponent + 127)", "E27: interrupted after",
                                 "guardbit experiment run E20 --seed 7"})
    CHECK(holds(text.out, part));
  const json all = json::parse(run_command({"report", records, "--json"}).out);
  REQUIRE(all["runs"].size() == 3);
  CHECK(all["runs"][1]["verdict"] == "reproduced");
  CHECK(all["runs"][1]["result"]["measured"]["amax=150: rceil"] == 126);
  CHECK(all["runs"][2]["verdict"] == "incomplete");
  CHECK(all["left_out"].empty());
}

TEST_CASE("report names what is no record, and leaves it out when asked to") {
  const TemporaryFolder folder;
  const std::string records = folder.path("records"), page = folder.path("page.html");
  make_records(records);
  json record = json::parse(read_text(records + "/E23.json"));
  // What a record says never becomes markup.
  record["result"]["figure"]["title"] = "<script>`touch " + folder.path("run") + "`'\"";
  std::filesystem::create_directories(records + "/more");
  write_text(records + "/more/E23.json", record.dump());
  REQUIRE(run_command({"report", records, "-o", page}).status == 0);
  CHECK(read_text(page).find("<script>") == std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder.path("run")));
  CHECK(holds(read_text(page), "more/E23.json"));

  const std::string before = read_text(page);
  record["result"]["findings"][0]["relation"] = "about";
  write_text(records + "/more/E23.json", record.dump());
  const CommandResult refused = run_command({"report", records, "-o", page});
  CHECK(refused.status == 2);
  CHECK(is_one_error_line(refused.error));
  CHECK(holds(refused.error, "more/E23.json: its result is not an experiment's"));
  CHECK(read_text(page) == before);
  const CommandResult rest = run_command({"report", records, "-o", page, "--keep-going"});
  CHECK(rest.status == 0);
  CHECK(holds(rest.error, "left out: "));
  CHECK(holds(read_text(page), "Left out</strong> more/E23.json"));

  const CommandResult empty = run_command({"report", folder.path("records/none")});
  CHECK(empty.status == 2);
  CHECK(is_one_error_line(empty.error));
  CHECK(holds(run_command({"report", "tests/golden"}).error, "is not an experiment's record"));
}

}  // namespace
}  // namespace guardbit::tests
