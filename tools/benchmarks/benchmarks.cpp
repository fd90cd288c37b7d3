#include "tools/benchmarks/benchmarks.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "emulator/engine/engines.hpp"
#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"

namespace guardbit::tools {

namespace {

bool is_wanted(const BenchOptions& options, const Planned& planned) {
  return options.only.empty() ||
         std::any_of(options.only.begin(), options.only.end(), [&](const std::string& word) {
           return planned.result.name.find(word) != std::string::npos;
         });
}

Group wanted_part(const BenchOptions& options, Group group) {
  std::set<std::string> names;
  for (const Planned& planned : group) {
    if (!is_wanted(options, planned)) continue;
    names.insert(planned.result.name);
    names.insert(planned.yardstick);
    names.insert(planned.native_yardstick);
    names.insert(planned.peak);
  }
  std::erase_if(group,
                [&](const Planned& planned) { return !names.contains(planned.result.name); });
  return group;
}

void check_engines(const BenchOptions& options) {
  std::vector<std::string_view> names;
  std::string list;
  for (const emulator::Engine& engine : emulator::engines()) {
    names.push_back(engine.name);
    list += (list.empty() ? "" : ", ") + std::string(engine.name);
  }
  for (const std::string& name : options.engines) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw formats::Error("--engine", formats::unknown_name("engine", name, names), list);
  }
}

}  // namespace

std::vector<Group> plan(const BenchOptions& options) {
  check_engines(options);
  const auto asked = [&](const char* kind) {
    return options.kinds.empty() ||
           std::find(options.kinds.begin(), options.kinds.end(), kind) != options.kinds.end();
  };
  std::vector<Group> groups;
  if (options.curves) {
    plan_curves(options, groups);
  } else {
    const bool one_instruction = !options.instruction.empty();
    if (asked("gemm")) plan_products(options, groups);
    if (asked("replay")) plan_replays(options, groups);
    if (asked("convert") && !one_instruction) plan_conversions(options, groups);
    if (asked("memory") && !one_instruction) plan_memory(options, groups);
    if (asked("trace") && !one_instruction) plan_traces(options, groups);
    if (asked("function") && !one_instruction) plan_functions(options, groups);
    if (asked("operator") && !one_instruction) plan_operators(options, groups);
  }
  for (Group& group : groups) group = wanted_part(options, std::move(group));
  std::erase_if(groups, [](const Group& group) { return group.empty(); });
  return groups;
}

std::vector<Result> measure(const Group& group, const Schedule& schedule,
                            const Interruption& interruption) {
  std::vector<Result> results;
  std::vector<Subject> subjects;
  for (const Planned& planned : group) {
    interruption.check();
    results.push_back(planned.result);
    subjects.push_back({planned.result.name, planned.prepare(results.back())});
  }
  const std::vector<Timing> timings = time_in_turns(subjects, schedule, interruption);
  for (std::size_t i = 0; i < group.size(); ++i) {
    results[i].seconds = timings[i].best;
    results[i].median_seconds = timings[i].median;
    results[i].rate = results[i].work / timings[i].best;
  }
  const auto named = [&](const std::string& name) -> const Result& {
    return *std::find_if(results.begin(), results.end(),
                         [&](const Result& other) { return other.name == name; });
  };
  for (std::size_t i = 0; i < group.size(); ++i) {
    Result& result = results[i];
    if (!group[i].yardstick.empty()) {
      const Result& beside = named(group[i].yardstick);
      result.yardstick = beside.subject;
      result.yardstick_rate = beside.rate;
      result.ratio = result.rate / beside.rate;
      if (result.kind == "convert") result.copied_ratio = 2 * result.ratio;
    }
    if (!group[i].native_yardstick.empty()) {
      const Result& native = named(group[i].native_yardstick);
      result.native_yardstick = native.subject;
      result.native_yardstick_rate = native.rate;
      result.native_ratio = result.rate / native.rate;
    }
    if (!group[i].peak.empty()) result.peak_ratio = result.rate / named(group[i].peak).rate;
  }
  return results;
}

}  // namespace guardbit::tools
