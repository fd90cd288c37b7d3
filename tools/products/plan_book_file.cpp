#include "tools/products/plan_book_file.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "formats/files/atomic_output.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/console/read_json.hpp"

namespace guardbit::tools {

nlohmann::ordered_json plans_json(const emulator::replay::PlanBook& book) {
  nlohmann::ordered_json plans = nlohmann::ordered_json::object();
  for (const auto& [shape, list] : book.all()) {
    nlohmann::ordered_json texts = nlohmann::ordered_json::array();
    for (const emulator::GemmPlan& plan : list) texts.push_back(emulator::to_text(plan));
    plans[shape] = std::move(texts);
  }
  return plans;
}

void add_plans(const nlohmann::json& plans, const std::string& where,
               emulator::replay::PlanBook& book) {
  for (const auto& [shape, list] : plans.items()) {
    const std::string place = where + ": " + formats::in_quotes(shape);
    if (!list.is_array() || list.empty()) throw formats::Error(place, "needs a list of plans");
    std::vector<emulator::GemmPlan> read;
    for (const auto& text : list) {
      if (!text.is_string()) throw formats::Error(place, "a plan is a text");
      read.push_back(emulator::parse_plan(text.get<std::string>(), place));
    }
    book.set(shape, std::move(read));
  }
}

void read_plan_book(const std::string& path, emulator::replay::PlanBook& book) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return;
  const std::string where = formats::printable(path);
  const auto document = read_json(path);
  if (!document.is_object() || !document.contains("plan_book") || document["plan_book"] != 1 ||
      !document.contains("plans") || !document["plans"].is_object())
    throw formats::Error(where, "not a plan book of version 1");
  add_plans(document["plans"], where, book);
}

void write_plan_book(const std::string& path, const emulator::replay::PlanBook& book) {
  const nlohmann::ordered_json document = {{"plan_book", 1}, {"plans", plans_json(book)}};
  formats::write_file(path, document.dump(1) + "\n");
}

}  // namespace guardbit::tools
