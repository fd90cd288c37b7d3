#include "tools/replay/replay_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "formats/text.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {
namespace {

using emulator::replay::CallResult;
using emulator::replay::FirstDifference;
using emulator::replay::Status;
using emulator::replay::Summary;

Colour colour_of(Status status) {
  switch (status) {
    case Status::exact: return Colour::green;
    case Status::differs: return Colour::red;
    case Status::unmodelled: return Colour::yellow;
    case Status::data: return Colour::dim;
    case Status::unordered: return Colour::cyan;
  }
  return Colour::plain;
}

std::string code_text(const FirstDifference& first, std::uint64_t code) {
  return formats::hex_text(first.type, code);
}

std::string number_text(const FirstDifference& first, std::uint64_t code) {
  return formats::shortest_text(first.type, code);
}

std::string first_text(const FirstDifference& first) {
  return (first.result == 0 ? "" : "result " + std::to_string(first.result) + ", ") + "element " +
         std::to_string(first.index) + ": expected " + code_text(first, first.expected) + " (" +
         number_text(first, first.expected) + "), got " + code_text(first, first.got) + " (" +
         number_text(first, first.got) + ")";
}

std::string percent(std::int64_t part, std::int64_t whole) {
  // Never 100 % of what is not all.
  const double share =
      whole == 0 ? 100 : 100 * static_cast<double>(part) / static_cast<double>(whole);
  return (part < whole && share > 99.99 ? "99.99" : fixed(share, 2)) + " %";
}

}  // namespace

void print_calls(std::ostream& out, const ReplayedFile& file) {
  Table table("rllrl", false);
  for (std::size_t i = 0; i < file.replay.calls.size(); ++i) {
    const CallResult& call = file.replay.calls[i];
    std::string words = call.plan;
    if (call.first)
      words =
          std::to_string(call.mismatches) + " differ; " + first_text(*call.first) + "; " + words;
    table.add({std::to_string(i), paint(formats::word_of(call.status), colour_of(call.status)),
               formats::printable(file.ops[i], 60),
               call.outputs == 0 ? "" : std::to_string(call.outputs), words});
  }
  table.print(out);
}

void print_summary(std::ostream& out, const ReplayedFile& file) {
  const Summary& sum = file.replay.summary;
  const std::int64_t modelled = sum.calls - sum.data - sum.unmodelled;
  out << formats::printable(file.path) << ": " << counted(sum.calls, "call") << ", " << sum.exact
      << " exact, " << sum.differs << " differ, " << sum.unordered << " unordered, "
      << sum.unmodelled << " without a model, " << sum.data << " data\n"
      << "  modelled  " << percent(modelled, sum.calls - sum.data) << " of the calls that compute\n"
      << "  outputs   " << sum.outputs << ", exact " << percent(sum.outputs_exact, sum.outputs)
      << ": " << sum.predicted << " predicted, " << sum.explained << " explained\n";
}

nlohmann::ordered_json to_json(const ReplayedFile& file) {
  nlohmann::ordered_json calls = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < file.replay.calls.size(); ++i) {
    const CallResult& call = file.replay.calls[i];
    nlohmann::ordered_json entry = {
        {"op", file.ops[i]},       {"status", formats::word_of(call.status)},
        {"outputs", call.outputs}, {"mismatches", call.mismatches},
        {"first", nullptr},        {"plan", call.plan}};
    if (call.first) {
      entry["first"] = {{"index", call.first->index},
                        {"expected", code_text(*call.first, call.first->expected)},
                        {"got", code_text(*call.first, call.first->got)},
                        {"result", call.first->result}};
    }
    calls.push_back(std::move(entry));
  }
  const Summary& sum = file.replay.summary;
  return {{"file", file.path},
          {"calls", std::move(calls)},
          {"summary",
           {{"calls", sum.calls},
            {"exact", sum.exact},
            {"differs", sum.differs},
            {"unmodelled", sum.unmodelled},
            {"data", sum.data},
            {"unordered", sum.unordered},
            {"outputs", sum.outputs},
            {"outputs_exact", sum.outputs_exact},
            {"predicted", sum.predicted},
            {"explained", sum.explained}}}};
}

}  // namespace guardbit::tools
