#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpu/screening/screen_report.hpp"

// Files of verdicts: what `guardbit gpu screen` found, on one host or, merged, on many.
namespace guardbit::tools {

/// Where, when and how a screening ran.
struct ScreenRun {
  std::string host;
  /// "2026-11-21T08:00:00Z"
  std::string time;
  /// of how many, from 1 on
  int part = 1, parts = 1;
  double seconds = 0;
  std::uint64_t seed = 1;
  /// why nothing could be tested; empty otherwise
  std::string failure;
  /// what the operands exercise
  nlohmann::ordered_json coverage;
};

/// {"kind": "screen", "runs": […], "gpus": […]}.
nlohmann::ordered_json verdicts_of(const ScreenRun& run,
                                   const std::vector<gpu::DeviceReport>& reports);

std::string name_of(gpu::Health verdict);
/// "GPU 0 NVIDIA H200 GPU-… 00000000:1A:00.0: healthy, …", a line for
/// each of the first faults, and how many there are of each instruction.
std::string text_of(const gpu::DeviceReport& report);

/// Files of verdicts put together: the same whatever their order, and whether some of them were put
/// together before.
class Verdicts {
 public:
  /// formats::Error that names the file where the document is none.
  void add(const nlohmann::ordered_json& document, const std::string& file);
  /// A node that must have a verdict.
  void expect(const std::string& host);

  nlohmann::ordered_json to_json() const;
  /// The worst of each host: a faulty GPU, then one that could not be tested or is missing.
  std::map<std::string, gpu::Health> nodes() const;
  gpu::Health worst() const;
  /// "3/8" for parts that other files name and none holds.
  std::vector<std::string> missing_parts() const;
  std::size_t gpus() const { return gpus_.size(); }

  /// Hosts with that verdict, or all others: "n1,n2,n3" as Slurm takes them.
  std::string slurm_nodes(bool healthy) const;
  /// A List of Events, one for each host, as `kubectl create -f` takes it.
  nlohmann::ordered_json kubernetes_events() const;

 private:
  /// by their text, which sorts and removes what is there twice
  std::map<std::string, nlohmann::ordered_json> runs_, gpus_;
  std::map<std::string, gpu::Health> expected_;
};

}  // namespace guardbit::tools
