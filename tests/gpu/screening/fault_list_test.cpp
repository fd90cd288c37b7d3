#include "gpu/screening/fault_list.hpp"

#include <memory>
#include <string>

#include "gpu/screening/log_places.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

using gpu::DeviceReport;
using gpu::ScreenFinding;

/// Wrong results of an instruction on so many multiprocessors from one on.
ScreenFinding found(const std::string& instruction, int processor, int count) {
  ScreenFinding finding;
  finding.count.test = "function";
  finding.count.instruction = instruction;
  for (int p = processor; p < processor + count; ++p) {
    gpu::ScreenFault& fault = finding.faults.emplace_back();
    fault.instruction = instruction;
    fault.processor = p;
    fault.block = 1;
    finding.count.places.insert({p, 1});
    finding.count.mismatches += 10;
  }
  return finding;
}

}  // namespace

TEST_CASE("Faults of one instruction do not hide those of another") {
  DeviceReport report;
  for (int pass = 0; pass < 2; ++pass) {
    note(report, found("add.f64", 0, 132));
    note(report, found("mul.f32", 5, 1));
  }
  REQUIRE(report.faults.size() == gpu::most_faults_of_instruction + 1);
  CHECK(report.faults.back().instruction == "mul.f32");
  CHECK(gpu::room_for(report, "add.f64") == 0);
  CHECK(gpu::room_for(report, "mul.f32") == gpu::most_faults_of_instruction - 1);
  REQUIRE(report.counts.size() == 2);
  CHECK(report.counts[0].mismatches == 2 * 1320);
  CHECK(report.counts[0].processors().size() == 132);
  CHECK(report.counts[1].places.size() == 1);
}

TEST_CASE("A report's faults have an end") {
  DeviceReport report;
  for (int i = 0; i < 1000; ++i) note(report, found("f" + std::to_string(i), i % 132, 1));
  CHECK(report.faults.size() == gpu::most_faults);
  CHECK(report.counts.size() == 1000);
  CHECK(gpu::room_for(report, "another") == 0);
}

TEST_CASE("Faults without a place are told apart by their operands") {
  DeviceReport report;
  ScreenFinding finding = found("product", 0, 2);
  finding.faults[0].processor.reset();
  finding.faults[0].operands = "row 1";
  finding.faults[1] = finding.faults[0];
  finding.faults[1].operands = "row 2";
  note(report, finding);
  note(report, finding);
  CHECK(report.faults.size() == 2);
}

TEST_CASE("What unproven instructions give is apart") {
  DeviceReport report;
  ScreenFinding finding = found("add.f64", 0, 132);
  finding.count.unproven = true;
  note(report, finding);
  CHECK(report.faults.empty());
  CHECK(report.unproven.size() == gpu::most_faults_of_instruction);
  CHECK(verdict_of(report) == gpu::Health::untested);
  note(report, found("add.f64", 3, 1));
  CHECK(report.faults.size() == 1);
  CHECK(report.counts.size() == 2);
  CHECK(verdict_of(report) == gpu::Health::faulty);
}

TEST_CASE("A log says where executions were wrong, and whether everywhere") {
  const auto log = std::make_unique<gpu::ScreenLog>();
  CHECK_FALSE(is_wrong_everywhere(*log));
  log->executions[3][1] = log->failures[3][1] = 8;
  CHECK_FALSE(is_wrong_everywhere(*log));  // on one alone
  log->executions[4][0] = log->failures[4][0] = 8;
  CHECK(is_wrong_everywhere(*log));
  CHECK(wrong_places(*log) == std::set<std::pair<int, int>>{{3, 1}, {4, 0}});
  log->executions[4][0] = 9;
  CHECK_FALSE(is_wrong_everywhere(*log));
}

}  // namespace guardbit::tests
