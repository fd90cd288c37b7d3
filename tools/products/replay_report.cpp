#include "tools/products/replay_report.hpp"

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

}  // namespace

std::string words_of(const CallResult& call) {
  if (!call.first) return call.plan;
  return std::to_string(call.mismatches) + " differ; " + first_text(*call.first) + "; " + call.plan;
}

std::string percent_text(std::int64_t part, std::int64_t whole) {
  // Never 100 % of what is not all.
  const double share =
      whole == 0 ? 100 : 100 * static_cast<double>(part) / static_cast<double>(whole);
  return (part < whole && share > 99.99 ? "99.99" : fixed(share, 2)) + " %";
}

void print_calls(std::ostream& out, const ReplayedFile& file) {
  Table table("rllrl", false);
  for (std::size_t i = 0; i < file.replay.calls.size(); ++i) {
    const CallResult& call = file.replay.calls[i];
    table.add({std::to_string(i), paint(formats::word_of(call.status), colour_of(call.status)),
               formats::printable(file.ops[i], 60),
               call.outputs == 0 ? "" : std::to_string(call.outputs), words_of(call)});
  }
  table.print(out);
}

void print_summary(std::ostream& out, const ReplayedFile& file) {
  const Summary& sum = file.replay.summary;
  const std::int64_t modelled = sum.calls - sum.data - sum.unmodelled;
  out << formats::printable(file.path) << ": " << counted(sum.calls, "call") << ", " << sum.exact
      << " exact, " << sum.differs << " differ, " << sum.unordered << " unordered, "
      << sum.unmodelled << " without a model, " << sum.data << " data\n"
      << "  modelled  " << percent_text(modelled, sum.calls - sum.data)
      << " of the calls that compute\n"
      << "  outputs   " << sum.outputs << ", exact " << percent_text(sum.outputs_exact, sum.outputs)
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

void print_comparison(std::ostream& out, const ComparedFiles& files) {
  const emulator::replay::Comparison& x = files.comparison;
  out << counted(x.paired, "call") << " paired, " << x.equal << " with equal results, "
      << x.with_other_operands << " with other operands\n";
  if (x.parted)
    out << "the programs part at calls " << x.parted->first << " and " << x.parted->second << "\n";
  if (!x.first) {
    out << "no operator gives unequal results for equal operands\n";
    return;
  }
  const emulator::replay::Divergence& first = *x.first;
  out << "first: " << first.op << ", call " << first.call_a << " here and " << first.call_b
      << " there: " << counted(first.differing, "element") << " of result " << first.result
      << " differ\n  element " << first.index << ": " << formats::hex_text(first.type, first.code_a)
      << " (" << formats::shortest_text(first.type, first.code_a) << ") here, "
      << formats::hex_text(first.type, first.code_b) << " ("
      << formats::shortest_text(first.type, first.code_b) << ") there\n";
  if (!first.circumstances.empty()) out << "  " << first.circumstances << "\n";
  out << "  here   " << formats::word_of(files.of_a.status) << ": " << files.of_a.plan
      << "\n  there  " << formats::word_of(files.of_b.status) << ": " << files.of_b.plan
      << "\n  rule   " << files.difference.rule << "\n  equal with  " << files.difference.remedy
      << "\n";
}

nlohmann::ordered_json to_json(const ComparedFiles& files) {
  const emulator::replay::Comparison& x = files.comparison;
  nlohmann::ordered_json json = {{"a", files.a},
                                 {"b", files.b},
                                 {"paired", x.paired},
                                 {"equal", x.equal},
                                 {"other_operands", x.with_other_operands},
                                 {"parted", nullptr},
                                 {"first", nullptr}};
  if (x.parted) json["parted"] = {x.parted->first, x.parted->second};
  if (x.first) {
    json["first"] = {{"op", x.first->op},
                     {"call_a", x.first->call_a},
                     {"call_b", x.first->call_b},
                     {"result", x.first->result},
                     {"differing", x.first->differing},
                     {"index", x.first->index},
                     {"a", formats::hex_text(x.first->type, x.first->code_a)},
                     {"b", formats::hex_text(x.first->type, x.first->code_b)},
                     {"circumstances", x.first->circumstances},
                     {"plan_a", files.of_a.plan},
                     {"plan_b", files.of_b.plan},
                     {"rule", files.difference.rule},
                     {"remedy", files.difference.remedy}};
  }
  return json;
}

}  // namespace guardbit::tools
