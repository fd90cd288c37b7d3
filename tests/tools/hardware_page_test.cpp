#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "tests/catch.hpp"
#include "tests/tools/shell.hpp"

namespace {

namespace fs = std::filesystem;
using guardbit::tests::holds;

/// The page that tools/scripts/hardware_page.py makes of one record, or of what --fold makes of it.
std::string page_of(const std::string& record, bool is_folded = false) {
  const fs::path folder =  // of this process: tests run side by side
      fs::temp_directory_path() / ("guardbit_hardware_page_" + std::to_string(getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder / "records");
  std::ofstream(folder / "card.json") << record;
  const std::string fold = is_folded ? "python3 tools/scripts/hardware_page.py --fold '" : "cat '";
  REQUIRE(std::system((fold + (folder / "card.json").string() + "' >'" +
                       (folder / "records/card.json").string() + "'")
                          .c_str()) == 0);
  const std::string command = "python3 tools/scripts/hardware_page.py '" +
                              (folder / "records").string() + "' >'" +
                              (folder / "page.md").string() + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  std::ifstream file(folder / "page.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  fs::remove_all(folder);
  return page;
}

}  // namespace

TEST_CASE("the hardware page shows questions with inputs, words and answers") {
  const std::string record = R"({
    "device": {"name": "NVIDIA H200", "driver": "580.1", "capability": 90}, "toolkit": "13.0",
    "date": "2026-11-21",
    "questions": [
      {"id": "Q1", "question": "Which e0?", "as_model": true, "replies": [
        {"inputs": "c = +0; p0 = 1 * 1 | p0 = 2 * 1", "words": ["0001", "0001", "0000"],
         "conclusion": "e0 = -21", "decided": true, "as_model": true, "asked": [{"probes": [],
         "instructions": ["mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16",
                          "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"]}]}]},
      {"id": "Q2", "question": "Other?", "as_model": false, "comparisons": [
        {"instruction": "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 neg_a",
         "outputs": 1234567, "conclusion": "undecided",
         "candidates": [{"rule": "as the plain form", "differ": 5}]}]},
      {"id": "Q3", "question": "Again?", "as_model": true, "comparisons": [
        {"instruction": "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 neg_a", "outputs": 10,
         "conclusion": "yes", "candidates": [{"rule": "as the plain form", "differ": 0}]},
        {"instruction": "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 neg_b", "outputs": 20,
         "conclusion": "yes", "candidates": [{"rule": "as the plain form", "differ": 1}]}]}],
    "answered_elsewhere": [],
    "undecidable": [{"question": "FP4", "assumed": "nothing", "machine": "B200"}]})";
  const std::string page = page_of(record);
  CHECK(holds(page, "| `card.json` | NVIDIA H200 | 580.1 | 13.0 | 2026-11-21 |"));
  CHECK(holds(page, "| Q1 | Which e0? | e0 = -21 | yes |"));
  CHECK(holds(page, "| Q2 | Other? | undecided | **no** |"));
  CHECK(holds(
      page,
      "| mma k8 k16: f16.f16.f16.f16 | c = +0; p0 = 1 * 1 / p0 = 2 * 1 | `0001 x2 0000` | e0 = -21 |"));
  CHECK(holds(page,
              "| 1 forms: wgmma k16 (neg_a): f32.f16.f16 | 1,234,567 | 5 | as the plain form |"));
  CHECK(holds(page, "| FP4 | nothing | B200 |"));
  CHECK(holds(page, " | 30 | 1 | as the plain form |"));
  CHECK(page_of(record, true) == page);
}

TEST_CASE("the hardware page adds up the forms of one instruction") {
  const std::string record = R"({
    "device": {"name": "NVIDIA H200"}, "rows": [
      {"name": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "variant": "",
       "sass": "HMMA.16816.F32", "outputs": 3000000000, "mismatches": 0,
       "reference_outputs": 5, "reference_mismatches": 0,
       "seconds": {"tensor_core": 1.0, "model": 2.0}, "families": [
         {"name": "raw_bits", "outputs": 5, "mismatches": 0, "observed": 5,
          "coverage": {"cut": 4, "carry": 0}}],
       "never": ["carry"]},
      {"name": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "variant": "other",
       "sass": "HMMA.16816.F32", "outputs": 1000000000, "mismatches": 2,
       "reference_outputs": 5, "reference_mismatches": 0,
       "seconds": {"tensor_core": 1.0, "model": 2.0}, "families": [], "never": ["carry"]}],
    "total": {"outputs": 4000000000, "mismatches": 2, "seconds": 9.5}})";
  const std::string page = page_of(record);
  CHECK(holds(page, "In all 4,000,000,000 outputs, 2 mismatches"));
  CHECK(holds(
      page,
      "| mma k16 f32.f16.f16.f32 | 2 | HMMA.16816.F32 | 4,000,000,000 | 1 | 2 | 1 of 2 (never: carry) | 2.0 | 1.0 |"));
  CHECK(page_of(record, true) == page);
}

TEST_CASE("what is no record is refused in one line") {
  const fs::path folder =
      fs::temp_directory_path() / ("guardbit_bad_record_" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "text.json") << "no JSON";
  std::ofstream(folder / "folded.json")
      << R"({"device": "H200", "rows": [{"name": "x", "forms": 2}], "total": {}})";
  for (const auto& [arguments, complaint] :
       {std::pair<std::string, std::string>{"", "needs records"},
        {"--fold", "needs records"},
        {(folder / "text.json").string(), "text.json: is no JSON record"},
        {(folder / "missing.json").string(), "missing.json"},
        {"--fold " + (folder / "folded.json").string(), "folded.json: is no record of"}}) {
    CAPTURE(arguments);
    const std::string errors = (folder / "errors").string();
    const int status = std::system(
        ("python3 tools/scripts/hardware_page.py " + arguments + " 2>" + errors).c_str());
    CHECK(WEXITSTATUS(status) == 2);
    std::ifstream file(errors);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CHECK(holds(text, complaint));
    CHECK(text.find('\n') + 1 == text.size());
  }
  fs::remove_all(folder);
}
