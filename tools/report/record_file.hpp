#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "experiments/harness/run.hpp"
#include "formats/support/printable.hpp"
#include "tools/console/elapsed.hpp"
#include "tools/console/terminal.hpp"
#include "tools/report/experiment_record.hpp"

// The record of a run that is not over.
namespace guardbit::tools {

/// The record of one run in a folder, written again now and then, so that the run can go on.
class RecordFile {
 public:
  RecordFile(std::string path, RunIdentity identity, bool fresh) : path_(std::move(path)) {
    record_.identity = std::move(identity);
    std::error_code ignored;
    if (path_.empty() || fresh || !std::filesystem::exists(path_, ignored)) return;
    ExperimentRecord earlier = read_record(path_);
    if (earlier.identity != record_.identity) return;
    record_ = std::move(earlier);
    record_.complete = false;
    record_.result = nullptr;
  }

  const experiments::Points& points() const { return record_.points; }

  void add(const experiments::Run& run, const std::string& key,
           const experiments::PointResult& point) {
    record_.points[key] = point;
    take_names(run);
    // As often as costs little, so that a killed run has little to compute again.
    constexpr double seconds_between = 0.2, times_its_own = 20;
    if (path_.empty() ||
        seconds_since(written_) < std::max(seconds_between, times_its_own * seconds_to_write_))
      return;
    const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    keep();
    written_ = std::chrono::steady_clock::now();
    seconds_to_write_ = seconds_since(start);
  }
  void keep() const {
    if (!path_.empty()) write_record(path_, record_);
  }
  const std::set<std::string>& plans() const { return record_.plans; }
  void complete(const experiments::Run& run, const nlohmann::ordered_json& result) {
    record_.complete = true;
    record_.points = run.points();
    take_names(run);
    record_.result = result;
    keep();
  }

 private:
  void take_names(const experiments::Run& run) {
    record_.plans.insert(run.plans().begin(), run.plans().end());
    record_.formats.insert(run.formats().begin(), run.formats().end());
  }

  std::string path_;
  ExperimentRecord record_;
  std::chrono::steady_clock::time_point written_ = std::chrono::steady_clock::now();
  double seconds_to_write_ = 0;
};

/// The first point that is not what the record says: "K=512: 0.25, not 0.5".
inline std::string first_other_point(const experiments::Points& points,
                                     const experiments::Points& known) {
  for (const auto& [key, point] : points) {
    const auto found = known.find(key);
    if (found == known.end()) return formats::printable(key) + ": the record has no such point";
    if (found->second == point) continue;
    const std::vector<double>&now = point.values, &then = found->second.values;
    for (std::size_t i = 0; i < std::min(now.size(), then.size()); ++i)
      if (now[i] != then[i] && !(std::isnan(now[i]) && std::isnan(then[i])))
        return formats::printable(key) + ": " + number(now[i], "%.17g") + ", and in the record " +
               number(then[i], "%.17g");
    return formats::printable(key) + ": another number of values or inputs";
  }
  for (const auto& [key, point] : known)
    if (!points.contains(key)) return formats::printable(key) + ": is in the record alone";
  return {};
}

}  // namespace guardbit::tools
