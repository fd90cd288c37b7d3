#include "tools/benchmarks/benchmark_results.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <sstream>

#include "emulator/engine/cpu.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/version.hpp"
#include "tools/benchmarks/native_cpu.hpp"
#include "tools/benchmarks/yardsticks.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

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

std::string place_text(const Result& r) {
  if (r.axis.empty()) return size_text(r);
  return r.axis + " " + fixed(r.x, r.x < 1 && r.x > 0 ? 4 : 0);
}

std::string ratio_text(double x) { return x > 0 ? fixed(x, x < 0.1 ? 4 : 2) : ""; }

/// What the table and the JSON say of a result. Keys of what was not measured are left out.
const Columns<Result>& columns() {
  using R = Result;
  using Json = nlohmann::ordered_json;
  const auto given = [](bool is_given, const auto& value) {
    return is_given ? Json(value) : absent();
  };
  static const Columns<R> all = {
      {"name", "", Side::none, [](const R& r) { return r.name; }},
      {"kind", "kind", Side::left, [](const R& r) { return r.kind; }},
      {"subject", "subject", Side::left, [](const R& r) { return r.subject; },
       [](const R& r) {
         return paint(r.subject, Colour::bold) + (r.engine.empty() ? "" : " " + r.engine);
       }},
      {"engine", "", Side::none, [](const R& r) { return r.engine; }},
      {"arch",
       "",
       Side::none,
       [given](const R& r) { return given(!r.instruction.empty(), r.arch); },
       {},
       1},
      {"instruction",
       "",
       Side::none,
       [given](const R& r) { return given(!r.instruction.empty(), r.instruction); },
       {},
       1},
      {"", "size", Side::left, {}, place_text},
      {"m", "", Side::none, [given](const R& r) { return given(r.m != 0, r.m); }, {}, 3},
      {"n", "", Side::none, [given](const R& r) { return given(r.m != 0, r.n); }, {}, 3},
      {"k", "", Side::none, [given](const R& r) { return given(r.m != 0, r.k); }, {}, 3},
      {"axis",
       "",
       Side::none,
       [given](const R& r) { return given(!r.axis.empty(), r.axis); },
       {},
       4},
      {"x", "", Side::none, [given](const R& r) { return given(!r.axis.empty(), r.x); }, {}, 4},
      {"data",
       "data",
       Side::left,
       [given](const R& r) { return given(!r.data.empty(), r.data); },
       {},
       2},
      {"threads", "threads", Side::right, [](const R& r) { return r.threads; }},
      {"rate", "rate", Side::right, [](const R& r) { return r.rate; },
       [](const R& r) { return rate_text(r.rate); }},
      {"unit", "", Side::left, [](const R& r) { return r.unit; }},
      {"seconds", "", Side::none, [](const R& r) { return r.seconds; }},
      {"median_seconds", "", Side::none, [](const R& r) { return r.median_seconds; }},
      {"ratio", "ratio", Side::right, [given](const R& r) { return given(r.ratio > 0, r.ratio); },
       [](const R& r) { return ratio_text(r.ratio); }, 6},
      {"yardstick", "to", Side::left,
       [given](const R& r) { return given(r.ratio > 0, r.yardstick); },
       [](const R& r) { return r.yardstick; }, 5},
      {"yardstick_rate",
       "",
       Side::none,
       [given](const R& r) { return given(r.ratio > 0, r.yardstick_rate); },
       {},
       5},
      {"native_yardstick",
       "",
       Side::none,
       [given](const R& r) { return given(r.native_ratio > 0, r.native_yardstick); },
       {},
       7},
      {"native_yardstick_rate",
       "",
       Side::none,
       [given](const R& r) { return given(r.native_ratio > 0, r.native_yardstick_rate); },
       {},
       7},
      {"native_ratio", "to native", Side::right,
       [given](const R& r) { return given(r.native_ratio > 0, r.native_ratio); },
       [](const R& r) { return ratio_text(r.native_ratio); }, 7},
      {"peak_ratio", "of peak", Side::right,
       [given](const R& r) { return given(r.peak_ratio > 0, r.peak_ratio); },
       [](const R& r) { return ratio_text(r.peak_ratio); }, 10},
      {"copied_ratio",
       "",
       Side::none,
       [given](const R& r) { return given(r.copied_ratio > 0, r.copied_ratio); },
       {},
       8},
      {"goal", "goal", Side::right, [given](const R& r) { return given(r.goal > 0, r.goal); },
       [](const R& r) { return r.goal > 0 ? fixed(r.goal, 2) : ""; }, 9},
      {"moonshot",
       "",
       Side::none,
       [given](const R& r) { return given(r.goal > 0, r.moonshot); },
       {},
       9},
      {"judged_by", "", Side::left, [given](const R& r) { return given(r.goal > 0, r.judge()); },
       goal_text, 9}};
  return all;
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

nlohmann::ordered_json document(const std::vector<Result>& results, const Schedule& schedule,
                                bool complete) {
  const MachineFacts facts = this_machine();
  nlohmann::ordered_json j = {
      {"tool", "guardbit bench " + std::string(formats::version())},
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
  j["results"] = columns().json_list(results);
  return j;
}

void print_table(const std::vector<Result>& results, std::ostream& out) {
  columns().print(out, results);
  const std::string native = this_machine().native_eigen;
  out << "native: Eigen compiled with -march=native, which goals are set for"
      << (native == "used" ? "" : "; not measured, so that the other one judges: " + native)
      << '\n';
}

}  // namespace guardbit::tools
