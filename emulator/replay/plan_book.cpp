#include "emulator/replay/plan_book.hpp"

#include <utility>

namespace guardbit::emulator::replay {

const std::vector<GemmPlan>* PlanBook::find(const std::string& shape) const {
  const auto found = plans_.find(shape);
  return found == plans_.end() ? nullptr : &found->second;
}

void PlanBook::set(const std::string& shape, std::vector<GemmPlan> plans) {
  plans_[shape] = std::move(plans);
}

bool PlanBook::has_failed(const std::string& shape) const { return failed_.contains(shape); }

}  // namespace guardbit::emulator::replay
