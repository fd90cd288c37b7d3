#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/tools/command.hpp"
#include "tools/report/screen_verdict.hpp"

namespace guardbit::tests {
namespace {

using gpu::DeviceReport;
using nlohmann::ordered_json;
using tools::ScreenRun;

ScreenRun run_on(const std::string& host, int part, int parts) {
  ScreenRun run;
  run.host = host;
  run.time = "2026-11-27T08:00:0" + std::to_string(part) + "Z";
  run.part = part;
  run.parts = parts;
  run.coverage = {{"functions", 3}};
  return run;
}

DeviceReport healthy(const std::string& uuid) {
  DeviceReport report;
  report.name = "NVIDIA H200";
  report.uuid = uuid;
  report.pci = "00000000:1A:00.0";
  report.processors = report.processors_seen = 132;
  report.tests.resize(1);
  report.tests[0].test = "matrix";
  report.tests[0].outputs = 1000;
  report.telemetry = {{1.5, 700, 1980, 3201, 61}};
  return report;
}

DeviceReport faulty(const std::string& uuid) {
  DeviceReport report = healthy(uuid);
  gpu::ScreenFault fault;
  fault.test = "matrix";
  fault.instruction = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
  fault.processor = 77;
  fault.block = 2;
  fault.operands = "a=0x3c00 b=0x3c00 c=0x00000000";
  fault.expected = "0x3f800000";
  fault.got = "0x3f800001";
  fault.bits = {0};
  fault.repeated = fault.wrong_again = 512;
  fault.recurrence = gpu::Recurrence::permanent;
  report.tests[0].mismatches = 9;
  report.faults = {fault};
  report.counts = {{"matrix", fault.instruction, 9, {{77, 2}, {77, 3}}}};
  return report;
}

/// Files of three hosts: n1 is healthy, a GPU of n2 is not, and n3 has none.
std::vector<std::string> files_of_three_hosts(const TemporaryFolder& folder) {
  ScreenRun third = run_on("n3", 3, 3);
  third.failure = "CUDA: no NVIDIA driver is loaded";
  const std::vector<ordered_json> documents = {
      verdicts_of(run_on("n1", 1, 3), {healthy("GPU-a"), healthy("GPU-b")}),
      verdicts_of(run_on("n2", 2, 3), {healthy("GPU-c"), faulty("GPU-d")}), verdicts_of(third, {})};
  std::vector<std::string> files;
  for (const ordered_json& document : documents) {
    files.push_back(folder.path(std::to_string(files.size()) + ".json"));
    write_text(files.back(), document.dump(1));
  }
  return files;
}

CommandResult merge(std::vector<std::string> words) {
  words.insert(words.begin(), {"screen", "merge"});
  return run_command(words);
}

}  // namespace

TEST_CASE("A verdict is the worst of what a screening found") {
  CHECK(verdict_of(healthy("a")) == gpu::Health::healthy);
  CHECK(verdict_of(faulty("a")) == gpu::Health::faulty);
  DeviceReport report = healthy("a");
  report.failure = "unspecified launch failure";
  CHECK(verdict_of(report) == gpu::Health::untested);
  report.tests[0].mismatches = 1;
  CHECK(verdict_of(report) == gpu::Health::faulty);
  report = healthy("a");
  report.errors_before = {3, 0};
  report.errors_after = {5, 0};
  CHECK(verdict_of(report) == gpu::Health::healthy);
  report.errors_after = {5, 1};
  CHECK(verdict_of(report) == gpu::Health::faulty);
  CHECK(verdict_of(DeviceReport{}) == gpu::Health::untested);
}

TEST_CASE("A report of a screening names the fault's place, bits and recurrence") {
  const std::string text = tools::text_of(faulty("GPU-d"));
  CHECK_THAT(text, contains_text("GPU-d 00000000:1A:00.0: faulty"));
  CHECK_THAT(text,
             contains_text("multiprocessor 77, processing block 2: expected 0x3f800000, got "
                           "0x3f800001, bits 0x00000001, wrong again in 512 of 512, permanent; "));
  CHECK_THAT(text,
             contains_text("in all: 9 wrong results of 1 instruction on multiprocessor 77\n"));
  CHECK_THAT(tools::text_of(healthy("GPU-a")), contains_text("at most 700 W and 61 C"));
}

TEST_CASE("A report of many faults is short, and counts them by instruction") {
  DeviceReport report = faulty("GPU-d");
  report.counts.clear();
  for (int i = 0; i < 20; ++i) {
    gpu::ScreenFault fault = report.faults[0];
    fault.instruction = "add" + std::to_string(i);
    fault.bits = {63, 0};
    fault.operands = std::string(5000, '1');
    report.counts.push_back(
        {"function", fault.instruction, static_cast<std::uint64_t>(10 + i), {{i, 0}}, i == 7});
    if (i != 0) report.faults.push_back(fault);
  }
  const std::string text = tools::text_of(report);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1 + 8 + 1 + 8 + 1 + 2);
  CHECK(text.size() < 4000);
  CHECK_THAT(text, contains_text("bits 0x8000000000000001, "));
  CHECK_THAT(text, contains_text("in all: 373 wrong results of 19 instructions on 19 "
                                 "multiprocessors\n    add19: 29 on multiprocessor 19\n"));
  CHECK_THAT(text, contains_text("    and 11 instructions more\n"));
  CHECK_THAT(text, contains_text("unproven: 17 wrong results of 1 instruction on multiprocessor 7, "
                                 "whose models were not compared with hardware\n"));
  const ordered_json gpu = verdicts_of(run_on("n1", 1, 1), {report})["gpus"][0];
  CHECK(gpu["faults"].size() == 20);
  CHECK(gpu["fault_counts"][7]["unproven"] == true);
  CHECK(gpu["fault_counts"][8]["multiprocessors"] == ordered_json({8}));
}

TEST_CASE("What differs of unproven instructions alone makes no GPU faulty") {
  DeviceReport report = healthy("GPU-a");
  report.tests[0].unproven = 40;
  report.counts = {{"function", "add.f64", 40, {{1, 1}, {2, 1}}, true}};
  report.unproven.resize(1);
  CHECK(verdict_of(report) == gpu::Health::healthy);
  CHECK_THAT(tools::text_of(report), contains_text("unproven: 40 wrong results"));
}

TEST_CASE("screen merge gives the same bytes in any order and in any steps") {
  const TemporaryFolder folder;
  const auto files = files_of_three_hosts(folder);
  const std::string one = folder.path("one.json"), two = folder.path("two.json"),
                    pair = folder.path("pair.json"), three = folder.path("three.json");
  REQUIRE(merge({files[0], files[1], files[2], "-o", one}).status == 1);
  merge({files[2], files[0], files[1], files[0], "-o", two});
  REQUIRE(read_text(one) == read_text(two));
  merge({files[2], files[1], "-o", pair});
  merge({files[0], pair, "-o", three});
  REQUIRE(read_text(one) == read_text(three));
  REQUIRE(ordered_json::parse(read_text(one))["gpus"].size() == 4);
  REQUIRE(ordered_json::parse(merge({one, "--json"}).out) == ordered_json::parse(read_text(one)));
}

TEST_CASE("screen merge writes lists of nodes for Slurm and events for Kubernetes") {
  const TemporaryFolder folder;
  const auto files = files_of_three_hosts(folder);
  const std::string pass = folder.path("pass"), fail = folder.path("fail"),
                    events = folder.path("events"), nodes = folder.path("nodes");
  write_text(nodes, "n1 n2\nn3 n4\n");
  const CommandResult result =
      merge({files[0], files[1], files[2], "--slurm-pass", pass, "--slurm-fail", fail, "--nodes",
             nodes, "--kubernetes", events});
  CHECK(result.status == 1);
  CHECK_THAT(result.out, contains_text("4 nodes, 4 GPUs: 1 healthy, 1 faulty, 2 untested"));
  CHECK(read_text(pass) == "n1\n");
  CHECK(read_text(fail) == "n2,n3,n4\n");
  const auto list = ordered_json::parse(read_text(events));
  REQUIRE(list["items"].size() == 4);
  CHECK(list["items"][0]["type"] == "Normal");
  CHECK(list["items"][1]["reason"] == "GpuFaulty");
  CHECK(list["items"][1]["message"] == "GPU-d 00000000:1A:00.0 faulty");
  CHECK(list["items"][2]["message"] == "CUDA: no NVIDIA driver is loaded");
  CHECK(list["items"][3]["reason"] == "GpuNotTested");
}

TEST_CASE("screen merge names the parts that are missing") {
  const TemporaryFolder folder;
  const auto files = files_of_three_hosts(folder);
  const CommandResult without_second = merge({files[0]});
  CHECK(without_second.status == 2);
  CHECK_THAT(without_second.out, contains_text("missing parts: 2/3, 3/3"));
  CHECK(merge({files[0], files[2]}).status == 2);
}

TEST_CASE("screen merge refuses what is no file of verdicts") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& content) {
    write_text(folder.path("x.json"), content);
    const CommandResult result = merge({folder.path("x.json")});
    INFO(content << ": " << result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
  };
  refused("");
  refused("[]");
  refused(R"({"kind": "trace"})");
  refused(R"({"kind": "screen", "runs": 3, "gpus": []})");
  refused(R"({"kind": "screen", "runs": [{"host": "a"}], "gpus": []})");
  auto document = ordered_json::parse(read_text(files_of_three_hosts(folder)[0]));
  auto wrong = document;
  wrong["gpus"][0]["verdict"] = "fine";
  refused(wrong.dump());
  wrong = document;
  wrong["gpus"][0].erase("uuid");
  refused(wrong.dump());
  wrong = document;
  wrong["runs"][0]["part"] = 9;
  refused(wrong.dump());
}

}  // namespace guardbit::tests
