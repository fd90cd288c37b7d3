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

void read_plan_book(const std::string& path, emulator::replay::PlanBook& book) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return;
  const std::string where = formats::printable(path);
  const auto document = read_json(path);
  if (!document.is_object() || !document.contains("plan_book") || document["plan_book"] != 1 ||
      !document.contains("plans") || !document["plans"].is_object())
    throw formats::Error(where, "not a plan book of version 1");
  for (const auto& [shape, list] : document["plans"].items()) {
    const std::string place = where + ": " + formats::in_quotes(shape);
    if (!list.is_array() || list.empty()) throw formats::Error(place, "needs a list of plans");
    std::vector<emulator::GemmPlan> plans;
    for (const auto& text : list) {
      if (!text.is_string()) throw formats::Error(place, "a plan is a text");
      plans.push_back(emulator::parse_plan(text.get<std::string>(), place));
    }
    book.set(shape, std::move(plans));
  }
}

void write_plan_book(const std::string& path, const emulator::replay::PlanBook& book) {
  nlohmann::ordered_json plans = nlohmann::ordered_json::object();
  for (const auto& [shape, list] : book.all()) {
    nlohmann::ordered_json texts = nlohmann::ordered_json::array();
    for (const emulator::GemmPlan& plan : list) texts.push_back(emulator::to_text(plan));
    plans[shape] = std::move(texts);
  }
  const nlohmann::ordered_json document = {{"plan_book", 1}, {"plans", std::move(plans)}};
  formats::write_file(path, document.dump(1) + "\n");
}

}  // namespace guardbit::tools
