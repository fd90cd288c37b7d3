#pragma once

#include <string>

#include "emulator/replay/plan_book.hpp"

// Plan books as JSON: {"plan_book": 1, "plans": {SHAPE: [PLAN, ...]}}.
namespace guardbit::tools {

/// Adds what a file holds; an absent file holds nothing. formats::Error for one that is no book.
void read_plan_book(const std::string& path, emulator::replay::PlanBook& book);
/// Writes the file whole or not at all.
void write_plan_book(const std::string& path, const emulator::replay::PlanBook& book);

}  // namespace guardbit::tools
