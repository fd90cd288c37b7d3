#include "tools/products/replayed_file.hpp"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/words.hpp"
#include "tools/products/plan_book_file.hpp"

namespace guardbit::tools {

namespace {

using emulator::replay::CallResult;
using emulator::replay::FirstDifference;
using emulator::replay::Status;
using emulator::replay::Summary;
using Json = nlohmann::ordered_json;

constexpr const char* where = "replay merge";

Json packed(const CallResult& call) {
  Json j = {{"status", formats::word_of(call.status)},
            {"outputs", call.outputs},
            {"mismatches", call.mismatches},
            {"outputs_exact", call.outputs_exact},
            {"plan", call.plan},
            {"predicted", call.is_predicted}};
  if (call.first)
    j["first"] = {{"result", call.first->result},
                  {"index", call.first->index},
                  {"expected", call.first->expected},
                  {"got", call.first->got},
                  {"type", formats::name_of(call.first->type)}};
  return j;
}

CallResult call_of(const Json& j) {
  CallResult call;
  call.status = formats::require_word<Status>("status", j.at("status").get<std::string>(), where);
  call.outputs = j.at("outputs");
  call.mismatches = j.at("mismatches");
  call.outputs_exact = j.at("outputs_exact");
  call.plan = j.at("plan");
  call.is_predicted = j.at("predicted");
  if (!j.contains("first")) return call;
  const Json& first = j["first"];
  call.first =
      FirstDifference{first.at("result"), first.at("index"), first.at("expected"), first.at("got"),
                      formats::require_format(first.at("type").get<std::string>(), where)};
  return call;
}

}  // namespace

Json to_json(const ReplayOutcome& outcome) {
  if (!outcome.file) return {{"error", outcome.error}};
  const ReplayedFile& file = *outcome.file;
  Json calls = Json::array();
  for (const CallResult& call : file.replay.calls) calls.push_back(packed(call));
  return {{"path", file.path},
          {"ops", file.ops},
          {"calls", std::move(calls)},
          {"plans", plans_json(outcome.found)}};
}

ReplayOutcome replay_outcome_of(const Json& json) {
  ReplayOutcome outcome;
  if (json.contains("error")) {
    outcome.error = json["error"];
    return outcome;
  }
  ReplayedFile& file = outcome.file.emplace();
  file.path = json.at("path");
  file.ops = json.at("ops").get<std::vector<std::string>>();
  for (const Json& j : json.at("calls")) {
    file.replay.calls.push_back(call_of(j));
    file.replay.summary.add(file.replay.calls.back());
  }
  if (file.ops.size() != file.replay.calls.size())
    throw formats::Error(where, "a result has another number of names than of calls");
  add_plans(json.at("plans"), where, outcome.found);
  return outcome;
}

}  // namespace guardbit::tools
