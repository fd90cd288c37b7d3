#include "tools/products/explanation.hpp"

#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/gemm/plan_engine.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

std::string summary_of(const Explanation& explanation, std::size_t number) {
  const emulator::PlanResult& x = explanation.search.plans[number];
  std::string text = emulator::describe(x.plan);
  if (number == 0)
    for (const emulator::Fault& finding : explanation.findings) text += "; " + finding.text;
  return text;
}

std::string_view engine_of(const emulator::PlanResult& x) {
  return emulator::plan_engine("auto", x.plan).name;
}

/// [[begin, end], ...]: ranges of numbers, the end not included.
nlohmann::ordered_json to_json(const std::vector<emulator::Places>& places) {
  nlohmann::ordered_json j = nlohmann::ordered_json::array();
  for (const emulator::Places& x : places) j.push_back({x.begin, x.end});
  return j;
}

nlohmann::ordered_json to_json(const emulator::Fault& fault) {
  nlohmann::ordered_json j = {{"kind", formats::word_of(fault.kind)}};
  if (!fault.k.empty()) j["k"] = to_json(fault.k);
  if (!fault.rows.empty()) j["rows"] = to_json(fault.rows);
  if (!fault.columns.empty()) j["columns"] = to_json(fault.columns);
  if (fault.value) j["value"] = *fault.value;
  if (!fault.operand.empty()) j["operand"] = fault.operand;
  if (!fault.name.empty()) j["name"] = fault.name;
  j["text"] = fault.text;
  return j;
}

/// How much the result says of the order of its sums.
void print_control(std::ostream& out, const emulator::OrderControl& control) {
  out << "\nWith K in a random order, ";
  const std::string outputs = counted(control.outputs, "output") + " that were tried ";
  const std::string some = std::to_string(control.refuting) + " of " + outputs;
  if (control.refuting == 0)
    out << "all " << outputs << "stay as they are: any order of the sums fits.\n";
  else if (control.refuting * 20 < control.outputs)
    out << "only " << some << "change: the order of the sums hardly shows.\n";
  else
    out << some << "change: they tell the order of the sums.\n";
}

/// What the time allowed to be ruled out.
void print_stop(std::ostream& out, const Explanation& explanation) {
  out << "The search stopped after " << explanation.time_limit
      << " s (--time-limit); a plan that was not tried may give the result.";
  if (!explanation.search.ruled_out.empty()) out << " Ruled out:";
  out << '\n';
  for (const std::string& stage : explanation.search.ruled_out) out << "  " << stage << '\n';
}

/// What a result points to, under a title.
void print_findings(std::ostream& out, const Explanation& explanation, const std::string& title) {
  if (explanation.findings.empty()) return;
  out << '\n' << title << '\n';
  for (const emulator::Fault& finding : explanation.findings) out << "  " << finding.text << '\n';
}

void print_exact(std::ostream& out, const Explanation& explanation) {
  const auto& plans = explanation.search.plans;
  out << paint("explained", Colour::green) << ": " << counted(explanation.outputs, "output")
      << ", 0 mismatches\n\n  " << paint(emulator::to_text(plans[0].plan), Colour::bold) << "\n  "
      << emulator::describe(plans[0].plan) << "\n  engine " << engine_of(plans[0]) << '\n';
  if (explanation.control) print_control(out, *explanation.control);
  print_findings(out, explanation, "What it points to:");
  if (plans.size() == 1) return;
  out << "\nThese operands cannot tell it from:\n";
  for (std::size_t i = 1; i < plans.size(); ++i)
    out << "  " << emulator::to_text(plans[i].plan) << '\n';
  out << emulator::distinguishing_operands(plans) << '\n';
}

/// The verdict in a word, and what it means.
void print_verdict(std::ostream& out, const Explanation& explanation) {
  using emulator::Verdict;
  std::ostringstream some;
  if (explanation.looked_at < explanation.outputs)
    some << ", as far as " << explanation.looked_at << " of " << explanation.outputs
         << " elements tell";
  if (explanation.looked_at == 0)
    out << paint("not judged", Colour::yellow) << ": no output could be looked at";
  else if (explanation.verdict == Verdict::not_judged)
    out << paint("not judged", Colour::yellow) << ": " << emulator::meaning_of(explanation.verdict)
        << ", and no instruction of these formats that was tried gives this result";
  else if (explanation.verdict != Verdict::wrong && !explanation.findings.empty() &&
           !explanation.diagnosis.looks_like_bug)
    out << paint("right", Colour::yellow) << some.str()
        << " if what stands below was meant: beyond that, no element is further from the exact "
           "result than rounding takes it";
  else if (explanation.verdict != Verdict::wrong)
    out << paint("right", Colour::green) << some.str() << ": "
        << emulator::meaning_of(explanation.verdict);
  else if (explanation.wrong == 0)
    out << paint("wrong", Colour::red)
        << ": rounding might take every element there, but this explains them far better";
  else
    out << paint("wrong", Colour::red) << ": " << explanation.wrong << " of "
        << explanation.looked_at
        << " elements are further from the exact result than rounding takes them";
  out << '\n';
  print_findings(out, explanation,
                 explanation.verdict == Verdict::wrong
                     ? paint("This looks like a bug:", Colour::red)
                 : explanation.diagnosis.looks_like_bug
                     ? paint("Up to rounding it is right, but this looks like a bug:", Colour::red)
                     : "What it points to:");
}

void print_plan(std::ostream& out, const emulator::PlanResult& x) {
  out << "\n  " << paint(emulator::to_text(x.plan), Colour::bold) << "\n  "
      << emulator::describe(x.plan) << "\n  engine " << engine_of(x) << '\n';
}

/// "row 3", "rows 3..7"
std::string span(const std::string& noun, std::int64_t first, std::int64_t count) {
  const std::string begin = std::to_string(first);
  return count == 1 ? noun + " " + begin
                    : noun + "s " + begin + ".." + std::to_string(first + count - 1);
}

/// Where the result differs from the nearest plan.
void print_differences(std::ostream& out, const emulator::Diagnosis& d) {
  out << "\n  in " << counted(d.rows, "row") << " and " << counted(d.columns, "column") << ", "
      << counted(d.area_count, "area") << "; median distance " << d.median_distance
      << " ulp, largest " << d.largest_distance << " ulp";
  if (d.nans != 0) out << ", " << d.nans << " NaN in the result only";
  out << '\n';
  for (const emulator::FailedArea& area : d.areas) {
    out << "    " << counted(area.mismatches, "mismatch", "es") << " in "
        << span("row", area.row, area.rows) << ", " << span("column", area.column, area.columns);
    if (area.batch != 0) out << " of batch entry " << area.batch;
    out << '\n';
  }
  if (d.looks_like_bug) return;
  for (const std::string& finding : d.findings) out << "  " << finding << '\n';
}

/// A result that no plan gives as it was asked for.
void print_unexplained(std::ostream& out, const Explanation& explanation) {
  print_verdict(out, explanation);
  const auto& plans = explanation.search.plans;
  if (plans.empty()) {
    if (explanation.search.stopped && explanation.search.tried == 0)
      out << "not explained: there was no time to try a plan\n";
    else if (explanation.search.stopped)
      out << "not explained by " << counted(explanation.search.tried, "plan") << '\n';
    else if (explanation.verdict != emulator::Verdict::wrong)
      out << "not explained: no unit of the catalogue takes these operands\n";
    return;
  }
  if (!explanation.mended_plan.empty()) {
    out << "\nApart from that it is:\n";
    emulator::PlanResult mended = plans.front();
    mended.plan = emulator::parse_plan(explanation.mended_plan, "plan");
    print_plan(out, mended);
    return;
  }
  const emulator::Diagnosis& nearest = explanation.diagnosis;
  out << '\n'
      << paint("not explained", Colour::red) << " by " << explanation.search.tried << " plans";
  if (nearest.outputs == 0) {  // there was no time to compare
    out << '\n';
    return;
  }
  out << "; the nearest leaves " << nearest.mismatches << " of "
      << counted(nearest.outputs, "output");
  // A plan that misses most outputs is not near, but one of many that are as far off.
  if (nearest.mismatches * 2 > nearest.outputs) {
    out << ", so that none comes near\n";
    return;
  }
  out << ":\n";
  print_plan(out, plans.front());
  print_differences(out, explanation.diagnosis);
}

}  // namespace

nlohmann::ordered_json to_json(const Explanation& explanation) {
  nlohmann::ordered_json j = {{"file", explanation.file},
                              {"outputs", explanation.outputs},
                              {"explained", explanation.search.explained()},
                              {"verdict", formats::word_of(explanation.verdict)},
                              {"looked_at", explanation.looked_at},
                              {"largest_error", explanation.largest_error},
                              {"limits", explanation.limits},
                              {"findings", nlohmann::ordered_json::array()},
                              {"plans", nlohmann::ordered_json::array()}};
  for (const emulator::Fault& finding : explanation.findings)
    j["findings"].push_back(to_json(finding));
  for (std::size_t i = 0; i < explanation.search.plans.size(); ++i) {
    const emulator::PlanResult& x = explanation.search.plans[i];
    j["plans"].push_back({{"mismatches", x.mismatches},
                          {"plan", emulator::to_text(x.plan)},
                          {"engine", engine_of(x)},
                          {"summary", summary_of(explanation, i)}});
    if (!explanation.mended_plan.empty()) j["plans"].back()["mended"] = explanation.mended_plan;
  }
  if (explanation.control)
    j["order_control"] = {{"outputs", explanation.control->outputs},
                          {"refuting", explanation.control->refuting}};
  j["stopped"] = explanation.search.stopped;
  j["ruled_out"] = explanation.search.ruled_out;
  return j;
}

void print(std::ostream& out, const Explanation& explanation) {
  out << formats::printable(explanation.file) << "  ";
  if (explanation.search.explained()) {
    print_exact(out, explanation);
  } else {
    print_unexplained(out, explanation);
  }
  for (const std::string& limit : explanation.limits) out << limit << '\n';
  if (explanation.search.stopped) print_stop(out, explanation);
  out << std::fixed << std::setprecision(2) << counted(explanation.search.tried, "plan")
      << " tried, " << explanation.seconds << " s\n";
}

void print_changes(const Explanation& first, const Explanation& second) {
  if (!first.search.explained() || !second.search.explained()) {
    std::cout << "\nWithout an exact plan for both, what changed cannot be said.\n";
    return;
  }
  for (const auto& x : first.search.plans) {
    for (const auto& y : second.search.plans) {
      if (x.plan == y.plan) {
        std::cout << "\nOne plan explains both: " << emulator::to_text(x.plan) << '\n';
        return;
      }
    }
  }
  const auto p = emulator::fields_of(first.search.plans[0].plan);
  const auto q = emulator::fields_of(second.search.plans[0].plan);
  const auto value = [](const std::vector<emulator::PlanField>& fields, const std::string& key) {
    for (const auto& field : fields)
      if (field.key == key) return field.value;
    return std::string("(none)");
  };
  std::cout << "\nWhat changed:\n";
  for (const auto& field : p)
    if (value(q, field.key) != field.value)
      std::cout << "  " << field.key << ": " << field.value << " -> " << value(q, field.key)
                << '\n';
  for (const auto& field : q)
    if (value(p, field.key) == "(none)")
      std::cout << "  " << field.key << ": (none) -> " << field.value << '\n';
}

}  // namespace guardbit::tools
