#include "tools/benchmarks/benchmark_results.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <iomanip>
#include <sstream>

#include "emulator/engine/cpu.hpp"
#include "formats/support/parallel.hpp"
#include "tools/benchmarks/native_cpu.hpp"
#include "tools/benchmarks/yardsticks.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

std::string fixed(double x, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << x;
  return text.str();
}

/// Three significant digits or more.
std::string rate_text(double rate) { return fixed(rate, rate < 1 ? 4 : rate < 100 ? 2 : 1); }

std::string goal_text(const Result& result) {
  if (result.goal == 0) return "";
  if (result.judged_ratio() >= result.moonshot) return paint("moonshot", Colour::cyan);
  return result.judged_ratio() >= result.goal ? paint("goal", Colour::green)
                                              : paint("below", Colour::red);
}

std::string size_text(const Result& result) {
  if (result.m == 0) return "";
  if (result.m == result.n && result.n == result.k) return std::to_string(result.m);
  return std::to_string(result.m) + "x" + std::to_string(result.n) + "x" + std::to_string(result.k);
}

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&time, &utc);
  std::ostringstream text;
  text << std::put_time(&utc, "%Y-%m-%dT%H:%M:%SZ");
  return text.str();
}

}  // namespace

MachineFacts this_machine() {
  MachineFacts facts;
  facts.cpu = emulator::cpu::description();
  facts.processors = formats::thread_count(0);
  facts.compiler = "g++ " __VERSION__;
  utsname system{};
  if (uname(&system) == 0)
    facts.system = std::string(system.sysname) + " " + std::string(system.machine);
  facts.eigen = widest_eigen().instruction_set;
  facts.native_eigen = native_eigen() != nullptr ? "used" : native_obstacle();
  facts.level1_bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE);
  facts.level2_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  facts.level3_bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return facts;
}

nlohmann::ordered_json to_json(const Result& result) {
  nlohmann::ordered_json j = {{"name", result.name},
                              {"kind", result.kind},
                              {"subject", result.subject},
                              {"engine", result.engine},
                              {"threads", result.threads},
                              {"rate", result.rate},
                              {"unit", result.unit},
                              {"seconds", result.seconds},
                              {"median_seconds", result.median_seconds}};
  if (!result.instruction.empty()) {
    j["arch"] = result.arch;
    j["instruction"] = result.instruction;
  }
  if (!result.data.empty()) j["data"] = result.data;
  if (result.m != 0) {
    j["m"] = result.m;
    j["n"] = result.n;
    j["k"] = result.k;
  }
  if (!result.axis.empty()) {
    j["axis"] = result.axis;
    j["x"] = result.x;
  }
  if (result.ratio > 0) {
    j["yardstick"] = result.yardstick;
    j["yardstick_rate"] = result.yardstick_rate;
    j["ratio"] = result.ratio;
  }
  if (result.native_ratio > 0) {
    j["native_yardstick"] = result.native_yardstick;
    j["native_yardstick_rate"] = result.native_yardstick_rate;
    j["native_ratio"] = result.native_ratio;
  }
  if (result.copied_ratio > 0) j["copied_ratio"] = result.copied_ratio;
  if (result.goal > 0) {
    j["goal"] = result.goal;
    j["moonshot"] = result.moonshot;
    j["judged_by"] = result.judge();
  }
  return j;
}

nlohmann::ordered_json document(const std::vector<Result>& results, const Schedule& schedule,
                                bool complete) {
  const MachineFacts facts = this_machine();
  nlohmann::ordered_json j = {
      {"tool", "guardbit bench " GUARDBIT_VERSION},
      {"date", now()},
      {"complete", complete},
      {"machine",
       {{"cpu", facts.cpu},
        {"processors", facts.processors},
        {"caches", {facts.level1_bytes, facts.level2_bytes, facts.level3_bytes}},
        {"system", facts.system},
        {"compiler", facts.compiler},
        {"eigen", facts.eigen},
        {"eigen_native", facts.native_eigen}}},
      {"settings", {{"repetitions", schedule.repetitions}, {"seconds", schedule.seconds}}}};
  j["results"] = nlohmann::ordered_json::array();
  for (const Result& result : results) j["results"].push_back(to_json(result));
  return j;
}

void print_table(const std::vector<Result>& results, std::ostream& out) {
  const auto ratio_text = [](double x) { return x > 0 ? fixed(x, x < 0.1 ? 4 : 2) : ""; };
  Table table("llllrrlrlrrl");
  table.add({"kind", "subject", "size", "data", "threads", "rate", "", "ratio", "to", "to native",
             "goal", ""});
  for (const Result& r : results) {
    table.add(
        {r.kind, paint(r.subject, Colour::bold) + (r.engine.empty() ? "" : " " + r.engine),
         r.axis.empty() ? size_text(r) : r.axis + " " + fixed(r.x, r.x < 1 && r.x > 0 ? 4 : 0),
         r.data, std::to_string(r.threads), rate_text(r.rate), r.unit, ratio_text(r.ratio),
         r.yardstick, ratio_text(r.native_ratio), r.goal > 0 ? fixed(r.goal, 2) : "",
         goal_text(r)});
  }
  table.print(out);
  const std::string native = this_machine().native_eigen;
  out << "native: Eigen compiled with -march=native, which goals are set for"
      << (native == "used" ? "" : "; not measured, so that the other one judges: " + native)
      << '\n';
}

}  // namespace guardbit::tools
