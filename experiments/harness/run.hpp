#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "experiments/harness/experiment.hpp"
#include "experiments/harness/fingerprint.hpp"
#include "experiments/harness/random_numbers.hpp"
#include "formats/files/tensor_file.hpp"

// A run of an experiment, which can be stopped and resumed point by point.
namespace guardbit::experiments {

/// What one point of a sweep gave, and the fingerprint of what went into it.
struct PointResult {
  std::vector<double> values;
  std::uint64_t inputs = 0;

  /// The same NaN is the same result.
  friend bool operator==(const PointResult& x, const PointResult& y) {
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    return x.inputs == y.inputs && std::ranges::equal(x.values, y.values, same);
  }
};
using Points = std::map<std::string, PointResult>;

/// Ends a run that was asked to stop; the points that were finished stay with its owner.
struct Stopped {};

/// One run of an experiment: its settings, what it has computed, and the ways to the core.
class Run {
 public:
  struct Options {
    Settings settings;
    std::uint64_t seed = 1;
    int threads = 0;
    /// of an earlier run with the same settings and seed
    Points known;
    std::function<bool()> stop;
    /// Told after each point that was computed; `share` is between 0 and 1.
    std::function<void(double share)> progress;
    /// Told of each point that was computed; the run's plans and formats include its own by then.
    std::function<void(const Run& run, const std::string& key, const PointResult&)> finished;
  };

  explicit Run(Options options) : options_(std::move(options)) {}

  const Settings& settings() const { return options_.settings; }
  int threads() const { return options_.threads; }
  std::uint64_t seed() const { return options_.seed; }
  Draws draws(std::string_view name) const { return Draws(options_.seed, name); }

  /// Points that the experiment will ask for, once it knows.
  void announce(std::size_t points) { announced_ = points; }

  /// The values of a point: those known already, or what `compute` gives. Throws Stopped.
  const std::vector<double>& point(const std::string& key,
                                   const std::function<std::vector<double>()>& compute);

  // For use by `compute`.

  /// D of the plan. Operands and plan go into the record.
  emulator::CodeMatrix multiply(const emulator::GemmPlan& plan,
                                const emulator::GemmProblem& problem);
  /// The tensors of a file, whose bytes go into the record.
  formats::TensorFile read(const std::string& path);
  void uses(const emulator::CodeMatrix& matrix);
  void uses(const emulator::GemmPlan& plan) { plans_.insert(emulator::to_text(plan)); }
  void uses(std::span<const std::byte> bytes) { inputs_.add(bytes); }
  /// Throws Stopped where a long computation was asked to end.
  void check_stop() const;

  const Points& points() const { return points_; }
  const std::set<std::string>& plans() const { return plans_; }
  const std::set<std::string>& formats() const { return formats_; }

 private:
  Options options_;
  Points points_;
  std::size_t announced_ = 0;
  Fingerprint inputs_;
  std::set<std::string> plans_, formats_;
};

}  // namespace guardbit::experiments
