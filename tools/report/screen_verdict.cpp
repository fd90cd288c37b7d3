#include "tools/report/screen_verdict.hpp"

#include <algorithm>
#include <functional>
#include <iomanip>
#include <set>
#include <sstream>
#include <utility>

#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/text.hpp"

namespace guardbit::tools {

namespace {

using gpu::DeviceReport;
using gpu::Health;
using gpu::ScreenFault;
using Json = nlohmann::ordered_json;

const char* recurrence_name(gpu::Recurrence recurrence) {
  return recurrence == gpu::Recurrence::permanent ? "permanent" : "intermittent";
}

Json json_of(const ScreenFault& fault) {
  Json j = {{"test", fault.test}, {"instruction", fault.instruction}};
  if (fault.processor) j["multiprocessor"] = *fault.processor;
  if (fault.block) j["processing_block"] = *fault.block;
  j["operands"] = fault.operands;
  j["expected"] = fault.expected;
  j["got"] = fault.got;
  j["bits"] = fault.bits;
  j["repeated"] = fault.repeated;
  j["wrong_again"] = fault.wrong_again;
  j["recurrence"] = recurrence_name(fault.recurrence);
  j["everywhere"] = fault.everywhere;
  return j;
}

Json json_of(const gpu::FaultCount& count) {
  Json j = {{"test", count.test},
            {"instruction", count.instruction},
            {"mismatches", count.mismatches},
            {"unproven", count.unproven}};
  if (!count.places.empty()) {
    j["multiprocessors"] = count.processors();
    j["processing_blocks"] = count.places.size();
  }
  return j;
}

Json json_of(const gpu::ScreenTest& test) {
  Json j = {{"test", test.test},         {"kinds", test.kinds},
            {"outputs", test.outputs},   {"mismatches", test.mismatches},
            {"unproven", test.unproven}, {"seconds", test.seconds},
            {"tested", test.tested}};
  if (test.tflops != 0) j["tflops"] = test.tflops;
  if (test.tflops_alone != 0) j["tflops_alone"] = test.tflops_alone;
  if (!test.remark.empty()) j["remark"] = test.remark;
  return j;
}

Json json_of(const std::optional<gpu::MemoryErrors>& errors) {
  if (!errors) return nullptr;
  return {{"corrected", errors->corrected}, {"uncorrected", errors->uncorrected}};
}

Json json_of(const DeviceReport& report, const ScreenRun& run) {
  Json tests = Json::array(), faults = Json::array(), unproven = Json::array(),
       counts = Json::array(), telemetry = Json::array();
  for (const gpu::ScreenTest& test : report.tests) tests.push_back(json_of(test));
  for (const ScreenFault& fault : report.faults) faults.push_back(json_of(fault));
  for (const ScreenFault& fault : report.unproven) unproven.push_back(json_of(fault));
  for (const gpu::FaultCount& count : report.counts) counts.push_back(json_of(count));
  for (const gpu::Telemetry& now : report.telemetry)
    telemetry.push_back({{"seconds", now.seconds},
                         {"watts", now.watts},
                         {"sm_mhz", now.sm_mhz},
                         {"memory_mhz", now.memory_mhz},
                         {"celsius", now.celsius}});
  return {{"host", run.host},
          {"time", run.time},
          {"index", report.index},
          {"name", report.name},
          {"uuid", report.uuid},
          {"pci", report.pci},
          {"driver", report.driver},
          {"verdict", name_of(verdict_of(report))},
          {"failure", report.failure},
          {"seconds", report.seconds},
          {"passes", report.passes},
          {"multiprocessors", report.processors},
          {"multiprocessors_seen", report.processors_seen},
          {"tests", tests},
          {"faults", faults},
          {"unproven", unproven},
          {"fault_counts", counts},
          {"memory_errors",
           {{"before", json_of(report.errors_before)}, {"after", json_of(report.errors_after)}}},
          {"telemetry", telemetry}};
}

/// A member of that name and type; formats::Error where there is none.
template <class Type>
Type member(const Json& object, const char* name, const std::string& file) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  try {
    if (object.is_object() && found != object.end()) return found->template get<Type>();
  } catch (const nlohmann::json::exception&) {
  }
  throw formats::Error(formats::printable(file),
                       std::string("is no file of verdicts: '") + name + "' is missing or wrong");
}

Health worse(Health a, Health b) {
  if (a == Health::faulty || b == Health::faulty) return Health::faulty;
  return a == Health::untested ? a : b;
}

Health verdict_named(const std::string& name, const std::string& file) {
  for (const Health verdict : {Health::healthy, Health::faulty, Health::untested})
    if (name_of(verdict) == name) return verdict;
  throw formats::Error(formats::printable(file),
                       "is no file of verdicts: " + formats::in_quotes(name) + " is no verdict");
}

}  // namespace

namespace {

constexpr std::size_t most_fault_lines = 8;

/// The bits that differ, as a mask.
std::string mask_of(const std::vector<int>& bits) {
  std::uint64_t mask = 0;
  for (const int bit : bits) mask |= std::uint64_t{1} << bit;
  const bool is_wide = mask >> 32 != 0;
  return formats::hex_text(is_wide ? formats::uint64 : formats::uint32, mask);
}

std::string line_of(const ScreenFault& fault) {
  std::ostringstream out;
  out << fault.instruction;
  if (fault.processor) out << ", multiprocessor " << *fault.processor;
  if (fault.block) out << ", processing block " << *fault.block;
  out << ": expected " << fault.expected << ", got " << fault.got << ", bits "
      << mask_of(fault.bits) << ", wrong again in " << fault.wrong_again << " of " << fault.repeated
      << ", " << recurrence_name(fault.recurrence)
      << (fault.everywhere ? ", on every multiprocessor" : "") << "; ";
  constexpr std::size_t longest = 80;
  out << fault.operands.substr(0, longest) << (fault.operands.size() > longest ? "…" : "");
  return out.str();
}

/// Wrong results by instruction, those with most first.
std::string counts_text(const DeviceReport& report, bool unproven) {
  std::vector<gpu::FaultCount> counts;
  for (const gpu::FaultCount& count : report.counts)
    if (count.unproven == unproven) counts.push_back(count);
  if (counts.empty()) return "";
  std::ranges::stable_sort(counts, std::greater<>(), &gpu::FaultCount::mismatches);
  std::set<int> processors;
  std::uint64_t wrong = 0;
  for (const gpu::FaultCount& count : counts) {
    wrong += count.mismatches;
    processors.merge(count.processors());
  }
  std::ostringstream out;
  out << "  " << (unproven ? "unproven: " : "in all: ") << wrong << " wrong results of "
      << counts.size() << (counts.size() == 1 ? " instruction" : " instructions");
  const auto on = [&out](const std::set<int>& where) {
    if (where.size() == 1) out << " on multiprocessor " << *where.begin();
    if (where.size() > 1) out << " on " << where.size() << " multiprocessors";
  };
  on(processors);
  out << (unproven ? ", whose models were not compared with hardware\n" : "\n");
  for (std::size_t i = 0; i < counts.size() && i < most_fault_lines; ++i) {
    out << "    " << counts[i].instruction << ": " << counts[i].mismatches;
    on(counts[i].processors());
    out << '\n';
  }
  if (counts.size() > most_fault_lines)
    out << "    and " << counts.size() - most_fault_lines << " instructions more\n";
  return out.str();
}

}  // namespace

std::string name_of(Health verdict) {
  return verdict == Health::healthy ? "healthy" : verdict == Health::faulty ? "faulty" : "untested";
}

Json verdicts_of(const ScreenRun& run, const std::vector<DeviceReport>& reports) {
  Json gpus = Json::array();
  for (const DeviceReport& report : reports) gpus.push_back(json_of(report, run));
  const Json ran = {{"host", run.host},       {"time", run.time},        {"part", run.part},
                    {"parts", run.parts},     {"seconds", run.seconds},  {"seed", run.seed},
                    {"failure", run.failure}, {"coverage", run.coverage}};
  return {{"kind", "screen"}, {"runs", Json::array({ran})}, {"gpus", gpus}};
}

std::string text_of(const DeviceReport& report) {
  std::ostringstream out;
  std::uint64_t outputs = 0, mismatches = 0;
  for (const gpu::ScreenTest& test : report.tests) {
    outputs += test.outputs;
    mismatches += test.mismatches;
  }
  double watts = 0;
  unsigned celsius = 0;
  for (const gpu::Telemetry& now : report.telemetry) {
    watts = std::max(watts, now.watts);
    celsius = std::max(celsius, now.celsius);
  }
  out << std::setprecision(3) << "GPU " << report.index << ' ' << report.name << ' ' << report.uuid
      << ' ' << report.pci << ": " << name_of(verdict_of(report));
  if (!report.failure.empty()) out << ": " << report.failure;
  out << ", " << static_cast<double>(outputs) << " results compared, " << mismatches << " wrong, "
      << report.processors_seen << " of " << report.processors << " multiprocessors, "
      << report.seconds << " s";
  if (watts != 0) out << ", at most " << watts << " W and " << celsius << " C";
  out << '\n';
  for (const gpu::ScreenTest& test : report.tests) {
    if (test.tested && test.tflops == 0) continue;
    out << "  " << test.test << ": ";
    if (!test.tested)
      out << "not tested: " << test.remark << '\n';
    else
      out << test.tflops << " TFLOP/s while compared, " << test.tflops_alone << " alone\n";
  }
  for (std::size_t i = 0; i < report.faults.size() && i < most_fault_lines; ++i)
    out << "  " << line_of(report.faults[i]) << '\n';
  out << counts_text(report, false) << counts_text(report, true);
  return out.str();
}

void Verdicts::add(const Json& document, const std::string& file) {
  if (member<std::string>(document, "kind", file) != "screen")
    throw formats::Error(formats::printable(file), "is no file of verdicts of guardbit gpu screen");
  for (const Json& run : member<Json::array_t>(document, "runs", file)) {
    member<std::string>(run, "host", file);
    member<std::string>(run, "time", file);
    member<std::string>(run, "failure", file);
    const int part = member<int>(run, "part", file), parts = member<int>(run, "parts", file);
    constexpr int most_parts = 1 << 16;
    if (part < 1 || part > parts || parts > most_parts)
      throw formats::Error(
          formats::printable(file),
          "is no file of verdicts: part " + std::to_string(part) + " of " + std::to_string(parts));
    runs_[run.dump()] = run;
  }
  for (const Json& gpu : member<Json::array_t>(document, "gpus", file)) {
    for (const char* const name : {"host", "time", "uuid", "name", "pci"})
      member<std::string>(gpu, name, file);
    verdict_named(member<std::string>(gpu, "verdict", file), file);
    gpus_[gpu.dump()] = gpu;
  }
}

void Verdicts::expect(const std::string& host) { expected_.emplace(host, Health::untested); }

Json Verdicts::to_json() const {
  Json runs = Json::array(), gpus = Json::array();
  for (const auto& [text, run] : runs_) runs.push_back(run);
  for (const auto& [text, gpu] : gpus_) gpus.push_back(gpu);
  return {{"kind", "screen"}, {"runs", runs}, {"gpus", gpus}};
}

std::map<std::string, Health> Verdicts::nodes() const {
  std::map<std::string, Health> nodes;
  const auto note = [&](const std::string& host, Health verdict) {
    const auto [at, is_new] = nodes.emplace(host, verdict);
    if (!is_new) at->second = worse(at->second, verdict);
  };
  for (const auto& [text, gpu] : gpus_)
    note(gpu["host"].get<std::string>(), verdict_named(gpu["verdict"].get<std::string>(), ""));
  for (const auto& [text, run] : runs_)
    if (!run["failure"].get<std::string>().empty())
      note(run["host"].get<std::string>(), Health::untested);
  for (const auto& [host, verdict] : expected_)
    if (!nodes.contains(host)) note(host, verdict);
  return nodes;
}

Health Verdicts::worst() const {
  Health all = Health::healthy;
  const std::map<std::string, Health> verdicts = nodes();
  if (verdicts.empty()) return Health::untested;
  for (const auto& [host, verdict] : verdicts) all = worse(all, verdict);
  return !missing_parts().empty() ? worse(all, Health::untested) : all;
}

std::vector<std::string> Verdicts::missing_parts() const {
  std::map<int, std::set<int>> seen;
  for (const auto& [text, run] : runs_)
    seen[run["parts"].get<int>()].insert(run["part"].get<int>());
  std::vector<std::string> missing;
  for (const auto& [parts, there] : seen)
    for (int part = 1; part <= parts; ++part)
      if (!there.contains(part))
        missing.push_back(std::to_string(part) + "/" + std::to_string(parts));
  return missing;
}

std::string Verdicts::slurm_nodes(bool healthy) const {
  std::string text;
  for (const auto& [host, verdict] : nodes())
    if ((verdict == Health::healthy) == healthy) text += (text.empty() ? "" : ",") + host;
  return text;
}

Json Verdicts::kubernetes_events() const {
  Json items = Json::array();
  for (const auto& [host, verdict] : nodes()) {
    std::string message, time;
    const auto say = [&](const std::string& text) {
      message += (message.empty() ? "" : "; ") + text;
    };
    for (const auto& [text, gpu] : gpus_) {
      if (gpu["host"] != host) continue;
      time = std::max(time, gpu["time"].get<std::string>());
      if (gpu["verdict"] != name_of(Health::healthy) || verdict == Health::healthy)
        say(gpu["uuid"].get<std::string>() + " " + gpu["pci"].get<std::string>() + " " +
            gpu["verdict"].get<std::string>());
    }
    for (const auto& [text, run] : runs_) {
      if (run["host"] != host) continue;
      time = std::max(time, run["time"].get<std::string>());
      if (const auto failure = run["failure"].get<std::string>(); !failure.empty()) say(failure);
    }
    if (message.empty()) say("no verdict");
    std::string reason = "GpuHealthy";
    if (verdict == Health::faulty) reason = "GpuFaulty";
    if (verdict == Health::untested) reason = "GpuNotTested";
    // Kubernetes takes 1024 characters.
    constexpr std::size_t longest = 1024;
    Json event = {{"apiVersion", "v1"},
                  {"kind", "Event"},
                  {"metadata", {{"generateName", "guardbit-screen-"}, {"namespace", "default"}}},
                  {"involvedObject", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", host}}},
                  {"reason", reason},
                  {"message", message.substr(0, longest)},
                  {"type", verdict == Health::healthy ? "Normal" : "Warning"},
                  {"count", 1},
                  {"source", {{"component", "guardbit"}, {"host", host}}}};
    if (!time.empty()) {
      event["firstTimestamp"] = time;
      event["lastTimestamp"] = time;
    }
    items.push_back(event);
  }
  return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}};
}

}  // namespace guardbit::tools
