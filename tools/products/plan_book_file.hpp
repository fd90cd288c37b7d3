#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "emulator/replay/plan_book.hpp"

// Plan books as JSON: {"plan_book": 1, "plans": {SHAPE: [PLAN, ...]}}.
namespace guardbit::tools {

/// {SHAPE: [PLAN, …]}
nlohmann::ordered_json plans_json(const emulator::replay::PlanBook& book);
/// Adds the same. formats::Error that names `where` for what is none.
void add_plans(const nlohmann::json& plans, const std::string& where,
               emulator::replay::PlanBook& book);

/// Adds what a file holds; an absent file holds nothing. formats::Error for one that is no book.
void read_plan_book(const std::string& path, emulator::replay::PlanBook& book);
/// Writes the file whole or not at all.
void write_plan_book(const std::string& path, const emulator::replay::PlanBook& book);

}  // namespace guardbit::tools
