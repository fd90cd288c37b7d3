#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "emulator/gemm/plan.hpp"

// What is known of a library's matrix products: for each shape the plans that have given all of its
// results so far.
namespace guardbit::emulator::replay {

class PlanBook {
 public:
  /// Likely ones first; null for a shape that is not known. A shape is whatever decides the plan:
  /// operator, formats, sizes, strides.
  const std::vector<GemmPlan>* find(const std::string& shape) const;
  /// In place of what was known.
  void set(const std::string& shape, std::vector<GemmPlan> plans);
  std::size_t size() const { return plans_.size(); }

  /// Seconds that a search for a plan may take.
  double search_seconds = 20;
  /// asked now and then; true ends a search
  std::function<bool()> interrupted = [] { return false; };
  /// Searches that gave nothing are not made again.
  bool has_failed(const std::string& shape) const;
  void set_failed(const std::string& shape) { failed_[shape] = true; }

  /// What another book knows and this one does not.
  void add_unknown(const PlanBook& other) {
    plans_.insert(other.plans_.begin(), other.plans_.end());
  }

  const std::map<std::string, std::vector<GemmPlan>>& all() const { return plans_; }

 private:
  std::map<std::string, std::vector<GemmPlan>> plans_;
  std::map<std::string, bool> failed_;
};

}  // namespace guardbit::emulator::replay
